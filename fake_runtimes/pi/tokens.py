"""The access token that Pi's adapter sends: from the OS store, into which a handed-in file is taken over.

The OS store (the kernel keyring of the user, shared by all homes and sessions) is a directory of files here.
What it holds for a name beats the file, which is then removed unread. Refreshing is not part of this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fake_runtimes.loaded import LoadedServer
from fake_runtimes.pi.config import oauth_considered
from fake_runtimes.pi.credentials import KEYRING_SERVICE, account, handoff_path
from fake_runtimes.pi.home import Home, oauth_directory, read_if_there
from fake_runtimes.text import JsonTextError, parse_json
from harness.world.ports import World

KEYRING = f"/run/keyring/{KEYRING_SERVICE}"


class StoreError(Exception):
    """The OS store cannot be used; the message is the adapter's. There is no falling back on the file."""


async def access_token(world: World, home: Home, server: LoadedServer, environment: Mapping[str, str]) -> str | None:
    """The stored token for exactly this url, its expiry not looked at; None without one. Raises StoreError."""
    if not oauth_considered(server):
        return None
    kept = f"{KEYRING}/{account(server)}"
    text = await read_store(world, server, kept)
    handed_in = f"{oauth_directory(home, environment, server.settings)}/{handoff_path(server)}"
    if text is None:
        text = await read_if_there(world, handed_in)
        if text is None:
            return None
        await take_over(world, server, kept, text)
        await remove(world, handed_in)
    elif await world.files.stat(handed_in) is not None:
        await remove(world, handed_in)
    return token_for(server.url, text)


async def read_store(world: World, server: LoadedServer, path: str) -> str | None:
    """What the store holds for a server; None where that is nothing. Raises StoreError."""
    try:
        return (await world.files.read(path)).decode(errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(store_failure("read", server)) from error


async def take_over(world: World, server: LoadedServer, path: str, text: str) -> None:
    """Put a handed-in entry into the store. Raises StoreError; the file is kept then."""
    try:
        await world.files.make_directory(KEYRING, mode=0o700)
        await world.files.write(path, text.encode(), mode=0o600)
    except OSError as error:
        raise StoreError(store_failure("write", server)) from error


def store_failure(verb: str, server: LoadedServer) -> str:
    to_or_from = "from" if verb == "read" else "to"
    return f"Failed to {verb} OAuth credentials for {server.name} {to_or_from} the OS secure credential store"


def token_for(url: str | None, text: str) -> str | None:
    """The access token of a stored entry whose `serverUrl` is this url, byte for byte."""
    try:
        entry: Any = parse_json(text)
    except JsonTextError:
        return None
    if not isinstance(entry, dict) or entry.get("serverUrl") != url:
        return None
    tokens = entry.get("tokens")
    token = tokens.get("accessToken") if isinstance(tokens, dict) else None
    return token if isinstance(token, str) else None


async def remove(world: World, path: str) -> None:
    """The handed-in file with its directory."""
    try:
        await world.files.remove(path)
        await world.files.remove(path.rpartition("/")[0])
    except OSError:
        return
