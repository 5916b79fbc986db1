"""One pass over the servers that failed in a handshake: judge each, retire and clear what has to be, write the outcome.

Source: seed 000 "When a server cannot connect, the server is left out — not the session", seed 002 "The gate";
requirements gate-post-spawn-*, gate-static-rejection-*, gate-authorized-401-clears-retries, gate-rejected-grant-*,
failure-mixed-pass-single-write, resume-post-spawn-owed. The runtime's process has ended before any of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from harness.reference.catalog.entry import Entry
from harness.reference.credentials import table
from harness.reference.credentials.authorized import is_server_authorized
from harness.reference.credentials.key import credential_key
from harness.reference.credentials.retire import retire
from harness.reference.credentials.writers.protocol import Writer
from harness.reference.credentials.writers.registry import registered_writers, session_writer
from harness.reference.session import routes, rows
from harness.reference.session.attempt import attempted
from harness.reference.session.blocking import MARKER, Blocked, Turn
from harness.reference.session.gate import is_listed
from harness.reference.session.injection import RUNNING, clear_needs_auth, tell_failure
from harness.reference.session.ladder import Decision, news
from harness.reference.session.order import Order
from harness.reference.session.prepare import PreparedClone
from harness.reference.session.refusals import auth_text, stderr_detail
from harness.reference.session.routes import Cause, Class, Failing
from harness.reference.session.shown_errors import credential_variables, redacted, secret_values
from harness.reference.session.timeline import Line, noted, tell
from harness.world import World

PAUSED = "needs_input"


class Failure(NamedTuple):
    """A server that failed, its catalog entry (None: there is none any more), and the error as it may be shown."""

    failing: Failing
    entry: Entry | None
    shown: str | None

    @property
    def name(self) -> str:
        """The server."""
        return self.failing.name

    def blocked(self) -> Blocked:
        """As the session's list of servers to authorize has it: name, the catalog's URL and the error."""
        return Blocked(self.name, None if self.entry is None else self.entry.url, None, self.shown)


# --- what failed


async def failures_of(
    world: World, order: Order, ready: PreparedClone, failed: Mapping[str, str]
) -> tuple[Failure, ...]:
    """What is known of these servers."""
    return tuple([await failure_of(world, order, ready, name, error) for name, error in failed.items()])


async def failure_of(world: World, order: Order, ready: PreparedClone, name: str, error: str) -> Failure:
    """What is known of one."""
    entry, prepared = order.catalog.find(name), ready.prepared.servers.get(name)
    url = prepared.get("url") if isinstance(prepared, Mapping) else None
    capable = takes_oauth(entry) and name not in ready.prepared.injected
    row = await table.find(world, key_of(entry)) if entry is not None and capable else None
    shown = redacted(error, secret_values(entry, prepared, order.lookup, row))
    return Failure(Failing(name, error, url if isinstance(url, str) else None, capable), entry, shown)


def takes_oauth(entry: Entry | None) -> bool:
    """Whether a human may be sent to authorize it: what the gate before a spawn looks at (gate-single-predicate)."""
    return entry is not None and is_listed(entry)


def key_of(entry: Entry) -> str:
    """The key of a server's stored credential."""
    return credential_key(entry.name, entry.credential_config())


# --- judging


async def classes_of(
    world: World, order: Order, variables: Mapping[str, str], failures: Sequence[Failure]
) -> dict[str, Class]:
    """The class of each failure. A rejected credential is retired, and a runtime's memory of refusals cleared, by then.

    `variables` are those of the process that told of them: they say which store it read. Emits `credential.retired`
    (server) and `needs_auth.cleared` (servers).
    """
    classes: dict[str, Class] = {}
    for failure in failures:
        cause = routes.cause_of(failure.failing)
        classes[failure.name] = routes.class_of(
            cause, needs_sign_in=await asks_for_sign_in(world, order, variables, failure, cause)
        )
    remembered = [name for name, found in classes.items() if found == "authorized"]
    if remembered:
        writer = session_writer(world, order.runtime, variables, directory=order.clone)
        await clear_needs_auth(world, writer, remembered)
    return classes


async def asks_for_sign_in(
    world: World, order: Order, variables: Mapping[str, str], failure: Failure, cause: Cause
) -> bool:
    """Whether clicking Authorize is what helps this server."""
    if failure.entry is None or cause not in ("grant_rejected", "unauthorized"):
        return False
    is_retired = cause == "grant_rejected" and await retired(world, order, variables, failure.entry)
    is_authorized = await is_server_authorized(world, order.catalog, {"server_name": failure.name})
    return routes.needs_sign_in(cause, is_authorized=is_authorized, is_retired=is_retired)


async def retired(world: World, order: Order, variables: Mapping[str, str], entry: Entry) -> bool:
    """Retire a credential whose grant the provider has rejected. False: that failed, and its row may still stand."""
    stores = writers_of(world, order, variables)
    done = await attempted(world, retire(world, key_of(entry), stores, entry.name), f"retire {entry.name}")
    if done.error is not None:
        tell_failure(world, "error", f"{entry.name}: its rejected credential could not be retired", done.error)
    return done.error is None


def writers_of(world: World, order: Order, variables: Mapping[str, str]) -> tuple[Writer, ...]:
    """The store that the session's runtime read, and every runtime's host-global one; each once."""
    own = session_writer(world, order.runtime, variables, directory=order.clone)
    return (own, *(writer for writer in registered_writers(world) if writer != own))


# --- the outcome


async def decided(
    world: World, order: Order, failures: Sequence[Failure], classes: Mapping[str, Class], turn: Turn
) -> Decision:
    """The routes on the row as it is now, written into it in one piece, and told. Emits the timeline's lines."""
    now, made, told = world.clock.now(), list[Decision](), list[Line]()
    errors = {failure.name: failure.shown for failure in failures}

    def decide(values: rows.Values) -> rows.Values:
        decision = routes.route(rows.metadata(values), errors, classes, now)
        made.append(decision)
        if decision.route == "nothing":
            return values
        told[:] = lines_of(decision, failures, classes)
        owed = {} if turn.owed is None else {MARKER: turn.owed}
        return noted(paused(rows.with_metadata(values, {**decision.metadata, **owed})), told, now)

    await rows.change(world, order.session, decide)
    tell(world, told)
    return made[-1]


def paused(values: rows.Values) -> rows.Values:
    """The row of a session whose process was ended, and that goes on by itself."""
    return {**values, "status": PAUSED} if values.get("status") == RUNNING else values


def news_among(values: rows.Values, failures: Iterable[Failure]) -> tuple[Failure, ...]:
    """Those whose server is not left out already."""
    found = tuple(failures)
    new = news(rows.metadata(values), {failure.name: failure.shown for failure in found})
    return tuple(failure for failure in found if failure.name in new)


def lines_of(decision: Decision, failures: Sequence[Failure], classes: Mapping[str, Class]) -> list[Line]:
    """What the timeline says: of a retry as of something ordinary, of a server that is left out as of a warning."""
    known = {failure.name: failure for failure in failures}
    lines = [left_out_line(known[name], classes) for name in decision.on("degrade")]
    again = decision.on("retry")
    if again:
        when = f"trying again in {decision.after_seconds} s"
        lines.append(Line("info", "mcp_retry", f"MCP servers did not connect: {', '.join(again)}; {when}"))
    return lines


def left_out_line(failure: Failure, classes: Mapping[str, Class]) -> Line:
    """Why a server is left out. Where its credential was rejected: what was said, and which variables to check."""
    if classes.get(failure.name) != "rejected":
        return Line("warn", "left_out", f"{failure.name} is left out: it did not connect: {failure.shown or ''}")
    names = credential_variables(failure.entry)
    check = f" Check {', '.join(names)}." if names else ""
    return Line("warn", "left_out", f"{failure.name} is left out: its credential was rejected.{check} {said(failure)}")


def said(failure: Failure) -> str:
    """The words of a rejection: the transport's as they are, of a child's only the line that matters."""
    failing = failure.failing
    if auth_text(failing.error, failing.name, failing.url).auth_error:
        return failure.shown or ""
    return stderr_detail(failure.shown) or failure.shown or ""
