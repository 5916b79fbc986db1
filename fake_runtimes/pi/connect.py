"""One attempt of Pi's adapter to connect a server, with the words in which it fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from fake_runtimes.client import Connection, Failure, Identity, Signals, connect_http, connect_stdio, end_child
from fake_runtimes.connections.messages import encode, initialize, request
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.pi.config import oauth_considered
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
from fake_runtimes.pi.tokens import StoreError, access_token
from fake_runtimes.profile import PiProfile
from harness.world import Ambiguous, Child, NotSent, Request, Response, World, header

FALLBACK_STATUSES = (404, 405, 406, 415)
CLOSING: Signals = (("EOF", 2.0), ("SIGTERM", 2.0), ("SIGKILL", 0.0))
PROBE_SECONDS = 5.0
CONFIG = "config"
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
        return Refused(CONFIG, server.fault)
    if server.transport == "socket":
        return Refused("enoent", f"connect ENOENT {server.raw.get('socket')}")
    if server.url is None:
        return await connect_child(around, server)
    return await connect_remote(around, server)


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
    """A server behind a url, with the stored token if there is one for it."""
    try:
        token = await access_token(around.world, around.home, server, around.environment)
    except StoreError as error:
        shape = await probed(around.world, server.url or "")
        return Refused(CONFIG, str(error) if shape is None else with_probe(str(error), shape))
    headers = {**server.headers, **({"Authorization": f"Bearer {token}"} if token else {})}
    budget = request_seconds(server, around.profile)
    connected = await connect_http(around.world, server, headers, identity(server.name), budget, budget)
    if not isinstance(connected, Failure):
        return connected
    return await refused(around.world, server, connected)


async def refused(world: World, server: LoadedServer, failure: Failure) -> Refused:
    """A failure over HTTP: a want of a token, a moment's outage, or the words with what the probes found."""
    status = failure.status if failure.fallback_status is None else failure.fallback_status
    if status == 401 and oauth_considered(server):
        return Refused(failure.kind, needs_auth(server.name), status, needs_auth=True)
    text = failure_text(failure)
    shape = None if status == 503 else await probed(world, server.url or "")
    return Refused(failure.kind, text if shape is None else with_probe(text, shape), status)


def failure_text(failure: Failure) -> str:
    """The words of a failure, without stderr and probes."""
    if failure.kind == "status":
        older = failure.fallback_status
        return posting_failed(failure.body) if older is None else stream_refused(older)
    return {
        "enoent": f"spawn {failure.detail} ENOENT",
        "eacces": f"spawn {failure.detail} EACCES",
        "exited": "Connection closed",
        "timeout": REQUEST_TIMED_OUT,
        "content": f"Unexpected content type: {failure.detail}",
        "protocol": failure.detail,
    }.get(failure.kind, "fetch failed")


async def probed(world: World, url: str) -> str | None:
    """What two POSTs without credentials make of an endpoint; None where they get no answer."""
    found: Response | None = None
    for message in (request(1, "server/discover", {}), initialize(PROBE)):
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        try:
            found = await world.http.send(
                Request("POST", url, headers, encode(message).encode()),
                open_timeout_seconds=PROBE_SECONDS,
                read_timeout_seconds=PROBE_SECONDS,
            )
        except (NotSent, Ambiguous):
            return None
        if found.status < 300 and message["method"] == "initialize" and has_result(found.body):
            return "endpoint responded with a JSON-RPC 2.0 envelope"
    return None if found is None else endpoint_shape(found.status, header(found.headers, "Content-Type"))


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
