"""Codex's store: one flat map in `$CODEX_HOME/.credentials.json`, and on macOS an item of the keychain for each entry.

It is rewritten at every spawn because of two bugs of Codex: openai/codex#15122 (a login does not survive a restart) and
openai/codex#17265 (the stored refresh token is not used). The formats were read out of another project's source
(`FORMAT_SOURCE`); the two differ and neither can stand in for the other. The file's is measured on 0.146.0 and 0.169.0,
the keychain's on nothing.

Source: seed 002 "This is a reimplementation of another project's internals", "And it only exists because of two open
Codex bugs"; ARCHITECTURE "Where sources disagree", the Codex writer; requirements writers-codex-*.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.reference.credentials.key import Runtime, runtime_key
from harness.reference.credentials.row import Credential
from harness.reference.credentials.writers import store_file
from harness.reference.credentials.writers.keychain import Item, Keychain
from harness.reference.credentials.writers.protocol import RuntimePair, StagedCredential
from harness.reference.credentials.writers.removal import without_keys
from harness.reference.credentials.writers.staging import given, in_seconds, is_writable, usable
from harness.reference.credentials.writers.store_file import Document
from harness.reference.secrets.blank import is_blank
from harness.world import World

STORE_FILE = ".credentials.json"
KEYCHAIN_SERVICE = "Codex MCP Credentials"
TOKEN_TYPE = "bearer"
FORMAT_SOURCE = "openai/codex codex-rs/rmcp-client/src/oauth.rs at rust-v0.133.0"
FILE_MEASURED_ON = ("0.146.0", "0.169.0")
KEYCHAIN_MEASURED_ON: tuple[str, ...] = ()
WORD = re.compile(r"\S+", re.ASCII)


@dataclass(frozen=True, slots=True)
class CodexWriter:
    """The store in one Codex home."""

    directory: str
    keychain: Keychain | None = None
    runtime: Runtime = "codex"
    enumerable: bool = True

    @property
    def path(self) -> str:
        """The store."""
        return f"{self.directory}/{STORE_FILE}"

    def key_for(self, row: Credential) -> str:
        """The key over type `http`, the URL and no headers, whatever the server has (writers-codex-key-forced)."""
        noted = row.runtime_keys.get(self.runtime)
        return noted or runtime_key(self.runtime, row.server_name, {"url": row.server_url}, {})

    async def write(self, world: World, credentials: Sequence[StagedCredential]) -> str | None:
        """Put them into the store over whatever it has of theirs. Raises OSError."""
        active = usable(credentials, world.clock.now())
        wanted = tuple(one for one in active if is_readable_to_codex(one))
        for one in active:
            if one not in wanted:
                world.events.emit("log", level="warn", text=unwritable_text(one))
        if not wanted:
            return None

        def change(document: Document) -> tuple[Document, None]:
            return rewritten(document, wanted), None

        await store_file.rewrite(world, self.path, change)
        if self.keychain is not None:
            for one in wanted:
                await self.keychain.put(world, keychain_item(one))
        return self.path

    async def read(self, world: World, keys: Sequence[str] | None = None) -> Mapping[str, RuntimePair]:
        """All pairs of the file. Raises OSError."""
        found = pairs(await store_file.read_document(world, self.path))
        return found if keys is None else {key: found[key] for key in keys if key in found}

    async def delete(self, world: World, keys: Sequence[str]) -> tuple[str, ...]:
        """Remove entries; those that were there, in the file or the keychain. Raises OSError.

        In the keychain each is looked for, whether or not the file has it.
        """
        if not keys:
            return ()

        def change(document: Document) -> tuple[Document | None, tuple[str, ...]]:
            removed = without_keys(document, keys)
            return (removed.document if removed.keys else None), removed.keys

        gone = set(await store_file.rewrite_existing(world, self.path, change))
        if self.keychain is not None:
            for key in dict.fromkeys(keys):
                if await self.keychain.remove(world, KEYCHAIN_SERVICE, key):
                    gone.add(key)
        return tuple(key for key in dict.fromkeys(keys) if key in gone)

    async def clear_needs_auth(self, world: World, names: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002 - no cache
        """Nothing: Codex reads its store at every connection and remembers no refusal."""
        return ()


def rewritten(document: Mapping[str, Any], credentials: Sequence[StagedCredential]) -> Document:
    """The map with the credentials' entries, each the only one of its server; all others stay.

    No look at which is fresher: what the runtime may have got is adopted before (writers-codex-overwrites-
    unconditionally).
    """
    entries = dict(document)
    for credential in credentials:
        if is_writable(credential) and is_readable_to_codex(credential):
            entries = without_stale(entries, credential)
            entries[credential.credential_key] = entry_of(credential)
    return entries


def without_stale(entries: Mapping[str, Any], credential: StagedCredential) -> Document:
    """Without other entries of the same server: the runtime reads the first of a name and URL in the keys' order."""
    return {
        key: entry
        for key, entry in entries.items()
        if key == credential.credential_key or not is_of(entry, credential.server_name, credential.server_url)
    }


def is_of(entry: Any, name: str, url: str) -> bool:
    """Whether an entry is one of this server's."""
    return isinstance(entry, Mapping) and (entry.get("server_name"), entry.get("server_url")) == (name, url)


def is_readable_to_codex(credential: StagedCredential) -> bool:
    """Whether its entry would be one: without a client id the runtime can read no entry at all of the whole file."""
    return not any(is_blank(text) for text in (credential.server_name, credential.server_url, credential.client_id))


def unwritable_text(credential: StagedCredential) -> str:
    """What the log says of a credential that is left out."""
    why = "without client id and URL it would keep Codex from reading any other"
    return f"the credential of '{credential.server_name}' is not written: {why}"


def entry_of(credential: StagedCredential) -> Document:
    """An entry of the file: a scope list, the expiry in milliseconds, and the issuer without which 0.169 never
    renews (writers-codex-issuer-field).
    """
    return {
        "server_name": credential.server_name,
        "server_url": credential.server_url,
        "client_id": credential.client_id,
        "access_token": credential.access_token,
        "scopes": scope_list(credential.scope),
        **given(expires_at=credential.expires_at_ms, refresh_token=credential.refresh_token, issuer=credential.issuer),
    }


def keychain_item(credential: StagedCredential) -> Item:
    """An item of the keychain: another shape, its tokens nested, its scope one text, its expiry null where unknown."""
    answer = {
        "access_token": credential.access_token,
        "token_type": TOKEN_TYPE,
        **given(refresh_token=credential.refresh_token, scope=scope_text(credential.scope)),
    }
    value = {
        "server_name": credential.server_name,
        "url": credential.server_url,
        "client_id": credential.client_id,
        "token_response": answer,
        "expires_at": credential.expires_at_ms,
    }
    return Item(KEYCHAIN_SERVICE, credential.credential_key, value)


def scope_list(scope: str | Sequence[str] | None) -> list[str]:
    """A scope as the file has it: split at white space and nowhere else, as Slack's commas are part of a word."""
    texts = [scope] if isinstance(scope, str) else scope or ()
    return [word for text in texts for word in WORD.findall(text)]


def scope_text(scope: str | Sequence[str] | None) -> str:
    """A scope as the keychain has it."""
    return " ".join(scope_list(scope))


def pairs(document: Mapping[str, Any]) -> dict[str, RuntimePair]:
    """The pairs in a store, by key; an entry without an access token is left out."""
    found = {key: pair_of(entry) for key, entry in document.items()}
    return {key: pair for key, pair in found.items() if pair is not None}


def pair_of(entry: Any) -> RuntimePair | None:
    """An entry's pair. A refresh token that is null was refused (0.169)."""
    if not isinstance(entry, Mapping):
        return None
    access, refresh, url = entry.get("access_token"), entry.get("refresh_token"), entry.get("server_url")
    if not isinstance(access, str) or is_blank(access):
        return None
    return RuntimePair(
        access_token=access,
        refresh_token=refresh if isinstance(refresh, str) and not is_blank(refresh) else None,
        expires_at=in_seconds(entry.get("expires_at")),
        server_url=url if isinstance(url, str) else None,
    )


def format_pin() -> Mapping[str, Any]:
    """What the formats stand on: the source they were read from, and the versions that each was measured on."""
    return {"source": FORMAT_SOURCE, "file": list(FILE_MEASURED_ON), "keychain": list(KEYCHAIN_MEASURED_ON)}
