"""Starting the runtime's process: its environment, what has to exist before, and Claude's bin guard.

Source: seed 000 "Timeouts and caching"; requirements prepare-spawn-claude-mcp-env, npx-guard-before-claude-mcp-spawn,
npx-guard-not-on-codex.
"""

from __future__ import annotations

from harness.reference.npx import guard
from harness.reference.prepare.spawn import SpawnEnvironment, claude_spawn, codex_spawn, pi_spawn
from harness.reference.session import rows
from harness.reference.session.command_line import command_line
from harness.reference.session.npx_tree import guard_bins
from harness.reference.session.order import Order, base_of_clones, home
from harness.reference.session.prepare import PreparedClone
from harness.reference.session.running import Running
from harness.world import World


async def spawn_runtime(world: World, order: Order, ready: PreparedClone) -> Running:
    """Start the runtime in its clone, and listen to it. Raises OSError when it cannot be executed."""
    environment = environment_of(world, order, ready)
    for directory in environment.directories:
        await make_directory(world, directory)
    if environment.runs_bin_guard:
        await run_guard(world, order)
    started_seconds = world.clock.now()
    words = command_line(order, await rows.read(world, order.session))
    child = await world.processes.spawn(words, env=environment.variables, directory=order.clone)
    return Running.listening(world, child, order, started_seconds, environment.variables)


def environment_of(world: World, order: Order, ready: PreparedClone) -> SpawnEnvironment:
    """The environment that the prepare rules give this runtime's process."""
    parent = world.env.variables
    if order.runtime == "claude":
        return claude_spawn(
            parent, ready.dotenv, order.clone, order.catalog, mcp_json=ready.text, has_mcp=ready.has_mcp
        )
    if order.runtime == "codex":
        return codex_spawn(parent, ready.dotenv, home(world))
    return pi_spawn(parent, ready.dotenv)


async def make_directory(world: World, directory: str) -> None:
    """A cache that cannot be made is npm's to complain of: the session starts."""
    try:
        await world.files.make_directory(directory)
    except OSError as error:
        world.events.emit("session.warning", text=f"{directory}: {error.strerror}")


async def run_guard(world: World, order: Order) -> None:
    """The bin guard, once; emits `guard.ran` (repaired, refused, lines for the log)."""
    plan = await guard_bins(world, order.clone, base_of_clones(world))
    world.events.emit(
        "guard.ran",
        repaired=[repair.link for repair in plan.repairs],
        refused=list(plan.refusals),
        log=[guard.refusal_line(link) for link in plan.refusals],
    )
