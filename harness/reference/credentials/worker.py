"""The process that runs the refresh job: by its schedule, and what is queued. Any number of them may work at once.

Source: seed 002 "Refresh" ("RefreshMcpOauthTokensJob, every 30 minutes"); requirement refresh-cron-every-30-min.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import floor, inf
from typing import NamedTuple

from harness.reference.credentials.cron import KIND, queued, run_due_retries, run_refresh_job
from harness.reference.credentials.writers.protocol import Writer
from harness.world import World
from harness.world.ports import Task

EVERY_MINUTES = re.compile(r"\*/(\d+) \* \* \* \*")
SECONDS_A_MINUTE = 60
LOOK_AGAIN_SECONDS = 60.0
"""While a run is going on it may queue repetitions, which nothing tells of."""


class Scheduled(NamedTuple):
    """A job that runs by the clock, whatever sessions there are."""

    cron: str
    kind: str


SCHEDULE: tuple[Scheduled, ...] = (Scheduled("*/30 * * * *", KIND),)


def period_seconds(cron: str) -> int:
    """The time between two runs of a schedule of the form `*/N * * * *`. Raises ValueError for any other."""
    match = EVERY_MINUTES.fullmatch(cron)
    if match is None:
        raise ValueError(f"no schedule by minutes: {cron!r}")
    return int(match[1]) * SECONDS_A_MINUTE


def next_run(cron: str, now: float) -> float:
    """The first time after now, in seconds since the epoch, at which a schedule runs a job."""
    seconds = period_seconds(cron)
    return float((floor(now / seconds) + 1) * seconds)


async def work(world: World, writers: Sequence[Writer], *, until: float = inf) -> None:
    """Run the job by its schedule and its repetitions as they become due, until a time in seconds since the epoch.

    Runs that were missed while nobody worked are not made up for; repetitions that became due are run at once. A run
    that takes long holds nothing up: each is a task of its own, and the rows' locks keep them apart.
    """
    running: list[Task] = []
    scheduled_at = next_run(SCHEDULE[0].cron, world.clock.now())
    while world.clock.now() < until:
        now = world.clock.now()
        if now >= scheduled_at:
            running.append(world.tasks.start(run_refresh_job(world, writers), KIND))
            scheduled_at = next_run(SCHEDULE[0].cron, now)
        due_at = min((retry.run_at for retry in (await queued(world)).values()), default=inf)
        if due_at <= world.clock.now():
            running.append(world.tasks.start(run_due_retries(world, writers), f"{KIND} again"))
            due_at = inf
        running = [task for task in running if not task.done]
        await rest(world, running, min(scheduled_at, due_at, until))
    await world.tasks.wait(running)


async def rest(world: World, running: Sequence[Task], until: float) -> None:
    """Until it is time, or something that runs has ended and may have left something to do."""
    seconds = until - world.clock.now()
    if running:
        await world.tasks.wait(running, timeout_seconds=min(seconds, LOOK_AGAIN_SECONDS), first=True)
    elif seconds > 0:
        await world.clock.sleep(seconds)
