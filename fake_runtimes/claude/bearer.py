"""The headers that Claude Code's configuration gives a remote server, and whether they leave room for a token."""

from __future__ import annotations

from collections.abc import Mapping

from fake_runtimes.claude.credentials import stored_entry
from fake_runtimes.claude.expansion import expand
from fake_runtimes.loaded import LoadedServer

FILE_NAME = ".credentials.json"
AUTHORIZATION = "Authorization"


def has_static_authorization(server: LoadedServer) -> bool:
    """Whether the entry itself gives an Authorization header, in any case of its letters."""
    return any(name.lower() == AUTHORIZATION.lower() for name in server.headers)


def request_headers(server: LoadedServer, environment: Mapping[str, str]) -> Mapping[str, str]:
    """The configured headers. What came out of their placeholders is expanded once more; the store's key is not."""
    return {name: expand(value, environment).text for name, value in server.headers.items()}


def has_client(server: LoadedServer, store_text: str | None) -> bool:
    """Whether the store holds a client that was registered for the server."""
    entry = None if store_text is None else stored_entry(store_text, server)
    return bool(entry and entry.get("clientId"))
