"""Where Codex keeps and finds a server's stored credential in `.credentials.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fake_runtimes.loaded import LoadedServer
from fake_runtimes.text import JsonTextError, json_stringify, parse_json, utf8

DIGEST_LENGTH = 16
EXPIRES_WITHIN_SECONDS = 30.0
NEEDED_FIELDS = ("server_name", "server_url", "client_id", "access_token")
FIELDS = ("server_name", "server_url", "issuer", "client_id", "access_token", "expires_at", "refresh_token", "scopes")
ISSUER = "issuer"

Entry = Mapping[str, Any]


def lookup_key(server: LoadedServer) -> str:
    """The key under which the runtime writes: `<name>|<16 hex>` over type http, the verbatim url, no headers."""
    hashed = {"type": "http", "url": server.url or "", "headers": {}}
    return f"{server.name}|{sha256(json_stringify(hashed))[:DIGEST_LENGTH]}"


def sha256(text: str) -> str:
    """The digest of a text in hex."""
    import hashlib  # loads a library, which most runs do not need

    return hashlib.sha256(utf8(text)).hexdigest()


def find_entry(
    store_text: str, server: LoadedServer, *, knows_issuer: bool = False
) -> tuple[str, dict[str, Any]] | None:
    """The entry that the runtime reads, with its key: the first of that name and url in the order of the keys.

    The key itself is not looked at. A store with one entry that lacks a needed field holds nothing for
    anybody.
    """
    store = read_store(store_text, knows_issuer=knows_issuer)
    for key in sorted(store or ()):
        entry = (store or {})[key]
        if is_for(entry, server):
            return key, entry
    return None


def is_for(entry: Any, server: LoadedServer) -> bool:
    """Whether an entry names this server and this url."""
    named = (entry.get("server_name"), entry.get("server_url")) if isinstance(entry, dict) else None
    return named == (server.name, server.url)


def read_store(store_text: str, *, knows_issuer: bool = False) -> dict[str, Any] | None:
    """All entries; None for a store that cannot be used: one bad entry spoils it."""
    try:
        store = parse_json(store_text)
    except JsonTextError:
        return None
    if not isinstance(store, dict) or not all(readable(entry, knows_issuer=knows_issuer) for entry in store.values()):
        return None
    return store


def readable(entry: Any, *, knows_issuer: bool) -> bool:
    """Whether an entry has what it needs, and every known field has its type; unknown ones do not matter."""
    if not isinstance(entry, dict) or not all(isinstance(entry.get(field), str) for field in NEEDED_FIELDS):
        return False
    expires_at, scopes = entry.get("expires_at"), entry.get("scopes", [])
    if isinstance(expires_at, bool) or not isinstance(expires_at, int | None) or (expires_at or 0) < 0:
        return False
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        return False
    optional = ("refresh_token", ISSUER) if knows_issuer else ("refresh_token",)
    return all(isinstance(entry.get(field), str | None) for field in optional)


def has_expired(entry: Entry, now_seconds: float) -> bool:
    """Whether a token counts as expired, which it does 30 seconds early; no time is no expiry."""
    expires_at_ms = entry.get("expires_at")
    return expires_at_ms is not None and expires_at_ms / 1000 - now_seconds <= EXPIRES_WITHIN_SECONDS


def written(entry: Entry, *, knows_issuer: bool) -> dict[str, Any]:
    """An entry as it is after the store was rewritten: a field that the version does not know is lost."""
    known = FIELDS if knows_issuer else tuple(field for field in FIELDS if field != ISSUER)
    return {field: entry[field] for field in known if field in entry}
