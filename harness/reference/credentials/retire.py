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
from harness.reference.credentials.row import Credential
from harness.reference.credentials.state import is_active
from harness.reference.credentials.writers.protocol import Writer
from harness.world import World

RETIREMENTS = "mcp_oauth_retirements"
JUST_PASSED_SECONDS = 1.0
"""How far in the past the expiry of a row is put that was active."""


async def retire(world: World, key: str, writers: Sequence[Writer], server_name: str) -> bool:
    """Delete the credential's copies from every store, then end the row; whether there was a row.

    Raises what a store raises, after all were asked and before the row is touched (gate-retire-failure-retries).
    """
    row = await table.find(world, key)
    if row is None:
        return False
    await remember(world, row)
    await delete_copies(world, row, writers)
    ended = await end_row(world, key)
    if ended is None:
        return False
    if ended != row:
        await remember(world, ended)
    world.events.emit("credential.retired", server=server_name)
    return True


async def delete_copies(world: World, row: Credential, writers: Sequence[Writer]) -> None:
    """Ask every store for its own key. One that fails keeps no other from being asked."""
    failure: OSError | None = None
    for writer in writers:
        try:
            await writer.delete(world, [writer.key_for(row)])
        except OSError as error:
            failure = failure or error
    if failure is not None:
        raise failure


async def end_row(world: World, key: str) -> Credential | None:
    """Retire the row under its lock; the row as it was then, None where it is gone."""
    before: Credential | None = None

    def changed(current: Credential | None) -> Credential | None:
        nonlocal before
        before = current
        return None if current is None else retired(current, world.clock.now())

    await table.change(world, key, changed)
    return before


def retired(row: Credential, now: float) -> Credential:
    """The row without its refresh token, always, and inactive, whatever its access token had left.

    An expiry that has passed stays (gate-retire-expires-active-row).
    """
    active = is_active(None if row.expires_at is None else row.expires_at - now)
    return replace(row, refresh_token=None, expires_at=now - JUST_PASSED_SECONDS if active else row.expires_at)


async def remember(world: World, row: Credential) -> None:
    """Note what the row is worth before it is retired. A row that is retired already adds nothing."""
    transaction = await world.store.begin()
    noted = await transaction.get(RETIREMENTS, row.credential_key, lock=True)
    digest = token_digest(row.access_token)
    if row.refresh_token is None and noted is not None and noted.values.get("access_token_digest") == digest:
        await transaction.rollback()
        return
    values = {"access_token_digest": digest, "expires_at": row.expires_at}
    await transaction.put(RETIREMENTS, row.credential_key, values)
    await transaction.commit()


async def retirement_of(world: World, row: Credential) -> Retirement | None:
    """What was remembered of a row's last retirement, if it ever had one."""
    transaction = await world.store.begin()
    noted = await transaction.get(RETIREMENTS, row.credential_key)
    await transaction.rollback()
    return None if noted is None else Retirement(noted.values["access_token_digest"], noted.values["expires_at"])
