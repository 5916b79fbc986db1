"""Sessions that say they run while nobody works for them (`CleanupOrphanedSessionsJob`): they are taken up again.

Source: seed 002 "Which prompt the resume delivers", seed 000 "When a server cannot connect, the server is left out —
not the session"; requirements resume-undelivered-reapable, failure-stale-orphan-keeps-record.
"""

from __future__ import annotations

from collections.abc import Collection

from harness.reference.secrets.blank import is_blank
from harness.reference.session import jobs, rows
from harness.reference.session.blocking import MARKER, WAITING, is_parked
from harness.reference.session.injection import RUNNING
from harness.reference.session.prompts import FixedPrompts, recovery_prompt
from harness.reference.session.stale import without_stale_keys
from harness.reference.session.timeline import Line, noted, tell
from harness.world import World

BUSY = (RUNNING, WAITING)
WHY = "nobody worked for the session"
REAPED = Line("warn", "orphan_reaped", "The session said that it runs, and nobody worked for it. It is taken up again.")


async def sweep_orphans(world: World, alive: Collection[str], prompts: FixedPrompts) -> tuple[str, ...]:
    """Take up all orphaned sessions; `alive` are those that somebody works for. The answer is who was taken up."""
    sessions = [row.key for row in await world.store.rows(rows.TABLE)]
    return tuple([each for each in sessions if each not in alive and await reap(world, each, prompts)])


async def reap(world: World, session: str, prompts: FixedPrompts) -> bool:
    """Enqueue a session's next turn if it is an orphan still, in one step with what its row says; whether it was."""
    transaction = await world.store.begin()
    try:
        row = await transaction.get(rows.TABLE, session, lock=True)
        queued = {job.values.get("session") for job in await world.store.rows(jobs.TABLE)}
        is_reaped = row is not None and session not in queued and is_orphaned(row.values)
        if row is not None and is_reaped:
            now, job_id = world.clock.now(), jobs.new_id(world)
            await jobs.enqueue(transaction, job_id, session, next_turn(row.values, prompts), now)
            values = noted(taken_up(row.values), [REAPED], now)
            await transaction.put(rows.TABLE, session, {**values, "running_job_id": job_id})
    except BaseException:
        await transaction.rollback()
        raise
    if not is_reaped:
        await transaction.rollback()
        return False
    await transaction.commit()
    tell(world, [REAPED])
    return True


def is_orphaned(values: rows.Values) -> bool:
    """Whether a session that nobody works for is to be taken up. The marker of an owed message promises a delivery."""
    is_promised = not is_blank(rows.metadata(values).get(MARKER))
    return values.get("status") in BUSY and not is_parked(values) and not is_promised


def next_turn(values: rows.Values, prompts: FixedPrompts) -> jobs.Job:
    """A nudge where there is a conversation, else the session's own prompt."""
    if is_blank(values.get(rows.CONVERSATION)):
        return jobs.Job("new_session")
    return jobs.Job("follow_up", recovery_prompt(prompts.recovery, WHY))


def taken_up(values: rows.Values) -> rows.Values:
    """The row of a session that waits for its turn, without the trouble of its last one."""
    return {**rows.with_metadata(values, without_stale_keys(rows.metadata(values))), "status": WAITING}
