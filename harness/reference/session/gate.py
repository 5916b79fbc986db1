"""The OAuth check before every spawn: which servers of a session are usable, and which a human has to authorize first.

Source: seed 002 "The gate", "What the server advertised, recorded"; requirements gate-*, requirement-*. A server with a
stored credential is judged by that alone, one with a client that was registered by hand needs authorization by that
very fact, and only the others are asked, live.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from harness.reference.catalog.catalog import Catalog
from harness.reference.catalog.entry import Entry
from harness.reference.credentials import refresh, table
from harness.reference.credentials.reconcile import Reconciler
from harness.reference.credentials.row import Credential
from harness.reference.credentials.state import state_at
from harness.reference.credentials.writers.registry import session_writer
from harness.reference.oauth.capability import oauth_capable
from harness.reference.oauth.check import Check, check_oauth_requirement, log_line, record_check, undetermined
from harness.reference.oauth.clients import catalog_client, registered_client
from harness.reference.oauth.consent import hosted_callback
from harness.reference.oauth.requirement import Determination
from harness.reference.oauth.server import RemoteServer, remote_server
from harness.reference.oauth.transport import REQUEST_TIMEOUT_SECONDS
from harness.reference.prepare.entry_refusal import entry_refusal
from harness.reference.prepare.request import Runtime
from harness.reference.readiness.contained import contained
from harness.reference.session.attempt import error_class
from harness.reference.session.blocking import Blocked
from harness.reference.session.order import Order
from harness.reference.session.prepare import PreparedClone
from harness.reference.session.spawn import environment_of
from harness.world import Task, World

PROBE_LIMIT_SECONDS = 8 * REQUEST_TIMEOUT_SECONDS
"""How long all probes of a spawn together may take: four requests, each with its 30 s to connect and to answer."""

NEEDS_SIGN_IN = "no credential is stored, and the server asks for one"
CANNOT_REFRESH = "the stored credential has expired and cannot be renewed"
REFRESH_FAILED = "the stored credential has expired and could not be renewed now"

Verdict = Literal["usable", "blocked", "ask"]


class Judged(NamedTuple):
    """What the gate found. `listed` are the servers it looked at, `usable` the rows that may be injected."""

    blocked: tuple[Blocked, ...] = ()
    usable: tuple[Credential, ...] = ()
    listed: tuple[RemoteServer, ...] = ()


class Status(NamedTuple):
    """A listed server as its stored row and the deployment's clients tell it."""

    has_credential: bool
    credential_valid: bool = False
    refresh_failed: bool = False
    requires_reauth: bool = False
    has_preregistered_oauth: bool = False


async def check(world: World, order: Order, ready: PreparedClone) -> Judged:
    """Judge each listed server of the session; no row of the session is changed here.

    Emits `gate.judged` (server, verdict: usable, blocked or proceeds) for each. Raises MissingVariableError and
    StoreUnavailableError where a server's address cannot be resolved.
    """
    servers = listed_servers(order, ready)
    if not servers:
        return Judged()
    rows = await current_rows(world, order, ready, servers)
    now = world.clock.now()
    statuses = {
        server.name: status_of(rows.get(server.name), now, preregistered=is_preregistered(order, server))
        for server in servers
    }
    asked = tuple(server for server in servers if verdict(statuses[server.name]) == "ask")
    found = await ask_all(world, order, asked)
    blocked: list[Blocked] = []
    for server in servers:
        error = found.get(server.name) if server in asked else reason_to_block(statuses[server.name])
        if error is not None:
            blocked.append(Blocked(server.name, server.entry.url, server.credential_key, error))
        world.events.emit("gate.judged", server=server.name, verdict=told_as(statuses[server.name], error))
    usable = tuple(rows[server.name] for server in servers if verdict(statuses[server.name]) == "usable")
    return Judged(tuple(blocked), usable, servers)


# --- who is looked at


def listed_servers(order: Order, ready: PreparedClone) -> tuple[RemoteServer, ...]:
    """The servers selected on the session, directly or by a plugin, that the gate looks at; never an injected one.

    Nor one that the preparation had to leave out of the runtime's config: no sign-in brings it there.
    """
    names = [name for name in ready.selected if name in ready.prepared.servers and name not in ready.prepared.injected]
    entries = [entry for name in names if (entry := listed_entry(order.catalog, order.runtime, name)) is not None]
    return tuple(remote_server(entry, order.lookup) for entry in entries)


def listed_entry(catalog: Catalog, runtime: Runtime, name: str) -> Entry | None:
    """The entry of a server that a session on this runtime may be gated for; None: no sign-in could help.

    An entry that the runtime has no server of is such a case: to stop for it buys nothing (seed 002 "The gate").
    """
    entry = catalog.find(name)
    return entry if entry is not None and is_listed(entry) and is_possible(runtime, entry) else None


def is_possible(runtime: Runtime, entry: Entry) -> bool:
    """Whether a session on this runtime can have the server at all, signed in or not."""
    return entry_refusal(runtime, entry) is None


def is_listed(entry: Entry) -> bool:
    """Capable of OAuth, and not declared unavailable: such a one costs its own tools and nothing else."""
    return oauth_capable(entry.raw) and entry.unavailable is None


# --- judging by what is stored


async def current_rows(
    world: World, order: Order, ready: PreparedClone, servers: Sequence[RemoteServer]
) -> dict[str, Credential]:
    """The stored rows by server name, with whatever the session's runtime knows better, and renewed where expired."""
    variables = environment_of(world, order, ready).variables
    writer = session_writer(world, order.runtime, variables, directory=order.clone)
    reconciler = Reconciler(world, (writer,))
    rows = {server.name: await adopted(world, reconciler, server.credential_key) for server in servers}
    found = {name: row for name, row in rows.items() if row is not None}
    return await renewed(world, found)


async def adopted(world: World, reconciler: Reconciler, key: str) -> Credential | None:
    """A row after the runtime's newer pair, if there is one, was taken over."""
    if await table.find(world, key) is None:
        return None
    await reconciler.adopt(key)
    return await table.find(world, key)


async def renewed(world: World, rows: Mapping[str, Credential]) -> dict[str, Credential]:
    """The rows, after one refresh of each that has expired and can be renewed; several at the same time.

    Whatever comes of a refresh, its row is judged as it is then.
    """
    now = world.clock.now()
    due = {name: row.credential_key for name, row in rows.items() if is_refreshed_here(row, now)}
    if not due:
        return dict(rows)
    tasks = [
        world.tasks.start(refresh.refresh(world, key, reason="gate"), f"refresh {name}") for name, key in due.items()
    ]
    await world.tasks.wait(tasks)
    for name, task in zip(due, tasks, strict=True):
        tell_crash(world, name, "the refresh", task)
    after = {name: await table.find(world, row.credential_key) for name, row in rows.items()}
    return {name: row for name, row in after.items() if row is not None}


def is_refreshed_here(row: Credential, now: float) -> bool:
    """Expired and renewable. One that expires soon is still active: the injection renews it."""
    state = state_at(row, now)
    return not state.active and state.can_refresh


def status_of(row: Credential | None, now: float, *, preregistered: bool = False) -> Status:
    """The status of a server with this row. An expired one that could be renewed was just tried."""
    if row is None:
        return Status(has_credential=False, has_preregistered_oauth=preregistered)
    state = state_at(row, now)
    return Status(
        has_credential=True,
        credential_valid=state.active,
        refresh_failed=not state.active and state.can_refresh,
        requires_reauth=state.requires_reauth,
        has_preregistered_oauth=preregistered,
    )


def is_preregistered(order: Order, server: RemoteServer) -> bool:
    """Whether a client was registered by hand for it."""
    return registered_client(order.oauth, server.name) is not None


def verdict(status: Status) -> Verdict:
    """Usable, blocked, or to be asked: the server that has neither a credential nor a client."""
    if status.credential_valid:
        return "usable"
    return "ask" if reason_to_block(status) is None else "blocked"


def reason_to_block(status: Status) -> str | None:
    """Why a server blocks by what is stored; None: it does not."""
    if status.credential_valid:
        return None
    if status.requires_reauth:
        return CANNOT_REFRESH
    if status.refresh_failed:
        return REFRESH_FAILED
    return NEEDS_SIGN_IN if status.has_preregistered_oauth else None


# --- asking


async def ask_all(world: World, order: Order, servers: Sequence[RemoteServer]) -> dict[str, str | None]:
    """Why each of these servers blocks (None: it does not), by its own answer of now; all are asked at once.

    Each answer is recorded and told. What does not come in time, or raises, could not be determined.
    """
    if not servers:
        return {}
    tasks = [world.tasks.start(ask(world, order, server), f"probe {server.name}") for server in servers]
    await world.tasks.wait(tasks, timeout_seconds=PROBE_LIMIT_SECONDS)
    answers: dict[str, str | None] = {}
    for server, task in zip(servers, tasks, strict=True):
        found = answer_of(world, server, task)
        await record_check(world, server, found)
        world.events.emit("oauth.probed", server=server.name, determination=found.determination)
        world.events.emit("log", level="info", text=log_line(server, found))
        answers[server.name] = NEEDS_SIGN_IN if blocks(found.determination) else None
    return answers


async def ask(world: World, order: Order, server: RemoteServer) -> Check:
    """Discovery and the request without a token. No client is registered: nobody would use it."""
    return await check_oauth_requirement(
        world,
        server,
        configured=catalog_client(server.entry),
        redirect_uri=hosted_callback(order.oauth.app_host),
        registers=False,
        path_forms=order.oauth.path_forms,
    )


def answer_of(world: World, server: RemoteServer, task: Task) -> Check:
    """What a probe found. One that fails, or takes too long, could not determine anything, and blocks nobody."""
    if not task.done:
        return undetermined(f"no answer within {PROBE_LIMIT_SECONDS:g} seconds")
    found: Check | None = contained(task.result).answer
    if found is None:
        tell_crash(world, server.name, "the OAuth probe", task)
        return undetermined("the probe failed")
    return found


def blocks(determination: Determination) -> bool:
    """Only a server that says so blocks: one that could not be asked may be somebody's optional tool."""
    return determination == "advertised_required"


def tell_crash(world: World, name: str, what: str, task: Task) -> None:
    """A log line for an error that nobody foresaw."""
    error = contained(task.result).error
    if error is not None:
        world.events.emit("log", level="error", text=f"{name}: {what} failed: {error_class(error)}")


def told_as(status: Status, error: str | None) -> str:
    """The verdict of a judgement as events tell it."""
    if error is not None:
        return "blocked"
    return "usable" if status.credential_valid else "proceeds"
