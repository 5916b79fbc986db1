"""Reach marks: rare states that a campaign must have seen, or it has proved less than it seems.

Code marks a place by the event `reached` with its name as `mark`; a family marks what can be told from a run's events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from harness.scenario.model import Match
from harness.scenario.naming import matching
from harness.scenario.production import Report

REACHED = "reached"


class Mark(NamedTuple):
    """A state by its name, in words, and how a run shows that it was there."""

    name: str
    says: str
    seen: Callable[[Report], bool]


def happens(event: str, who: str = "*", **where: Any) -> Callable[[Report], bool]:
    """A run in which such an event happens."""
    match = Match(event, who, where)
    return lambda report: any(matching(match, report.events))


def happens_after(seconds: float, event: str, **where: Any) -> Callable[[Report], bool]:
    """A run in which such an event happens later than that."""
    match = Match(event, "*", where)
    return lambda report: any(
        each.at_seconds - report.started_seconds > seconds for each in matching(match, report.events)
    )


def overlap(begins: str, ends: Iterable[str]) -> Callable[[Report], bool]:
    """A run in which something begins while another of its kind, by another actor, has not ended."""
    endings = frozenset(ends)

    def seen(report: Report) -> bool:
        under_way: set[str] = set()
        for event in report.events:
            if event.name == begins:
                if under_way - {event.actor}:
                    return True
                under_way.add(event.actor)
            elif event.name in endings:
                under_way.discard(event.actor)
        return False

    return seen


def emitted(name: str) -> Callable[[Report], bool]:
    """A run in which code said that it came to the place of this name."""
    return happens(REACHED, mark=name)


def reached(marks: Iterable[Mark], report: Report) -> tuple[str, ...]:
    """The marks that a run reached, those first that nobody declared but code emitted."""
    told = {str(event.details.get("mark")) for event in report.events if event.name == REACHED}
    names = [mark.name for mark in marks if mark.seen(report)]
    return (*sorted(told - set(names)), *names)


def never(marks: Iterable[Mark], counts: Mapping[str, int]) -> tuple[Mark, ...]:
    """The declared marks that no run reached."""
    return tuple(mark for mark in marks if not counts.get(mark.name))
