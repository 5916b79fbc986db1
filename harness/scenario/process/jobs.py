"""A job of the orchestrator as a process of its own: the reference over the live driver, steered from outside."""

from __future__ import annotations

from typing import Any

from harness.scenario.sessions import AnyJob, run_job
from harness.scenario.variants import find_variant, in_place
from harness.world import World
from harness.world.live import run
from harness.world.outside.reaping import die_with_parent
from harness.world.outside.setting import Setting


def run_as_process(job: AnyJob, setting: Setting, store: str, after_seconds: float, variant: str | None) -> int:
    """The job, begun so much later; the answer is its exit code."""

    async def program(world: World, _argv: Any) -> int:
        if after_seconds:
            await world.clock.sleep(after_seconds)
        return await run_job(world, job)

    die_with_parent()
    with in_place(None if variant is None else find_variant(variant)):
        return run(program, (job.actor,), setting, variables=job.environment, directory=job.clone, store=store)
