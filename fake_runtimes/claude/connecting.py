"""One server's way from pending to connected, failed or needs-auth, with what the log says on the way."""

from __future__ import annotations

from urllib.parse import urlsplit

from fake_runtimes.claude import needs_auth
from fake_runtimes.claude.access import Access, still_renewable
from fake_runtimes.claude.bearer import has_client, has_static_authorization, request_headers
from fake_runtimes.claude.child import child_environment
from fake_runtimes.claude.credentials import stored_entry
from fake_runtimes.claude.startup import probe_seconds
from fake_runtimes.claude.state import CONNECTED, ServerState, SessionState
from fake_runtimes.claude.wording import (
    FAILED,
    NEEDS_AUTH,
    milliseconds,
    reason,
    second_start,
    server_stderr,
    tell,
    unwelcome,
)
from fake_runtimes.client import Connection, Failure, Identity, StdioConnection, connect_http, connect_stdio
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.text import json_stringify
from harness.world import Child

# The limit of a request other than the handshake, as the transport's log line gives it.
REQUEST_TIMEOUT_MS = 60_000
UNAUTHORIZED, FIRST_SERVER_FAULT_STATUS = 401, 500
RECONNECT_FACTORS = (1, 3, 8)
"""How often a session tries again, and after how many times the profile's pause."""
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
NOT_MEASURED = "Connection failed"
WITHOUT_TOKEN = (
    "The server rejected the stored access token and no refresh token is stored; connecting again without a token"
)


async def connect(session: SessionState, state: ServerState) -> Failure | None:
    """Bring one server to its outcome; the answer is why it did not connect, where that was tried."""
    server, world = state.server, session.world
    if server.transport != "stdio" and is_remembered(session, server.name):
        state.log.debug(needs_auth.SKIP_LINE)
        state.status = NEEDS_AUTH
        world.events.emit("server.needs_auth", server=server.name, cached=True, text=needs_auth.SKIP_LINE)
        await state.log.flush()
        return None
    world.events.emit("server.connecting", server=server.name)
    state.began_seconds = world.clock.now()
    if not server.starts or server.transport not in ("stdio", "http", "sse"):
        fail(session, state, "protocol", server.fault or NOT_MEASURED)
        await state.log.flush()
        return None
    return await tried(session, state)


async def tried(session: SessionState, state: ServerState) -> Failure | None:
    """One attempt with all that it leaves behind."""
    came = await attempt(session, state)
    if isinstance(came, Failure):
        await take_failure(session, state, came)
        failure: Failure | None = came
    else:
        failure = await take_connection(session, state, came)
    await state.log.flush()
    return failure


async def reconnect(session: SessionState, state: ServerState) -> None:
    """Try a remote server that failed again, in the background of a session: after a while, then after longer ones."""
    for factor in RECONNECT_FACTORS:
        await session.world.clock.sleep(session.profile.reconnect_after_ms * factor / 1000)
        if not is_tried_again(await tried(session, state)):
            return


def is_remembered(session: SessionState, name: str) -> bool:
    """Whether the needs-auth cache keeps the session from this server."""
    return needs_auth.is_live(session.needs_auth_text, name, session.world.clock.now() * 1000)


def is_tried_again(failure: Failure | None) -> bool:
    """Whether a session tries again: after a fault of the server, not after a refusal."""
    return failure is not None and failure.status is not None and failure.status >= FIRST_SERVER_FAULT_STATUS


async def attempt(session: SessionState, state: ServerState) -> Connection | Failure:
    """One start attempt under one budget; the list of tools is no part of it."""
    server = state.server
    probing = probe_seconds(server, session.profile)
    identity = session.identity._replace(probe=probing > 0, probe_seconds=probing)
    budget = session.budget_seconds(server)
    if server.transport != "stdio":
        tell_of_transport(session, state)
        return await attempt_remote(session, state, identity, budget)
    state.log.debug(f"Starting connection with timeout of {session.limit_ms(server)}ms")

    def spawned(child: Child) -> None:
        state.child = child

    environment = child_environment(server, session.environment, session.directory, session.session_id, session.profile)
    return await connect_stdio(
        session.world,
        server,
        environment,
        session.directory,
        identity,
        budget,
        lists_tools=False,
        on_spawn=spawned,
    )


async def attempt_remote(
    session: SessionState, state: ServerState, identity: Identity, budget_seconds: float
) -> Connection | Failure:
    """A remote server, with the stored token unless the configuration has an Authorization of its own.

    The newer version tries a second time, without a token, where the stored one was refused and cannot be renewed.
    """
    server, world = state.server, session.world
    until = world.clock.now() + budget_seconds
    sent = {"Accept-Encoding": "identity", **request_headers(server, session.environment)}
    access = None if has_static_authorization(server) else Access(session, state, state.rejected_token)
    came = await connect_http(world, server, sent, identity, budget_seconds, lists_tools=False, access=access)
    if access is None or not isinstance(came, Failure) or came.status != UNAUTHORIZED:
        return came
    state.rejected_token = access.shown or state.rejected_token
    entry = await access.entry()
    if not session.profile.stamps_issuer or access.shown is None or still_renewable(entry):
        return came
    has_one = has_client(server, await session.store_text())
    for level, text in unwelcome(server, came, session.wording, has_one).lines[:-1]:
        state.log.add(level, text)
    state.log.debug(WITHOUT_TOKEN)
    again = Access(session, state, state.rejected_token)
    left = until - world.clock.now()
    return await connect_http(world, server, sent, identity, left, lists_tools=False, access=again)


def tell_of_transport(session: SessionState, state: ServerState) -> None:
    """What the log of a remote server begins with."""
    server, log = state.server, state.log
    kind, url = server.transport.upper(), server.url or ""
    parts = urlsplit(url)
    options = {
        "url": url,
        "headers": {"User-Agent": session.identity.user_agent, "Accept-Encoding": "identity"},
        "hasAuthProvider": not has_static_authorization(server),
        "timeoutMs": REQUEST_TIMEOUT_MS,
    }
    log.debug(f"Initializing {kind} transport to {url}")
    log.debug(f"{kind} transport options: {json_stringify(options)}")
    log.debug(f"{kind} transport created successfully")
    log.debug(f"Starting connection with timeout of {session.limit_ms(server)}ms")
    log.debug(f"Testing basic HTTP connectivity to {url}")
    log.debug(f"Parsed URL: host={parts.hostname}, port={port_text(url)}, protocol={parts.scheme}:")
    if parts.hostname in LOOPBACK_HOSTS:
        log.debug(f"Using loopback address: {parts.hostname}")
    if has_static_authorization(server):
        log.debug("No token data found")


def port_text(url: str) -> str:
    """The port as the URL gives it."""
    try:
        port = urlsplit(url).port
    except ValueError:
        return "default"
    return "default" if port is None else str(port)


async def take_connection(session: SessionState, state: ServerState, connection: Connection) -> Failure | None:
    """A server that speaks the protocol: list its tools, and it is there. The answer is why it is not.

    Only an end before the list makes it one that has failed (not measured); any other fault of the list leaves it
    without tools.
    """
    state.child = None
    log, server = state.log, state.server
    for level, text in second_start(connection):
        log.add(level, text)
    if connection.stderr:
        log.error(server_stderr(connection.stderr))
    took = connection.connected_seconds - connection.started_seconds
    log.debug(f"Successfully connected (transport: {server.transport}) in {milliseconds(took)}ms")
    log.debug(f"Connection established with capabilities: {json_stringify(capabilities(session, connection))}")
    told = len(connection.stderr)
    failure = await connection.list_tools(REQUEST_TIMEOUT_MS / 1000)
    if failure is not None and failure.kind == "exited":
        child = connection.child if isinstance(connection, StdioConnection) and failure.exit_code is None else None
        failure = failure._replace(stderr=failure.stderr[told:], respawned=False, child=child)
        await take_failure(session, state, failure)
        return failure
    state.connection, state.status = connection, CONNECTED
    session.world.events.emit("server.connected", server=server.name, seconds=took)
    await session.forget_refusal(server.name)
    return None


def capabilities(session: SessionState, connection: Connection) -> dict[str, object]:
    """What the log says that a server can do."""
    able = connection.capabilities
    resources = able.get("resources")
    said: dict[str, object] = {
        "hasTools": "tools" in able,
        "hasPrompts": "prompts" in able,
        "hasResources": "resources" in able,
        "hasResourceSubscribe": isinstance(resources, dict) and bool(resources.get("subscribe")),
        "serverVersion": dict(connection.server_info),
    }
    if session.identity.probe:
        version = connection.protocol_version or session.identity.probe_protocol_version
        said |= {"protocolEra": connection.era, "negotiatedProtocolVersion": version}
    return said


async def take_failure(session: SessionState, state: ServerState, failure: Failure) -> None:
    """A server that did not connect. Only the newer version signals a process that is left."""
    server = state.server
    told = tell(
        server,
        failure,
        session.limit_ms(server),
        session.wording,
        static_authorization=has_static_authorization(server),
        has_client=failure.status == 401 and has_client(server, await session.store_text()),
    )
    for level, text in told.lines:
        state.log.add(level, text)
    state.status = told.status
    state.reason = reason(told.text, session.wording) + told.detail
    if told.status == NEEDS_AUTH:
        session.world.events.emit("server.needs_auth", server=server.name, cached=False, text=told.text)
        await session.remember_refusal(server.name, passing=await may_pass(session, server))
    else:
        emit_failed(session, server, failure.kind, told.text)
    if failure.child is not None and session.profile.signals_unconnected:
        await failure.child.signal("SIGINT")
    state.child = failure.child


async def may_pass(session: SessionState, server: LoadedServer) -> bool:
    """Whether a refusal may be over soon: the store still has something to renew a token with."""
    text = await session.store_text()
    return not has_static_authorization(server) and still_renewable(
        None if text is None else stored_entry(text, server)
    )


def fail(session: SessionState, state: ServerState, kind: str, text: str) -> None:
    """A server that is known to fail before anything is tried."""
    state.log.error(text)
    state.status, state.reason = FAILED, text
    emit_failed(session, state.server, kind, text)


def emit_failed(session: SessionState, server: LoadedServer, kind: str, text: str) -> None:
    """Tell whoever judges the run."""
    session.world.events.emit("server.failed", server=server.name, kind=kind, text=text)
