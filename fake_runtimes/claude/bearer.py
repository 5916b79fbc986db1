"""Which token Claude Code sends to a remote server: the configured header, else a stored token that still counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fake_runtimes.claude.credentials import find_entry, stored_entry
from fake_runtimes.claude.expansion import expand
from fake_runtimes.loaded import LoadedServer

FILE_NAME = ".credentials.json"
AUTHORIZATION = "Authorization"


def has_static_authorization(server: LoadedServer) -> bool:
    """Whether the entry itself gives an Authorization header, in any case of its letters."""
    return any(name.lower() == AUTHORIZATION.lower() for name in server.headers)


def request_headers(
    server: LoadedServer, store_text: str | None, now_seconds: float, environment: Mapping[str, str]
) -> Mapping[str, str]:
    """The configured headers, and a stored token as bearer unless they hold an Authorization of their own.

    What came out of a header's placeholders is expanded once more before it is sent; the store's key is not.
    """
    headers = {name: expand(value, environment).text for name, value in server.headers.items()}
    if store_text is None or has_static_authorization(server):
        return headers
    entry = find_entry(store_text, server)
    if entry is None or has_expired(entry, now_seconds):
        return headers
    return {**headers, AUTHORIZATION: f"Bearer {entry['accessToken']}"}


def has_client(server: LoadedServer, store_text: str | None) -> bool:
    """Whether the store holds a client that was registered for the server."""
    entry = None if store_text is None else stored_entry(store_text, server)
    return bool(entry and entry.get("clientId"))


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
