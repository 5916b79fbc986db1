"""Tool calls as Pi's adapter answers them: by the gateway, by a server's proxy, or as a direct tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_runtimes.client import CallResult, Connection
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.pi.config import oauth_considered
from fake_runtimes.pi.names import PROXY_PREFIX, Names, direct_name, prefix_style, proxy
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
    disabled,
    no_such_server,
    no_such_tool,
    no_table,
    not_offered,
    status_text,
    still_starting,
    tool_error,
    tools_text,
)
from fake_runtimes.plan import ToolCall
from fake_runtimes.profile import PiProfile
from fake_runtimes.text import JsonTextError, json_stringify, parse_json
from harness.world.ports import Task

GATEWAY_WAIT_SECONDS = 30.0


class Answered(NamedTuple):
    """The tool that the model named, with its arguments, and what it read."""

    name: str
    args: Mapping[str, Any]
    said: Said


async def answer(servers: Servers, starting: Task, call: ToolCall) -> Answered:
    """One call. A call of no server is one of a tool by the name that the model was offered, else of the gateway."""
    if not call.server:
        return await named(servers, starting, call.tool or GATEWAY, call.args)
    name, args = called_name(servers, call)
    if is_unoffered(servers, call):
        return Answered(name, args, not_offered(name))
    return Answered(name, args, await routed(servers, starting, call))


async def named(servers: Servers, starting: Task, name: str, args: Mapping[str, Any]) -> Answered:
    """A call as the model makes it: of the gateway, of a server's proxy, or of a tool by itself."""
    if name == GATEWAY and not args.get("tool"):
        return Answered(name, args, await gateway(servers, starting, args))
    offered = offered_now(servers)
    meant = [pair for pair, known in offered.items() if known == name]
    if name == GATEWAY:
        server = str(args.get("server") or owner_of(servers, str(args["tool"])))
        tool = str(args["tool"])
        if server in servers.by_name and tool not in servers.known.get(server, ()):
            raws = dict(zip(listed_names(servers, server), servers.known.get(server, ()), strict=True))
            tool = raws.get(tool, tool)
        call = ToolCall(server, tool, arguments(args))
    elif name.startswith(PROXY_PREFIX) and meant and proxy(meant[0][0], servers.around.profile) == name:
        if not isinstance(args.get("args", {}), dict):
            return Answered(name, args, no_table(name, args, servers.around.profile.no_table_text))
        call = ToolCall(meant[0][0], str(args.get("tool", "")), arguments(args))
    elif meant:
        call = ToolCall(*meant[0], args)
    else:
        return Answered(name, args, not_offered(name))
    return Answered(name, args, await routed(servers, starting, call))


def owner_of(servers: Servers, tool: str) -> str:
    """The server among whose listed tools there is one of that name; empty where none is."""
    return next((name for name in servers.by_name if tool in listed_names(servers, name)), "")


def arguments(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a call through the gateway or a proxy gives its tool: a table, or one as a text."""
    given = args.get("args", {})
    if isinstance(given, str):
        try:
            given = parse_json(given)
        except JsonTextError:
            given = {}
    return given if isinstance(given, dict) else {}


def called_name(servers: Servers, call: ToolCall) -> tuple[str, Mapping[str, Any]]:
    """The tool that the model names, and its arguments.

    A tool that its server offers directly is called by its own name, any other through the server's proxy or,
    where that is not offered, through the gateway.
    """
    if not call.server:
        return call.tool or GATEWAY, call.args
    direct = direct_name_of(servers, call)
    if direct is not None:
        return direct, call.args
    name = proxy(call.server, servers.around.profile)
    through_proxy = offered_now(servers).get((call.server, call.tool)) == name
    if through_proxy:
        return name, {"tool": call.tool, "args": call.args}
    return GATEWAY, {"tool": call.tool, "args": json_stringify(dict(call.args)), "server": call.server}


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
    name = args.get("connect", args.get("server"))
    if name is None:
        return status_text(servers.statuses())
    if not isinstance(name, str) or name not in servers.by_name:
        return disabled(name) if name in servers.disabled else no_such_server(str(name), "not_found")
    if "connect" in args and name not in servers.connections:
        refused = await connect_now(servers, name)
        if refused is not None:
            return refused
    state = next(status.state for status in servers.statuses() if status.name == name)
    return tools_text(name, listed_names(servers, name), state)


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
        return no_such_tool(call.tool, call.server, listed_names(servers, call.server))
    budget = call_seconds(server, servers.around.profile)
    result = await connection.call(call.tool, call.args, budget)
    if result.kind in ("exited", "reset"):
        servers.lose(call.server)
    return said(server, connection, call.tool, result, servers.around.profile)


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


def said(server: LoadedServer, connection: Connection, tool: str, result: CallResult, profile: PiProfile) -> Said:
    """What the model reads of a call that reached the server."""
    if result.kind is None:
        return Said(result.text)
    details = {"server": server.name, "tool": tool}
    schema: Any = next((one.get("inputSchema") for one in connection.tool_list if one.get("name") == tool), {})
    if result.kind == "error":
        return tool_error(result.text, details, schema if profile.tool_error_shows_parameters else None)
    return call_failed(message_of(server, result), details, schema)


def listed_names(servers: Servers, server: str) -> list[str]:
    """A server's tools by the names under which the gateway lists them: with their prefix, offered so or not."""
    entry = servers.by_name[server]
    style = prefix_style(entry)
    return [direct_name(server, tool, style, servers.around.profile) for tool in servers.known.get(server, ())]


def message_of(server: LoadedServer, result: CallResult) -> str:
    """Why a call failed, in the adapter's words."""
    if result.kind == "timeout":
        return REQUEST_TIMED_OUT
    if result.kind == "exited":
        return "Connection closed"
    if result.kind in ("protocol", "oauth"):
        return result.text
    if result.failure is not None and result.failure.status is not None:
        if result.failure.status == 401 and oauth_considered(server):
            return f"Re-authentication required for MCP server: {server.name}"
        return f"Error POSTing to endpoint: {result.failure.body}"
    return "fetch failed"
