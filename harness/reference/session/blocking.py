"""A session that waits for a human to authorize servers: how it gets there, and what its page offers.

Source: seed 002 "The gate", "Which prompt the resume delivers"; requirements gate-blocked-*, gate-record-no-secrets,
gate-banner-filters-stale-entries, resume-door-*, resume-marker-before-fail, resume-nudge-*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from harness.reference.secrets.blank import is_blank
from harness.reference.session import rows
from harness.reference.session.timeline import Line, noted, tell
from harness.world import World

OAUTH_REQUIRED = "oauth_required"
FAILED = "failed"
WAITING = "waiting"
QUOTED_CHARACTERS = 4000
BLOCKED_FIRST = "OAuth authorization required for MCP servers"
BLOCKED_FOLLOW_UP = "Follow-up blocked: OAuth authorization required for MCP servers"
NOT_DELIVERED = (
    "The message of this turn has not been delivered. It is held, and delivered once these servers are authorized."
)

REASON, REQUIRED, MARKER = "failure_reason", "oauth_required_servers", "pending_follow_up_prompt"
UNDELIVERED = "oauth_undelivered_follow_up_prompt"
"""Where a message that cannot be delivered is kept. Nothing ever reads it to deliver it."""


class Blocked(NamedTuple):
    """A server that blocks. `server_url` is the catalog's, as written there: placeholders stay placeholders."""

    server_name: str
    server_url: str | None
    credential_key: str | None = None
    error: str | None = None

    def entry(self) -> dict[str, str | None]:
        """As `oauth_required_servers` holds it: nothing of what a probe found, and no key for what is not known."""
        known = {"credential_key": self.credential_key, "error": self.error}
        return {
            "server_name": self.server_name,
            "server_url": self.server_url,
            **{key: value for key, value in known.items() if value},
        }


class Turn(NamedTuple):
    """The turn that a spawn is for. `follow_up` None: the first one, whose prompt the session itself holds."""

    follow_up: str | None = None
    is_nudge: bool = False

    @property
    def owed(self) -> str | None:
        """What a human is owed when this turn does not take place."""
        return owed_message(self)


def owed_message(turn: Turn) -> str | None:
    """A human's follow-up; a nudge is dropped: it speaks of a moment that will have passed."""
    return None if turn.follow_up is None or turn.is_nudge or is_blank(turn.follow_up) else turn.follow_up


async def block(world: World, session: str, servers: Sequence[Blocked], turn: Turn) -> None:
    """Fail the session before any process exists; emits `session.blocked` (servers) and the timeline's lines.

    One write: whoever sees the session failed sees the message that it is owed, too.
    """
    now, told = world.clock.now(), list[Line]()

    def changed(values: rows.Values) -> rows.Values:
        told[:] = blocked_lines(values, servers, turn)
        return noted(blocked_values(values, servers, turn), told, now)

    await rows.change(world, session, changed)
    tell(world, told)
    world.events.emit("session.blocked", servers=[server.server_name for server in servers])


def blocked_values(values: rows.Values, servers: Sequence[Blocked], turn: Turn) -> rows.Values:
    """The row of the blocked session, with only those servers that block."""
    metadata = {
        **rows.metadata(values),
        REASON: OAUTH_REQUIRED,
        REQUIRED: [server.entry() for server in servers],
        **handed_back(turn),
    }
    return {**rows.with_metadata(values, metadata), "status": FAILED, "running_job_id": None}


def handed_back(turn: Turn) -> dict[str, str]:
    """The marker for what is owed now; where nothing is, an older one stands as it stood."""
    owed = turn.owed
    return {} if owed is None else {MARKER: owed}


def blocked_lines(values: rows.Values, servers: Sequence[Blocked], turn: Turn) -> list[Line]:
    """What the timeline says of it. A message that loses its place to a later one is quoted."""
    names = ", ".join(server.server_name for server in servers)
    title = BLOCKED_FIRST if turn.follow_up is None else BLOCKED_FOLLOW_UP
    lines = [Line("error", "blocked", f"{title}: {names}")]
    if turn.owed is None:
        return lines
    older = rows.metadata(values).get(MARKER)
    if isinstance(older, str) and not is_blank(older) and older != turn.owed:
        lines.append(quoting("An earlier message was not delivered and is not held any more", older))
    return [*lines, Line("warn", "not_delivered", NOT_DELIVERED)]


def quoting(what: str, message: str) -> Line:
    """A warning that quotes a message, cut where it is very long, so that it can be sent again."""
    quoted = message[:QUOTED_CHARACTERS]
    cut = f" (cut after {QUOTED_CHARACTERS} of {len(message)} characters)" if len(message) > len(quoted) else ""
    return Line("warn", "undelivered_follow_up", f"{what}{cut}:\n{quoted}")


def without_conversation(values: rows.Values, owed: str) -> tuple[rows.Values, Line]:
    """The row that keeps a message which no conversation is there for, and the warning that quotes it."""
    metadata = {key: kept for key, kept in rows.metadata(values).items() if key != MARKER}
    warning = quoting("There is no conversation that this message could continue. The first turn runs instead of", owed)
    return rows.with_metadata(values, {**metadata, UNDELIVERED: owed}), warning


# --- who is blocked, and on what


def required(values: rows.Values) -> tuple[Mapping[str, Any], ...]:
    """The entries of `oauth_required_servers`, of whichever writer."""
    stored = rows.metadata(values).get(REQUIRED)
    return tuple(each for each in stored if isinstance(each, Mapping)) if isinstance(stored, list | tuple) else ()


def is_failed_on_oauth(values: rows.Values) -> bool:
    """Failed, and for this reason."""
    return values.get("status") == FAILED and rows.metadata(values).get(REASON) == OAUTH_REQUIRED


def is_parked(values: rows.Values) -> bool:
    """Failed with `oauth_required`, or waiting with servers on the list."""
    return is_failed_on_oauth(values) or (values.get("status") == WAITING and bool(required(values)))


def offered(values: rows.Values, authorized: Callable[[Mapping[str, Any]], bool]) -> tuple[Mapping[str, Any], ...]:
    """The servers for which the session's page has an Authorize action, one each.

    A parked session keeps them all: only an action of its own releases it, also where the credential came from
    elsewhere (reconnect-parked-banner-offers-release). A list that was left behind shows what can still be authorized.
    """
    entries = required(values)
    return entries if is_failed_on_oauth(values) else without_authorized(entries, authorized)


def without_authorized(
    entries: Iterable[Mapping[str, Any]], authorized: Callable[[Mapping[str, Any]], bool]
) -> tuple[Mapping[str, Any], ...]:
    """The entries whose server still has to be authorized."""
    return tuple(each for each in entries if not authorized(each))
