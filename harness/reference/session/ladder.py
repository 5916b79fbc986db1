"""The retry ladder of MCP connections: three more tries after 30, 60 and 120 seconds, then the server is left out.

Source: seed 000 "When a server cannot connect, the server is left out — not the session"; requirements
npx-heal-still-corrupt-package, failure-ladder-*, failure-record-*. Which failures skip the ladder (a refused
credential, a server that wants to be authorized) is decided elsewhere: what comes here is "anything else".
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
EXHAUSTED = f"they did not connect after {len(RETRY_DELAYS_SECONDS)} retries"

Metadata = Mapping[str, Any]


class Decision(NamedTuple):
    """What a pass does: nothing, one retry after some seconds, or leave `servers` out; `metadata` as it is then."""

    route: Literal["nothing", "retry", "degrade"]
    metadata: Metadata
    servers: tuple[str, ...] = ()
    after_seconds: int = 0


def decide(metadata: Metadata, failed: Mapping[str, str], now_seconds: float) -> Decision:
    """The route of the servers that failed and are not left out yet; no such server: nothing to do."""
    recorded = recorded_names(metadata)
    new = {name: error for name, error in failed.items() if name not in recorded}
    if not new:
        return Decision("nothing", metadata)
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


def left_out(metadata: Metadata, failed: Mapping[str, str], now_seconds: float) -> Metadata:
    """The notes with these servers recorded: one entry a name, keys without a value left out."""
    kept = [entry for entry in metadata.get(DEGRADED) or () if entry["name"] not in failed]
    made = [
        {"name": name, **({"error": error} if error else {}), "reason": EXHAUSTED, "degraded_at": stamp(now_seconds)}
        for name, error in failed.items()
    ]
    return {**metadata, PAUSED_BY: "recovery", DEGRADED: [*kept, *made]}


def retired(metadata: Metadata, connected: Collection[str]) -> Metadata:
    """The notes without the records of servers that have connected, which alone retires one."""
    kept = [entry for entry in metadata.get(DEGRADED) or () if entry["name"] not in connected]
    return {**without(metadata, (DEGRADED,)), **({DEGRADED: kept} if kept else {})}


def handed_back(metadata: Metadata) -> Metadata:
    """The notes with a fresh ladder."""
    return without(metadata, (COUNT, LAST))


def is_settled(selected: Iterable[str], connected: Collection[str], recorded: Collection[str]) -> bool:
    """Is every server connected or left out? Only from then on is a process stable."""
    return all(name in connected or name in recorded for name in selected)


def without(metadata: Metadata, keys: Collection[str]) -> dict[str, Any]:
    """The notes without some keys."""
    return {key: value for key, value in metadata.items() if key not in keys}


def stamp(seconds: float) -> str:
    """A time as the row holds it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
