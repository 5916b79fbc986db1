"""Pi's store: a token is handed in as a file, which the adapter takes over into the keyring and removes.

An account that the keyring already has beats the file, which is then removed unread, be the account's token dead or for
another URL; so the account is removed before the file is written. That the file is gone afterwards is the normal end of
its life. Nothing is written for a Pi that runs: it would lose the write, or spend a refresh token that is no longer
good (writers-pi-no-push).

Source: seed 002 "Pi takes a token by handoff, and cannot give one back"; ARCHITECTURE "Where sources disagree", the Pi
writer; requirements writers-pi-*. Measured on 2.32.1 and 2.36.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from harness.reference.credentials.key import Runtime, pi_account
from harness.reference.credentials.row import Credential
from harness.reference.credentials.writers import store_file
from harness.reference.credentials.writers.pi_store import PiStore, UnreachableError, pair_of
from harness.reference.credentials.writers.protocol import RuntimePair, StagedCredential
from harness.reference.credentials.writers.staging import MILLISECONDS, given, is_writable, usable
from harness.reference.credentials.writers.store_file import PRIVATE_DIRECTORY, Document
from harness.world import World

STAGED_FILE = "tokens.json"
READ_SECONDS = 2.0
"""For one probe: the only question to the keyring that can be left out without harm."""

CHANGE_SECONDS = 5.0
"""For all that one write or one deletion asks of the keyring."""


@dataclass(frozen=True, slots=True)
class PiWriter:
    """The directory in which credentials are handed in, and the keyring that they end in. The keyring has no list."""

    directory: str
    store: PiStore
    runtime: Runtime = "pi"
    enumerable: bool = False

    def key_for(self, row: Credential) -> str:
        """The bare name of the server in `.mcp.json`."""
        return row.server_name

    async def write(self, world: World, credentials: Sequence[StagedCredential]) -> str | None:
        """Stage each; the directory, or None where none was staged. One that cannot be staged loses no other."""
        until = world.clock.now() + CHANGE_SECONDS
        staged, reachable = False, True
        for credential in usable(credentials, world.clock.now()):
            reachable = reachable and await self._cleared(world, credential.server_name, until)
            staged = await self._staged(world, credential) or staged
        return self.directory if staged else None

    async def read(self, world: World, keys: Sequence[str] | None = None) -> Mapping[str, RuntimePair]:
        """What the keyring holds for these servers, never what is staged: that is Zimmer's own.

        A keyring that cannot be reached holds nothing to adopt; where there is no Pi it never can, so no warning.
        """
        found: dict[str, RuntimePair] = {}
        for name in dict.fromkeys(keys or ()):
            try:
                text = await self.store.entry(world, pi_account(name), world.clock.now() + READ_SECONDS)
            except UnreachableError as error:
                world.events.emit("log", level="info", text=f"Pi's credential of '{name}' was not looked up: {error}")
                continue
            pair = None if text is None else pair_of(text)
            if pair is not None:
                found[name] = pair
        return found

    async def delete(self, world: World, keys: Sequence[str]) -> tuple[str, ...]:
        """Remove the staged file and the account of each; the names of which either was there."""
        until = world.clock.now() + CHANGE_SECONDS
        gone = []
        for name in dict.fromkeys(keys):
            unstaged = await self._unstaged(world, name)
            if await self._cleared_entry(world, name, until) or unstaged:
                gone.append(name)
        return tuple(gone)

    async def clear_needs_auth(self, world: World, names: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002 - no cache
        """Nothing: Pi remembers no refusal."""
        return ()

    async def discard(self, world: World, names: Sequence[str]) -> None:
        """Remove what was staged and never taken over, at the end of a session (writers-pi-plaintext-scope)."""
        for name in dict.fromkeys(names):
            await self._unstaged(world, name)

    async def _cleared(self, world: World, name: str, until: float) -> bool:
        """Take the account away; whether the keyring can be reached, which need not be."""
        try:
            await self.store.clear(world, pi_account(name), until)
        except UnreachableError as error:
            warn(world, f"Pi's stored credential of '{name}' could not be removed and may beat the new one: {error}")
            return False
        return True

    async def _cleared_entry(self, world: World, name: str, until: float) -> bool:
        """Take the account away; whether there was one."""
        try:
            return await self.store.clear(world, pi_account(name), until)
        except UnreachableError as error:
            warn(world, f"Pi's stored credential of '{name}' could not be removed: {error}")
            return False

    async def _staged(self, world: World, credential: StagedCredential) -> bool:
        """Write the file, private, in a directory that is private too."""
        try:
            with suppress(PermissionError):  # somebody else's: what is staged has a private one of its own in it
                await private_directory(world, self.directory)
            lock = await store_file.locked(world, self.directory)
            try:
                path = self.path(credential.server_name)
                if not is_fresher(await store_file.read_text(world, path), credential):
                    await hand_in(world, path, entry_of(credential))
            finally:
                await lock.release()
        except OSError as error:
            warn(world, f"the credential of '{credential.server_name}' could not be staged: {error.strerror or error}")
            return False
        return True

    async def _unstaged(self, world: World, name: str) -> bool:
        """Remove a staged file with its directory; whether there was one."""
        path = self.path(name)
        try:
            there = await world.files.stat(path) is not None
            if there:
                await world.files.remove(path)  # by itself, as its directory may be a link to another
            await world.files.remove_tree(store_file.directory_of(path))
        except OSError as error:
            warn(world, f"the staged credential of '{name}' could not be removed: {error.strerror or error}")
            return False
        return there

    def path(self, server_name: str) -> str:
        """Where a server's credential is handed in."""
        return f"{self.directory}/{staged_path(server_name)}"


def staged_path(server_name: str) -> str:
    """The file below the directory: the full digest of the exact name, as the account has it."""
    return f"{pi_account(server_name)}/{STAGED_FILE}"


def entry_of(credential: StagedCredential) -> Document:
    """An entry. Every member comes from the credential; one of a wrong type, null too, would spoil it.

    A client without redirect URIs is one that Pi does not use: it registers another and presents the refresh token
    with that. The issuer goes into both objects, else a stale entry is saved over a newer one to stamp it.
    """
    seconds = None if credential.expires_at_ms is None else credential.expires_at_ms // MILLISECONDS
    tokens = given(
        accessToken=credential.access_token,
        refreshToken=credential.refresh_token,
        expiresAt=seconds,
        scope=credential.scope,
        issuer=credential.issuer,
    )
    return {"serverUrl": credential.server_url, "tokens": tokens, **given(clientInfo=client_of(credential))}


def client_of(credential: StagedCredential) -> Document | None:
    """The client that the tokens were given to; None where it is unknown."""
    known = given(clientId=credential.client_id)
    return (known and known | given(redirectUris=list(credential.redirect_uris), issuer=credential.issuer)) or None


def staged(credential: StagedCredential) -> tuple[str, Document] | None:
    """The file and the entry of a credential; None where it has no token or no name."""
    return (staged_path(credential.server_name), entry_of(credential)) if is_writable(credential) else None


def is_fresher(text: str | None, credential: StagedCredential) -> bool:
    """Whether a file that was handed in and not yet taken over holds a later pair of the same client for the same URL.

    Another session's spawn has renewed the row while this one was on its way with what it had read before: its own
    copy would be one of a spent token, which every Pi would take over.
    """
    staged = None if text is None else pair_of(text)
    if staged is None or staged.expires_at is None or credential.expires_at_ms is None:
        return False
    client = store_file.document_of(text).get("clientInfo")
    same = (staged.server_url, client) == (credential.server_url, client_of(credential))
    return same and staged.expires_at > credential.expires_at_ms // MILLISECONDS


async def hand_in(world: World, path: str, entry: Document) -> None:
    """Write a file that the adapter takes away with its directory as soon as it sees it. Raises OSError.

    It may take the file of another session while this one is being written, and the directory with it: then once more.
    """
    try:
        await in_own_directory(world, path, entry)
    except FileNotFoundError:
        await in_own_directory(world, path, entry)


async def in_own_directory(world: World, path: str, entry: Document) -> None:
    """The file alone in a private directory: with anything beside it the adapter could not remove that."""
    await private_directory(world, store_file.directory_of(path))
    await store_file.replace(world, path, entry)
    await store_file.sweep(world, path, unused_seconds=0)


async def private_directory(world: World, path: str) -> None:
    """A directory that is nobody else's to read, made where it is not there."""
    await world.files.make_directory(path, mode=PRIVATE_DIRECTORY)
    there = await world.files.stat(path)
    if there is not None and there.kind == "directory" and there.mode != PRIVATE_DIRECTORY:
        await world.files.chmod(path, PRIVATE_DIRECTORY)


def warn(world: World, text: str) -> None:
    """A line of the log."""
    world.events.emit("log", level="warn", text=text)
