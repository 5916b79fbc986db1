"""A session's row: read once for a decision, changed under its lock so that no other writer's keys are lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.reference.prepare.request import Record
from harness.world import World

TABLE = "sessions"
RECORD = "prepared_mcp_servers"
DEGRADED = "mcp_degraded_servers"
CONVERSATION = "session_id"
"""The runtime's own id of the conversation in which its model has answered; a message can continue that one."""

Values = Mapping[str, Any]


async def read(world: World, session: str) -> Values:
    """The committed values; none where there is no row."""
    transaction = await world.store.begin()
    row = await transaction.get(TABLE, session)
    await transaction.rollback()
    return {} if row is None else row.values


async def change(world: World, session: str, changed: Callable[[Values], Values]) -> None:
    """Replace the values by what `changed` makes of those that are stored now."""
    transaction = await world.store.begin()
    row = await transaction.get(TABLE, session, lock=True)
    before: Values = {} if row is None else row.values
    after = changed(before)
    if after == before:
        await transaction.rollback()
        return
    await transaction.put(TABLE, session, after)
    await transaction.commit()


def metadata(values: Values) -> dict[str, Any]:
    """The session's own notes."""
    return dict(values.get("metadata") or {})


def with_metadata(values: Values, noted: Mapping[str, Any]) -> Values:
    """The values with these notes in place of the old ones."""
    return {**values, "metadata": dict(noted)}


def chosen(values: Values) -> tuple[str, ...]:
    """The session's own server list."""
    return tuple(values.get("mcp_servers") or ())


def record(values: Values) -> Record:
    """What the last preparation left in the clone's file."""
    stored = metadata(values).get(RECORD) or {}
    return Record(tuple(stored.get("owned", ())), tuple(stored.get("injected", ())))


def degraded(values: Values) -> dict[str, str]:
    """The servers that are left out, each with its reason."""
    return {entry["name"]: entry.get("reason", "") for entry in metadata(values).get(DEGRADED) or ()}
