"""Retiring a credential whose refresh grant the provider has rejected: `invalidate!` (seed 002 "The gate").

The runtimes' copies go first, each from under the key that its runtime uses, then the row. In the other order a
reconciliation in between would take the dead pair back, which still carries its future expiry
(gate-retire-race-with-reconcile). What retiring took away is remembered, for copies that it cannot reach: a running
session's own directory, or what a spawn that read the row before writes after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.reference.credentials import table
from harness.reference.credentials.adoption import Retirement, token_digest
from harness.reference.credentials.owners import is_kept
from harness.reference.credentials.row import TABLE, Credential, row_values
from harness.reference.credentials.state import is_active
from harness.reference.credentials.writers.protocol import Writer
from harness.world import World
from harness.world.ports import Transaction

RETIREMENTS = "mcp_oauth_retirements"
MOST_REMEMBERED = 64
"""How many tokens of one credential are remembered: those of its last retirements."""

JUST_PASSED_SECONDS = 1.0
"""How far in the past the expiry of a row is put that was active."""


async def retire(world: World, key: str, writers: Sequence[Writer], server_name: str) -> bool:
    """Delete the credential's copies from every store, then end the row; whether there was a row.

    Raises what a store raises, after all were asked and before the row is touched (gate-retire-failure-retries).
    """
    row = await table.find(world, key)
    if row is None:
        return False
    await note(world, row)
    await delete_copies(world, row, writers)
    if await end_row(world, key, row) is None:
        return False
    world.events.emit("credential.retired", server=server_name)
    return True


async def delete_copies(world: World, row: Credential, writers: Sequence[Writer]) -> None:
    """Ask every store for its own key, but where another row's copy lies under it. One that fails keeps no other from
    being asked.
    """
    failure: OSError | None = None
    for writer in writers:
        try:
            if await is_kept(world, row, writer):
                continue
            await writer.delete(world, [writer.key_for(row)])
        except OSError as error:
            failure = failure or error
    if failure is not None:
        raise failure


async def end_row(world: World, key: str, found: Credential) -> Credential | None:
    """Retire the row under its lock; the row as it was then, None where it is gone.

    It may be another one than was `found`. What it was worth is noted in the same transaction: a copy of what was
    refreshed meanwhile, which a spawn has handed over already, would be adopted between the two.
    """
    transaction = await world.store.begin()
    try:
        row = await table.read(transaction, key, lock=True)
        if row is not None:
            await remember(transaction, row, found)
            await save_retired(transaction, row, world.clock.now())
    except BaseException:
        await transaction.rollback()
        raise
    await transaction.commit()
    return row


async def save_retired(transaction: Transaction, row: Credential, now: float) -> None:
    """Write the row as retiring leaves it; one that stays equal is not written.

    A row that is older than the https rule may not be saved, yet it is retired like any other: it would stay active.
    """
    after = retired(row, now)
    if after != row:
        await transaction.put(TABLE, row.credential_key, row_values(replace(after, updated_at=now)))


def retired(row: Credential, now: float) -> Credential:
    """The row without its refresh token, always, and inactive, whatever its access token had left.

    An expiry that has passed stays (gate-retire-expires-active-row).
    """
    active = is_active(None if row.expires_at is None else row.expires_at - now)
    return replace(row, refresh_token=None, expires_at=now - JUST_PASSED_SECONDS if active else row.expires_at)


async def note(world: World, row: Credential) -> None:
    """Remember a row that is about to be retired: whoever authorizes again meanwhile must not get its copies back."""
    transaction = await world.store.begin()
    await remember(transaction, row, row)
    await transaction.commit()


async def remember(transaction: Transaction, row: Credential, found: Credential) -> None:
    """Note what the row is worth before it is retired. A row that is retired already adds nothing.

    Whatever it took over since it was `found`, a copy of what it held then is no better.
    """
    noted = await retirement_in(transaction, row.credential_key, lock=True)
    digest = token_digest(row.access_token)
    if row.refresh_token is None and noted is not None and noted.access_token_digest == digest:
        return
    ended = [token_digest(token) for token in (row.access_token, row.refresh_token) if token is not None]
    known = [*(() if noted is None else noted.tokens), *ended]
    values = {
        "access_token_digest": digest,
        "expires_at": later(row.expires_at, found.expires_at),
        "tokens": list(dict.fromkeys(known))[-MOST_REMEMBERED:],
    }
    await transaction.put(RETIREMENTS, row.credential_key, values)


def later(one: float | None, other: float | None) -> float | None:
    """The later of two expiries; None is no end."""
    return None if one is None or other is None else max(one, other)


async def retirement_in(transaction: Transaction, key: str, *, lock: bool = False) -> Retirement | None:
    """What is remembered, inside a transaction."""
    noted = await transaction.get(RETIREMENTS, key, lock=lock)
    return None if noted is None else Retirement(**{**noted.values, "tokens": tuple(noted.values.get("tokens", ()))})


async def retirement_of(world: World, row: Credential) -> Retirement | None:
    """What was remembered of a row's last retirement, if it ever had one."""
    transaction = await world.store.begin()
    retirement = await retirement_in(transaction, row.credential_key)
    await transaction.rollback()
    return retirement
