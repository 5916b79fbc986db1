"""What every writer of a runtime's credential store can do (seed 002 "Three writers")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.reference.credentials.key import Runtime
from harness.reference.credentials.row import Credential
from harness.world import World


@dataclass(frozen=True, slots=True)
class StagedCredential:
    """A credential as it is written for one runtime, and all that a writer knows of it (`ResolvedMcpCredential`).

    `credential_key` is that runtime's own; times in milliseconds. A client secret is no part of it, so that none can
    get into a runtime's store (writers-client-secret-not-carried).
    """

    credential_key: str
    server_name: str
    server_url: str
    client_id: str | None
    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at_ms: int | None = None
    scope: str | None = None
    issuer: str | None = None
    redirect_uris: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuntimePair:
    """What a runtime's store holds for a key. `server_url` None: the entry names none. `expires_at` in seconds."""

    access_token: str | None = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_at: float | None
    server_url: str | None = None


class Writer(Protocol):
    """One runtime's store. A missing store is never an error; reading raises OSError where a store cannot be read."""

    @property
    def runtime(self) -> Runtime: ...

    @property
    def enumerable(self) -> bool:
        """Whether one read gives all of it; else it is asked for single keys."""

    def key_for(self, row: Credential) -> str:
        """The key under which this runtime's store has a row's credential (`runtime_key_for`)."""

    async def write(self, world: World, credentials: Sequence[StagedCredential]) -> str | None:
        """Write them; the path of what was written, None where there was nothing to write."""

    async def read(self, world: World, keys: Sequence[str] | None = None) -> Mapping[str, RuntimePair]:
        """The pairs it holds, by key; `keys` None: all, where the store is enumerable."""

    async def delete(self, world: World, keys: Sequence[str]) -> tuple[str, ...]:
        """Remove keys from wherever this runtime keeps them; those that were there, in the order asked."""

    async def clear_needs_auth(self, world: World, names: Sequence[str]) -> tuple[str, ...]:
        """Forget that these servers (bare names) wanted a sign-in; the names that were remembered."""
