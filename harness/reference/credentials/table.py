"""The table of stored credentials: reading rows, and changing one under its lock.

Source: seed 002 "The token endpoint must be https", "Servers without offline_access issue one-shot credentials".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from harness.reference.credentials.row import (
    TABLE,
    Credential,
    credential_of,
    require_storable,
    row_values,
)
from harness.reference.oauth.tokens import store_tokens
from harness.world import World
from harness.world.ports import Transaction

Changed = Callable[[Credential | None], Credential | None]


async def find(world: World, key: str) -> Credential | None:
    """The committed row of a credential key."""
    transaction = await world.store.begin()
    row = await read(transaction, key)
    await transaction.rollback()
    return row


async def all_rows(world: World) -> tuple[Credential, ...]:
    """All committed rows, by key."""
    return tuple(credential_of(row.values) for row in await world.store.rows(TABLE))


async def read(transaction: Transaction, key: str, *, lock: bool = False) -> Credential | None:
    """A row inside a transaction; `lock` waits for whoever holds it."""
    row = await transaction.get(TABLE, key, lock=lock)
    return None if row is None else credential_of(row.values)


async def save(transaction: Transaction, row: Credential, now: float) -> Credential:
    """Write a valid row with the time of its change. Raises InvalidCredentialError, and nothing is written then.

    Whoever saves may have spent something that cannot be had back: so validate before spending, see `refresh`.
    """
    require_storable(row)
    touched = replace(row, updated_at=now)
    await transaction.put(TABLE, row.credential_key, row_values(touched))
    return touched


async def change(world: World, key: str, changed: Changed) -> Credential | None:
    """Replace a row by what `changed` makes of the one stored now (None: there is none, or delete it).

    Under the row's lock. A row that stays equal is not written, so that its `updated_at` stays, which the refresh
    job's pause counts from. Raises InvalidCredentialError; the stored row is as before then.
    """
    transaction = await world.store.begin()
    try:
        before = await read(transaction, key, lock=True)
        after = changed(before)
        if after == before:
            await transaction.rollback()
            return before
        if after is None:
            await transaction.delete(TABLE, key)
        else:
            after = await save(transaction, after, world.clock.now())
    except BaseException:
        await transaction.rollback()
        raise
    await transaction.commit()
    return after


async def store(world: World, granted: Credential) -> Credential:
    """Put what a token exchange gave into the row of its key, new or not (flow-store-upsert-by-key).

    What survives of the stored row is decided under its lock. Raises InvalidCredentialError. Emits `credential.stored`
    (server).
    """
    stored = await change(world, granted.credential_key, lambda before: store_tokens(before, granted))
    world.events.emit("credential.stored", server=granted.server_name)
    return granted if stored is None else stored


async def insert_unchecked(world: World, row: Credential) -> None:
    """Put a row past every rule, as one that is older than they are. For tests alone."""
    transaction = await world.store.begin()
    await transaction.put(TABLE, row.credential_key, row_values(row))
    await transaction.commit()
