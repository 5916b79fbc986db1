"""What Codex says of a server's credential without using it, and how it forgets one."""

from __future__ import annotations

from typing import Any

from fake_runtimes.codex.credentials import ISSUER, find_entry, has_expired, is_for, lookup_key, read_store
from fake_runtimes.codex.discovery import UnreachableError, discover
from fake_runtimes.codex.home import CREDENTIALS, KEYRING, Held, read_credentials
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.profile import CodexProfile
from fake_runtimes.text import JsonTextError, json_stringify, parse_json
from harness.world import World, header

UNSUPPORTED, NOT_LOGGED_IN, BEARER, OAUTH = "unsupported", "not_logged_in", "bearer_token", "o_auth"
STORE_MODE = 0o600
USER_AGENT = ""


async def auth_status(world: World, profile: CodexProfile, held: Held, server: LoadedServer | None) -> str:
    """The status by what is configured, then by what is stored, then by asking the server whether it knows OAuth.

    A version says `unknown` of a store that cannot be read and of a server that cannot be asked.
    """
    if server is None or server.transport == "stdio":
        return UNSUPPORTED
    if "bearer_token_env_var" in server.raw or header(server.headers, "Authorization") is not None:
        return BEARER
    text = await read_credentials(world, held)
    knows_issuer = profile.renewal_needs_issuer
    if text and read_store(text, knows_issuer=knows_issuer) is None:
        return profile.unknown_status
    found = find_entry(text, server, knows_issuer=knows_issuer) if text else None
    if found is not None:
        return OAUTH if counts(found[1], profile, world.clock.now()) else NOT_LOGGED_IN
    supported = await supports_oauth(world, server)
    if supported is None:
        return profile.unknown_status
    return NOT_LOGGED_IN if supported else UNSUPPORTED


def counts(entry: dict[str, Any], profile: CodexProfile, now_seconds: float) -> bool:
    """Whether somebody counts as logged in by a stored entry: it names a client, and is valid or may be renewed.

    The newer version renews only what names its issuer; that it be the right one is not looked at here.
    """
    if not entry["client_id"]:
        return False
    if not has_expired(entry, now_seconds):
        return True
    needed = ("refresh_token", ISSUER) if profile.renewal_needs_issuer else ("refresh_token",)
    return all(entry.get(field) for field in needed)


async def supports_oauth(world: World, server: LoadedServer) -> bool | None:
    """Whether an authorization server is described behind the URL; None where nobody can be asked."""
    try:
        return await discover(world, server.url or "", USER_AGENT) is not None
    except UnreachableError:
        return None


async def forget_credential(world: World, held: Held, profile: CodexProfile, name: str, url: str) -> bool:
    """Remove what is stored under the server's own key, in some versions all that is stored for its name and url.

    The file goes with its last entry. The answer is whether there was any.
    """
    text = "" if held.store == KEYRING else await read_credentials(world, held)
    try:
        store = parse_json(text or "{}")
    except JsonTextError:
        return False
    server = LoadedServer(name, "http", url=url)
    if not isinstance(store, dict):
        return False
    own = {key for key, entry in store.items() if is_for(entry, server)} if profile.entries_by_address else set()
    left = {key: entry for key, entry in store.items() if key not in {*own, lookup_key(server)}}
    if len(left) == len(store):
        return False
    store = left
    path = f"{held.home}/{CREDENTIALS}"
    if store:
        await world.files.write_atomic(path, json_stringify(dict(sorted(store.items()))).encode(), mode=STORE_MODE)
    else:
        await world.files.remove(path)
    return True
