"""A directory that becomes a link to outside while guard or heal are at work: at every step of theirs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.world.model.faults import FaultPlan
from harness.world.outside.controller import Arrival, Controller
from harness.world.outside.setting import Setting
from scenarios.real_files.ground import (
    ANY_TREE,
    BIN,
    KEY,
    Ground,
    corrupt,
    ground,
    guard,
    heal,
    install,
    listing,
    mode_of,
)

Act = Callable[[int, str], None]


class Watcher(Controller):
    """Does something at a switch point, while the actor stands at it."""

    def __init__(self, path: str) -> None:
        super().__init__(path, launcher=lambda *_: None, endpoints={}, faults=FaultPlan())
        self.act: Act = lambda _number, _label: None
        self.labels: list[str] = []

    def arrived(self, arrival: Arrival) -> None:
        self.labels.append(arrival.label)
        self.act(len(self.labels) - 1, arrival.label)

    def watch(self, act: Act) -> Setting:
        """The setting of the next actor, at whose points this happens."""
        self.act, self.labels = act, []
        return Setting(f"zimmer-{len(self.actors)}", control=self.path)


@contextmanager
def watcher() -> Iterator[Watcher]:
    with tempfile.TemporaryDirectory(prefix="npx-") as directory:
        controller = Watcher(f"{directory}/control")
        with controller:
            yield controller


def swapped(victim: Path, twin: Path) -> None:
    """Move what is there away and put a link in its place."""
    victim.rename(victim.with_name(f"{victim.name}.aside"))
    victim.symlink_to(twin)


CACHE = ".npm-cache"
VICTIMS = [
    CACHE,
    f"{CACHE}/_npx",
    f"{CACHE}/_npx/{KEY}",
    f"{CACHE}/_npx/{KEY}/node_modules",
    f"{CACHE}/_npx/{KEY}/{BIN}",
    f"{CACHE}/_npx/{KEY}/node_modules/cowsay",
    f"{CACHE}/_npx/{KEY}/node_modules/cowsay/dist",
]


def prepared(place: Ground) -> tuple[Path, Path]:
    """A clone's cache that needs repair, and its twin outside; the answer are their programs."""
    return install(place.tree, mode=0o644), install(place.outside / CACHE / "_npx" / KEY, mode=0o644)


def steps(work: Callable[[Ground, Setting], object], controller: Watcher) -> list[str]:
    """The labels of a run that nobody disturbs, told without the place."""
    with ground() as place:
        prepared(place)
        work(place, controller.watch(lambda _number, _label: None))
        return [place.relative(label) for label in controller.labels]


def disturbed(place: Ground, victim: str, at: int, controller: Watcher) -> Setting:
    """A setting in which a part of the cache is swapped for its twin outside at one step."""

    def act(number: int, _label: str) -> None:
        if number == at and (place.clone / victim).exists():
            swapped(place.clone / victim, place.outside / victim)

    return controller.watch(act)


def guarding(place: Ground, setting: Setting) -> list[str]:
    return [repair.link for repair in guard(place, setting=setting).repairs]


def healing(place: Ground, setting: Setting) -> tuple[str, ...]:
    return heal(place, corrupt(place.tree), ANY_TREE, setting=setting).removed


@pytest.mark.requirement("npx-layout-containment-resolved", "npx-guard-shim-outside-refused")
@pytest.mark.parametrize("victim", VICTIMS)
def test_a_swap_at_any_step_of_the_guard_changes_no_mode_outside(victim):
    with watcher() as controller:
        undisturbed = steps(guarding, controller)
        assert undisturbed[-1].startswith("chmod ")
        for at in range(len(undisturbed)):
            with ground() as place:
                _, twin = prepared(place)
                before = listing(place.outside)
                repairs = guard(place, setting=disturbed(place, victim, at, controller)).repairs
                assert len(controller.labels) > at, "the swap took place"
                assert listing(place.outside) == before, undisturbed[at]
                assert mode_of(twin) == 0o644
                assert all(repair.target.startswith(f"{place.clone}/") for repair in repairs)


@pytest.mark.requirement("npx-guard-root-outside-not-walked", "npx-guard-shim-outside-refused")
def test_a_root_is_looked_at_before_the_walk_and_a_link_of_it_after_it():
    """The two checks of containment, each alone: what the first let pass, the second refuses."""
    with watcher() as controller, ground() as place:
        prepared(place)
        root, shims = place.cache / "_npx", place.tree / BIN

        def act(_number: int, label: str) -> None:
            if label == f"list {shims}":
                swapped(shims, place.outside / CACHE / "_npx" / KEY / BIN)

        plan = guard(place, setting=controller.watch(act))
        assert (plan.repairs, plan.refusals) == ((), (f"{CACHE}/_npx/{KEY}/{BIN}/cowsay",))
        walked = len(controller.labels)
        swapped(root, place.outside / CACHE / "_npx")
        plan = guard(place, setting=controller.watch(lambda _number, _label: None))
        assert (plan.repairs, plan.refusals) == ((), ())
        assert len(controller.labels) < walked
        assert not any(str(place.outside) in label and label.startswith("list") for label in controller.labels)


@pytest.mark.requirement("npx-layout-containment-resolved", "npx-heal-containment")
@pytest.mark.parametrize("victim", VICTIMS[:3])
def test_a_swap_at_any_step_of_the_heal_removes_nothing_outside(victim):
    with watcher() as controller:
        undisturbed = steps(healing, controller)
        for at in range(len(undisturbed)):
            with ground() as place:
                prepared(place)
                before = listing(place.outside)
                removed = healing(place, disturbed(place, victim, at, controller))
                assert len(controller.labels) > at, "the swap took place"
                assert listing(place.outside) == before, undisturbed[at]
                assert all(tree.startswith(f"{place.cache}/") for tree in removed)
