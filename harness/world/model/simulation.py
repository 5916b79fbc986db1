"""A whole run in memory: actors, one file system, servers by origin, rows, and the trace of what happened."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from math import inf
from typing import Any, Protocol

from harness.world.errors import WorldFault
from harness.world.model.actors import Actor, Ended, Outcome
from harness.world.model.decisions import START, Calm, Decisions, Recording, Replayed
from harness.world.model.faults import Event, Fault, FaultPlan, Hold
from harness.world.model.files import Node, Tree
from harness.world.model.rows import Table
from harness.world.model.scheduler import (
    STEP_LIMIT,
    WATCHDOG_SECONDS,
    Condition,
    Deadlock,
    Halt,
    Patience,
    ScheduledTask,
    Scheduler,
    StepLimit,
    Wait,
    is_outcome,
)
from harness.world.ports import Program, Request, Response, World
from harness.world.sites import SIGNAL_NUMBERS, origin

FIRST_PID = 100
DEFAULT_START_SECONDS = 1_700_000_000.0


class Server(Protocol):
    """A server is pure: it answers at once, delays are data of the answer."""

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer; `who` is the actor that asks, for judges only."""


Launcher = Callable[[Sequence[str], Mapping[str, str], str], Program | None]
"""From argv, environment and directory to what stands in for the program; None, or an OSError, when nothing does."""


class Growing(Protocol):
    """A stream to which a server may add."""

    def take(self) -> bool:
        """Look for what was added, now that a server has handled a request; False: there is no need to ask again."""


Watcher = Callable[[str, str, bytes | None], None]
"""Told of every arrival at a switch point: the actor's name, the label, what a request carries. It changes nothing."""


class Simulation:
    """Builds and runs one model world, once.

    Servers answer for their origin (scheme, host, port); nothing but them is ever contacted. `launcher` tells what
    stands in for a program; nothing else is ever executed.

    >>> simulation = Simulation()
    >>> async def program(world, argv):
    ...     await world.clock.sleep(5)
    ...     return 0
    >>> actor = simulation.start("sleeper", program)
    >>> simulation.run().seconds
    5.0
    """

    def __init__(
        self,
        decisions: Decisions | None = None,
        *,
        seed: int = 0,
        faults: Sequence[Fault] = (),
        holds: Sequence[Hold] = (),
        servers: Mapping[str, Server] | None = None,
        launcher: Launcher | None = None,
        start_seconds: float = DEFAULT_START_SECONDS,
        step_limit: int = STEP_LIMIT,
        watchdog_seconds: float = WATCHDOG_SECONDS,
        longest_stall_seconds: float = inf,
    ) -> None:
        self._source = decisions or Calm()
        self.decisions = self._source if self._source.calm else Recording(self._source)
        self.scheduler = Scheduler(
            self.decisions,
            now=start_seconds,
            step_limit=step_limit,
            watchdog_seconds=watchdog_seconds,
            longest_stall_seconds=longest_stall_seconds,
        )
        self.switch = self.scheduler.switch
        self.seed, self.started_seconds = seed, start_seconds
        self.faults = FaultPlan(faults)
        self.holds = list(holds)
        self.servers = {origin(url): server for url, server in (servers or {}).items()}
        self.launcher = launcher
        self.tree = Tree(now=start_seconds)
        self.table = Table()
        self.events: list[Event] = []
        self.actors: list[Actor] = []
        self.file_locks: dict[Node, object] = {}
        self.file_freed = Condition()
        self.streams: list[Growing] = []
        self.watcher: Watcher | None = None
        self.closed = False
        self._names: dict[str, int] = {}
        self._happened = Condition()
        self._held: dict[int, int] = {}
        self._released: dict[int, int] = {}
        self._timed_out: list[Hold] = []
        self._misuses: list[WorldFault] = []

    @property
    def now(self) -> float:
        """Virtual time in seconds."""
        return self.scheduler.now

    def start(
        self,
        name: str,
        program: Program,
        argv: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        directory: str = "/",
        user: int = 0,
        parent: Actor | None = None,
        stdin: Sequence[str] = (),
        after_seconds: Sequence[float] = (0.0,),
    ) -> Actor:
        """Make an actor that runs `program`.

        It starts after one of the given times: the first in a calm run, else as decided. Its stdin holds the lines
        given; without a parent that is all that it will read. A name that is taken gets a number: `npx#2`.
        """
        count = self._names[name] = self._names.get(name, 0) + 1
        unique = name if count == 1 else f"{name}#{count}"
        actor = Actor(unique, FIRST_PID + len(self.actors), parent, env or {}, directory, user, stdin)
        self.actors.append(actor)
        chosen = self.decisions.choose(START, len(after_seconds)) if len(after_seconds) > 1 else 0
        self.add_task(actor, self._main(actor, program, argv, after_seconds[chosen]), unique)
        return actor

    def world(self, actor: Actor) -> World:
        """The actor's view of this world."""
        from harness.world.model.actor import ModelWorld

        return ModelWorld(self, actor)

    def add_task(self, actor: Actor, work: Coroutine[Any, Any, Any], name: str) -> ScheduledTask:
        """A task of an actor."""
        task = self.scheduler.start(work, actor, name)
        actor.tasks.append(task)
        return task

    async def _main(self, actor: Actor, program: Program, argv: Sequence[str], after_seconds: float) -> int:
        if after_seconds:
            await Wait((), self.now + after_seconds)
        code = 1  # what a program that raises ends with
        try:
            code = await program(self.world(actor), argv)
            if not isinstance(code, int):
                raise WorldFault(f"{actor.name} returned {code!r}, which is no exit code")
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else 0 if exit_.code is None else 1
        finally:
            self.end(actor, code)
        return code

    def run(self) -> Outcome:
        """Run until every actor has ended or nothing can go on.

        Raises WorldFault when code breaks the rules of the world, Divergence when a replay does not fit. What
        happened until then is in `events`.
        """
        if self.closed:
            raise WorldFault("a simulation runs once")
        verdict, detail = "done", ""
        try:
            self.scheduler.run()
        except Deadlock as deadlock:
            verdict, detail = "deadlock", str(deadlock)
        except StepLimit as limit:
            verdict, detail = "limit", str(limit)
        finally:
            self._close()
        if self._misuses:
            raise self._misuses[0]
        if isinstance(self._source, Replayed):
            self._source.finish()
        taken = self.decisions.taken if isinstance(self.decisions, Recording) else []
        return Outcome(
            verdict,
            detail,
            self.scheduler.steps,
            self.now - self.started_seconds,
            tuple(taken),
            tuple(self.events),
            tuple(self._timed_out),
            tuple(hold for index, hold in enumerate(self.holds) if index not in self._held),
        )

    def misused(self, message: str) -> WorldFault:
        """Code broke the rules where it cannot be stopped: to be raised, and by `run` whatever the subject catches."""
        fault = WorldFault(message)
        self._misuses.append(fault)
        return fault

    def ended(self, actor: Actor) -> Ended:
        """How an actor ended. One that a signal has ended could not ask any more what became of its tasks."""
        main, *others = actor.tasks
        could_ask = actor.exit_code is None or actor.exit_code >= 0
        lost = tuple(task.error for task in others if could_ask and task.error is not None and not task.observed)
        return Ended(actor.exit_code, main.error, lost)

    def emit(self, actor: str, name: str, details: dict[str, Any]) -> None:
        """Write down something that happened."""
        self.events.append(Event(self.scheduler.now, actor, name, details))
        if self._happened.waiters:
            self.scheduler.notify(self._happened)

    async def hold(self, actor: Actor, label: str) -> None:
        """Keep an actor at a switch point as long as the holds say."""
        for index, hold in enumerate(self.holds):
            if self._held.get(index, 0) < hold.times and hold.matches(actor.name, label):
                self._held[index] = self._held.get(index, 0) + 1
                await self._hold(index, hold)

    async def _hold(self, index: int, hold: Hold) -> None:
        seen = len(self.events) if hold.after_arrival else self._released.get(index, 0)
        until = self.now + hold.limit_seconds
        while not await self._met(hold, seen):
            seen = len(self.events)
            if not await Patience((self._happened,), until):
                self._timed_out.append(hold)
                break
        self._released[index] = len(self.events)

    async def _met(self, hold: Hold, seen: int) -> bool:
        try:
            return any(hold.until(event) for event in self.events[seen:])
        except BaseException as error:
            if not isinstance(error, Exception):
                raise
            fault = WorldFault(f"the condition of the hold at {hold.at!r} raised {error!r}")
            fault.__cause__ = error
            await Halt(fault)

    def kill(self, actor: Actor, signal: str = "SIGKILL") -> None:
        """End an actor at once: nothing of it runs any more, its locks, pipes and transactions are freed."""
        if actor.alive:
            self.emit(actor.name, "killed", {"signal": signal})
            self.end(actor, -SIGNAL_NUMBERS[signal])

    def signal(self, actor: Actor, name: str) -> None:
        """Send a signal. SIGKILL ends the actor; so do the others, unless it asks for signals."""
        if name not in SIGNAL_NUMBERS:
            raise WorldFault(f"no signal is called {name!r}")
        if not actor.alive:
            return
        if name == "SIGKILL" or not actor.handles_signals:
            self.kill(actor, name)
        else:
            actor.signals.append(name)
            self.scheduler.notify(actor.signalled)

    def end(self, actor: Actor, code: int) -> None:
        """What the operating system does when a process ends, however it does."""
        if not actor.alive:
            return
        actor.alive, actor.exit_code = False, code
        scheduler = self.scheduler
        scheduler.discard(actor)
        for node in actor.held_files:
            self.file_locks.pop(node, None)
        scheduler.notify(self.file_freed)
        for transaction in actor.transactions:
            if transaction.open:
                transaction.end(keep=False)
        scheduler.notify(self.table.freed)
        actor.stdin.reader_open = False
        for pipe in (actor.stdout, actor.stderr):
            pipe.close_writer(scheduler)
        for child in actor.children:
            child.stdin.close_writer(scheduler)
            child.stdout.reader_open = child.stderr.reader_open = False
        self.emit(actor.name, "ended", {"exit_code": code})
        scheduler.notify(actor.ended)

    def token(self, actor: Actor, characters: int) -> str:
        """Reproducible entropy: from the seed, the actor and how often it asked."""
        actor.draws += 1
        source = f"{self.seed}/{actor.name}/{actor.draws}"
        return hashlib.sha512(source.encode()).hexdigest()[:characters]

    def _close(self) -> None:
        """Drop what was never resumed. Its port calls raise at once, so that no `finally` has an effect."""
        self.closed = True
        for actor in self.actors:
            actor.alive = False
        for task in self.scheduler.tasks:
            if not task.done:
                try:
                    task.coroutine.close()
                except Exception:  # noqa: BLE001, S110 - what the dead raise is nobody's outcome
                    pass
                except BaseException as error:
                    if not is_outcome(error):
                        raise


__all__ = ["Actor", "Ended", "Launcher", "Outcome", "Server", "Simulation"]
