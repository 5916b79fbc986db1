"""Where Claude Code looks for a server's stored credential in `.credentials.json`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from fake_runtimes.loaded import LoadedServer
from fake_runtimes.text import JsonTextError, javascript_order, json_stringify, own_copy, parse_json, utf8

STORE_KEY = "mcpOAuth"
DIGEST_LENGTH = 16


def lookup_key(server: LoadedServer) -> str:
    """`<raw name>|<16 hex>` for a remote server.

    The digest is SHA-256 over the compact JSON of type, url and headers in this order, with the values as
    expanded, otherwise verbatim, and the headers as a JavaScript object lists them.
    """
    return f"{server.name}|{digest(server.transport, server.url or '', tuple(server.headers.items()))}"


@lru_cache(maxsize=1 << 10)
def digest(transport: str, url: str, headers: tuple[tuple[str, str], ...]) -> str:
    """The part behind the name: it is asked for with every request."""
    import hashlib  # loads a library, which most runs do not need

    hashed = {"type": transport, "url": url, "headers": javascript_order(dict(headers))}
    return hashlib.sha256(utf8(json_stringify(hashed))).hexdigest()[:DIGEST_LENGTH]


def stored_entry(store_text: str, server: LoadedServer) -> dict[str, Any] | None:
    """The entry under the server's key, by that alone. A store that cannot be read holds nothing."""
    entry = stored_entries(store_text).get(lookup_key(server))
    return own_copy(entry) if isinstance(entry, dict) else None


@lru_cache(maxsize=256)
def stored_entries(store_text: str) -> Mapping[str, Any]:
    """All entries of a store: it is read with every request, and mostly nothing has changed. Copy what is taken."""
    try:
        store = parse_json(store_text)
    except JsonTextError:
        return {}
    entries = store.get(STORE_KEY) if isinstance(store, dict) else None
    return entries if isinstance(entries, dict) else {}


def find_entry(store_text: str, server: LoadedServer) -> dict[str, Any] | None:
    """The stored entry that the runtime would use: one with a token in it.

    The entry's own serverName and serverUrl are never compared.
    """
    entry = stored_entry(store_text, server)
    return entry if entry and isinstance(entry.get("accessToken"), str) and entry["accessToken"] else None
