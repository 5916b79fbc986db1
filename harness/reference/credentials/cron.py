"""RefreshMcpOauthTokensJob: renews what is about to expire, row by row, whatever becomes of the others.

Source: seed 002 "Refresh", "Capturing the token the runtime rotates (write-back)". Directly before a row is renewed,
every runtime's store is read: a session may have rotated the pair, and the row's own refresh token is dead then.

A refresh that never left is repeated after 2, 4 and 8 minutes. What is still to be repeated stands in the table `jobs`
and so survives a restart: whoever works next runs what is overdue. Whoever runs a job removes it first. So a death in
the middle of it costs that repetition and no more, as the row is still due at the next scheduled run; the other way
round, a request whose answer was lost with the process would be repeated within minutes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from harness.reference.credentials import attempts, table
from harness.reference.credentials.reconcile import Reconciler, settle_owners
from harness.reference.credentials.refresh import Reason, due, refresh, tell_failure
from harness.reference.credentials.refresh_error import is_repeated_in_band
from harness.reference.credentials.row import Credential
from harness.reference.credentials.writers.protocol import Writer
from harness.reference.oauth.transport import InsecureEndpointError
from harness.world import World
from harness.world.ports import Row

JOBS = "jobs"
KIND = "RefreshMcpOauthTokensJob"

RETRY_SECONDS = (2 * 60, 4 * 60, 8 * 60)
"""How long after a failure the first, second and third repetition runs."""

UNEXPECTED = (ArithmeticError, AttributeError, InsecureEndpointError, LookupError, OSError, RuntimeError, TypeError,
              ValueError)  # fmt: skip
"""What one row's renewal may raise without stopping the others."""


class Run(NamedTuple):
    """One run of the job: the scheduled one, or a repetition with its number; the attempts there had been before."""

    reason: Reason
    attempt: int
    began: attempts.Counts


class Retry(NamedTuple):
    """A queued repetition: which one it is, for which rows, and from when on. Times in seconds since the epoch.

    `known_attempts` is how many there had been at the rows when it was queued.
    """

    keys: tuple[str, ...]
    attempt: int
    run_at: float
    failed_at: float
    known_attempts: int = 0


async def run_refresh_job(
    world: World,
    writers: Sequence[Writer],
    *,
    keys: Collection[str] | None = None,
    attempt: int = 0,
    failed_at: float | None = None,
    since: attempts.Counts | None = None,
) -> None:
    """One run over the rows that are due: all of them (the scheduled run), or a repetition for those of `keys`.

    The four-hour pause counts for the scheduled run alone; a repetition leaves a row alone that somebody has changed
    since it `failed_at`, or has tried to renew `since` then (None: since now). Emits what `refresh` emits.
    """
    began = await attempts.counts(world) if since is None else since
    run = Run("cron" if keys is None else "retry", attempt, began)
    rows = await table.all_rows(world)
    await settle_owners(world, writers, rows)
    for row in rows:
        if (keys is None or row.credential_key in keys) and not is_changed_since(row, failed_at):
            try:
                await renew_if_due(world, writers, row, run)
            except UNEXPECTED as error:
                tell_failure(world, row, "unexpected", "error", type(error).__name__)


def is_changed_since(row: Credential, failed_at: float | None) -> bool:
    """Whether a row was renewed, adopted or authorized after a refresh of it had failed."""
    return failed_at is not None and row.updated_at >= failed_at


async def renew_if_due(world: World, writers: Sequence[Writer], row: Credential, run: Run) -> None:
    """Look more closely at a row that may have to be renewed. One that is not due costs nothing."""
    if due(row, run.reason, world.clock.now()):
        await renew(world, writers, row, run)


async def renew(world: World, writers: Sequence[Writer], row: Credential, run: Run) -> None:
    """Adopt what a runtime has rotated, then renew the row if that is still needed, and queue the next repetition."""
    await adopt(world, writers, row.credential_key)
    delay_seconds = retry_delay_seconds(run.attempt + 1)
    outcome = await refresh(
        world,
        row.credential_key,
        reason=run.reason,
        seen=row,
        since=run.began,
        retries_left=delay_seconds is not None,
    )
    if delay_seconds is not None and is_repeated_in_band(outcome.result):
        now = world.clock.now()
        retry = Retry((row.credential_key,), run.attempt + 1, now + delay_seconds, now, outcome.attempts)
        await queue(world, retry)


async def adopt(world: World, writers: Sequence[Writer], key: str) -> None:
    """Look into every runtime's store now, for this row: what was read for an earlier one may be old by this time."""
    await Reconciler(world, writers).adopt(key)


def retry_delay_seconds(attempt: int) -> int | None:
    """How long after a failure the repetition with that number (from 1) runs; None where there is none."""
    return RETRY_SECONDS[attempt - 1] if attempt <= len(RETRY_SECONDS) else None


async def queue(world: World, retry: Retry) -> None:
    """Write a repetition down. There is one at most for a row: two workers that failed alike repeat it once."""
    transaction = await world.store.begin()
    await transaction.put(JOBS, f"{KIND}/{'/'.join(retry.keys)}", {"kind": KIND, **retry._asdict()})
    await transaction.commit()


def retry_of(row: Row) -> Retry | None:
    """A row of the table as a repetition; None for a job of another kind."""
    values = row.values
    if values.get("kind") != KIND:
        return None
    return Retry(
        tuple(values["keys"]), values["attempt"], values["run_at"], values["failed_at"], values.get("known_attempts", 0)
    )


def attempts_before(retry: Retry) -> attempts.Counts:
    """Those that a repetition knows of. An answer may have been lost since it was queued: that is not to be repeated
    by it (refresh-ambiguous-never-in-band).
    """
    return dict.fromkeys(retry.keys, retry.known_attempts)


async def queued(world: World) -> dict[str, Retry]:
    """The repetitions that are waiting, by the key of their row."""
    retries = {row.key: retry_of(row) for row in await world.store.rows(JOBS)}
    return {key: retry for key, retry in retries.items() if retry is not None}


async def claim(world: World, key: str) -> Retry | None:
    """Take a repetition that is due out of the table; None where somebody else has, or it is not due."""
    transaction = await world.store.begin()
    row = await transaction.get(JOBS, key, lock=True)
    retry = None if row is None else retry_of(row)
    if retry is None or retry.run_at > world.clock.now():
        await transaction.rollback()
        return None
    await transaction.delete(JOBS, key)
    await transaction.commit()
    return retry


async def run_due_retries(world: World, writers: Sequence[Writer]) -> float | None:
    """Run every repetition that is due; the time at which the next one is, None where none waits."""
    for key in await queued(world):
        retry = await claim(world, key)
        if retry is not None:
            await run_refresh_job(
                world,
                writers,
                keys=retry.keys,
                attempt=retry.attempt,
                failed_at=retry.failed_at,
                since=attempts_before(retry),
            )
    return min((retry.run_at for retry in (await queued(world)).values()), default=None)
