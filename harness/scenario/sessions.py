"""A session as a program. What is written, with which environment the runtime starts, what a failure leads to: all
that is the reference's, and decided nowhere else.

A *watched* session is the orchestrator's own: it looks at its servers, heals, tries again, leaves out. An unwatched
one is prepared and launched the same, and then only waited for: what its runtime does is seen undisturbed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_runtimes.plan import Plan
from harness.gate.spawn import Runtime
from harness.preparation import PRODUCTION, completed, run_air
from harness.reference.catalog.catalog import read_catalog
from harness.reference.oauth.settings import OAuthSettings
from harness.reference.prepare.request import PrepareRequest
from harness.reference.selection.zimmer import Instance
from harness.reference.session import rows
from harness.reference.session.command_line import reclassified
from harness.reference.session.job import not_started, run_session, turn_of
from harness.reference.session.order import Order
from harness.reference.session.prepare import NotPreparedError, prepare_with_retries
from harness.reference.session.spawn import spawn_runtime
from harness.scenario.desk import CronJob, WebJob, run_cron, run_web
from harness.world import World

PROMPT = "go on"
FULL_ACCESS = ("--sandbox", "danger-full-access")
SERVERS = "mcp_servers"


class Job(NamedTuple):
    """One run of a session. `catalog` is the one in force when it starts, `instance` the orchestrator's own address.

    `follow_up` is the message of this turn, None where it is the first. `bugs` are those of the fake Codex.
    """

    session: str
    runtime: Runtime
    clone: str
    servers: tuple[str, ...]
    catalog: Mapping[str, Any]
    secrets: Mapping[str, str]
    environment: Mapping[str, str]
    plan: Plan
    subagent_roots: tuple[str, ...] = ()
    watched: bool = True
    instance: Instance = PRODUCTION
    oauth: OAuthSettings = OAuthSettings()
    follow_up: str | None = None
    bugs: tuple[str, ...] = ()

    @property
    def actor(self) -> str:
        """What it is called: by the name of the session."""
        return self.session


AnyJob = Job | WebJob | CronJob
"""What an actor of the orchestrator does."""


async def run_job(world: World, job: AnyJob) -> int:
    """Do it; the answer is the exit code."""
    match job:
        case WebJob():
            return await run_web(world, job)
        case CronJob():
            return await run_cron(world, job)
    return await run_of_session(world, job)


async def run_of_session(world: World, job: Job) -> int:
    """The last exit code of its runtime, or 1 where nothing could be started."""
    order = order_of(job)
    return await (run_session(world, order) if job.watched else run_unwatched(world, order))


async def run_unwatched(world: World, order: Order) -> int:
    """Prepare, launch, wait for the end."""
    order = await reclassified(world, order, turn_of(order).owed)
    try:
        ready = await prepare_with_retries(world, order)
        running = await spawn_runtime(world, order, ready)
    except (*NotPreparedError, OSError) as error:
        return await not_started(world, order, error)
    await running.send(order.stdin)
    code = await running.ended(None)
    world.events.emit("session.ended", exit_code=code)
    return 0 if code is None else code


async def create_session(world: World, job: Job) -> None:
    """What the form for a new session does: from then on it is known what it will run on, and where."""
    created = {SERVERS: list(job.servers), "runtime": job.runtime.family, "clone": job.clone}
    await rows.change(world, job.session, lambda values: {**values, **created})


async def choose_servers(world: World, session: str, servers: tuple[str, ...]) -> None:
    """What a PATCH of the session does: its own list is another from now on."""
    await rows.change(world, session, lambda values: {**values, SERVERS: list(servers)})


def order_of(job: Job) -> Order:
    """The reference's order for this run."""
    return Order(
        session=job.session,
        runtime=job.runtime.family,
        clone=job.clone,
        argv=argv(job.runtime),
        catalog=read_catalog(job.catalog),
        instance=job.instance,
        lookup=job.secrets.get,
        air=air,
        default_subagent_roots=job.subagent_roots,
        oauth=job.oauth,
        prompt=PROMPT,
        follow_up=job.follow_up,
    )


async def air(world: World, request: PrepareRequest) -> PrepareRequest:  # noqa: ARG001 - what AIR reads is in the request
    """`air prepare`, by the fake AIR. Raises PreparationError where it refuses."""
    return completed(request, run_air(request, keeps_local_entries=True, codex_adapter="checked"))


def argv(runtime: Runtime) -> tuple[str, ...]:
    """How the runtime is started without a terminal; a prompt comes behind it."""
    match runtime.family:
        case "claude":
            return ("claude", "-p", "--output-format", "stream-json", "--verbose")
        case "codex":
            trust = ("--trust",) if getattr(runtime.profile, "trust_flag", False) else ()
            return ("codex", "exec", "--json", *FULL_ACCESS, *trust)
    return ("pi", "-p", "--mode", "json")
