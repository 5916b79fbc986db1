"""Pi's credential store: accounts of the operating system's keyring, asked through the adapter's own helper.

The helper takes one JSON request on its stdin and answers with one line. An account is `sha256-<hex of the server's
name>`; a long entry is kept in parts, each an account of its own, and the account itself names how many.

On headless Linux that keyring is the kernel's. A helper without a session keyring of its own answers that nothing is
there although Pi has a token, and removes nothing, both without an error; so it is run under a joined one
(reconcile-pi-keyring-session-seam). Measured on 2.32.1 and 2.36.0.

Source: seed 002 "Pi takes a token by handoff", "Capturing the token the runtime rotates"; requirements writers-pi-*,
reconcile-pi-*.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from harness.reference.credentials.javascript import utf8, whole
from harness.reference.credentials.writers.protocol import RuntimePair
from harness.reference.credentials.writers.store_file import document_of
from harness.reference.credentials.writers.tool import ask
from harness.reference.secrets.blank import is_blank
from harness.world import World

SERVICE = "pi-mcp-adapter.oauth"
HELPER = "mcp-keyring-helper.cjs"
PARTS_MARK, PARTS_COUNT, PARTS_DIGEST = "__piMcpAdapterOAuthChunked", "chunkCount", "chunkDigest"
MOST_PARTS = 64
DIGEST = re.compile(r"[0-9a-f]{16}")


class UnreachableError(OSError):
    """The keyring cannot be asked: no helper, no answer in time, or an error of its own."""


class Manifest(NamedTuple):
    """An entry that is kept in parts."""

    parts: int
    digest: str


@dataclass(frozen=True, slots=True)
class PiStore:
    """The keyring behind a helper. `runner` is the whole argv, so that a deployment can say how it is run."""

    runner: tuple[str, ...]

    async def get(self, world: World, account: str, until: float) -> str | None:
        """An account's text; None where there is none. Raises UnreachableError."""
        answer = await self._ask(world, "read", account, until)
        value = answer.get("value")
        return value if answer.get("found") is True and isinstance(value, str) else None

    async def remove(self, world: World, account: str, until: float) -> None:
        """Remove an account; one that is not there is no error. Raises UnreachableError."""
        await self._ask(world, "remove", account, until)

    async def entry(self, world: World, account: str, until: float) -> str | None:
        """An entry's text, put together where it is kept in parts; None where a part is missing or does not fit."""
        text = await self.get(world, account, until)
        manifest = manifest_of(text)
        if manifest is None:
            return text
        return joined(manifest, [await self.get(world, part, until) for part in chunk_accounts(account, text)])

    async def clear(self, world: World, account: str, until: float) -> bool:
        """Remove an entry with its parts; whether there was one. Raises UnreachableError."""
        accounts = accounts_to_remove(account, await self.get(world, account, until))
        for one in accounts:
            await self.remove(world, one, until)
        return bool(accounts)

    async def _ask(self, world: World, operation: str, account: str, until: float) -> Mapping[str, Any]:
        request = json.dumps({"operation": operation, "service": SERVICE, "account": account})
        answer = await ask(world, self.runner, request, until)
        if answer is None:
            raise UnreachableError("the keyring helper gave no answer")
        reply = document_of(answer.lines[-1] if answer.lines else None)
        if answer.exit_code != 0 or reply.get("ok") is not True:
            raise UnreachableError("the keyring helper reported an error")
        return reply


def manifest_of(text: str | None) -> Manifest | None:
    """What an account says of the entry's parts; None where it is no such thing, or says what cannot be true."""
    document = document_of(text)
    count, digest = document.get(PARTS_COUNT), document.get(PARTS_DIGEST)
    if document.get(PARTS_MARK) != 1 or isinstance(document.get(PARTS_MARK), bool):
        return None
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_PARTS:
        return None
    return Manifest(count, digest) if isinstance(digest, str) and DIGEST.fullmatch(digest) else None


def joined(manifest: Manifest, parts: list[str | None]) -> str | None:
    """The entry's text; None unless all parts are there and together are what the manifest tells.

    A part has a number of UTF-16 units, so a character may begin in one and end in the next.
    """
    text = whole("".join(part for part in parts if part is not None))
    complete = len(parts) == manifest.parts and None not in parts
    return text if complete and digest_of(text) == manifest.digest else None


def digest_of(text: str) -> str:
    """The first 16 hex digits of the SHA-256."""
    return sha256(utf8(text)).hexdigest()[:16]


def chunk_accounts(account: str, text: str | None) -> tuple[str, ...]:
    """The accounts of the parts that an account's text tells of; none for a number of parts that cannot be."""
    manifest = manifest_of(text)
    parts = range(0 if manifest is None else manifest.parts)
    return tuple(f"{account}.chunk.{manifest.digest}.{number}" for number in parts if manifest is not None)


def accounts_to_remove(account: str, text: str | None) -> tuple[str, ...]:
    """The accounts of an entry, its parts first (writers-pi-chunked-remove); none where there is no entry.

    Killed in between, the account still names the parts that are left.
    """
    return () if text is None else (*chunk_accounts(account, text), account)


def stored_pair(accounts: Mapping[str, str]) -> RuntimePair | None:
    """The pair that a server's accounts hold (texts by suffix of its own account); None where they hold none."""
    text = accounts.get("")
    manifest = manifest_of(text)
    if manifest is not None:
        text = joined(manifest, [accounts.get(part) for part in chunk_accounts("", text)])
    return None if text is None else pair_of(text)


def pair_of(text: str) -> RuntimePair | None:
    """An entry's pair: texts, and an expiry in SECONDS that is a positive number. Anything else is none."""
    entry = document_of(text)
    tokens = entry.get("tokens")
    if not isinstance(tokens, dict):
        return None
    access, refresh, expires_at = tokens.get("accessToken"), tokens.get("refreshToken"), tokens.get("expiresAt")
    if not isinstance(access, str) or is_blank(access) or not isinstance(refresh, str | None):
        return None
    if expires_at is not None and not is_time(expires_at):
        return None
    url = entry.get("serverUrl")
    return RuntimePair(access, refresh, plain(expires_at), url if isinstance(url, str) else None)


def is_time(value: Any) -> bool:
    """A positive number that is a time."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def plain(value: Any) -> float | None:
    """A number without its spelling."""
    return None if value is None else int(value) if isinstance(value, int) else float(value)
