"""The store in its file: what is committed together is there together, whoever dies in the middle of it."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.world.live import store
from harness.world.live.store import all_committed, opened, put_committed

STEPS = 12


class DeadError(BaseException):
    """The process is gone: nothing of it is executed any more."""


class Mortal(sqlite3.Connection):
    """A connection whose process dies at its statement of a number, counted from 0 and once more for each end."""

    left = -1

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """The statement, unless it is too late."""
        self.step()
        done = super().execute(sql, parameters)
        self.step()
        return done

    def step(self) -> None:
        """One more that it has lived to see."""
        if self.left == 0:
            raise DeadError
        self.left -= 1


@pytest.mark.requirement("flow-pending-flow-one-per-server")
@pytest.mark.parametrize("step", range(STEPS))
def test_a_commit_whose_process_dies_at_any_statement_leaves_all_of_its_rows_or_none(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "rows.db")
    old, new = {"a": {"flow": 1}}, {"b": {"flow": 2}}
    put_committed(path, {("flows", key): values for key, values in old.items()})
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Mortal))
    connection = opened(path)
    assert isinstance(connection, Mortal)
    connection.left = step
    with suppress(DeadError):
        store.write(connection, {("flows", "a"): None, ("flows", "b"): '{"flow": 2}'})
    connection.close()
    monkeypatch.undo()
    left = all_committed(path, "flows")
    assert left in (old, new)
    assert (left == new) is (step >= 7), "the step after the end is the first at which it is done"
