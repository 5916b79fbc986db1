"""Rows in an SQLite file, and the locks on them: one small file each beside it, which the death of a process frees.

Changes are kept by their transaction and written in one piece at its commit, so that a killed process leaves none.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from harness.world.live.waiting import Backoff, locked

Key = tuple[str, str]
Values = dict[str, Any]
Answer = TypeVar("Answer")

BUSY_SECONDS = 5.0
LOCKS_SUFFIX = ".locks"
OPENING = "opening"
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_PRIMARY = 0xFF
_SCHEMA = 'CREATE TABLE IF NOT EXISTS rows ("table" BLOB, key BLOB, content TEXT, PRIMARY KEY ("table", key))'
_READ = 'SELECT content FROM rows WHERE "table" = ? AND key = ?'
_READ_ALL = 'SELECT key, content FROM rows WHERE "table" = ? ORDER BY key'
_WRITE = "INSERT OR REPLACE INTO rows VALUES (?, ?, ?)"
_DELETE = 'DELETE FROM rows WHERE "table" = ? AND key = ?'


class Database:
    """The committed rows. Values are JSON objects."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    async def read(self, key: Key) -> Values | None:
        """The values of a row."""
        found = await self._do(lambda connection: connection.execute(_READ, kept(key)).fetchone())
        return None if found is None else json.loads(found[0])

    async def rows(self, table: str) -> list[tuple[str, Values]]:
        """The rows of a table, by key."""
        found = await self._do(lambda connection: connection.execute(_READ_ALL, kept((table,))).fetchall())
        return [(told(key), json.loads(content)) for key, content in found]

    async def apply(self, changes: Mapping[Key, str | None]) -> None:
        """Make changes in one piece: new contents, or None for what is deleted."""
        if changes:
            await self._do(lambda connection: write(connection, changes))

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _do(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Work on the file, again while somebody else is in the middle of a commit."""
        backoff = Backoff()
        while True:
            try:
                return work(self._connection or await self._open())
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & _PRIMARY not in _BUSY:
                    raise
            await backoff.pause()

    async def _open(self) -> sqlite3.Connection:
        """Open the file, made when it is not there. One process at a time, as it may be made or recovered."""
        descriptor = lock_file(self.path, OPENING)
        try:
            await locked(descriptor, None)
            self._connection = opened(self.path, wait_seconds=0.0)
        finally:
            os.close(descriptor)
        return self._connection


def opened(path: str, *, wait_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """The file with its table."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(_SCHEMA)
        connection.execute(f"PRAGMA busy_timeout = {int(wait_seconds * 1000)}")
    except BaseException:
        connection.close()
        raise
    return connection


def write(connection: sqlite3.Connection, changes: Mapping[Key, str | None]) -> None:
    """Changes in one piece."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for key, content in changes.items():
            if content is None:
                connection.execute(_DELETE, kept(key))
            else:
                connection.execute(_WRITE, (*kept(key), content))
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def kept(names: Iterable[str]) -> tuple[bytes, ...]:
    """Names as the file has them: any text, also half a surrogate pair, of which SQLite takes none as one."""
    return tuple(name.encode("utf-8", "surrogatepass") for name in names)


def told(name: bytes) -> str:
    """A name as it was given."""
    return name.decode("utf-8", "surrogatepass")


def lock_file(path: str, name: str) -> int:
    """An open file whose lock stands for something of a store."""
    directory = Path(f"{path}{LOCKS_SUFFIX}")
    directory.mkdir(mode=0o700, exist_ok=True)
    return os.open(directory / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def row_lock_file(path: str, key: Key) -> int:
    """The one that stands for a row."""
    return lock_file(path, hashlib.sha256("\0".join(key).encode("utf-8", "surrogatepass")).hexdigest()[:32])


# --- for whoever prepares a run or judges it; they wait for each other and for nobody long


def committed(path: str, table: str, key: str) -> Values | None:
    """The values of a row as committed; None where there is none, or no store."""
    if not Path(path).exists():
        return None
    connection = opened(path)
    try:
        found = connection.execute(_READ, kept((table, key))).fetchone()
    finally:
        connection.close()
    return None if found is None else json.loads(found[0])


def all_committed(path: str, table: str) -> dict[str, Values]:
    """The rows of a table as committed, by key."""
    if not Path(path).exists():
        return {}
    connection = opened(path)
    try:
        found = connection.execute(_READ_ALL, kept((table,))).fetchall()
    finally:
        connection.close()
    return {told(key): json.loads(content) for key, content in found}


def put_committed(path: str, rows: Mapping[Key, Mapping[str, Any]]) -> None:
    """Rows that are there before anybody looks."""
    connection = opened(path)
    try:
        write(connection, {key: json.dumps(values) for key, values in rows.items()})
    finally:
        connection.close()
