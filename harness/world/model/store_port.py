"""The store as one actor uses it: rows that survive every actor, transactions that do not."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

from harness.world.model.actors import Actor
from harness.world.model.faults import Fault
from harness.world.model.port import Port
from harness.world.model.rows import Changes
from harness.world.model.simulation import Simulation
from harness.world.ports import Row
from harness.world.values import row_values


class ModelTransaction(Port):
    """An open transaction."""

    __slots__ = ("_changes",)
    kind = "store"

    def __init__(self, simulation: Simulation, actor: Actor) -> None:
        super().__init__(simulation, actor)
        self._changes = Changes(simulation.table)
        actor.transactions.append(self._changes)

    async def get(self, table: str, key: str, *, lock: bool = False) -> Row | None:
        """A row; `lock` waits for whoever holds it."""
        await self._reach_open(f"{'lock' if lock else 'get'} row {table}/{key}")
        if lock:
            await self._take(table, key)
        return self._changes.read((table, key))

    async def put(self, table: str, key: str, values: Mapping[str, Any]) -> None:
        """Change a row; waits for whoever holds it. Values that are no JSON are a TypeError."""
        await self._reach_open(f"put row {table}/{key}")
        kept = row_values(values)
        await self._take(table, key)
        self._changes.change((table, key), kept)

    async def delete(self, table: str, key: str) -> None:
        """Delete a row; waits for whoever holds it."""
        await self._reach_open(f"delete row {table}/{key}")
        await self._take(table, key)
        self._changes.change((table, key), None)

    async def commit(self) -> None:
        """Make the changes everybody's."""
        await self._reach_open("commit")
        self._end(keep=True)
        await self._reach("committed")

    async def rollback(self) -> None:
        """Forget the changes."""
        await self._reach_open("rollback")
        self._end(keep=False)

    def _reach_open(self, label: str) -> Awaitable[Fault | None]:
        if self._changes.open:
            return self._reach(label)
        self._require_life()
        return self._misused("the transaction has ended")

    async def _take(self, table: str, key: str) -> None:
        while not self._changes.take((table, key)):
            await self._simulation.table.freed.wait()

    def _end(self, *, keep: bool) -> None:
        self._changes.end(keep=keep)
        self._actor.transactions.remove(self._changes)
        self._simulation.scheduler.notify(self._simulation.table.freed)


class ModelStore(Port):
    """Rows that survive every actor."""

    __slots__ = ()
    kind = "store"

    async def begin(self) -> ModelTransaction:
        """Open a transaction."""
        await self._reach("begin")
        return ModelTransaction(self._simulation, self._actor)

    async def rows(self, table: str) -> tuple[Row, ...]:
        """All committed rows of a table."""
        await self._reach(f"rows of {table}")
        return self._simulation.table.rows(table)
