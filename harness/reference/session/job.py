"""One session from its preparation to its runtime's end, however often that has to be started.

Source: seed 000 "When a server cannot connect, the server is left out — not the session", "Timeouts and caching";
requirements npx-heal-then-retry-connects, npx-heal-still-corrupt-package, npx-guard-next-launch-repairs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from harness.reference.prepare.failures import classify_error
from harness.reference.session import evidence, gate, ladder, rows
from harness.reference.session.attempt import attempted
from harness.reference.session.blocking import MARKER, Turn, block
from harness.reference.session.command_line import reclassified
from harness.reference.session.evidence import Seen
from harness.reference.session.failed_handshakes import PAUSED, classes_of, decided, failures_of, news_among, paused
from harness.reference.session.injection import RUNNING, inject, tell_failure
from harness.reference.session.npx_tree import heal_after
from harness.reference.session.order import Order, base_of_clones, home
from harness.reference.session.prepare import NotPreparedError, PreparedClone, prepare_with_retries
from harness.reference.session.prompts import is_nudge, recovery_prompt
from harness.reference.session.running import Running
from harness.reference.session.spawn import environment_of, spawn_runtime
from harness.world import World

POLL_SECONDS = 2.0
NOT_STARTED = 1
NOTHING = Seen()


class Watched(NamedTuple):
    """What became of one start: the exit code (None: it still runs, but a server failed), and what was seen."""

    exit_code: int | None
    seen: Seen


class Launched(NamedTuple):
    """A runtime that was started, the clone it was started in, and whether the session's row says that it runs."""

    ready: PreparedClone
    running: Running
    is_noted: bool = False


async def run_session(world: World, order: Order) -> int:
    """Run a session; the answer is the last exit code of its runtime, or 1 where that could not be started.

    Emits `session.prepared`, `session.failed` (text), `session.retry` (servers, after_seconds), `session.degraded`
    (servers), `heal.ran` (removed), `session.blocked` (servers) and `session.ended` (exit_code). A session that needs
    authorization, before its runtime is started or after, ends without a process, and nothing here starts it again.
    """
    while True:
        order = await reclassified(world, order, turn_of(order).owed)
        launched = await launch(world, order)
        if isinstance(launched, int):
            return launched
        code, decision = await outcome(world, order, launched)
        if decision.route == "oauth_required":
            world.events.emit("session.ended", exit_code=NOT_STARTED)
            return NOT_STARTED
        if decision.route == "nothing":
            if launched.is_noted:
                await note_end(world, order, code)
            world.events.emit("session.ended", exit_code=code)
            return code
        await world.clock.sleep(decision.after_seconds)
        order = await go_on(world, order, decision, launched)


async def launch(world: World, order: Order) -> Launched | int:
    """Prepare the clone, have the servers' authorization checked, start the runtime: for every turn and every retry.

    A number where no process was started: the session's exit code, its end is told.
    """
    try:
        ready = await prepare_with_retries(world, order)
        judged = await gate.check(world, order, ready)
        if judged.blocked:
            await block(world, order.session, judged.blocked, turn_of(order))
            world.events.emit("session.ended", exit_code=NOT_STARTED)
            return NOT_STARTED
        await inject(world, order, ready, judged, environment_of(world, order, ready).variables)
        running = await spawn_runtime(world, order, ready)
    except (*NotPreparedError, OSError) as error:
        return await not_started(world, order, error)
    await running.send(order.stdin)
    await delivered(world, order)
    return Launched(ready, running, bool(judged.listed))


async def note_end(world: World, order: Order, code: int) -> None:
    """Say in the row that the runtime has ended."""
    await rows.change(world, order.session, lambda values: ended(values, code))


def ended(values: rows.Values, code: int) -> rows.Values:
    """The row of a session whose runtime has ended: it waits for the next message, unless something went wrong."""
    return {**values, "status": "failed" if code else "needs_input"} if values.get("status") == RUNNING else values


def turn_of(order: Order) -> Turn:
    """The turn that an order is for."""
    return Turn(order.follow_up, is_nudge(order.follow_up, order.prompts))


async def delivered(world: World, order: Order) -> None:
    """The message of this turn has reached the runtime: it is owed no more (resume-marker-meaning)."""
    if order.follow_up is None:
        return

    def changed(values: rows.Values) -> rows.Values:
        metadata = rows.metadata(values)
        if metadata.get(MARKER) != order.follow_up:
            return values
        return rows.with_metadata(values, {key: kept for key, kept in metadata.items() if key != MARKER})

    await rows.change(world, order.session, changed)


async def not_started(world: World, order: Order, error: Exception) -> int:
    """Write down why nothing could be started."""
    failure = {} if isinstance(error, OSError) else classify_error(error).metadata()
    await rows.change(
        world,
        order.session,
        lambda values: ended(rows.with_metadata(values, {**rows.metadata(values), **failure}), NOT_STARTED),
    )
    world.events.emit("session.failed", text=str(error))
    return NOT_STARTED


async def watch(world: World, order: Order, ready: PreparedClone, running: Running) -> Watched:
    """Look at the servers until the runtime has ended, or one has failed that the session still counts on."""
    connected: frozenset[str] = frozenset()
    settled_seconds: float | None = None
    is_news = True
    while True:
        code = await running.ended(None if connected.issuperset(ready.selected) else POLL_SECONDS)
        seen = without(await look(world, order, ready, running), connected)
        if seen.connected:
            await retire(world, order, seen.connected & ready.degraded)
            connected |= seen.connected
            is_news = True
        if code is not None or (seen.failed and new_failures(seen, ready)):
            break
        if is_news and settled_seconds is None and ladder.is_settled(ready.selected, connected, ready.degraded):
            settled_seconds = world.clock.now()
        is_news = False
    if settled_seconds is not None and world.clock.now() - settled_seconds >= ladder.STABLE_SECONDS:
        await hand_back(world, order)
    return Watched(code, seen)


def without(seen: Seen, connected: frozenset[str]) -> Seen:
    """What is news: a server that has connected in this run and is lost later is no failed connection."""
    if not connected:
        return seen
    failed = {name: error for name, error in seen.failed.items() if name not in connected}
    return Seen(seen.connected - connected, failed)


def new_failures(seen: Seen, ready: PreparedClone) -> tuple[str, ...]:
    """The servers that failed and were not left out before. An injected server costs no retry."""
    return tuple(name for name in seen.failed if name in ready.selected and name not in ready.degraded)


async def look(world: World, order: Order, ready: PreparedClone, running: Running) -> Seen:
    """What the runtime has told of its servers by now."""
    if order.runtime != "claude" and not running.lines:
        return NOTHING
    names = tuple(ready.prepared.servers)
    if order.runtime != "claude":
        return evidence.lines_seen(order.runtime, running.lines, names)
    cache = running.variables.get("XDG_CACHE_HOME") or f"{running.variables.get('HOME', home(world))}/.cache"
    try:
        clone = await world.files.resolve(order.clone)
    except OSError:
        return Seen()
    return await evidence.claude_seen(world, cache, clone, names, running.started_seconds)


async def outcome(world: World, order: Order, launched: Launched) -> tuple[int, ladder.Decision]:
    """Watch one start and pass over what failed in it, until it has ended or something is decided.

    What goes wrong in a pass fails no session: it is told, the process is ended, and a human may go on
    (failure-handler-never-raises).
    """
    ready, running, _ = launched
    while True:
        watched = await watch(world, order, ready, running)
        done = await attempted(world, settle(world, order, ready, running, watched.seen), "failed handshakes")
        code = NOT_STARTED if watched.exit_code is None else watched.exit_code
        if done.answer is None:
            tell_failure(world, "error", "the pass over failed MCP servers failed", str(done.error))
            await running.stop()
            await rows.change(world, order.session, paused)
            return code, ladder.Decision("nothing", {})
        if done.answer.route != "nothing" or watched.exit_code is not None:
            return code, done.answer
        ready = ready._replace(degraded=frozenset(rows.degraded(await rows.read(world, order.session))))


async def settle(world: World, order: Order, ready: PreparedClone, running: Running, seen: Seen) -> ladder.Decision:
    """One pass over what failed: end the process, judge, heal, decide. Nothing where all of it is left out already.

    The heal looks at all that failed: a server that is left out stays in the config, and its broken tree with it. A
    session that waits for a human is not healed; what is left of the others shows with its next handshake.
    """
    if not new_failures(seen, ready):
        return ladder.Decision("nothing", {})
    failed = {name: error for name, error in seen.failed.items() if name in ready.selected}
    failures = await failures_of(world, order, ready, failed)
    new = news_among(await rows.read(world, order.session), failures)
    if not new:
        return ladder.Decision("nothing", {})
    await running.stop()
    classes = await classes_of(world, order, running.variables, new)
    turn = undelivered(order, running)
    required = tuple(failure for failure in new if classes[failure.name] == "needs_sign_in")
    if required:
        await block(world, order.session, [failure.blocked() for failure in required], turn)
        return ladder.Decision("oauth_required", {}, tuple(failure.name for failure in required))
    await heal_failed(world, order, tuple(seen.failed.values()))
    decision = await decided(world, order, failures, classes, turn)
    left_out, again = decision.on("degrade"), decision.on("retry")
    if left_out:
        world.events.emit("session.degraded", servers=list(left_out))
    if again:
        world.events.emit("session.retry", servers=list(again), after_seconds=decision.after_seconds)
    return decision


def undelivered(order: Order, running: Running) -> Turn:
    """The turn of a process that was ended: owed again, unless the model had heard it (resume-post-spawn-owed)."""
    turn = turn_of(order)
    return turn._replace(is_nudge=turn.is_nudge or running.has_answered)


async def heal_failed(world: World, order: Order, errors: tuple[str, ...]) -> None:
    """The npx heal over the error texts; emits `heal.ran` where it removed something. It changes no verdict."""
    done = await attempted(world, heal_after(world, order.clone, base_of_clones(world), errors), "heal")
    if done.error is not None:
        tell_failure(world, "warn", "the npx heal failed", done.error)
    elif done.answer is not None and done.answer.healed:
        world.events.emit("heal.ran", removed=list(done.answer.removed))


async def go_on(world: World, order: Order, decision: ladder.Decision, launched: Launched) -> Order:
    """The order of the next start. Whoever has not heard its turn hears it; else a nudge says what has happened."""
    await rows.change(world, order.session, lambda values: resumed(values, is_noted=launched.is_noted))
    if not launched.running.has_answered:
        return order
    reason = f"MCP servers did not connect: {', '.join(decision.servers)}"
    return replace(order, follow_up=recovery_prompt(order.prompts.recovery, reason))


def resumed(values: rows.Values, *, is_noted: bool) -> rows.Values:
    """The row of a session whose pause is over. Nothing else may take it for an idle one now."""
    running = {"status": RUNNING} if is_noted and values.get("status") == PAUSED else {}
    return {**rows.with_metadata(values, ladder.without(rows.metadata(values), (ladder.PAUSED_BY,))), **running}


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
        world, order.session, lambda values: rows.with_metadata(values, ladder.after_stability(rows.metadata(values)))
    )
