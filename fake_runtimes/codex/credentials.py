"""Where Codex keeps and finds a server's stored credential in `.credentials.json`."""

from __future__ import annotations

from typing import Any

from fake_runtimes.loaded import LoadedServer
from fake_runtimes.text import JsonTextError, json_stringify, parse_json, utf8

DIGEST_LENGTH = 16
NEEDED_FIELDS = ("server_name", "server_url", "client_id", "access_token")


def lookup_key(server: LoadedServer) -> str:
    """The key under which the runtime writes: `<name>|<16 hex>` over type http, the verbatim url, no headers."""
    hashed = {"type": "http", "url": server.url or "", "headers": {}}
    import hashlib  # loads a library, which most runs do not need

    return f"{server.name}|{hashlib.sha256(utf8(json_stringify(hashed))).hexdigest()[:DIGEST_LENGTH]}"


def find_entry(store_text: str, server: LoadedServer) -> tuple[str, dict[str, Any]] | None:
    """The entry that the runtime reads, with its key: the first of that name and url in the order of the keys.

    The key itself is not looked at. A store with one entry that lacks a needed field holds nothing for
    anybody.
    """
    try:
        store = parse_json(store_text)
    except JsonTextError:
        return None
    if not isinstance(store, dict) or not all(readable(entry) for entry in store.values()):
        return None
    for key in sorted(store):
        entry = store[key]
        if (entry["server_name"], entry["server_url"]) == (server.name, server.url):
            return key, entry
    return None


def readable(entry: Any) -> bool:
    return isinstance(entry, dict) and all(isinstance(entry.get(field), str) for field in NEEDED_FIELDS)
