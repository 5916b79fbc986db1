"""Which token Claude Code sends to a remote server: the configured header, else a stored token that still counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fake_runtimes.claude.credentials import find_entry
from fake_runtimes.loaded import LoadedServer

FILE_NAME = ".credentials.json"
AUTHORIZATION = "Authorization"


def has_static_authorization(server: LoadedServer) -> bool:
    """Whether the entry itself gives an Authorization header, in any case of its letters."""
    return any(name.lower() == AUTHORIZATION.lower() for name in server.headers)


def request_headers(server: LoadedServer, store_text: str | None, now_seconds: float) -> Mapping[str, str]:
    """The configured headers, and a stored token as bearer unless they hold an Authorization of their own."""
    if store_text is None or has_static_authorization(server):
        return server.headers
    entry = find_entry(store_text, server)
    if entry is None or has_expired(entry, now_seconds):
        return server.headers
    return {**server.headers, AUTHORIZATION: f"Bearer {entry['accessToken']}"}


def has_expired(entry: Mapping[str, Any], now_seconds: float) -> bool:
    """Whether a stored token's `expiresAt` (milliseconds) has passed.

    Absent it never passes, nor does a text that is no number; a text that is one counts.
    """
    expires_at = entry.get("expiresAt")
    if isinstance(expires_at, bool) or not isinstance(expires_at, int | float | str):
        return False
    try:
        return float(expires_at) <= now_seconds * 1000
    except ValueError:
        return False
