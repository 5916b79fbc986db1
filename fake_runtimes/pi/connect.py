"""One attempt of Pi's adapter to connect a server, with the words in which it fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_runtimes.client import Connection, Failure, Identity, Signals, connect_http, connect_stdio, end_child
from fake_runtimes.connections.messages import encode, initialize, request
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.pi.access import Access, Ground
from fake_runtimes.pi.config import is_url, oauth_considered
from fake_runtimes.pi.expansion import expand
from fake_runtimes.pi.home import Home
from fake_runtimes.pi.metadata import working_directory
from fake_runtimes.pi.npx import Resolver, exists
from fake_runtimes.pi.resolver import intercepted
from fake_runtimes.pi.startup import child_environment, request_seconds
from fake_runtimes.pi.texts import (
    REQUEST_TIMED_OUT,
    endpoint_shape,
    needs_auth,
    posting_failed,
    stream_refused,
    with_probe,
    with_stderr,
)
from fake_runtimes.pi.tokens import Entries, StoreError
from fake_runtimes.profile import PiProfile
from harness.world import Ambiguous, Child, NotSent, Request, Response, World, header

FALLBACK_STATUSES = (404, 405, 406, 415)
ASKED_AGAIN = (400, 401, *FALLBACK_STATUSES)
UNDECIDED_STATUSES = (202, 401, 503)
UNAUTHORIZED = 401
CLOSING: Signals = (("EOF", 2.0), ("SIGTERM", 2.0), ("SIGKILL", 0.0))
PROBE_SECONDS = 5.0
CONFIG = "config"
INVALID_MESSAGE = '[ { "code": "invalid_union", "path": [], "message": "Invalid input" } ]'
"""Of a message that is none of the protocol; the program says besides what it missed in each kind of them. Of a result
that is none nothing was measured."""
CAPABILITIES = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}


class Refused(NamedTuple):
    """A server that did not connect: why, as one of the client's kinds or `config`, and in the adapter's words.

    `child` is its process, where that still runs.
    """

    kind: str
    text: str
    status: int | None = None
    needs_auth: bool = False
    child: Child | None = None


class Surroundings(NamedTuple):
    """What all attempts of one run share. `environment` is the Pi process's."""

    world: World
    home: Home
    environment: Mapping[str, str]
    profile: PiProfile
    resolver: Resolver
    entries: Entries


def identity(server: str) -> Identity:
    """How the adapter presents itself."""
    return Identity(
        f"pi-mcp-{server}",
        "1.0.0",
        "2025-11-25",
        user_agent="undici",
        capabilities=CAPABILITIES,
        fallback_statuses=FALLBACK_STATUSES,
        opens_stream=True,
    )


PROBE = Identity("pi-mcp-probe", "2.1.2", "2025-06-18", first_id=1)


async def connect(around: Surroundings, server: LoadedServer) -> Connection | Refused:
    """Connect one server; every request of it stands under the same budget."""
    if server.fault is not None:
        return await at_fault(around, server, server.fault)
    if server.transport == "socket":
        return Refused("enoent", f"connect ENOENT {server.raw.get('socket')}")
    if server.url is None:
        return await connect_child(around, server)
    return await connect_remote(around, server)


async def at_fault(around: Surroundings, server: LoadedServer, fault: str) -> Refused:
    """An entry that cannot work. Where it has a url that can be asked, that is asked all the same."""
    written = server.raw.get("url")
    url = expand(written, around.environment) if isinstance(written, str) and written else None
    shape = None if url is None or url.unset or not is_url(url.text) else await probed(around.world, url.text)
    return Refused(CONFIG, fault if shape is None else with_probe(fault, shape))


async def connect_child(around: Surroundings, server: LoadedServer) -> Connection | Refused:
    """A stdio server. What the npx resolver takes comes on top of the budget."""
    own = working_directory(server, around.environment)
    directory = around.home.session if own is None else around.home.below(own)
    if own is not None and not await exists(around.world, directory):
        return Refused(CONFIG, f'MCP server "{server.name}" configured cwd does not exist: "{directory}"')
    launched = around.world.clock.now()
    command, *args = await around.resolver.argv(server)
    budget = budget_seconds(server, around.profile, around.world.clock.now() - launched)
    connected = await connect_stdio(
        around.world,
        server._replace(command=command, args=tuple(args)),
        child_environment(server, around.environment, around.profile),
        directory,
        identity(server.name),
        budget,
        budget,
    )
    if not isinstance(connected, Failure):
        return connected
    return Refused(connected.kind, with_stderr(failure_text(connected), connected.stderr), child=connected.child)


def budget_seconds(
    server: LoadedServer,
    profile: PiProfile,
    resolved_after_seconds: float,  # noqa: ARG001 (that it is not looked at is the rule)
) -> float:
    """The budget of each request to a stdio server. It begins with the spawn, whatever went before."""
    return request_seconds(server, profile)


async def connect_remote(around: Surroundings, server: LoadedServer) -> Connection | Refused:
    """A server behind a url, with the stored token if there is one for it.

    A server that does not ask for OAuth by itself, and for which nothing is stored, is first asked without: only its
    refusal has the adapter begin with OAuth.
    """
    try:
        access = Access(Ground(around.world, around.entries), server) if oauth_considered(server) else None
        if access is not None and server.raw.get("auth") != "oauth" and not await around.entries.is_there(server):
            connected = await asked(around, server, None)
            if not isinstance(connected, Failure) or status_of(connected) != UNAUTHORIZED:
                return await outcome(around, server, connected)
        return await outcome(around, server, await asked(around, server, access))
    except StoreError as error:
        shape = await probed(around.world, server.url or "")
        return Refused(CONFIG, str(error) if shape is None else with_probe(str(error), shape))


async def asked(around: Surroundings, server: LoadedServer, access: Access | None) -> Connection | Failure:
    """One attempt."""
    budget = request_seconds(server, around.profile)
    return await connect_http(
        around.world, server, server.headers, identity(server.name), budget, budget, access=access
    )


async def outcome(around: Surroundings, server: LoadedServer, connected: Connection | Failure) -> Connection | Refused:
    """A connection, or a failure over HTTP: a want of a token, a moment's outage, or the words with what was probed."""
    if not isinstance(connected, Failure):
        return connected
    status = status_of(connected)
    if status == UNAUTHORIZED and oauth_considered(server):
        around.entries.forget(server)
        return Refused(connected.kind, needs_auth(server.name), status, needs_auth=True)
    text = failure_text(connected)
    shape = None if status == 503 else await probed(around.world, server.url or "")
    return Refused(connected.kind, text if shape is None else with_probe(text, shape), status)


def status_of(failure: Failure) -> int | None:
    """The status that counts: the older transport's, where that was tried."""
    return failure.status if failure.fallback_status is None else failure.fallback_status


def failure_text(failure: Failure) -> str:
    """The words of a failure, without stderr and probes."""
    if failure.kind == "status":
        older = failure.fallback_status
        return posting_failed(failure.body) if older is None else stream_refused(older)
    return {
        "enoent": f"spawn {failure.detail} ENOENT",
        "eacces": f"spawn {failure.detail} EACCES",
        "spawn": f"spawn {failure.detail} {failure.error_name}",
        "exited": "Connection closed",
        "timeout": REQUEST_TIMED_OUT,
        "content": f"Unexpected content type: {failure.detail}",
        "protocol": INVALID_MESSAGE if failure.code is None else failure.detail,
        "oauth": failure.detail or "fetch failed",
    }.get(failure.kind, "fetch failed")


async def probed(world: World, url: str) -> str | None:
    """What up to three requests without credentials make of an endpoint; None where one gets no answer.

    The newer way to ask goes first; then the older one, where the answer leaves room for it; then the stream of the
    oldest, where a POST is not what the endpoint wants.
    """
    first = await knocked(world, url, request(1, "server/discover", {}))
    if first is None:
        return None
    if first.status not in ASKED_AGAIN and not (first.status < 300 and has_result(first.body)):
        return shape_of(first)
    second = await knocked(world, url, initialize(PROBE))
    if second is None:
        return None
    if second.status < 300 and has_result(second.body):
        return "endpoint responded with a JSON-RPC 2.0 envelope"
    last: Response | None = second
    if second.status in FALLBACK_STATUSES:
        last = await knocked(world, url, None)
        if last is None:
            return None
    told = next((answer for answer in (last, second, first) if answer and answer.status in UNDECIDED_STATUSES), last)
    return None if told is None else shape_of(told)


async def knocked(world: World, url: str, message: Mapping[str, Any] | None) -> Response | None:
    """One answer without credentials, to a message or to a GET; None without any."""
    accepted = "text/event-stream" if message is None else "application/json, text/event-stream"
    headers = {"Accept": accepted, **({} if message is None else {"Content-Type": "application/json"})}
    body = b"" if message is None else encode(message).encode()
    try:
        return await world.http.send(
            Request("GET" if message is None else "POST", url, headers, body),
            open_timeout_seconds=PROBE_SECONDS,
            read_timeout_seconds=PROBE_SECONDS,
        )
    except (NotSent, Ambiguous):
        return None


def shape_of(answer: Response) -> str:
    """What an answer says of the endpoint."""
    return endpoint_shape(answer.status, header(answer.headers, "Content-Type"))


def has_result(body: bytes) -> bool:
    """Whether a body is a JSON-RPC answer."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(message, dict) and message.get("jsonrpc") == "2.0" and ("result" in message or "error" in message)


async def cancelled_start(around: Surroundings, server: LoadedServer) -> None:
    """The first of an eager server's two starts: given up by the adapter as soon as it has begun.

    What it does of the npx resolver was not measured; here the resolver waits for the second start.
    """
    if server.fault is not None or intercepted(server.command, server.args) is not None:
        return
    message = encode(initialize(identity(server.name)))
    try:
        if server.url is not None:
            headers = {"Content-Type": "application/json", **server.headers}
            posted = Request("POST", server.url, headers, message.encode())
            budget = request_seconds(server, around.profile)
            await around.world.http.send(posted, open_timeout_seconds=budget, read_timeout_seconds=budget)
        elif server.command is not None:
            await cancelled_child(around, server, message)
    except (OSError, NotSent, Ambiguous):
        return


async def cancelled_child(around: Surroundings, server: LoadedServer, message: str) -> None:
    """Spawned, greeted, and ended as a connection is closed."""
    own = working_directory(server, around.environment)
    directory = around.home.session if own is None else around.home.below(own)
    environment = child_environment(server, around.environment, around.profile)
    argv = (server.command or "", *server.args)
    child = await around.world.processes.spawn(argv, env=environment, directory=directory)
    await child.write_line(message)
    await end_child(child, CLOSING)
