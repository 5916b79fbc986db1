"""A simulation with a scenario's cast on it: actors named by what they are, everything that was printed kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.scenario.cast import Cast
from harness.scenario.chains import Monitor
from harness.scenario.naming import NamedHold, is_match
from harness.scenario.sessions import AnyJob, Job, run_job
from harness.world import World
from harness.world.model import Actor, Decisions, Event, FaultPlan, Hold, Simulation
from harness.world.model.files import Node
from harness.world.model.pipes import Tee
from harness.world.model.scheduler import Wait
from harness.world.ports import Program, Stat

STEP_LIMIT = 200_000
WATCHDOG_SECONDS = 20.0
LONGEST_STALL_SECONDS = 2.0
"""A busy machine keeps a process off the CPU for a while, but not for the minutes until some budget is over."""


class Point(NamedTuple):
    """A switch point that an actor came to: where a hold can keep it and a fault strike.

    `events` is how many had happened by then.
    """

    at_seconds: float
    actor: str
    label: str
    events: int = 0


class Kept(NamedTuple):
    """What a hold did to an actor, and how many events had happened by then."""

    at_seconds: float
    actor: str
    label: str
    text: str
    events: int


NOBODY = NamedHold("", "", lambda _: True)
"""A hold that meets nobody: with it every switch point is asked about, and can be noted."""


class Plan(FaultPlan):
    """A fault plan that tells which of its faults never struck."""

    def missed(self) -> list[int]:
        """The numbers of the faults, from 0, that were to strike and met nothing; drawn ones need not."""
        return [
            at
            for at, (fault, struck) in enumerate(zip(self.faults, self._struck, strict=True))
            if not struck and not fault.drawn
        ]


class Stage(Simulation):
    """One run of a scenario: who is who, and what each printed."""

    def __init__(self, cast: Cast, decisions: Decisions | None, seed: int, *, notes_points: bool = False) -> None:
        scenario = cast.scenario
        super().__init__(
            decisions,
            seed=seed,
            holds=[
                NamedHold(hold.actor, hold.at, matcher(hold.until), hold.limit_seconds, hold.times)
                for hold in scenario.holds
            ],
            servers=cast.sites,
            launcher=cast.launch,
            step_limit=STEP_LIMIT,
            watchdog_seconds=WATCHDOG_SECONDS,
            longest_stall_seconds=LONGEST_STALL_SECONDS,
        )
        self.cast = cast
        self.faults: Plan = Plan(cast.faults())
        self.points: list[Point] = []
        self.kept: list[Kept] = []
        if notes_points:
            self.holds.append(NOBODY)
        self.jobs: dict[str, Job] = {}
        self.given_files: set[str] = set()
        self.monitor = Monitor(cast.authorizations.servers, self, self.emit)
        if cast.authorizations.servers:
            self.watcher = self.monitor.arrived

    def start(
        self,
        name: str,
        program: Program,
        argv: Sequence[str] = (),
        *,
        parent: Actor | None = None,
        **options: Any,
    ) -> Actor:
        """As a simulation does; a child is called after the server or program that it is."""
        if parent is not None:
            cache = (options.get("env") or {}).get("NPM_CONFIG_CACHE", "")
            name = f"{parent.name}/{self.cast.label(parent.name, argv, cache)}"
        actor = super().start(name, program, argv, parent=parent, **options)
        actor.stdout, actor.stderr = Tee(), Tee()
        return actor

    async def hold(self, actor: Actor, label: str) -> None:
        """As a simulation does; what each hold does is written down, and where points are noted, this one is."""
        if self.holds[-1] is NOBODY:
            self.points.append(Point(self.now - self.started_seconds, actor.name, label, len(self.events)))
        for index, hold in enumerate(self.holds):
            if self._held.get(index, 0) < hold.times and hold.matches(actor.name, label):
                self._held[index] = self._held.get(index, 0) + 1
                await self._keep(actor, label, index, hold)

    async def _keep(self, actor: Actor, label: str, index: int, hold: Hold) -> None:
        came, over = self.now, self._timed_out.count(hold)
        self._note(actor, label, f"is held at {label}")
        await self._hold(index, hold)
        if self._timed_out.count(hold) > over:
            self._note(actor, label, f"goes on at {label}: the hold's limit of {hold.limit_seconds:g} s was over")
        else:
            waited = f" after {self.now - came:.1f} s" if self.now > came else " at once"
            self._note(actor, label, f"goes on at {label}{waited}: what the hold waits for has happened")

    def _note(self, actor: Actor, label: str, text: str) -> None:
        self.kept.append(Kept(self.now - self.started_seconds, actor.name, label, text, len(self.events)))

    async def next_event(self, until_seconds: float | None) -> bool:
        """Wait until anything happens; False when the time came first."""
        return await self._happened.wait(until_seconds)

    async def advance(self, world: World, seconds: float) -> None:
        """Let that much time pass."""
        await world.clock.sleep(seconds)

    async def settle(self, world: World, seconds: float) -> None:
        """Let that much time pass, whoever has ended by then."""
        await world.clock.sleep(seconds)

    async def until_ended(self, actor: Actor, until_seconds: float | None) -> bool:
        """Wait until an actor has ended; False when the time came first."""
        while actor.alive:
            if not await Wait((actor.ended,), until_seconds):
                return False
        return True

    def start_job(self, job: AnyJob, after_seconds: Sequence[float] = (0.0,)) -> Actor:
        """Start an actor of the orchestrator: a session by its name, or whoever acts without one."""

        async def program(own: World, _argv: Any) -> int:
            if isinstance(job, Job):
                self.jobs[own.name] = job
            return await run_job(own, job)

        return self.start(job.actor, program, env=job.environment, directory=job.clone, after_seconds=after_seconds)

    def real(self, path: str) -> str:
        """Where a path of the scenario is: the file system is the scenario's own."""
        return path

    def localized(self, text: str) -> str:
        """A text of the scenario with the paths in it made real."""
        return text

    def make_directory(self, path: str) -> None:
        """With its parents, as a person would before a run."""
        self.tree.make_directory(path, 0o755, 0, self.now)

    def put(self, path: str, text: str, mode: int) -> None:
        """A file that is there before anybody acts."""
        self.make_directory(path.rpartition("/")[0] or "/")
        self.tree.write(path, text.encode(), mode, 0, self.now)
        self.given_files.add(path)

    def localized_catalog(self, catalog: Mapping[str, Any]) -> Mapping[str, Any]:
        """The catalog as a session is given it."""
        return catalog

    def put_row(self, table: str, key: str, values: Mapping[str, Any]) -> None:
        """A row that is there before anybody acts."""
        self.table.committed[table, key] = dict(values)

    def stat(self, path: str) -> Stat | None:
        """What is at a path; None when nothing is."""
        return self.tree.stat(path, 0)

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Every file with its path."""
        return files(self.tree.root, "")

    def row(self, table: str, key: str) -> Mapping[str, Any] | None:
        """The committed values of a row."""
        return self.table.committed.get((table, key))

    def rows(self, table: str) -> Mapping[str, Mapping[str, Any]]:
        """All committed rows of a table, by key."""
        return {key: values for (name, key), values in self.table.committed.items() if name == table}

    def text(self, path: str) -> str | None:
        """A file's text; None where no file can be read."""
        try:
            return self.tree.read(path, 0).decode("utf-8", "replace")
        except OSError:
            return None

    def printed(self, actor: Any) -> Mapping[str, str]:
        """All that an actor has printed, by stream."""
        return {
            name: "\n".join(pipe.written)
            for name, pipe in (("stdout", actor.stdout), ("stderr", actor.stderr))
            if isinstance(pipe, Tee)
        }


def files(node: Node, path: str) -> Iterator[tuple[str, bytes]]:
    """Every file with its path."""
    pending = [(path, node)]
    while pending:
        at, here = pending.pop()
        if here.content is not None:
            yield at or "/", here.content
        elif here.children:
            pending += [(f"{at}/{name}", child) for name, child in reversed(here.children.items())]


def matcher(match: Any) -> Any:
    """A match as a condition on events."""
    return lambda event: is_match(match, event) if isinstance(event, Event) else False
