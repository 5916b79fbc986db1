"""Two real processes of the fake npx in one cold tree, and with the caches that the isolator plans for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fake_servers
from fake_servers.npm.arguments import install_key, parse
from harness.reference.npx import heal, isolation
from harness.world.model.faults import Event, Fault, FaultPlan, Hold
from harness.world.outside.controller import Controller
from harness.world.outside.setting import Setting
from scenarios.real_files import ground as grounds
from scenarios.real_files.ground import Ground, ground

NPX = Path(fake_servers.__file__).with_name("bin") / "npx"
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
SPEC = "cowsay@latest"
KEY = install_key(parse([SPEC]))
REGISTRY = {"cowsay": {"version": "1.6.0", "install_seconds": 0, "steps": 3}}
PATIENCE_SECONDS = 60.0
TWINS = ("twin-a", "twin-b")


class Ended(NamedTuple):
    """A process that has ended."""

    code: int
    out: str
    errors: str

    @property
    def connected(self) -> bool:
        """Did it answer `initialize` and end well?"""
        return self.code == 0 and '"protocolVersion"' in self.out


@contextmanager
def steered(place: Ground, holds: Sequence[Hold] = (), faults: Sequence[Fault] = ()) -> Iterator[Controller]:
    """A controller for processes on this ground; each hold must have held, and have been let go."""
    control = str(place.root / "control")
    with (
        Controller(
            control, launcher=lambda *_: None, endpoints={}, faults=FaultPlan(faults), holds=holds
        ) as controller,
        controller.limited(PATIENCE_SECONDS),
    ):
        yield controller
        assert (controller.unreached, controller.unmet) == ([], [])


def raced(place: Ground, controller: Controller, caches: Mapping[str, str]) -> dict[str, Ended]:
    """All of them started at once, each with its cache; the answer is how they ended."""
    running: dict[str, subprocess.Popen[str]] = {}
    try:
        for name, cache in caches.items():
            variables = {
                "PATH": os.environ["PATH"],
                "HOME": str(place.root / "home"),
                isolation.CACHE_VARIABLE: cache,
                "MCP_FAKE_REGISTRY": json.dumps(REGISTRY),
                **Setting(name, control=controller.path).variables(),
            }
            running[name] = subprocess.Popen(
                [sys.executable, "-IS", NPX, "-y", SPEC],
                env=variables,
                cwd=place.root,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        ended = {}
        for name, process in running.items():
            out, errors = process.communicate(json.dumps(HELLO) + "\n", PATIENCE_SECONDS)
            ended[name] = Ended(process.returncode, out, errors)
        return ended
    finally:
        for process in running.values():
            process.kill()
            process.communicate()


def at(actor: str, label: str, until: str, of: str) -> Hold:
    """Keep one of the two at a point until that has happened to the other."""
    return Hold(actor, label, lambda event: (event.actor, event.name) == (of, until))


def lost_rename() -> list[Hold]:
    """Both unpack the package; the second one finds its place taken."""
    return [
        at("twin-a", "rename *", "install.started", "twin-b"),
        at("twin-b", "rename *", "install.finished", "twin-a"),
    ]


def half_tree() -> list[Hold]:
    """The second one comes while the first is still unpacking, and takes the package for installed."""
    return [
        at("twin-a", "write */dist/part-2.js", "ended", "twin-b"),
        Hold("twin-b", "stat */node_modules/cowsay/package.json", lambda event: event.name == "moved"),
    ]


class Telling(Controller):
    """Emits `moved` when an actor has its package in place, with the first of its pieces."""

    def arrived(self, arrival: Any) -> None:
        if arrival.label.startswith("write ") and arrival.label.endswith("/cowsay/dist/part-2.js"):
            self.emit(arrival.actor.name, "moved", {})


def cold(place: Ground) -> Mapping[str, str]:
    """One cache for both, as without the isolator."""
    return dict.fromkeys(TWINS, str(place.cache))


def planned(place: Ground) -> Mapping[str, str]:
    """The caches that the isolator plans for two servers of one package."""
    servers = {name: {"command": "npx", "args": ["-y", SPEC]} for name in TWINS}
    return isolation.cache_directories(str(place.clone), servers)


def named(events: Sequence[Event], name: str) -> list[str]:
    """Which actors an event happened to."""
    return [event.actor for event in events if event.name == name]


@pytest.mark.requirement("npx-isolate-cold-race", "npx-heal-detects")
def test_the_second_of_two_processes_that_install_into_one_tree_finds_its_place_taken():
    with ground() as place, steered(place, lost_rename()) as controller:
        ended = raced(place, controller, cold(place))
        assert ended["twin-a"].connected, ended
        assert ended["twin-b"].code == 1
        tree = f"{place.cache}/_npx/{KEY}"
        assert (
            f"npm error ENOTEMPTY: directory not empty, rename '{tree}/node_modules/.cowsay-" in ended["twin-b"].errors
        )
        assert heal.is_corruption(ended["twin-b"].errors)
        assert heal.named_trees(ended["twin-b"].errors) == (tree,)
        assert named(controller.events, "install.failed") == ["twin-b"]


@pytest.mark.requirement("npx-isolate-cold-race", "npx-heal-detects", "npx-heal-then-retry-connects")
def test_a_process_that_comes_while_another_unpacks_runs_half_a_package_and_a_heal_mends_it():
    with ground() as place:
        telling = Telling(
            str(place.root / "control"), launcher=lambda *_: None, endpoints={}, faults=FaultPlan(), holds=half_tree()
        )
        with telling as controller, controller.limited(PATIENCE_SECONDS):
            ended = raced(place, controller, cold(place))
            assert (controller.unreached, controller.unmet) == ([], [])
        assert ended["twin-a"].connected, ended
        assert ended["twin-b"].code == 1
        assert "Error: Cannot find module './part-2.js'" in ended["twin-b"].errors
        assert named(controller.events, "install.incomplete") == ["twin-b"]
        tree = str(place.cache / "_npx" / KEY)
        assert grounds.heal(place, ended["twin-b"].errors).removed == (tree,)
        with steered(place) as again:
            assert raced(place, again, {"twin-b": str(place.cache)})["twin-b"].connected


def two_sessions(place: Ground) -> Mapping[str, str]:
    """The caches of one server in two clones."""
    entry = {"memory": {"command": "npx", "args": ["-y", SPEC]}}
    clones = {name: str(place.base / name) for name in TWINS}
    return {name: isolation.cache_directories(clone, entry)["memory"] for name, clone in clones.items()}


@pytest.mark.requirement("npx-isolate-cold-race", "npx-isolate-each", "npx-pin-two-sessions-disjoint")
@pytest.mark.parametrize("caches_of", [planned, two_sessions])
def test_two_processes_with_the_caches_that_are_planned_for_them_both_come_through_the_same_race(caches_of):
    with ground() as place, steered(place, lost_rename()) as controller:
        caches = caches_of(place)
        assert len(set(caches.values())) == len(TWINS)
        ended = raced(place, controller, caches)
        assert all(one.connected for one in ended.values()), ended
        assert sorted(named(controller.events, "install.finished")) == list(TWINS)
        assert not (place.cache / "_npx").exists()
        assert not (place.root / "home/.npm").exists()
        for cache in caches.values():
            assert (Path(cache) / "_npx" / KEY / grounds.PROGRAM).exists()


@pytest.mark.requirement("npx-heal-covers-other-causes", "npx-heal-then-retry-connects")
def test_an_install_that_is_killed_leaves_a_tree_that_fails_until_it_is_healed():
    with ground() as place:
        cache = {"only": str(place.cache)}
        kill = Fault("kill", label="write */dist/part-2.js")
        with steered(place, faults=[kill]) as controller:
            assert raced(place, controller, cache)["only"].code == -9
        with steered(place) as controller:
            broken = raced(place, controller, cache)["only"]
            assert (broken.code, broken.connected) == (1, False)
            assert grounds.heal(place, broken.errors).removed == (str(place.cache / "_npx" / KEY),)
            assert raced(place, controller, cache)["only"].connected


@pytest.mark.requirement("npx-guard-repairs-0644", "npx-guard-next-launch-repairs")
def test_a_program_that_was_installed_without_its_execute_bit_runs_once_the_guard_has_been_there(monkeypatch):
    monkeypatch.setitem(REGISTRY, "cowsay", {**REGISTRY["cowsay"], "bin_mode": "0644"})
    with ground() as place, steered(place) as controller:
        cache = {"only": str(place.cache)}
        denied = raced(place, controller, cache)["only"]
        assert (denied.code, denied.errors) == (127, "sh: 1: cowsay: Permission denied\n")
        program = place.cache / "_npx" / KEY / grounds.BIN / "cowsay"
        with pytest.raises(PermissionError):
            subprocess.run([program], check=False)
        assert [repair.mode for repair in grounds.guard(place).repairs] == [0o755]
        assert raced(place, controller, cache)["only"].connected
        by_itself = subprocess.run(
            [program], input=json.dumps(HELLO) + "\n", capture_output=True, text=True, check=True
        )
        assert '"protocolVersion"' in by_itself.stdout
