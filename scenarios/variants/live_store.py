"""Known-bad variants of the store in a file: what a process that is killed leaves there."""

from __future__ import annotations

from harness.requirements.variants import variant
from harness.world.live import store


@variant("harness.world.live.store:write", catches=("flow-pending-flow-one-per-server",))
def each_row_is_written_by_itself(connection, changes):
    """Makes every change everybody's at once, outside of any transaction."""
    for key, content in changes.items():
        if content is None:
            connection.execute(store._DELETE, store.kept(key))
        else:
            connection.execute(store._WRITE, (*store.kept(key), content))
