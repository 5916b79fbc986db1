"""What a run is made of and what is left of it: actors, and outcomes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.world.model.decisions import Decision
from harness.world.model.faults import Event, Hold
from harness.world.model.files import Node
from harness.world.model.pipes import Pipe
from harness.world.model.rows import Changes
from harness.world.model.scheduler import Condition, ScheduledTask


class Actor:
    """A process: its tasks, what it holds, and how it ended."""

    def __init__(
        self,
        name: str,
        pid: int,
        parent: Actor | None,
        env: Mapping[str, str],
        directory: str,
        user: int,
        stdin: Sequence[str] = (),
    ) -> None:
        self.name, self.pid, self.parent = name, pid, parent
        self.children: list[Actor] = []
        if parent is not None:
            parent.children.append(self)
        self.variables, self.directory, self.user = dict(env), directory, user
        self.alive = True
        self.exit_code: int | None = None
        self.ended = Condition()
        self.stdin = Pipe(stdin, writer_open=parent is not None)
        self.stdout, self.stderr = Pipe(), Pipe()
        self.held_files: list[Node] = []
        self.transactions: list[Changes] = []
        self.signals: list[str] = []
        self.signalled = Condition()
        self.handles_signals = False
        self.tasks: list[ScheduledTask] = []
        self.draws = 0


class Ended(NamedTuple):
    """How an actor ended: `error` is what its program raised, `lost` what tasks raised that nobody waited for."""

    exit_code: int | None
    error: BaseException | None
    lost: tuple[BaseException, ...]


class Outcome(NamedTuple):
    """A finished run. `verdict` is done, deadlock or limit; `steps` counts resumptions, `seconds` virtual time.

    `unmet_holds` are those that only their limit ended, `unreached_holds` those at whose point nobody came:
    with either the run did not show what the holds say.
    """

    verdict: str
    detail: str
    steps: int
    seconds: float
    decisions: tuple[Decision, ...]
    events: tuple[Event, ...]
    unmet_holds: tuple[Hold, ...]
    unreached_holds: tuple[Hold, ...] = ()

    @property
    def trace_digest(self) -> str:
        """A digest of all events, in order: equal runs have equal ones, if details are plain values."""
        return digest_of(self.events)


def digest_of(events: tuple[Event, ...]) -> str:
    """A digest of events in their order."""
    return hashlib.sha256(repr(events).encode()).hexdigest()
