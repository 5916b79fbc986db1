"""What plays a scenario, as the operator acts on it and the judges look at it: the same at every tier.

Paths are those of the scenario, as the timeline prints them; `real` tells where one is on this tier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from harness.scenario.cast import RUNTIME_PROGRAMS, Cast
from harness.scenario.chains import Monitor
from harness.scenario.naming import plain
from harness.scenario.sessions import AnyJob, Job
from harness.world import World
from harness.world.model import Event
from harness.world.ports import Stat


class Party(Protocol):
    """An actor as others know it. `exit_code` is None while it runs."""

    @property
    def name(self) -> str: ...

    @property
    def parent(self) -> Party | None: ...

    @property
    def alive(self) -> bool: ...

    @property
    def exit_code(self) -> int | None: ...

    @property
    def variables(self) -> Mapping[str, str]: ...


class Evidence(Protocol):
    """What the judges may look at."""

    @property
    def cast(self) -> Cast: ...

    @property
    def monitor(self) -> Monitor: ...

    @property
    def started_seconds(self) -> float: ...

    @property
    def now(self) -> float: ...

    @property
    def events(self) -> Sequence[Event]: ...

    @property
    def actors(self) -> Sequence[Party]: ...

    @property
    def jobs(self) -> Mapping[str, Job]: ...

    @property
    def given_files(self) -> set[str]: ...

    def stat(self, path: str) -> Stat | None:
        """What is at a path; None when nothing is."""

    def text(self, path: str) -> str | None:
        """A file's text; None where no file can be read."""

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Every file with its path."""

    def row(self, table: str, key: str) -> Mapping[str, Any] | None:
        """The committed values of a row."""

    def rows(self, table: str) -> Mapping[str, Mapping[str, Any]]:
        """All committed rows of a table, by key."""

    def printed(self, actor: Party) -> Mapping[str, str]:
        """All that an actor has printed, by stream."""


class Theatre(Evidence, Protocol):
    """What the operator acts on besides."""

    def real(self, path: str) -> str:
        """Where a path of the scenario is."""

    def localized(self, text: str) -> str:
        """A text of the scenario with the paths in it made real."""

    def make_directory(self, path: str) -> None:
        """With its parents, as a person would before a run."""

    def localized_catalog(self, catalog: Mapping[str, Any]) -> Mapping[str, Any]:
        """The catalog as a session is given it."""

    def put(self, path: str, text: str, mode: int) -> None:
        """A file that is there before anybody acts."""

    def put_row(self, table: str, key: str, values: Mapping[str, Any]) -> None:
        """A row that is there before anybody acts."""

    def start_job(self, job: AnyJob, after_seconds: Sequence[float] = (0.0,)) -> Party:
        """Start an actor of the orchestrator: a session by its name, or whoever acts without one."""

    def signal(self, actor: Any, name: str) -> None:
        """Send a signal."""

    def kill(self, actor: Any) -> None:
        """End an actor at once."""

    async def next_event(self, until_seconds: float | None) -> bool:
        """Wait until anything happens; False when the time came first."""

    async def advance(self, world: World, seconds: float) -> None:
        """Let that much time pass."""

    async def settle(self, world: World, seconds: float) -> None:
        """Give everybody that long to come to an end."""

    async def until_ended(self, actor: Any, until_seconds: float | None) -> bool:
        """Wait until an actor has ended; False when the time came first."""


def is_runtime(actor: Party) -> bool:
    """Whether an actor is a run of a runtime: what a session has started by that name."""
    started_by_session = actor.parent is not None and actor.parent.parent is None
    return started_by_session and plain(actor.name).rpartition("/")[2] in RUNTIME_PROGRAMS
