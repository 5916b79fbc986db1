"""Known-bad variants of retiring a credential."""

from __future__ import annotations

from dataclasses import replace

from harness.reference.credentials import table
from harness.reference.credentials.retire import delete_copies as delete_copies_rule
from harness.reference.credentials.retire import end_row as end_row_rule
from harness.reference.credentials.retire import note as note_rule
from harness.reference.credentials.retire import retired as retired_rule
from harness.requirements.variants import variant

RETIRE = "harness.reference.credentials.retire"


@variant(f"{RETIRE}:retired", catches=("gate-retire-drops-refresh-token", "gate-retire-then-reconcile-property"))
def the_row_only_expires(row, now):
    """Keeps the refresh token that the provider has rejected."""
    return replace(retired_rule(row, now), refresh_token=row.refresh_token)


@variant(f"{RETIRE}:retired", catches=("gate-retire-expires-active-row",))
def the_access_token_keeps_what_it_had_left(row, now):
    """Retires as the refresh job does after a permanent failure."""
    return replace(row, refresh_token=None)


@variant(f"{RETIRE}:retired", catches=("gate-retire-expires-active-row",))
def every_expiry_is_put_to_now(row, now):
    """Moves an expiry that has passed already."""
    return replace(retired_rule(row, now), expires_at=now - 1)


@variant(
    f"{RETIRE}:delete_copies",
    catches=("gate-retire-deletes-runtime-copy", "reconcile-retired-credential-stays-dead"),
)
async def only_the_row_is_retired(world, row, writers):
    """Leaves the dead pair in the stores, with its future expiry."""


@variant(
    f"{RETIRE}:delete_copies",
    catches=("gate-retire-then-reconcile-property", "reconcile-retired-credential-stays-dead"),
)
async def only_one_runtimes_copy_is_deleted(world, row, writers):
    """Deletes the copy of the session's own runtime: the next spawn on another one finds the dead pair."""
    await delete_copies_rule(world, row, writers[:1])


@variant(f"{RETIRE}:delete_copies", catches=("gate-retire-uses-runtime-key",))
async def the_rows_key_is_used_everywhere(world, row, writers):
    """Asks every store for the protocol key."""
    for writer in writers:
        await writer.delete(world, [row.credential_key])


@variant(f"{RETIRE}:delete_copies", catches=("gate-retire-deletes-runtime-copy",))
async def a_store_that_fails_is_passed_over(world, row, writers):
    """Goes on to the row, with the copy left."""
    for writer in writers:
        try:
            await writer.delete(world, [writer.key_for(row)])
        except OSError:
            continue


@variant(f"{RETIRE}:delete_copies", catches=("gate-retire-race-with-reconcile",))
async def the_row_goes_first(world, row, writers):
    """Retires the row and deletes the copies afterwards: in between they are adopted."""
    await end_row_rule(world, row.credential_key, row)
    await delete_copies_rule(world, row, writers)


@variant(f"{RETIRE}:end_row", catches=("gate-retire-race-with-reconcile", "gate-retire-then-reconcile-property"))
async def what_the_row_was_worth_is_noted_afterwards(world, key, found):
    """Between the two a copy of what was renewed meanwhile is later than anything that is known."""
    before = await table.find(world, key)
    await table.change(world, key, lambda row: None if row is None else retired_rule(row, world.clock.now()))
    if before is not None:
        await note_rule(world, before)
    return before


@variant(f"{RETIRE}:end_row", catches=("gate-retire-drops-refresh-token",))
async def the_row_is_deleted(world, key, found):
    """Removes the row, and with it whatever else it says."""
    before = await table.find(world, key)
    await table.change(world, key, lambda _row: None)
    return before
