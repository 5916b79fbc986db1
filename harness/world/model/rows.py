"""Rows with transactions: changes are seen by others at commit; a row lock is held until its transaction ends."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from harness.world.errors import WorldFault
from harness.world.model.scheduler import Condition
from harness.world.ports import Row

Key = tuple[str, str]
_SCALARS = (str, int, float, type(None))
_UNCHANGING = frozenset({str, int, float, bool, type(None)})


class Table:
    """The committed rows of all tables, and who holds which row."""

    def __init__(self) -> None:
        self.committed: dict[Key, dict[str, Any]] = {}
        self.holders: dict[Key, object] = {}
        self.freed = Condition()

    def rows(self, table: str) -> tuple[Row, ...]:
        """The committed rows of a table, by key."""
        keys = sorted(key for key in self.committed if key[0] == table)
        return tuple(Row(key[1], copied(self.committed[key])) for key in keys)


class Changes:
    """One transaction's own view: None stands for a deleted row."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.pending: dict[Key, dict[str, Any] | None] = {}
        self.locked: list[Key] = []
        self.open = True

    def require_open(self) -> None:
        """Raise WorldFault when the transaction has ended."""
        if not self.open:
            raise WorldFault("the transaction has ended")

    def read(self, key: Key) -> Row | None:
        """The row as changed here, else as committed."""
        values = self.pending[key] if key in self.pending else self._table.committed.get(key)
        return None if values is None else Row(key[1], copied(values))

    def change(self, key: Key, values: dict[str, Any] | None) -> None:
        """Note a new value that nobody else changes, or None for a deletion."""
        self.pending[key] = values

    def take(self, key: Key) -> bool:
        """Take a row lock if nobody else holds it."""
        holder = self._table.holders.setdefault(key, self)
        if holder is self and key not in self.locked:
            self.locked.append(key)
        return holder is self

    def end(self, *, keep: bool) -> None:
        """Commit or roll back, and free the locks. Whoever waited must be notified by the caller."""
        self.open = False
        if keep:
            for key, values in self.pending.items():
                if values is None:
                    self._table.committed.pop(key, None)
                else:
                    self._table.committed[key] = values
        for key in self.locked:
            self._table.holders.pop(key, None)


def copied(values: Mapping[str, Any]) -> dict[str, Any]:
    """A row's values for somebody else: what one actor does to them is not seen by another."""
    return {name: value if value.__class__ in _UNCHANGING else _copied(value) for name, value in values.items()}


def _copied(value: Any) -> Any:
    """A deep copy; plain values, of which rows mostly are, take the short way."""
    if type(value) is dict:
        return {key: item if item.__class__ in _UNCHANGING else _copied(item) for key, item in value.items()}
    if type(value) is list:
        return [item if item.__class__ in _UNCHANGING else _copied(item) for item in value]
    return value if isinstance(value, _SCALARS) else deepcopy(value)
