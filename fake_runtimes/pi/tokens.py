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
from fake_runtimes.pi.variables import KEYRING_VARIABLE, MEMORY, STORE_VARIABLE
from fake_runtimes.profile import PiProfile
from fake_runtimes.text import JsonTextError, json_stringify, parse_json, utf8
from harness.world.ports import World

KEYRING = f"/run/keyring/{KEYRING_SERVICE}"

PARTS_MARK, PART_CHARACTERS = "__piMcpAdapterOAuthChunked", 1000
NEEDED = {"tokens": "accessToken", "clientInfo": "clientId"}
NUMBER = (int, float)
OPTIONAL: tuple[Mapping[str, type | tuple[type, ...]], ...] = (
    {"serverUrl": str, "codeVerifier": str, "oauthState": str},
    {"refreshToken": str, "scope": str, "issuer": str, "expiresAt": NUMBER},
    {"clientSecret": str, "issuer": str, "clientIdIssuedAt": NUMBER, "clientSecretExpiresAt": NUMBER,
     "configPreRegistered": bool},
)  # fmt: skip


class StoreError(Exception):
    """The OS store cannot be used; the message is the adapter's. There is no falling back on the file."""


class Store:
    """The OS store of one run. The environment may put its directory elsewhere, or have it in memory alone.

    By version an entry of many characters is kept in parts, accounts of their own, and its account names them.
    """

    def __init__(self, world: World, environment: Mapping[str, str], profile: PiProfile) -> None:
        self.world, self.in_parts = world, profile.long_entries_in_parts
        self.directory = f"{environment.get(KEYRING_VARIABLE) or KEYRING.rpartition('/')[0]}/{KEYRING_SERVICE}"
        self.memory: dict[str, str] | None = {} if environment.get(STORE_VARIABLE) == MEMORY else None

    async def read(self, server: LoadedServer) -> str | None:
        """What it holds for a server; None where that is nothing. Raises StoreError."""
        try:
            text = await self._get(account(server))
            names = [] if text is None else part_accounts(account(server), text)
            parts = [await self._get(name) for name in names]
        except OSError as error:
            raise StoreError(store_failure("read", server)) from error
        return "".join(part or "" for part in parts) if names else text

    async def write(self, server: LoadedServer, text: str) -> None:
        """Put an entry into it. Raises StoreError."""
        try:
            if self.in_parts and len(text) > PART_CHARACTERS:
                import hashlib  # loads a library, which most runs do not need

                pieces = [text[start : start + PART_CHARACTERS] for start in range(0, len(text), PART_CHARACTERS)]
                digest = hashlib.sha256(utf8(text)).hexdigest()[:16]
                text = json_stringify({PARTS_MARK: 1, "chunkCount": len(pieces), "chunkDigest": digest})
                for name, piece in zip(part_accounts(account(server), text), pieces, strict=True):
                    await self._put(name, piece)
            await self._put(account(server), text)
        except OSError as error:
            raise StoreError(store_failure("write", server)) from error

    async def _get(self, name: str) -> str | None:
        if self.memory is not None:
            return self.memory.get(name)
        try:
            return (await self.world.files.read(f"{self.directory}/{name}")).decode(errors="replace")
        except FileNotFoundError:
            return None

    async def _put(self, name: str, text: str) -> None:
        if self.memory is not None:
            self.memory[name] = text
            return
        await self.world.files.make_directory(self.directory, mode=0o700)
        await self.world.files.write(f"{self.directory}/{name}", text.encode(), mode=0o600)


def part_accounts(whole: str, text: str) -> list[str]:
    """The accounts of an entry's parts, where its text says that it is kept in parts."""
    try:
        manifest: Any = parse_json(text)
    except JsonTextError:
        return []
    if not isinstance(manifest, dict) or PARTS_MARK not in manifest or not isinstance(manifest.get("chunkCount"), int):
        return []
    return [f"{whole}.chunk.{manifest.get('chunkDigest')}.{number}" for number in range(manifest["chunkCount"])]


async def access_token(
    world: World, home: Home, server: LoadedServer, environment: Mapping[str, str], store: Store
) -> str | None:
    """The stored token for exactly this url, its expiry not looked at; None without one. Raises StoreError.

    A server that does not ask for OAuth by itself is first only looked up: what is handed in and is not for it stays
    where it is.
    """
    if not oauth_considered(server):
        return None
    asked = server.raw.get("auth") == "oauth"
    text = await store.read(server)
    if text is None and not asked:
        handed_in = await read_if_there(world, handoff_file(home, server, environment))
        if handed_in is None or token_for(server.url, handed_in) is None:
            return None
    return token_for(server.url, await taken_over(world, home, server, environment, store) or "")


async def taken_over(
    world: World, home: Home, server: LoadedServer, environment: Mapping[str, str], store: Store
) -> str | None:
    """What the store holds for a server, after what is handed in was moved there or, beside an entry, removed.

    What cannot be read as a credential stays where it is. Raises StoreError.
    """
    text, path = await store.read(server), handoff_file(home, server, environment)
    if text is None:
        text = await read_if_there(world, path)
        if text is None or read_entry(text) is None:
            return None
        await store.write(server, text)
        await remove(world, path)
    elif await world.files.stat(path) is not None:
        await remove(world, path)
    return text


def handoff_file(home: Home, server: LoadedServer, environment: Mapping[str, str]) -> str:
    """Where a credential for a server is handed in."""
    return f"{oauth_directory(home, environment, server.settings)}/{handoff_path(server)}"


def store_failure(verb: str, server: LoadedServer) -> str:
    to_or_from = "from" if verb == "read" else "to"
    return f"Failed to {verb} OAuth credentials for {server.name} {to_or_from} the OS secure credential store"


def token_for(url: str | None, text: str) -> str | None:
    """The access token of a stored entry whose `serverUrl` is this url, byte for byte."""
    entry = read_entry(text)
    if entry is None or entry.get("serverUrl") != url:
        return None
    tokens = entry.get("tokens")
    return str(tokens["accessToken"]) if tokens is not None else None


def read_entry(text: str) -> dict[str, Any] | None:
    """A stored entry; None for what is none. One member of a wrong type, null among them, spoils all of it."""
    try:
        entry: Any = parse_json(text)
    except JsonTextError:
        return None
    if not isinstance(entry, dict):
        return None
    for part, needed in NEEDED.items():
        if part in entry and not (isinstance(entry[part], dict) and isinstance(entry[part].get(needed), str)):
            return None
    holders = (entry, entry.get("tokens", {}), entry.get("clientInfo", {}))
    fits = all(is_of(holder[name], kind) for holder, kinds in zip(holders, OPTIONAL, strict=True)
               for name, kind in kinds.items() if name in holder)  # fmt: skip
    return entry if fits else None


def is_of(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Whether a value is of a kind, as JavaScript tells them apart."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


async def remove(world: World, path: str) -> None:
    """The handed-in file with its directory."""
    try:
        await world.files.remove(path)
        await world.files.remove(path.rpartition("/")[0])
    except OSError:
        return
