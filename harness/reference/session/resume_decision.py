"""What a completed authorization does to a session, as a rule on its row.

Source: seed 002 "Which prompt the resume delivers", "Re-authorizing a server reaches a live session as a notice",
"The replayed turn carries its attachments"; requirements resume-*, reconnect-*.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, NamedTuple

from harness.reference.secrets.blank import is_blank
from harness.reference.session import rows
from harness.reference.session.blocking import (
    MARKER,
    REASON,
    REQUIRED,
    WAITING,
    is_parked,
    required,
    without_authorized,
    without_conversation,
)
from harness.reference.session.injection import NOTICE
from harness.reference.session.jobs import Job
from harness.reference.session.ladder import stamp
from harness.reference.session.stale import without_stale_keys
from harness.reference.session.timeline import Line, noted

LIVE = ("running", "needs_input")
COMPLETE = "oauth_complete"

Result = Literal["resumed", "partial", "not_blocked", "reconnect_pending"]


class Facts(NamedTuple):
    """What the decision rests on besides the row. `authorized` is the predicate for an entry of the required list.

    `named` is the server whose authorization was completed, `selected` the session's own and its plugins' servers.
    """

    authorized: Callable[[Mapping[str, Any]], bool]
    has_open_flow: bool = False
    named: str | None = None
    selected: Collection[str] = ()
    now: float = 0.0


class Decided(NamedTuple):
    """The row as it is then, and what goes with it. `is_injected`: the named server's credential is handed over now."""

    result: Result
    values: rows.Values
    job: Job | None = None
    lines: tuple[Line, ...] = ()
    is_injected: bool = False


def decide(values: rows.Values, facts: Facts) -> Decided:
    """A parked session resumes once everything is authorized; a live one gets a notice; any other is left alone."""
    if is_parked(values):
        return with_timeline(progressed(values, facts), facts.now)
    if values.get("status") in LIVE and facts.named is not None and facts.named in facts.selected:
        return with_timeline(to_be_reconnected(values, facts.named, facts.now), facts.now)
    return Decided("not_blocked", values)


def with_timeline(decided: Decided, now: float) -> Decided:
    """The decision with its lines in the row."""
    return decided._replace(values=noted(decided.values, decided.lines, now))


# --- a parked session


def progressed(values: rows.Values, facts: Facts) -> Decided:
    """Resumed when nothing is outstanding and no consent is under way; else those authorized leave the list."""
    entries = required(values)
    outstanding = without_authorized(entries, facts.authorized)
    if not outstanding and not facts.has_open_flow:
        return resumed(values)
    if len(outstanding) == len(entries):
        return Decided("partial", values)
    metadata = {**rows.metadata(values), REQUIRED: [dict(each) for each in outstanding]}
    return Decided("partial", rows.with_metadata(values, metadata))


def resumed(values: rows.Values) -> Decided:
    """The session goes on: with the message that it owes, if a conversation is there for it; else with its prompt."""
    owed = rows.metadata(values).get(MARKER)
    if not isinstance(owed, str) or is_blank(owed):
        return replayed(values)
    if is_blank(values.get(rows.CONVERSATION)):
        return instead_of(values, owed)
    return delivered(values, owed)


def replayed(values: rows.Values) -> Decided:
    """A job that runs the stored prompt; the session waits for it."""
    job = Job("new_session", images=first_turn_images(values))
    lines = (Line("info", "attachments_carried", carrying(len(job.images))),) if job.images else ()
    return Decided("resumed", {**unblocked(values), "status": WAITING}, job, lines)


def delivered(values: rows.Values, owed: str) -> Decided:
    """A job that runs exactly the message that is owed. It carries no attachments, and says so if there are any."""
    lines = (Line("info", "attachments_not_carried", NOT_CARRIED),) if attachments(values) else ()
    return Decided("resumed", unblocked(deliver_follow_up(values, owed)), Job("follow_up", owed), lines)


def instead_of(values: rows.Values, owed: str) -> Decided:
    """The first turn in place of a message that no conversation is there for: told, kept, and never delivered."""
    first = replayed(values)
    moved, warning = without_conversation(first.values, owed)
    return first._replace(values=moved, lines=(warning, *first.lines))


def deliver_follow_up(values: rows.Values, prompt: str) -> rows.Values:
    """Stale retry keys go, the session runs, and only then stands the marker: handed to a job, not yet delivered."""
    running = {**rows.with_metadata(values, without_stale_keys(rows.metadata(values))), "status": "running"}
    return rows.with_metadata(running, {**rows.metadata(running), MARKER: prompt})


def unblocked(values: rows.Values) -> rows.Values:
    """The row of a session that waits for no authorization any more."""
    cleared = {COMPLETE: True, REASON: None, REQUIRED: None}
    return rows.with_metadata(values, {**rows.metadata(values), **cleared})


NOT_CARRIED = "The attachments of the first turn are not carried by this message."


def carrying(count: int) -> str:
    """What the timeline says of a replayed first turn."""
    return f"The first turn runs again with its attachments ({count})."


def first_turn_images(values: rows.Values) -> tuple[str, ...]:
    """The attachments of a first turn, while none has reached an agent: as long as the transcript is empty."""
    return () if values.get("transcript") else attachments(values)


def attachments(values: rows.Values) -> tuple[str, ...]:
    """What lies on the session's volume for its first turn."""
    return tuple(values.get("attachments") or ())


# --- a live session


def to_be_reconnected(values: rows.Values, named: str, now: float) -> Decided:
    """The notice that this server connects again with the next turn; one timeline line a server."""
    servers = noticed(values)
    if named in servers:
        return Decided("reconnect_pending", values, is_injected=True)
    notice = {"servers": [*servers, named], "authorized_at": stamp(now)}
    told = Line("info", "reconnect_notice", f"{named} is authorized again. The next message is what reconnects it.")
    metadata = {**rows.metadata(values), NOTICE: notice}
    return Decided("reconnect_pending", rows.with_metadata(values, metadata), lines=(told,), is_injected=True)


def noticed(values: rows.Values) -> tuple[str, ...]:
    """The servers that the notice names."""
    notice = rows.metadata(values).get(NOTICE)
    return tuple(notice.get("servers") or ()) if isinstance(notice, Mapping) else ()
