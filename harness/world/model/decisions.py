"""Where a simulated run's choices come from. 0 always means "go on": a list of zeros is the calmest run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import NamedTuple, Protocol

RUN = "run"
STALL = "stall"
FAULT = "fault"
START = "start"


class Decision(NamedTuple):
    """One choice: of which kind, among how many, which."""

    kind: str
    arity: int
    value: int


@lru_cache(maxsize=1024)
def decision(kind: str, arity: int, value: int) -> Decision:
    """One of the few that there are: a run takes them ten thousands of times."""
    return Decision(kind, arity, value)


class Divergence(Exception):  # noqa: N818 - a verdict, not a fault of anybody
    """A replay met another choice than the one that was recorded: the code or the scenario has changed.

    `recorded` is None where the recording had ended, `met` where the run had.
    """

    def __init__(self, index: int, recorded: Decision | None, met: tuple[str, int] | None) -> None:
        was = f"{recorded.kind} of {recorded.arity}" if recorded else "the end of the list"
        found = f"{met[0]} of {met[1]}" if met else "the end of the run"
        super().__init__(f"decision {index}: recorded {was}, met {found}")
        self.index, self.recorded, self.met = index, recorded, met


class Decisions(Protocol):
    """A source of choices. `calm` tells that it only ever answers 0, so that nobody need ask."""

    calm: bool

    def choose(self, kind: str, arity: int) -> int:
        """A number from 0 up to, not including, `arity`, which is at least 2."""


class Calm:
    """Always goes on."""

    calm = True

    def choose(self, kind: str, arity: int) -> int:  # noqa: ARG002 - the same answer to every question
        """0."""
        return 0


Choice = Callable[[str, int], int]
"""From a kind and an arity to a number, as a source's `choose`. A run asks for more than one at each of its steps."""


def drawn(random: Callable[[], float], rates: Mapping[str, float]) -> Choice:
    """0 most of the time, else any other number alike."""

    def choose(kind: str, arity: int) -> int:
        return 0 if random() >= rates[kind] else 1 + int(random() * (arity - 1))

    return choose


def recorded(source: Choice, note: Callable[[Decision], None]) -> Choice:
    """What the source says, told as well."""

    def choose(kind: str, arity: int) -> int:
        value = source(kind, arity)
        note(decision(kind, arity, value))
        return value

    return choose


class Seeded:
    """Draws from a seed. `rates` gives each kind's probability of anything but 0."""

    calm = False

    def __init__(
        self, seed: int, *, run: float = 0.3, stall: float = 0.05, fault: float = 0.1, start: float = 0.5
    ) -> None:
        rates = {RUN: run, STALL: stall, FAULT: fault, START: start}
        self.choose = drawn(Random(seed).random, rates)  # noqa: S311 - reproducible on purpose


class Listed:
    """The given values one after another, 0 when they are used up; a value that does not fit is taken modulo.

    For shrinking and for property tests, where a list may be cut anywhere.
    """

    calm = False

    def __init__(self, values: Iterable[int]) -> None:
        self._values = iter(values)

    def choose(self, kind: str, arity: int) -> int:  # noqa: ARG002 - a bare list knows no kinds
        """The next value."""
        return next(self._values, 0) % arity


class Replayed:
    """A recorded run, strictly: another kind or arity than recorded raises Divergence, and so does an end of the
    run before the recording's last choice that is not 0.

    A recording may leave out its trailing zeros; `complete` tells that it does not.
    """

    calm = False

    def __init__(self, decisions: Sequence[Decision], *, complete: bool = False) -> None:
        self._decisions, self._complete, self._index = decisions, complete, 0

    def choose(self, kind: str, arity: int) -> int:
        """The recorded value."""
        index = self._index
        if index >= len(self._decisions):
            if self._complete:
                raise Divergence(index, None, (kind, arity))
            return 0
        recorded = self._decisions[index]
        if recorded.kind != kind or recorded.arity != arity:
            raise Divergence(index, recorded, (kind, arity))
        self._index = index + 1
        return recorded.value

    def finish(self) -> None:
        """The run has ended: raise Divergence when choices are left that it should have met."""
        for index in range(self._index, len(self._decisions)):
            if self._complete or self._decisions[index].value:
                raise Divergence(index, self._decisions[index], None)


class Recording:
    """Any source, with what it answered written down in `taken`."""

    calm = False

    def __init__(self, source: Decisions) -> None:
        self.taken: list[Decision] = []
        self.choose = recorded(source.choose, self.taken.append)
