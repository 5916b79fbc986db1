"""What the battery says of itself, for reports: plain values."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

QUICK_ENTRIES = 40
"""With more entries than this the quick battery tries every fault on one entry of each shape, one on each other."""


class Mode(StrEnum):
    """How much is tried: every fault on every entry, the same in small catalogs only, or nothing."""

    FULL = "full"
    QUICK = "quick"
    OFF = "off"


class Fact(NamedTuple):
    """What a runtime does to every session with such a fault. `rule` explains it.

    `seconds` is how long the others wait (0: nobody waits); `kinds` are the names of the faults that show it.
    """

    rule: str
    runtime: str
    text: str
    seconds: float
    kinds: tuple[str, ...]


class Tried(NamedTuple):
    """What was tried. `kinds` is the fewest and the most faults of an entry that was struck with all of its own.

    `shapes` is how many entries stand for all (None: every entry was struck with all); `untried` are entries that
    start on no runtime. `spawns` are those with a fault, in `survived` of them the struck server came up all the
    same (a slow install, say); `controls` are those without a fault and those of plain entries.
    `hurt` counts the entries whose failure took something from others.
    """

    mode: Mode
    kinds: tuple[int, int]
    entries: int
    runtimes: int
    spawns: int
    survived: int
    controls: int
    shapes: int | None
    untried: int
    hurt: int
    facts: tuple[Fact, ...]


Progress = Callable[[int, int], None]
"""Told after each entry: how many are done, of how many."""


def no_progress(done: int, of: int) -> None:
    """For whoever does not wait."""
