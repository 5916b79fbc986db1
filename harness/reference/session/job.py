"""One session from its preparation to its runtime's end, however often that has to be started.

Source: seed 000 "When a server cannot connect, the server is left out — not the session", "Timeouts and caching";
requirements npx-heal-then-retry-connects, npx-heal-still-corrupt-package, npx-guard-next-launch-repairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.reference.prepare.failures import classify_error
from harness.reference.session import evidence, ladder, rows
from harness.reference.session.evidence import Seen
from harness.reference.session.npx_tree import heal_after
from harness.reference.session.order import Order, base_of_clones, home
from harness.reference.session.prepare import NotPreparedError, PreparedClone, prepare_with_retries
from harness.reference.session.running import Running
from harness.reference.session.spawn import spawn_runtime
from harness.world import World

POLL_SECONDS = 2.0
NOT_STARTED = 1


class Watched(NamedTuple):
    """What became of one start: the exit code (None: it still runs, but a server failed), and what was seen."""

    exit_code: int | None
    seen: Seen


async def run_session(world: World, order: Order) -> int:
    """Run a session; the answer is the last exit code of its runtime, or 1 where that could not be started.

    Emits `session.prepared`, `session.failed` (text), `session.retry` (servers, after_seconds), `session.degraded`
    (servers), `heal.ran` (removed) and `session.ended` (exit_code).
    """
    while True:
        try:
            ready = await prepare_with_retries(world, order)
            running = await spawn_runtime(world, order, ready)
        except (*NotPreparedError, OSError) as error:
            return await not_started(world, order, error)
        await running.send(order.stdin)
        watched = await watch(world, order, ready, running)
        decision = await settle(world, order, ready, running, watched.seen)
        if decision.route == "nothing":
            code = watched.exit_code if watched.exit_code is not None else NOT_STARTED
            world.events.emit("session.ended", exit_code=code)
            return code
        await world.clock.sleep(decision.after_seconds)


async def not_started(world: World, order: Order, error: Exception) -> int:
    """Write down why nothing could be started."""
    failure = {} if isinstance(error, OSError) else classify_error(error).metadata()
    await rows.change(
        world, order.session, lambda values: rows.with_metadata(values, {**rows.metadata(values), **failure})
    )
    world.events.emit("session.failed", text=str(error))
    return NOT_STARTED


async def watch(world: World, order: Order, ready: PreparedClone, running: Running) -> Watched:
    """Look at the servers until the runtime has ended, or one has failed that the session still counts on."""
    connected: frozenset[str] = frozenset()
    settled_seconds: float | None = None
    while True:
        code = await running.ended(None if connected.issuperset(ready.selected) else POLL_SECONDS)
        seen = without(await look(world, order, ready, running), connected)
        await retire(world, order, seen.connected & ready.degraded)
        connected |= seen.connected
        if code is not None or new_failures(seen, ready):
            break
        if settled_seconds is None and ladder.is_settled(ready.selected, connected, ready.degraded):
            settled_seconds = world.clock.now()
    if settled_seconds is not None and world.clock.now() - settled_seconds >= ladder.STABLE_SECONDS:
        await hand_back(world, order)
    return Watched(code, seen)


def without(seen: Seen, connected: frozenset[str]) -> Seen:
    """What is news: a server that has connected in this run and is lost later is no failed connection."""
    failed = {name: error for name, error in seen.failed.items() if name not in connected}
    return Seen(seen.connected - connected, failed)


def new_failures(seen: Seen, ready: PreparedClone) -> tuple[str, ...]:
    """The servers that failed and were not left out before. An injected server costs no retry."""
    return tuple(name for name in seen.failed if name in ready.selected and name not in ready.degraded)


async def look(world: World, order: Order, ready: PreparedClone, running: Running) -> Seen:
    """What the runtime has told of its servers by now."""
    names = tuple(ready.prepared.servers)
    if order.runtime != "claude":
        return evidence.lines_seen(order.runtime, running.lines, names)
    cache = running.variables.get("XDG_CACHE_HOME") or f"{running.variables.get('HOME', home(world))}/.cache"
    try:
        clone = await world.files.resolve(order.clone)
    except OSError:
        return Seen()
    return await evidence.claude_seen(world, cache, clone, names, running.started_seconds)


async def settle(world: World, order: Order, ready: PreparedClone, running: Running, seen: Seen) -> ladder.Decision:
    """One pass over what failed: end the process, heal, decide. Nothing where every failed server is left out already.

    The heal looks at all that failed: a server that is left out stays in the config, and its broken tree with it.
    """
    failed = {name: error for name, error in seen.failed.items() if name in ready.selected}
    if not new_failures(seen, ready):
        return ladder.Decision("nothing", {})
    await running.stop()
    await heal_failed(world, order, tuple(seen.failed.values()))
    decision = await decided(world, order, failed)
    if decision.route == "retry":
        world.events.emit("session.retry", servers=list(decision.servers), after_seconds=decision.after_seconds)
    elif decision.route == "degrade":
        world.events.emit("session.degraded", servers=list(decision.servers))
    return decision


async def decided(world: World, order: Order, failed: Mapping[str, str]) -> ladder.Decision:
    """The ladder's decision on the row as it is now, and written into it."""
    made: list[ladder.Decision] = []

    def decide(values: rows.Values) -> rows.Values:
        made.append(ladder.decide(rows.metadata(values), failed, world.clock.now()))
        return rows.with_metadata(values, made[-1].metadata)

    await rows.change(world, order.session, decide)
    return made[-1]


async def heal_failed(world: World, order: Order, errors: tuple[str, ...]) -> None:
    """The npx heal over the error texts; emits `heal.ran` where it removed something."""
    result = await heal_after(world, order.clone, base_of_clones(world), errors)
    if result.healed:
        world.events.emit("heal.ran", removed=list(result.removed))


async def retire(world: World, order: Order, connected: frozenset[str]) -> None:
    """A server that is left out and connects is left out no more."""
    if connected:
        await rows.change(
            world,
            order.session,
            lambda values: rows.with_metadata(values, ladder.retired(rows.metadata(values), connected)),
        )


async def hand_back(world: World, order: Order) -> None:
    """A run that was stable long enough has its ladder anew."""
    await rows.change(
        world, order.session, lambda values: rows.with_metadata(values, ladder.handed_back(rows.metadata(values)))
    )
