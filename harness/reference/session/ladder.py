"""The retry ladder of MCP connections: three more tries after 30, 60 and 120 seconds, then the server is left out.

Source: seed 000 "When a server cannot connect, the server is left out — not the session"; requirements
npx-heal-still-corrupt-package, failure-ladder-*, failure-record-*. Which failures skip the ladder (a refused
credential, a server that wants to be authorized) is decided in `routes`: what comes here is "anything else".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

RETRY_DELAYS_SECONDS = (30, 60, 120)
STABLE_SECONDS = 60
COUNT, LAST, FAILED, PAUSED_BY, DEGRADED = (
    "mcp_retry_count",
    "mcp_last_retry_at",
    "mcp_failed_servers",
    "paused_by",
    "mcp_degraded_servers",
)
REJECTED = "their credentials were rejected"
EXHAUSTED = f"they did not connect after {len(RETRY_DELAYS_SECONDS)} retries"

Metadata = Mapping[str, Any]


Route = Literal["oauth_required", "retry", "degrade"]
Errors = Mapping[str, str | None]
"""Servers that failed, each with what was said of it."""


class Decision(NamedTuple):
    """What a pass does: nothing, park the session, one retry after some seconds, or leave servers out and go on.

    `metadata` as it is then; `servers` are those of that route, `routes` that of every server that is news.
    """

    route: Literal["nothing", "oauth_required", "retry", "degrade"]
    metadata: Metadata
    servers: tuple[str, ...] = ()
    after_seconds: int = 0
    routes: Mapping[str, Route] = {}

    def on(self, route: Route) -> tuple[str, ...]:
        """The servers that go this way."""
        return tuple(name for name, taken in self.routes.items() if taken == route)


def decide(metadata: Metadata, failed: Errors, now_seconds: float) -> Decision:
    """The route of the servers that failed and are not left out yet; no such server: nothing to do."""
    new = news(metadata, failed)
    return climb(metadata, new, now_seconds) if new else Decision("nothing", metadata)


def news(metadata: Metadata, failed: Errors) -> dict[str, str | None]:
    """Those of the failed servers that are not left out yet."""
    recorded = recorded_names(metadata)
    return {name: error for name, error in failed.items() if name not in recorded}


def climb(metadata: Metadata, new: Errors, now_seconds: float) -> Decision:
    """The next step of the ladder, or its end, for these servers (none: something failed, nobody knows what)."""
    tried = retries_made(metadata)
    if tried < len(RETRY_DELAYS_SECONDS):
        noted = {
            **metadata,
            PAUSED_BY: "mcp_retry",
            COUNT: tried + 1,
            LAST: stamp(now_seconds),
            FAILED: [{"name": name, "status": "failed", "error": error} for name, error in new.items()],
        }
        return Decision("retry", noted, tuple(new), RETRY_DELAYS_SECONDS[tried])
    return Decision("degrade", left_out(metadata, new, now_seconds), tuple(new))


def retries_made(metadata: Metadata) -> int:
    """How many retries this ladder has had. One counter for all servers."""
    count = metadata.get(COUNT, 0)
    return count if isinstance(count, int) else 0


def recorded_names(metadata: Metadata) -> frozenset[str]:
    """The servers that are left out."""
    return frozenset(entry["name"] for entry in metadata.get(DEGRADED) or ())


def left_out(metadata: Metadata, failed: Errors, now_seconds: float, reason: str = EXHAUSTED) -> Metadata:
    """The notes with these servers recorded for this reason."""
    verdicts = [LeftOut(name, error, reason) for name, error in failed.items()]
    record = with_verdicts(metadata.get(DEGRADED) or (), verdicts, stamp(now_seconds))
    return {**metadata, PAUSED_BY: "recovery", DEGRADED: record}


class LeftOut(NamedTuple):
    """A verdict: the server, what was said of it, and why it is left out."""

    name: str
    error: str | None
    reason: str | None


def with_verdicts(record: Iterable[Mapping[str, Any]], verdicts: Iterable[LeftOut], at: str) -> list[Mapping[str, Any]]:
    """The record with these verdicts: one entry a name, which a fresh verdict replaces in its place; no empty keys."""
    entries = {entry["name"]: entry for entry in record}
    for verdict in verdicts:
        told = {key: text for key, text in verdict._asdict().items() if text}
        entries[verdict.name] = {**told, "degraded_at": at}
    return list(entries.values())


def retired(metadata: Metadata, connected: Collection[str]) -> Metadata:
    """The notes without the records of servers that have connected, which alone retires one.

    That outage is over: the next one has its ladder from the start (failure-retire-rearms-ladder).
    """
    record = metadata.get(DEGRADED) or ()
    kept = [entry for entry in record if entry["name"] not in connected]
    if len(kept) == len(record):
        return metadata
    return {**handed_back(without(metadata, (DEGRADED,))), **({DEGRADED: kept} if kept else {})}


def handed_back(metadata: Metadata) -> Metadata:
    """The notes with a fresh ladder."""
    return without(metadata, (COUNT, LAST))


def after_stability(metadata: Metadata) -> Metadata:
    """The notes once a run was stable for long enough. Where nobody knows when the last retry was nothing is given."""
    return handed_back(metadata) if is_stamp(metadata.get(LAST)) else metadata


def is_stamp(text: object) -> bool:
    """Whether a text is a time as the row holds it."""
    try:
        datetime.fromisoformat(str(text))
    except ValueError:
        return False
    return True


def is_settled(selected: Iterable[str], connected: Collection[str], recorded: Collection[str]) -> bool:
    """Is every server connected or left out? Only from then on is a process stable."""
    return all(name in connected or name in recorded for name in selected)


def without(metadata: Metadata, keys: Collection[str]) -> dict[str, Any]:
    """The notes without some keys."""
    return {key: value for key, value in metadata.items() if key not in keys}


def stamp(seconds: float) -> str:
    """A time as the row holds it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
