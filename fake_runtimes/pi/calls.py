"""Tool calls as Pi's adapter answers them: by the gateway, by a server's proxy, or as a direct tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_runtimes.client import CallResult, Connection
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.pi.config import oauth_considered
from fake_runtimes.pi.names import Names, proxy
from fake_runtimes.pi.offer import GATEWAY, offered_names, own_name
from fake_runtimes.pi.servers import Servers
from fake_runtimes.pi.startup import call_seconds
from fake_runtimes.pi.texts import (
    REQUEST_TIMED_OUT,
    Said,
    auth_required,
    backing_off,
    call_failed,
    connect_failed,
    connected_text,
    disabled,
    no_such_server,
    no_such_tool,
    not_offered,
    status_text,
    still_starting,
)
from fake_runtimes.plan import ToolCall
from fake_runtimes.text import json_stringify
from harness.world.ports import Task

GATEWAY_WAIT_SECONDS = 30.0


class Answered(NamedTuple):
    """The tool that the model named, with its arguments, and what it read."""

    name: str
    args: Mapping[str, Any]
    said: Said


async def answer(servers: Servers, starting: Task, call: ToolCall) -> Answered:
    """One call. A call of no server is one of the gateway itself: its status, or `connect`."""
    name, args = called_name(servers, call)
    if not call.server:
        return Answered(name, args, await gateway(servers, starting, call.args))
    if is_unoffered(servers, call):
        return Answered(name, args, not_offered(name))
    return Answered(name, args, await routed(servers, starting, call))


def called_name(servers: Servers, call: ToolCall) -> tuple[str, Mapping[str, Any]]:
    """The tool that the model names, and its arguments.

    A tool that its server offers directly is called by its own name, any other through the server's proxy or,
    where that is not offered, through the gateway.
    """
    direct = direct_name_of(servers, call)
    if not call.server or direct is not None:
        return direct or GATEWAY, call.args
    name = proxy(call.server, servers.around.profile)
    through_proxy = offered_now(servers).get((call.server, call.tool)) == name
    asked = {"tool": call.tool, "args": json_stringify(dict(call.args))}
    return (name, asked) if through_proxy else (GATEWAY, {**asked, "server": call.server})


def offered_now(servers: Servers) -> Names:
    """The names that are offered at this moment."""
    return offered_names(servers.by_name, servers.offered(), servers.around.profile)


def direct_name_of(servers: Servers, call: ToolCall) -> str | None:
    """The name of a tool that its server is to offer directly."""
    server = servers.by_name.get(call.server)
    return None if server is None else own_name(server, call.tool, servers.around.profile)


def is_unoffered(servers: Servers, call: ToolCall) -> bool:
    """Whether the model names a direct tool that is not among those it was offered."""
    return direct_name_of(servers, call) is not None and (call.server, call.tool) not in offered_now(servers)


async def gateway(servers: Servers, starting: Task, args: Mapping[str, Any]) -> Said:
    """The gateway's own actions: its status, and connecting a server by name, which looks at no backoff."""
    waited = await settled(servers, starting)
    if waited is not None:
        return waited
    name = args.get("connect")
    if name is None:
        return status_text(servers.statuses())
    if not isinstance(name, str) or name not in servers.by_name:
        return disabled(name) if name in servers.disabled else no_such_server(str(name))
    if name not in servers.connections:
        refused = await connect_now(servers, name)
        if refused is not None:
            return refused
    return connected_text(name, servers.known.get(name, ()))


async def routed(servers: Servers, starting: Task, call: ToolCall) -> Said:
    """A call of a server's tool: wait for the start, connect where there is no connection, then call."""
    waited = await settled(servers, starting)
    if waited is not None:
        return waited
    server = servers.by_name.get(call.server)
    if server is None:
        return disabled(call.server) if call.server in servers.disabled else no_such_server(call.server)
    connection = await usable(servers, call.server)
    if isinstance(connection, Said):
        return connection
    if call.tool not in connection.tools:
        return no_such_tool(call.tool)
    budget = call_seconds(server, servers.around.profile)
    result = await connection.call(call.tool, call.args, budget)
    if result.kind in ("exited", "reset"):
        servers.connections.pop(call.server, None)
    return said(server, connection, call.tool, result)


async def settled(servers: Servers, starting: Task) -> Said | None:
    """Wait for the servers that were started at launch; the answer where that takes too long."""
    if not servers.settled:
        await servers.world.tasks.wait([starting], timeout_seconds=GATEWAY_WAIT_SECONDS)
    return None if servers.settled else still_starting(GATEWAY_WAIT_SECONDS)


async def usable(servers: Servers, name: str) -> Connection | Said:
    """The connection of a server, made now if need be; or why there is none."""
    connection = servers.connections.get(name)
    if connection is not None and await connection.running():
        return connection
    servers.connections.pop(name, None)
    if name in servers.needs_auth:
        return auth_required(name, servers.settings.get("authRequiredMessage"))
    ago = servers.failed_seconds_ago(name)
    if ago is not None:
        return backing_off(name, ago)
    return await connect_now(servers, name) or servers.connections[name]


async def connect_now(servers: Servers, name: str) -> Said | None:
    """Connect a server outside the launch; None when it worked."""
    if await servers.connect(name):
        await servers.learn([name])
        return None
    if name in servers.needs_auth:
        return auth_required(name, servers.settings.get("authRequiredMessage"))
    return connect_failed(name, servers.failures[name].refused.text)


def said(server: LoadedServer, connection: Connection, tool: str, result: CallResult) -> Said:
    """What the model reads of a call that reached the server."""
    if result.kind is None:
        return Said(result.text)
    if result.kind == "error":
        return Said(result.text, "tool_error")
    details = {"server": server.name, "tool": tool}
    schema: Any = next((one.get("inputSchema") for one in connection.tool_list if one.get("name") == tool), {})
    return call_failed(message_of(server, result), details, json_stringify(schema))


def message_of(server: LoadedServer, result: CallResult) -> str:
    """Why a call failed, in the adapter's words."""
    if result.kind == "timeout":
        return REQUEST_TIMED_OUT
    if result.kind == "exited":
        return "Connection closed"
    if result.kind == "protocol":
        return result.text
    if result.failure is not None and result.failure.status is not None:
        if result.failure.status == 401 and oauth_considered(server):
            return f"Re-authentication required for MCP server: {server.name}"
        return f"Error POSTing to endpoint: {result.failure.body}"
    return "fetch failed"
