"""What befell whoever was given new tokens, so that they may have come to nobody: told by the world alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fake_servers.oauth.asking import Received
from harness.reference.credentials.row import TABLE as CREDENTIALS
from harness.scenario.naming import OPERATOR
from harness.scenario.stores import KEYRING, STORE_FILES, is_of_a_runtime
from harness.world.model import Event

BROKEN = 200
"""An answer below this status is none."""
LOSING_SECONDS = 120.0
"""After an answer: what befalls somebody later than that has cost it no tokens of then."""
CLIENTS_WAIT_SECONDS = 30.0
LOSING_FAULTS = ("reset-before", "reset-after", "slow", "answer-after", "enospc", "eacces", "torn", "enoent")
TOKENS = frozenset(("access_token", "refresh_token"))
KEEPING = (*STORE_FILES, KEYRING, ".lock", "commit", f"row {CREDENTIALS}/", "mcp-oauth-locks")
"""Where tokens are kept: parts of the labels of the switch points."""


def befell(events: Iterable[Event], given: Received) -> bool:
    """Whether the tokens of an answer may have come to nobody."""
    return is_lost_on_the_way(given) or any(mishaps(events, given))


def is_lost_on_the_way(given: Received) -> bool:
    """Whether the answer was not what the rules had decided, or came when nobody waited for it any more.

    A runtime may refuse the whole for a member that the orchestrator can do without, as Codex does a lifetime that is a
    text (measured).
    """
    answer = given.answer
    changed = {*answer.says, *answer.omits}
    is_unfit = bool(changed) if is_of_a_runtime(given.who) else not TOKENS.isdisjoint(answer.says)
    altered = answer.cuts or answer.as_status is not None or answer.status is not None
    return altered or is_unfit or answer.drops != "never" or answer.after_seconds >= CLIENTS_WAIT_SECONDS


def mishaps(events: Iterable[Event], given: Received) -> Iterator[Event]:
    """What befell the one who was given them, from then on."""
    for event in events:
        if event.actor != given.who or event.actor == OPERATOR:
            continue
        if given.at <= event.at_seconds <= given.at + LOSING_SECONDS and is_mishap(event, given):
            yield event


def is_mishap(event: Event, given: Received) -> bool:
    """Whether an event may have cost it the answer, or the storing of it."""
    told, at = event.details, str(event.details.get("at", ""))
    at_the_answer = at == f"POST {given.url}"
    match event.name:
        case "killed":
            return True
        case "fault":
            return told.get("action") in LOSING_FAULTS and (at_the_answer or any(each in at for each in KEEPING))
        case "request":
            return at_the_answer and int(told.get("status", BROKEN)) < BROKEN
        case "ended":
            return is_of_a_runtime(event.actor) or int(told.get("exit_code") or 0) < 0
    return False
