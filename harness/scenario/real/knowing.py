"""What can be known of a real program, by runtime: an expectation that needs more makes a run untestable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from harness.scenario import model
from harness.scenario.happenings import HAPPENINGS, RUNTIME
from harness.scenario.judging import STATES
from harness.scenario.model import Match, Scenario
from harness.scenario.naming import session_of
from harness.scenario.real.observing import (
    CONNECTED,
    CONNECTING,
    FAILED,
    MODEL_REQUEST,
    NEEDS_AUTH,
    RUN_ENDED,
    TOOL_CALL,
)

OF_ALL: Mapping[str, tuple[str, ...]] = {
    CONNECTED: ("server",),
    FAILED: ("server", "text"),
    NEEDS_AUTH: ("server", "text"),
    MODEL_REQUEST: ("number", "tools"),
    TOOL_CALL: ("server", "tool", "ok", "text"),
    RUN_ENDED: ("exit_code",),
    "spawn": ("argv", "child"),
    "killed": ("signal",),
    "ended": ("exit_code",),
}
MORE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "claude": {
        CONNECTING: ("server",),
        CONNECTED: ("server", "seconds"),
        NEEDS_AUTH: ("server", "text", "cached"),
    },
    "codex": {},
    "pi": {TOOL_CALL: ("server", "tool", "ok", "text", "error")},
}
SILENT = ("codex", "pi")
"""Their words are few: a server of which nothing is told may have failed without a word."""
UNHAPPY = (FAILED, NEEDS_AUTH)


def untold_reasons(scenario: Scenario, family: str, checks: list[model.Check]) -> Iterator[str]:
    """Why it cannot be known whether these hold, a line for each that cannot."""
    for check in checks:
        if isinstance(check, model.EventHappens):
            for match in (check.match, *((check.before,) if check.before else ())):
                yield from of_match(match, family)
        elif isinstance(check, model.ServerIs) and family not in MORE:
            yield f"nothing is known of {family}"
        elif isinstance(check, model.ServerIs) and not is_told(check.state, family):
            yield f"that {check.server} is {check.state} is told by nothing that {family} prints or does"
        elif isinstance(check, model.RequestOffers) and check.pending and (family != "claude" or check.number != 1):
            yield f"who is pending at request {check.number} is told by nothing that {family} prints or does"
    for hold in scenario.holds:
        yield from of_match(hold.until, family)


def waits(scenario: Scenario, family: str) -> Iterator[str]:
    """Why a step waits for what nobody can see."""
    for step in scenario.steps:
        if isinstance(step.action, model.Await) and step.action.until is not None:
            yield from of_match(step.action.until, family)


def of_match(match: Match, family: str) -> Iterator[str]:
    """Events of the runtime that are meant and cannot be seen."""
    observable = {**OF_ALL, **MORE[family]}
    for name, happening in HAPPENINGS.items():
        if not fnmatchcase(name, match.event) or RUNTIME not in happening.roles:
            continue
        if len(happening.roles) > 1 and name in ("fault", "reached", "request") and "/" not in match.who:
            continue  # happens to steered actors too, and is seen there
        missing = [field for field in match.where if field not in observable.get(name, ())]
        if name not in observable:
            yield f"the event {name} is told by nothing that {family} prints or does"
        elif missing:
            yield f"the field {missing[0]} of {name} is told by nothing that {family} prints or does"


def is_told(state: str, family: str) -> bool:
    """Whether a state of a server shows."""
    names = [name for name, each in STATES.items() if each == state]
    return not names or any(name in {**OF_ALL, **MORE[family]} for name in names)


def silent_reasons(
    check: model.Check, family: str, untold: Mapping[str, tuple[str, ...]], session: str
) -> Iterator[str]:
    """An expectation of what nobody told, where silence is no proof: a server may have failed without a word, or
    have connected after the last request.

    `untold` are the servers of each session of which nothing is told.
    """
    if family not in SILENT:
        return
    meant: str | None = None
    if isinstance(check, model.ServerIs):
        meant = check.server
    elif isinstance(check, model.EventHappens) and check.match.event in UNHAPPY and check.often.at_least:
        meant = str(check.match.where.get("server", "*"))
    for of, servers in untold.items():
        quiet = [name for name in servers if meant is not None and fnmatchcase(name, meant)]
        if quiet and session in ("", session_of(of)):
            yield f"{family} says nothing of {quiet[0]}, so what became of it is not known"
            return
