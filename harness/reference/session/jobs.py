"""What is enqueued for a session's next turn: rows of the table `jobs`, written with the change that wants them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from harness.world import World
from harness.world.ports import Transaction

TABLE = "jobs"
ID_CHARACTERS = 32

Kind = Literal["new_session", "follow_up"]


class Job(NamedTuple):
    """`new_session`: the session's stored prompt runs, with these attachments. `follow_up`: `prompt` does, with none.

    Attachments reach a turn as a job's arguments and in no other way (reconnect-job-args-only).
    """

    kind: Kind
    prompt: str | None = None
    images: tuple[str, ...] = ()

    def values(self, session: str, now: float) -> dict[str, Any]:
        """The row."""
        return {"session": session, "enqueued_at": now, **self._asdict()}


def new_id(world: World) -> str:
    """The key of a new row."""
    return world.entropy.token(ID_CHARACTERS)


async def enqueue(transaction: Transaction, job_id: str, session: str, job: Job, now: float) -> None:
    """Put the job's row into a transaction: it is there if and only if the session's change is."""
    await transaction.put(TABLE, job_id, job.values(session, now))
