"""Vectors of the area `reconcile`: adoption from the runtimes' stores, run over a world in memory."""

from __future__ import annotations

import errno
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, cast

from harness.reference.credentials import table
from harness.reference.credentials.key import Runtime
from harness.reference.credentials.reconcile import Reconciler
from harness.reference.credentials.row import Credential
from harness.reference.credentials.writers.pi_store import stored_pair
from harness.reference.credentials.writers.protocol import RuntimePair, StagedCredential, Writer
from harness.vectors.registry import operation
from harness.world import World
from harness.world.errors import failure
from harness.world.model import Simulation

NOW = 1_800_000_000.0
KEY = "server|0123456789abcdef"


@operation(
    "reconcile.adopt",
    requirements=(
        "reconcile-adopt-strictly-later-expiry",
        "reconcile-adopt-expired-pair",
        "reconcile-equal-expiry-keeps-row",
        "reconcile-adopts-whole-pair",
        "reconcile-adoption-clears-one-shot-flag",
        "reconcile-refuse-row-without-expiry",
        "reconcile-refuse-other-server-url",
        "reconcile-url-compare-byte-exact",
        "reconcile-refuse-incomplete-pair",
        "reconcile-refuse-identical-pair",
        "reconcile-refuse-runtime-without-expiry",
        "reconcile-unreachable-store-is-nothing",
        "reconcile-update-error-is-nothing",
        "reconcile-recovers-nulled-row",
    ),
)
def _adopt(given: dict[str, Any]) -> Any:
    adopted, row = reconciled(given["row"], [("claude", given["runtime"])])
    return {"adopted": adopted, "row": row}


@operation(
    "reconcile.cron",
    requirements=(
        "reconcile-cron-reads-every-runtime",
        "reconcile-cron-store-order-irrelevant",
        "reconcile-unreachable-store-is-nothing",
        "reconcile-refuse-other-server-url",
        "reconcile-refuse-row-without-expiry",
    ),
)
def _cron(given: dict[str, Any]) -> Any:
    return reconciled(given["row"], [(store["runtime"], store["entry"]) for store in given["stores"]])[1]


@operation(
    "reconcile.reads",
    requirements=(
        "reconcile-listable-read-once",
        "reconcile-probe-only-asked-keys",
        "reconcile-probe-memoized",
        "reconcile-constructing-is-free",
    ),
)
def _reads(given: dict[str, Any]) -> Any:
    store = Store("claude", None, enumerable=given["enumerable"], raises=given["raises"])

    async def program(world: World) -> None:
        reconciler = Reconciler(world, [store])
        for key in given["calls"]:
            if await table.find(world, key) is None:
                await table.change(world, key, lambda _, key=key: row_of(key))  # type: ignore[misc]
            await reconciler.adopt(key)

    run(program)
    return store.reads


@operation("reconcile.pi_read", requirements=("reconcile-pi-probe-chunked-entry", "reconcile-pi-types-checked"))
def _pi_read(given: dict[str, Any]) -> Any:
    pair = stored_pair(given["accounts"])
    if pair is None:
        return None
    return {
        "access_token": pair.access_token,
        "refresh_token": pair.refresh_token,
        "expires_at_s": pair.expires_at,
        "server_url": pair.server_url,
    }


def reconciled(given: Mapping[str, Any], stores: Sequence[tuple[Runtime, Any]]) -> tuple[bool, dict[str, Any]]:
    """Reconcile a row with stores in their order: was anything adopted, and the row afterwards."""
    before = given_row(given)
    writers = [store_of(runtime, entry, before) for runtime, entry in stores]

    async def program(world: World) -> tuple[bool, Credential | None]:
        await table.insert_unchecked(world, before)
        refuses = any(entry == {"error": "row_lock"} for _, entry in stores)
        adopted = await Reconciler(cast(World, LocksRefused(world)) if refuses else world, writers).adopt(KEY)
        return adopted is not None, await table.find(world, KEY)

    adopted, after = run(program)
    return adopted, {**given, **relative(after)}


def given_row(given: Mapping[str, Any]) -> Credential:
    """The row of an input."""
    return row_of(
        KEY,
        server_url=given["server_url"],
        access_token=given["access_token"],
        refresh_token=given["refresh_token"],
        expires_at=None if given["expires_in_s"] is None else NOW + given["expires_in_s"],
        refresh_token_unsupported=given["refresh_token_unsupported"],
    )


def row_of(key: str, **columns: Any) -> Credential:
    """A row of which only some columns matter."""
    given = {"server_name": "server", "server_url": "https://s/mcp", "client_id": "c", "access_token": "a", **columns}
    return Credential(credential_key=key, **given)


def relative(row: Credential) -> dict[str, Any]:
    """The columns of an answer."""
    seconds = None if row.expires_at is None else round(row.expires_at - NOW, 6)
    return {
        "access_token": row.access_token,
        "refresh_token": row.refresh_token,
        "expires_in_s": int(seconds) if seconds is not None and seconds == int(seconds) else seconds,
        "server_url": row.server_url,
        "refresh_token_unsupported": row.refresh_token_unsupported,
    }


def store_of(runtime: Runtime, entry: Any, row: Credential) -> Store:
    """The store that holds an input's entry. Where the row's lock is what fails, it holds something adoptable."""
    if entry is None:
        return Store(runtime, None)
    if entry == {"error": "row_lock"}:
        return Store(runtime, RuntimePair("other-access", "other-refresh", (row.expires_at or NOW) + 1, None))
    if "error" in entry:
        return Store(runtime, None, raises=True)
    seconds = entry["expires_in_s"]
    return Store(
        runtime,
        RuntimePair(
            entry["access_token"],
            entry["refresh_token"],
            None if seconds is None else NOW + seconds,
            entry.get("server_url"),
        ),
    )


class Store(Writer):
    """A runtime's store that holds one pair, whatever key it is asked for. `reads` are the keys asked."""

    def __init__(
        self, runtime: Runtime, pair: RuntimePair | None, *, enumerable: bool = True, raises: bool = False
    ) -> None:
        self._runtime, self._pair, self._enumerable, self._raises = runtime, pair, enumerable, raises
        self.reads: list[list[str] | None] = []

    @property
    def runtime(self) -> Runtime:
        return self._runtime

    @property
    def enumerable(self) -> bool:
        return self._enumerable

    def key_for(self, row: Credential) -> str:
        return row.credential_key

    async def write(self, world: World, credentials: Sequence[StagedCredential]) -> str | None:  # noqa: ARG002
        return None

    async def read(self, world: World, keys: Sequence[str] | None = None) -> Mapping[str, RuntimePair]:  # noqa: ARG002
        self.reads.append(None if keys is None else list(keys))
        if self._raises:
            raise failure(errno.EIO, "the store")
        return {} if self._pair is None else {KEY: self._pair}

    async def delete(self, world: World, keys: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    async def clear_needs_auth(self, world: World, names: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002
        return ()


class LocksRefused:
    """A world whose row locks raise, as a database does after a deadlock."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return LocksRefused(self._inner.store) if name == "store" else getattr(self._inner, name)

    async def begin(self) -> Any:
        """A transaction of a store, in which nothing can be locked."""
        return LocksRefused(await self._inner.begin())

    async def get(self, name: str, key: str, *, lock: bool = False) -> Any:
        """A row, but no lock."""
        if lock:
            raise failure(errno.EDEADLK, key)
        return await self._inner.get(name, key)


def run(program: Callable[[World], Coroutine[Any, Any, Any]]) -> Any:
    """Run it as the one actor of a calm world; its result. What it raises is raised here."""
    results: list[Any] = []

    async def actor(world: World, _argv: Sequence[str]) -> int:
        results.append(await program(world))
        return 0

    simulation = Simulation(start_seconds=NOW)
    started = simulation.start("zimmer", actor)
    simulation.run()
    error = simulation.ended(started).error
    if error is not None:
        raise error
    return results[0]
