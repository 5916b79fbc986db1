"""ClearNonHttpsMcpOauthTokenEndpoints: the repair of rows that are older than the https rule.

Source: seed 002 "The token endpoint must be https". To NULL, as there is no default: authorizing again finds the
endpoint anew. Nothing else of a row changes, `updated_at` included, so that the refresh job's pause does not begin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.reference.credentials.row import TABLE, storable_endpoint
from harness.reference.oauth.endpoints import acceptable_endpoint
from harness.reference.oauth.flows import TABLE as FLOWS
from harness.world import World

COLUMN = "token_endpoint"


def repaired(endpoint: str | None) -> str | None:
    """What stands in the column afterwards."""
    return endpoint if storable_endpoint(endpoint) else None


async def clear_non_https_endpoints(world: World) -> tuple[str, ...]:
    """Repair every stored row, and drop the pending flows that could not be exchanged; the keys of the rows repaired.

    A second run finds nothing.
    """
    offending = [row.key for row in await world.store.rows(TABLE) if needs_repair(row.values)]
    cleared = [key for key in offending if await clear(world, key)]
    for flow in await world.store.rows(FLOWS):
        if not acceptable_endpoint(flow.values.get(COLUMN)):
            await drop(world, flow.key)
    return tuple(cleared)


def needs_repair(values: Mapping[str, Any]) -> bool:
    """Whether a row has an endpoint that may not be there."""
    endpoint = values.get(COLUMN)
    return bool(repaired(endpoint) != endpoint)


async def clear(world: World, key: str) -> bool:
    """Repair one row as it is under its lock; whether there was anything to repair."""
    transaction = await world.store.begin()
    row = await transaction.get(TABLE, key, lock=True)
    if row is None or not needs_repair(row.values):
        await transaction.rollback()
        return False
    await transaction.put(TABLE, key, {**row.values, COLUMN: repaired(row.values.get(COLUMN))})
    await transaction.commit()
    return True


async def drop(world: World, key: str) -> None:
    """Delete a pending flow: whoever comes back with its code is told that there is none."""
    transaction = await world.store.begin()
    await transaction.delete(FLOWS, key)
    await transaction.commit()
