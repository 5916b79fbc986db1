"""What Codex says of a server's credential without using it, and how it forgets one."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from fake_runtimes.codex.credentials import find_entry, lookup_key, readable
from fake_runtimes.codex.exec_facts import exec_facts
from fake_runtimes.codex.home import CREDENTIALS, KEYRING, Held, read_credentials
from fake_runtimes.codex.remote import EXPIRES_WITHIN_SECONDS
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.profile import CodexProfile
from fake_runtimes.text import JsonTextError, json_stringify, parse_json
from harness.world import Ambiguous, NotSent, Request, World, header

UNSUPPORTED, NOT_LOGGED_IN, BEARER, OAUTH = "unsupported", "not_logged_in", "bearer_token", "o_auth"
DISCOVERY_SECONDS = 5.0
DISCOVERY_PATHS = ("/.well-known/oauth-authorization-server{path}", "/.well-known/oauth-authorization-server")
STORE_MODE = 0o600


async def auth_status(world: World, profile: CodexProfile, held: Held, server: LoadedServer | None) -> str:
    """The status by what is configured, then by what is stored, then by asking the server whether it knows OAuth.

    A version says `unknown` of a store that cannot be read and of a server that cannot be asked.
    """
    if server is None or server.transport == "stdio":
        return UNSUPPORTED
    if "bearer_token_env_var" in server.raw or header(server.headers, "Authorization") is not None:
        return BEARER
    text = await read_credentials(world, held)
    unknown = exec_facts(profile).unknown_status
    if text and not is_readable(text):
        return unknown
    found = find_entry(text, server) if text else None
    if found is not None:
        return OAUTH if counts(found[1], profile, world.clock.now()) else NOT_LOGGED_IN
    supported = await supports_oauth(world, server)
    if supported is None:
        return unknown
    return NOT_LOGGED_IN if supported else UNSUPPORTED


def is_readable(text: str) -> bool:
    """Whether a store can be used at all: one bad entry spoils it."""
    try:
        store = parse_json(text)
    except JsonTextError:
        return False
    return isinstance(store, dict) and all(readable(entry) for entry in store.values())


def counts(entry: dict[str, Any], profile: CodexProfile, now_seconds: float) -> bool:
    """Whether somebody counts as logged in by a stored entry: it names a client, and is valid or may be renewed.

    The newer version renews only what names its issuer; that it be the right one is not looked at here.
    """
    if not entry["client_id"]:
        return False
    expires_at_ms = entry.get("expires_at")
    if not isinstance(expires_at_ms, int | float) or expires_at_ms / 1000 - now_seconds > EXPIRES_WITHIN_SECONDS:
        return True
    needed = ("refresh_token", "issuer") if exec_facts(profile).renewal_needs_issuer else ("refresh_token",)
    return all(entry.get(field) for field in needed)


async def supports_oauth(world: World, server: LoadedServer) -> bool | None:
    """Whether the server's origin describes an authorization server; None where it cannot be asked."""
    parts = urlsplit(server.url or "")
    for path in dict.fromkeys(path.format(path=parts.path.rstrip("/")) for path in DISCOVERY_PATHS):
        request = Request("GET", f"{parts.scheme}://{parts.netloc}{path}", {"Accept": "application/json"})
        try:
            answer = await world.http.send(
                request, open_timeout_seconds=DISCOVERY_SECONDS, read_timeout_seconds=DISCOVERY_SECONDS
            )
        except (NotSent, Ambiguous):
            return None
        if answer.status == 200 and describes_endpoints(answer.body):
            return True
    return False


def describes_endpoints(body: bytes) -> bool:
    """Whether a body is the metadata of an authorization server."""
    try:
        metadata = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(metadata, dict) and {"authorization_endpoint", "token_endpoint"} <= metadata.keys()


async def forget_credential(world: World, held: Held, name: str, url: str) -> bool:
    """Remove what is stored under the server's own key, and the file with its last entry; whether there was any."""
    text = "" if held.store == KEYRING else await read_credentials(world, held)
    try:
        store = parse_json(text or "{}")
    except JsonTextError:
        return False
    key = lookup_key(LoadedServer(name, "http", url=url))
    if not isinstance(store, dict) or store.pop(key, None) is None:
        return False
    path = f"{held.home}/{CREDENTIALS}"
    if store:
        await world.files.write_atomic(path, json_stringify(dict(sorted(store.items()))).encode(), mode=STORE_MODE)
    else:
        await world.files.remove(path)
    return True
