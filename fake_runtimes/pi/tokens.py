"""The access token that Pi's adapter sends: from the OS store, into which a handed-in file is taken over.

The OS store (the kernel keyring of the user, shared by all homes and sessions) is a directory of files here.
What it holds for a name beats the file, which is then removed unread. `access` renews what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fake_runtimes.loaded import LoadedServer
from fake_runtimes.pi.credentials import account, handoff_path
from fake_runtimes.pi.home import Home, oauth_directory, read_if_there
from fake_runtimes.pi.ring import Ring, ring_directory
from fake_runtimes.pi.variables import MEMORY, STORE_VARIABLE
from fake_runtimes.profile import PiProfile
from fake_runtimes.text import JsonTextError, json_stringify, parse_json, utf8
from harness.world.ports import World

PARTS_MARK, PART_CHARACTERS = "__piMcpAdapterOAuthChunked", 1000
NEEDED = {"tokens": "accessToken", "clientInfo": "clientId"}
MEMBERS = {
    "tokens": ("accessToken", "refreshToken", "expiresAt", "scope", "issuer"),
    "clientInfo": (
        "clientId",
        "clientSecret",
        "clientIdIssuedAt",
        "clientSecretExpiresAt",
        "redirectUris",
        "issuer",
        "configPreRegistered",
    ),
}
NUMBER = (int, float)
OPTIONAL: tuple[Mapping[str, type | tuple[type, ...]], ...] = (
    {"serverUrl": str, "codeVerifier": str, "oauthState": str},
    {"refreshToken": str, "scope": str, "issuer": str, "expiresAt": NUMBER},
    {"clientSecret": str, "issuer": str, "clientIdIssuedAt": NUMBER, "clientSecretExpiresAt": NUMBER,
     "configPreRegistered": bool},
)  # fmt: skip


class StoreError(Exception):
    """The OS store cannot be used; the message is the adapter's. There is no falling back on the file."""


def part_accounts(whole: str, text: str) -> list[str]:
    """The accounts of an entry's parts, where its text says that it is kept in parts."""
    try:
        manifest: Any = parse_json(text)
    except JsonTextError:
        return []
    if not isinstance(manifest, dict) or PARTS_MARK not in manifest or not isinstance(manifest.get("chunkCount"), int):
        return []
    return [f"{whole}.chunk.{manifest.get('chunkDigest')}.{number}" for number in range(manifest["chunkCount"])]


class Store:
    """The OS store of one run. The environment may put its directory elsewhere, or have it in memory alone.

    By version an entry of many characters is kept in parts, accounts of their own, and its account names them.
    """

    def __init__(self, world: World, environment: Mapping[str, str], profile: PiProfile) -> None:
        self.world, self.in_parts = world, profile.long_entries_in_parts
        self.ring = Ring(world, ring_directory(environment))
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
        return self.memory.get(name) if self.memory is not None else await self.ring.read(name)

    async def _put(self, name: str, text: str) -> None:
        if self.memory is not None:
            self.memory[name] = text
        else:
            await self.ring.write(name, text)


class Entries:
    """The stored entries of one run as its adapter knows them: read once, and kept until one is forgotten."""

    def __init__(self, world: World, home: Home, environment: Mapping[str, str], store: Store) -> None:
        self.world, self.home, self.environment, self.store = world, home, environment, store
        self._kept: dict[str, Mapping[str, Any] | None] = {}

    async def kept(self, server: LoadedServer) -> Mapping[str, Any] | None:
        """The entry for exactly this url, a handed-in one taken over; None without any. Raises StoreError."""
        if server.name not in self._kept:
            text = await taken_over(self.world, self.home, server, self.environment, self.store)
            entry = None if text is None else read_entry(text)
            self._kept[server.name] = entry if entry is not None and entry.get("serverUrl") == server.url else None
        return self._kept[server.name]

    async def keep(self, server: LoadedServer, entry: Mapping[str, Any]) -> None:
        """Write an entry, and know it from now on. Raises StoreError."""
        whole = {**entry, "serverUrl": server.url}
        await self.store.write(server, entry_text(whole))
        self._kept[server.name] = whole

    def forget(self, server: LoadedServer) -> None:
        """The next one who asks reads it anew."""
        self._kept.pop(server.name, None)

    async def is_there(self, server: LoadedServer) -> bool:
        """Whether a token for this url is stored or handed in; what is handed in stays where it is. Raises StoreError.

        A server that does not ask for OAuth by itself is first only looked up.
        """
        if server.name in self._kept:
            return (self._kept[server.name] or {}).get("tokens") is not None
        text = await self.store.read(server)
        if text is None:
            text = await read_if_there(self.world, handoff_file(self.home, server, self.environment))
        return text is not None and token_for(server.url, text) is not None


async def taken_over(
    world: World, home: Home, server: LoadedServer, environment: Mapping[str, str], store: Store
) -> str | None:
    """What the store holds for a server, after what is handed in was moved there or, beside an entry, removed.

    What cannot be read as a credential stays where it is. Raises StoreError.
    """
    text, path = await store.read(server), handoff_file(home, server, environment)
    if text is None:
        text = await read_if_there(world, path)
        entry = None if text is None else read_entry(text)
        if entry is None:
            return None
        text = entry_text(entry)
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


def entry_text(entry: Mapping[str, Any]) -> str:
    """An entry as it is stored: what the adapter knows of it, in an order of its own."""
    parts = {
        part: {name: entry[part][name] for name in names if name in entry[part]}
        for part, names in MEMBERS.items()
        if part in entry
    }
    rest = {name: entry[name] for name in ("codeVerifier", "oauthState", "serverUrl") if name in entry}
    return json_stringify({**parts, **rest})


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
