"""The store as one actor uses it: rows in a file that processes share, transactions that die with theirs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from harness.world.live.driver import Driver, LivePort
from harness.world.live.store import Database, Key, row_lock_file
from harness.world.live.waiting import locked
from harness.world.ports import Row
from harness.world.values import row_values


class LiveTransaction(LivePort):
    """An open transaction."""

    __slots__ = ("_database", "_is_open", "_locks", "_pending")
    kind = "store"

    def __init__(self, driver: Driver, database: Database) -> None:
        super().__init__(driver)
        self._database = database
        self._is_open = True
        self._pending: dict[Key, str | None] = {}
        self._locks: dict[Key, int] = {}
        driver.closers[self] = self._free

    async def get(self, table: str, key: str, *, lock: bool = False) -> Row | None:
        """A row; `lock` waits for whoever holds it."""
        await self._reach_open(f"{'lock' if lock else 'get'} row {table}/{key}")
        if lock:
            await self._take((table, key))
        if (table, key) in self._pending:
            content = self._pending[table, key]
            return None if content is None else Row(key, json.loads(content))
        values = await self._database.read((table, key))
        return None if values is None else Row(key, values)

    async def put(self, table: str, key: str, values: Mapping[str, Any]) -> None:
        """Change a row; waits for whoever holds it. Values that are no JSON are a TypeError."""
        await self._reach_open(f"put row {table}/{key}")
        content = json.dumps(row_values(values))
        await self._take((table, key))
        self._pending[table, key] = content

    async def delete(self, table: str, key: str) -> None:
        """Delete a row; waits for whoever holds it."""
        await self._reach_open(f"delete row {table}/{key}")
        await self._take((table, key))
        self._pending[table, key] = None

    async def commit(self) -> None:
        """Make the changes everybody's."""
        await self._reach_open("commit")
        self._is_open = False
        await self._database.apply(self._pending)
        self._end()
        await self._reach("committed")

    async def rollback(self) -> None:
        """Forget the changes."""
        await self._reach_open("rollback")
        self._end()

    async def _reach_open(self, label: str) -> None:
        if not self._is_open:
            self._driver.require_life()
            raise self._driver.misused("the transaction has ended")
        await self._reach(label)

    async def _take(self, key: Key) -> None:
        """The lock on a row, unless it is ours already."""
        if key in self._locks:
            return
        descriptor = row_lock_file(self._database.path, key)
        try:
            await locked(descriptor, None)
        except BaseException:
            os.close(descriptor)
            raise
        if key in self._locks:  # another task of ours was first, and its lock is the same to everybody else
            os.close(descriptor)
        else:
            self._locks[key] = descriptor

    def _end(self) -> None:
        self._is_open = False
        self._driver.closers.pop(self, None)
        self._free()

    def _free(self) -> None:
        while self._locks:
            os.close(self._locks.popitem()[1])


class LiveStore(LivePort):
    """Rows that survive every actor."""

    __slots__ = ("_database",)
    kind = "store"

    def __init__(self, driver: Driver, path: str) -> None:
        super().__init__(driver)
        self._database = Database(driver.absolute(path)) if path else None

    async def begin(self) -> LiveTransaction:
        """Open a transaction."""
        await self._reach("begin")
        return LiveTransaction(self._driver, self._opened())

    async def rows(self, table: str) -> tuple[Row, ...]:
        """All committed rows of a table."""
        await self._reach(f"rows of {table}")
        return tuple(Row(key, values) for key, values in await self._opened().rows(table))

    def _opened(self) -> Database:
        if self._database is None:
            raise self._driver.misused("this world has no store")
        self._driver.closers.setdefault(self._database, self._database.close)
        return self._database
