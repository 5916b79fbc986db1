"""Whether two runs of one scenario came out the same, whatever they were played on: outcomes, not times or orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from harness.scenario import model
from harness.scenario.judging import NOT_STARTED, STATES
from harness.scenario.production import CUT_OFF, Judged, Report
from harness.scenario.sentences import said
from harness.scenario.session_runs import chosen, session_runs
from harness.scenario.tiers import PROCESS, REAL
from harness.scenario.verdicts import Verdict

SESSION_EVENTS = ("session.failed", "session.degraded", "session.ended")
UNDECIDED = "pending"
START_SECONDS = 0.1
"""What starting a process takes, in real seconds, on a machine that has nothing else to do."""


class Fact(NamedTuple):
    """Something that must be the same. `value` None: nothing that counts, which `word` tells in words.

    `waits`: how long something took, or how long somebody waited for it, can make it another.
    """

    value: Any
    word: str = ""
    waits: bool = False

    def __str__(self) -> str:
        return self.word or str(self.value)


NOTHING = Fact(None, "nothing")
OF_NO_SERVER = Fact(None, NOT_STARTED, waits=True)
"""A server of which the last run tells nothing, where the other one does."""


def differences(one: Report, other: Report) -> tuple[str, ...]:
    """What came out differently, a line for each; none when the two agree."""
    first, second = dict(outcome(one)), dict(outcome(other))
    compared = dict.fromkeys((*first, *second))
    if REAL in (one.tier, other.tier):
        compared = {what: None for what in compared if knows(first, what) and knows(second, what)}
    lines = []
    for what in compared:
        here, there = (found.get(what) or absent(what) for found in (first, second))
        if here.value != there.value:
            hint = too_fast(one, other) if here.waits or there.waits else ""
            lines.append(f"{what}: {here} at tier {one.tier}, {there} at tier {other.tier}{hint}")
    return tuple(lines)


def knows(found: Mapping[str, Fact], what: str) -> bool:
    """Whether a run tells of it; a real program does not tell all, and what it does not tell is no difference."""
    return what in found and found[what].value is not None


def absent(what: str) -> Fact:
    """What a run says of something that it does not tell of."""
    return OF_NO_SERVER if what.startswith("the server ") else NOTHING


def too_fast(one: Report, other: Report) -> str:
    """What to try where waits came out differently: real processes had little time for what they do between them."""
    scale = one.scenario.time_scale
    if PROCESS not in (one.tier, other.tier) or scale <= 1:
        return ""
    return f"; to start a process takes {START_SECONDS * scale:g} s at time_scale {scale:g}: try a lower one"


def outcome(report: Report) -> Iterator[tuple[str, Fact]]:
    """All that must be the same at every tier, by what it is about."""
    yield "the verdict", Fact(report.verdict.value, waits=report.verdict is Verdict.TIMEOUT)
    names = [said(judged.expectation, report.scenario) for judged in report.judged]
    often = Counter(names)
    for name, judged in zip(names, report.judged, strict=True):
        which = f" (line {judged.expectation.line})" if often[name] > 1 else ""
        yield f"whether {name}{which}", Fact(judged.seen.met, waits=is_of_waits(judged))
    for finding in report.invariants:
        word = "not put to the test" if finding.holds is None else ""
        yield f"the invariant {finding.name}", Fact(finding.holds, word, waits=finding.holds is None)
    yield from _of_sessions(report)


def is_of_waits(judged: Judged) -> bool:
    """Whether time can decide an expectation: what a server was at a moment, what a request carried, when."""
    check = judged.expectation.check
    if isinstance(check, model.EventHappens):
        return check.between is not None or judged.seen.instead == CUT_OFF
    return isinstance(check, model.ServerIs | model.RequestOffers) or judged.seen.instead == CUT_OFF


def _of_sessions(report: Report) -> Iterator[tuple[str, Fact]]:
    """What became of each session, and of the last run of its runtime.

    Left out is what a slower machine changes and no rule promises: how far a server had come when a request left,
    or when the session gave a run up.
    """
    for event in report.events:
        if event.name in SESSION_EVENTS:
            yield f"{event.name} of {event.actor}", Fact(dict(event.details), waits=event.name == "session.degraded")
    for session in report.scenario.sessions:
        run = chosen(session_runs(report.events, session), None)
        if run is None:
            continue
        last = f"of the last run of {session}"
        yield f"the runtime {last}", Fact(bool(run.runtime), "started" if run.runtime else "never started")
        if run.runtime:
            yield from ((f"{what} {last}", fact) for what, fact in _of_run(report, run.runtime))


def _of_run(report: Report, run: str) -> Iterator[tuple[str, Fact]]:
    calls = []
    servers: dict[str, Fact] = {}
    for event in report.events:
        if event.actor != run:
            continue
        if event.name in STATES:
            state = STATES[event.name]
            decided = servers.get(event.details["server"], NOTHING).value
            servers[event.details["server"]] = (
                Fact(decided, decided or state, waits=True) if state == UNDECIDED else Fact(state, waits=True)
            )
        elif event.name == "tool.call":
            calls.append((event.details["server"], event.details["tool"], event.details["ok"]))
        elif event.name == "run.ended":
            yield "the exit code", Fact(event.details["exit_code"])
    yield from ((f"the server {name}", fact) for name, fact in servers.items())
    yield "the calls", Fact(sorted(calls), waits=True)  # those of one turn may run side by side
