"""Claude Code's store: `.credentials.json` in its config directory, the servers' entries under `mcpOAuth`.

The account's tokens lie in the same file, so three parties write it: two spawns at once, and the writer of the account
(`write_account`), all under one lock. The runtime itself locks otherwise.

Source: seed 002 "Capturing the token the runtime rotates", "The runtime credential stores are host-global";
requirements writers-claude-*, store-*. The entry's shape is measured on 2.1.268 and 2.1.328.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.reference.credentials.key import Runtime
from harness.reference.credentials.row import Credential
from harness.reference.credentials.writers import needs_auth, store_file
from harness.reference.credentials.writers.keychain import Keychain
from harness.reference.credentials.writers.protocol import RuntimePair, StagedCredential
from harness.reference.credentials.writers.removal import Removed, without_keys
from harness.reference.credentials.writers.staging import MILLISECONDS, given, in_seconds, is_writable, usable
from harness.reference.credentials.writers.store_file import Document
from harness.reference.secrets.blank import is_blank
from harness.world import World

STORE_FILE = ".credentials.json"
SERVERS, ACCOUNT = "mcpOAuth", "claudeAiOauth"
KEYCHAIN_SERVICE = "Claude Code-credentials"


@dataclass(frozen=True, slots=True)
class ClaudeWriter:
    """The store in one config directory: the host's `$HOME/.claude`, or a session's own."""

    directory: str
    keychain: Keychain | None = None
    runtime: Runtime = "claude"
    enumerable: bool = True

    @property
    def path(self) -> str:
        """The store."""
        return store_path(self.directory)

    def key_for(self, row: Credential) -> str:
        """The key over the entry as the runtime reads it; the row's own where that was never noted."""
        return row.runtime_keys.get(self.runtime, row.credential_key)

    async def write(self, world: World, credentials: Sequence[StagedCredential]) -> str | None:
        """Put them into the store; an entry of the runtime's that is fresher stays. Raises OSError."""
        wanted = usable(credentials, world.clock.now())
        if not wanted:
            return None

        def change(document: Document) -> tuple[Document, None]:
            return merged(document, wanted, world.clock.now()), None

        await store_file.rewrite(world, self.path, change)
        if self.keychain is not None:
            await self.keychain.change(world, KEYCHAIN_SERVICE, change)
        return self.path

    async def read(self, world: World, keys: Sequence[str] | None = None) -> Mapping[str, RuntimePair]:
        """All pairs; on macOS those in the keychain go before the file's. Raises OSError."""
        found = pairs(await store_file.read_document(world, self.path))
        if self.keychain is not None:
            found.update(pairs(await self.keychain.document(world, KEYCHAIN_SERVICE)))
        return found if keys is None else {key: found[key] for key in keys if key in found}

    async def delete(self, world: World, keys: Sequence[str]) -> tuple[str, ...]:
        """Remove entries; the names of those that were in the file. Raises OSError."""
        if not keys:
            return ()

        def change(document: Document) -> tuple[Document | None, tuple[str, ...]]:
            removed = without(document, keys)
            return (removed.document if removed.keys else None), removed.keys

        gone = await store_file.rewrite_existing(world, self.path, change)
        if self.keychain is not None:
            await self.keychain.change(world, KEYCHAIN_SERVICE, change)
        return gone

    async def clear_needs_auth(self, world: World, names: Sequence[str]) -> tuple[str, ...]:
        """Forget that these servers wanted a sign-in, beside the store that this session reads."""
        return await needs_auth.clear(world, self.directory, names)


def store_path(directory: str) -> str:
    """The store of a config directory."""
    return f"{directory}/{STORE_FILE}"


def merged(document: Mapping[str, Any], credentials: Sequence[StagedCredential], now: float) -> Document:
    """The document with the credentials in it. Other blocks and other servers' entries stay as they are.

    A block that is no object is replaced, and nothing beside it (writers-missing-store-not-error).
    """
    entries = entries_of(document)
    for credential in credentials:
        if is_writable(credential) and not keeps(entries.get(credential.credential_key), credential, now):
            entries[credential.credential_key] = entry_of(credential)
    return {**document, SERVERS: entries}


def entries_of(document: Mapping[str, Any]) -> Document:
    """The servers' entries."""
    entries = document.get(SERVERS)
    return dict(entries) if isinstance(entries, dict) else {}


def entry_of(credential: StagedCredential) -> Document:
    """An entry. The expiry is in milliseconds: without one it never expires, at 0 or in seconds it long has.

    The scope is always empty (writers-claude-entry): the runtime does not send it, and asks again where it differs.
    """
    return {
        "serverName": credential.server_name,
        "serverUrl": credential.server_url,
        "clientId": credential.client_id,
        "accessToken": credential.access_token,
        "scope": "",
        **given(expiresAt=credential.expires_at_ms, refreshToken=credential.refresh_token),
    }


def keeps(entry: Any, credential: StagedCredential, now: float) -> bool:
    """Whether an entry on disk stays. One that holds no token is none."""
    if pair_of(entry) is None:
        return False
    return fresher_on_disk(entry.get("expiresAt"), credential.expires_at_ms, now * MILLISECONDS)


def fresher_on_disk(disk_ms: Any, ours_ms: float | None, now_ms: float) -> bool:
    """Whether the runtime's own expiry says that it got its pair later, which is told only while that pair counts.

    Across a gap longer than a token's life this is wrong, so adopt what is on disk before writing (seed 002 "Capturing
    the token the runtime rotates"). Equal: the disk's.
    """
    if in_seconds(disk_ms) is None or not disk_ms > now_ms:
        return False
    return ours_ms is None or bool(ours_ms <= disk_ms)


def pairs(document: Mapping[str, Any]) -> dict[str, RuntimePair]:
    """The pairs in a store, by key; entries that hold none are left out (writers-claude-emptied-entry)."""
    found = {key: pair_of(entry) for key, entry in entries_of(document).items()}
    return {key: pair for key, pair in found.items() if pair is not None}


def pair_of(entry: Any) -> RuntimePair | None:
    """An entry's pair. After a refused grant the runtime leaves an entry with an empty token: that is none."""
    if not isinstance(entry, Mapping):
        return None
    access, refresh, url = entry.get("accessToken"), entry.get("refreshToken"), entry.get("serverUrl")
    if not isinstance(access, str) or is_blank(access):
        return None
    return RuntimePair(
        access_token=access,
        refresh_token=refresh if isinstance(refresh, str) and not is_blank(refresh) else None,
        expires_at=in_seconds(entry.get("expiresAt")),
        server_url=url if isinstance(url, str) else None,
    )


def without(document: Mapping[str, Any], keys: Sequence[str]) -> Removed:
    """The document without some servers' entries, everything else kept."""
    removed = without_keys(entries_of(document), keys)
    if not removed.keys:
        return Removed((), dict(document))
    return Removed(removed.keys, {**document, SERVERS: removed.document})


async def write_account(world: World, directory: str, tokens: Mapping[str, Any]) -> None:
    """Replace the account's block under the same lock, as a rotation of accounts does. Raises OSError."""

    def change(document: Document) -> tuple[Document, None]:
        return {**document, ACCOUNT: dict(tokens)}, None

    await store_file.rewrite(world, store_path(directory), change)
