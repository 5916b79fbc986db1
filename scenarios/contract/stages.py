"""Where a group of cases is run: in memory, or as processes that a controller steers; and what was seen of it."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fake_servers.mounts import Mount, TestAuthority
from harness.world.model import Fault, FaultPlan, Hold, Simulation
from harness.world.model.decisions import Decisions
from harness.world.model.simulation import DEFAULT_START_SECONDS
from harness.world.outside.control import Launch
from harness.world.outside.controller import Controller, Steered
from harness.world.outside.reaping import marked, reap
from harness.world.outside.setting import CONTROL_VARIABLE, NAME_VARIABLE, Setting, anchored
from harness.world.sites import ACTIONS
from scenarios.contract import faults, http, store
from scenarios.contract.cases import PROGRAMS, RESULT, batch

MODEL, BLOCKING, LIVE = "model", "blocking", "live"
REPOSITORY = Path(__file__).parents[2]
RUNNER = Path(__file__).parent / "runner.py"
SUBJECT = "subject"
ENVIRONMENT = {"GIVEN": "yes", "LC_ALL": "C.UTF-8"}
STDIN = ("one", "two", "", "last")
NOBODY = 65_534
SCALE = 20.0
LIMIT_SECONDS = 60.0
LEAVING_SECONDS = 10.0
"""How long a process may take between telling its end and being gone."""
UNANSWERED = "unanswered"
"""In the labels of requests to which no answer ever comes: of those, only the model can tell a status."""

Point = tuple[str, str, tuple[str, ...]]
"""The port, the label, and what may strike there."""


class NotingPlan(FaultPlan):
    """Faults, and every switch point that was asked for, by actor."""

    def __init__(self, planned: Sequence[Fault], root: str) -> None:
        super().__init__([*planned, Fault("kill", actor="nobody")])
        self.points: dict[str, list[Point]] = {}
        self._root = root

    def concerns(self, port: str, actor: str, label: str) -> bool:
        """Every switch point."""
        return True

    def strike(
        self,
        port: str,
        actor: str,
        label: str,
        now: float,
        decisions: Decisions,
        actions: frozenset[str] = ACTIONS,
        content: str = "",
    ) -> Fault | None:
        """As asked."""
        self.points.setdefault(actor, []).append((port, label.replace(self._root, ""), tuple(sorted(actions))))
        return super().strike(port, actor, label, now, decisions, actions, content)


class Seen(NamedTuple):
    """A run: what each case answered, where each actor came by, what happened to each, and what was left of it all."""

    results: Mapping[str, Any]
    points: Mapping[str, Sequence[Point]]
    events: Mapping[str, Sequence[tuple[str, Any]]]
    exit_code: int | None
    printed: Mapping[str, Sequence[str]]
    unmet: Sequence[Hold]
    left: Sequence[str]


class Conditions(NamedTuple):
    """Under which a group runs."""

    faults: Sequence[Fault] = ()
    holds: Sequence[Hold] = ()
    serves: bool = False
    user: bool = False


CONDITIONS = {
    "http": Conditions(http.FAULTS, serves=True),
    "store": Conditions(store.FAULTS),
    "faults": Conditions(faults.FAULTS),
    "spawn faults": Conditions(faults.SPAWN_FAULTS),
    "holds": Conditions(holds=faults.HOLDS),
    "unprivileged": Conditions(user=True),
}
WITHOUT_A_STORE = {BLOCKING: {"store"}}


def drivers_of(group: str) -> list[str]:
    """Who can run a group."""
    return [driver for driver in (MODEL, BLOCKING, LIVE) if group not in WITHOUT_A_STORE.get(driver, ())]


@cache
def seen(driver: str, group: str) -> Seen:
    """A group's run on a driver, once."""
    conditions = CONDITIONS.get(group, Conditions())
    return in_memory(group, conditions) if driver == MODEL else as_processes(driver, group, conditions)


def in_memory(group: str, conditions: Conditions) -> Seen:
    """By the model, in virtual time."""
    simulation = Simulation(
        holds=conditions.holds,
        servers=http.servers() if conditions.serves else {},
        launcher=lambda argv, env, directory: PROGRAMS.get(argv[0]),
    )
    plan = simulation.faults = NotingPlan(conditions.faults, "/root")
    simulation.tree.make_directory("/root", 0o777, 0, 0.0)
    user = NOBODY if conditions.user else 0
    actor = simulation.start(SUBJECT, batch(group), [group], env=ENVIRONMENT, directory="/root", user=user, stdin=STDIN)
    outcome = simulation.run()
    assert outcome.verdict == "done", outcome.detail
    error = simulation.ended(actor).error
    if error is not None:
        raise error
    happened = [(event.actor, event.name, event.details) for event in outcome.events]
    printed = {"stdout": list(actor.stdout.lines), "stderr": list(actor.stderr.lines)}
    return told(happened, "/root", plan, actor.exit_code, printed, outcome.unmet_holds, ())


def as_processes(driver: str, group: str, conditions: Conditions) -> Seen:
    """By a real driver, each actor a process."""
    folder = Path(tempfile.mkdtemp(prefix="contract-")).resolve()
    root = folder / "root"
    root.mkdir()
    if conditions.user and os.getuid() == 0:
        folder.chmod(0o711)
        os.chown(root, NOBODY, NOBODY)
    authority = TestAuthority(folder)
    pace = anchored(SCALE, DEFAULT_START_SECONDS)
    plan = NotingPlan(conditions.faults, "ROOT")
    command = [sys.executable, str(RUNNER), driver, str(folder / "rows.db"), str(NOBODY) if conditions.user else "-"]

    def launch(parent: Steered, argv: Sequence[str], env: Mapping[str, str], directory: str) -> Launch | None:
        name = f"{parent.name}/{env.get(NAME_VARIABLE, argv[0])}"
        given = [argv[0], *(word.replace("ROOT", str(root)) for word in argv[1:])]
        return Launch((*command, *given), name, {}) if argv[0] in PROGRAMS else None

    def normal(text: str) -> str:
        return text.replace(str(root), "ROOT")

    mount = Mount(http.servers() if conditions.serves else {}, pace=pace, authority=authority)
    controller = Controller(
        str(folder / "control"),
        launcher=launch,
        endpoints={},
        faults=plan,
        holds=conditions.holds,
        pace=pace,
        normal=normal,
    )
    mark = f"{CONTROL_VARIABLE}={controller.path}"
    try:
        with mount, controller:
            controller.endpoints = {origin: port for origin, (_, port) in mount.addresses.items()}
            controller.register(SUBJECT, None, {})
            Path(controller.path).chmod(0o777)
            setting = Setting(SUBJECT, controller.path, "", pace, str(authority.path))
            finished = subprocess.run(
                [*command, group],
                input="\n".join(STDIN) + "\n",
                env=ENVIRONMENT | setting.variables(),
                cwd=root,
                capture_output=True,
                text=True,
                timeout=LIMIT_SECONDS,
                check=False,
            )
            controller.wait(
                lambda: not any(actor.alive for actor in controller.actors), pace.now() + LEAVING_SECONDS * SCALE
            )
            left = [f"process {pid}" for pid in sorted(marked(mark)) if not has_left(pid)]
    finally:
        reap(mark)
        shutil.rmtree(folder)
    assert finished.returncode == 0, finished.stderr
    happened = [(event.actor, event.name, event.details) for event in controller.events]
    printed = {"stdout": finished.stdout.splitlines(), "stderr": finished.stderr.splitlines()}
    return told(happened, "ROOT", plan, finished.returncode, printed, controller.unmet, left)


def has_left(pid: int) -> bool:
    """Whether a process ends by itself before long."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    ended = bool(poll.poll(LEAVING_SECONDS * 1_000))
    os.close(descriptor)
    return ended


def told(
    happened: Sequence[tuple[str, str, Mapping[str, Any]]],
    root: str,
    plan: NotingPlan,
    exit_code: int | None,
    printed: Mapping[str, Sequence[str]],
    unmet: Sequence[Hold],
    left: Sequence[str],
) -> Seen:
    """What was seen, in words that are the same everywhere."""
    results: dict[str, Any] = {}
    events: dict[str, list[tuple[str, Any]]] = {}
    for actor, name, details in json.loads(json.dumps(happened, default=str).replace(root, "")):
        if name == RESULT:
            results[details["case"]] = details["value"]
        elif name != "request" or UNANSWERED not in details["at"]:
            events.setdefault(actor, []).append((name, details))
    return Seen(results, plan.points, events, exit_code, printed, unmet, left)
