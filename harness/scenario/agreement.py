"""Whether two runs of one scenario came out the same, whatever they were played on: outcomes, not times or orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.scenario.happenings import RUNTIME, role_of
from harness.scenario.judging import STATES
from harness.scenario.model import REAL
from harness.scenario.naming import OPERATOR, session_of
from harness.scenario.production import Report

SESSION_EVENTS = ("session.failed", "session.degraded", "session.ended")
UNDECIDED = "pending"
INVARIANT = "the invariant "


def differences(one: Report, other: Report) -> tuple[str, ...]:
    """What came out differently, a line for each; none when the two agree."""
    first, second = dict(outcome(one)), dict(outcome(other))
    compared = dict.fromkeys((*first, *second))
    if REAL in (one.tier, other.tier):
        compared = {what: None for what in compared if knows(first, what) and knows(second, what)}
    return tuple(
        f"{what}: {first.get(what, 'nothing')} at tier {one.tier}, {second.get(what, 'nothing')} at tier {other.tier}"
        for what in compared
        if first.get(what) != second.get(what)
    )


def knows(found: Mapping[str, Any], what: str) -> bool:
    """Whether a run tells of it; a real program does not tell all, and what it does not tell is no difference."""
    return what in found and not (what.startswith(INVARIANT) and found[what] is None)


def outcome(report: Report) -> Iterator[tuple[str, Any]]:
    """All that must be the same at every tier, by what it is about."""
    yield "the verdict", report.verdict.value
    for judged in report.judged:
        yield f"whether {judged.expectation.says}", judged.seen.met
    for finding in report.invariants:
        yield f"{INVARIANT}{finding.name}", finding.holds
    yield from _of_actors(report)


def _of_actors(report: Report) -> Iterator[tuple[str, Any]]:
    """What became of each session, and of the last run of its runtime.

    Left out is what a slower machine changes and no rule promises: how far a server had come when a request left,
    or when the session gave a run up.
    """
    last: dict[str, str] = {}
    for event in report.events:
        session = session_of(event.actor)
        if event.actor != OPERATOR and role_of(event.actor) == RUNTIME:
            last[session] = event.actor
        elif event.name in SESSION_EVENTS:
            yield f"{event.name} of {event.actor}", dict(event.details)
    for session, run in last.items():
        yield from ((f"{what} of the last run of {session}", value) for what, value in _of_run(report, run))


def _of_run(report: Report, run: str) -> Iterator[tuple[str, Any]]:
    calls = []
    for event in report.events:
        if event.actor != run:
            continue
        if event.name in STATES and STATES[event.name] != UNDECIDED:
            yield f"the server {event.details['server']}", STATES[event.name]
        elif event.name == "tool.call":
            calls.append((event.details["server"], event.details["tool"], event.details["ok"]))
        elif event.name == "run.ended":
            yield "the exit code", event.details["exit_code"]
    yield "the calls", sorted(calls)  # those of one turn may run side by side
