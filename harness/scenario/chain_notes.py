"""What a monitor of token chains notes: what was presented, what went out of a store, what was written over what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from harness.world.model import Event

Chain = tuple[str, int]
"""The authorization server's name and the number of the family there."""


class Held(NamedTuple):
    """The newest generation of a chain in a store, and the expiry that the store tells of it."""

    number: int
    expires_at: float | None


Chains = Mapping[Chain, Held]


class Watched(Protocol):
    """What the monitor looks at."""

    @property
    def events(self) -> Sequence[Event]: ...

    @property
    def now(self) -> float: ...

    @property
    def jobs(self) -> Mapping[str, Any]: ...

    def rows(self, table: str) -> Mapping[str, Mapping[str, Any]]:
        """All committed rows of a table, by key."""

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Every file with its path."""

    def text(self, path: str) -> str | None:
        """A file's text; None where no file can be read."""


class Past(NamedTuple):
    """All credential rows, by key, as they were from the moment on at which there were so many events."""

    events: int
    rows: Mapping[str, Mapping[str, Any]]


class Attempt(NamedTuple):
    """A refresh token was presented. `held` is what the stores held at that moment, `event` the number of its event.

    `arrival` counts all of them. `wrong` says which rule was broken, `hole` which race it was; both are empty where
    nothing fresher was anywhere. `reuse`: the provider takes it for a second use.
    """

    actor: str
    chain: Chain
    generation: int
    held: Mapping[str, int]
    at: float
    event: int
    arrival: int
    url: str
    wrong: str = ""
    hole: str = ""
    reuse: bool = False

    @property
    def fresher(self) -> tuple[str, ...]:
        """The stores that held something newer."""
        return tuple(sorted(store for store, number in self.held.items() if number > self.generation))


class Note(NamedTuple):
    """An actor did what no rule allows. `event` is how many events there were by then."""

    actor: str
    text: str
    event: int


class Overwrite(NamedTuple):
    """The orchestrator put an older generation over a newer one. `wrong` and `hole` as for an attempt, `event` as for
    a note.
    """

    actor: str
    store: str
    chain: Chain
    before: int
    after: int
    wrong: str = ""
    hole: str = ""
    event: int = 0


class Gone(NamedTuple):
    """An actor took something out of a store: the generation of a chain out of a file, or a chain out of a row."""

    actor: str
    store: str
    arrival: int


class Change(NamedTuple):
    """What a file held before and after an actor of the orchestrator changed it; None where there was, or is, none.

    `event` as for a note.
    """

    actor: str
    path: str
    before: str | None
    after: str | None
    event: int = 0


def is_later(one: float | None, other: float | None) -> bool:
    """Whether an expiry tells by being strictly later that its pair is the newer one."""
    return one is not None and other is not None and one > other
