"""`mcp-needs-auth-cache.json`: which servers a session does not even try, and for how long.

The file maps the bare server name to `{"timestamp": ms}`, with `ttlMs` where a refresh failed for a while.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from fake_runtimes.text import JsonTextError, json_stringify, parse_json

FILE_NAME = "mcp-needs-auth-cache.json"
TTL_MS = 15 * 60 * 1000
PASSING_TTL_MS = 90_000
SKIP_LINE = "Skipping connection (cached needs-auth)"


def entries(text: str | None) -> dict[str, Any] | list[Any]:
    """What the file holds. No file and a text that is no JSON count as empty; a list is kept as it is."""
    if not text:
        return {}
    try:
        held = parse_json(text)
    except JsonTextError:
        return {}
    return held if isinstance(held, dict | list) else {}


def is_live(text: str | None, name: str, now_ms: float) -> bool:
    """Whether the entry of that name keeps a session from the server now.

    `ttlMs` alone decides where it is given. A time stamp in the future is not honoured.
    """
    held = entries(text)
    entry = held.get(name) if isinstance(held, dict) else None
    if not isinstance(entry, dict):
        return False
    stamp, ttl = entry.get("timestamp"), entry.get("ttlMs", TTL_MS)
    return is_number(stamp) and is_number(ttl) and 0 <= now_ms - stamp < ttl


def refusal(stamp_ms: int, *, passing: bool) -> dict[str, int]:
    """An entry. A refusal that may pass by itself, as the grant was not refused, lives for a shorter time."""
    return {"timestamp": stamp_ms, **({"ttlMs": PASSING_TTL_MS} if passing else {})}


def updated(text: str | None, changes: Mapping[str, Mapping[str, int] | None]) -> str | None:
    """The file's new text: an entry refuses a server from then on, None forgets it. None: nothing changes.

    A list stays a list and records nothing; a text that is no JSON stays as long as nothing is recorded.
    """
    held = entries(text)
    if isinstance(held, list):
        return None
    changed = dict(held)
    for name, entry in changes.items():
        if entry is None:
            changed.pop(name, None)
        else:
            changed[name] = dict(entry)
    return None if changed == held else json_stringify(changed)


def is_number(value: object) -> TypeGuard[float]:
    """A JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
