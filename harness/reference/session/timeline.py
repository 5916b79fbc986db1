"""What a session's timeline says: lines in its row, each told as a log line too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from harness.reference.session import rows
from harness.reference.session.ladder import stamp
from harness.world import World

TIMELINE = "timeline"

Level = Literal["info", "warn", "error"]


class Line(NamedTuple):
    """`kind` is a code for what the line is about. No line holds a credential."""

    level: Level
    kind: str
    text: str


def noted(values: rows.Values, lines: Iterable[Line], now: float) -> rows.Values:
    """The row with these lines at the end of its timeline."""
    added = [{"at": stamp(now), **line._asdict()} for line in lines]
    return {**values, TIMELINE: [*(values.get(TIMELINE) or ()), *added]} if added else values


def tell(world: World, lines: Iterable[Line]) -> None:
    """The same lines in the log."""
    for line in lines:
        world.events.emit("log", level=line.level, text=line.text)
