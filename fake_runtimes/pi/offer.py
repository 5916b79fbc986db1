"""What Pi's adapter offers to the model: the gateway, scripts, a proxy for each server, or its tools directly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fake_runtimes.loaded import LoadedServer
from fake_runtimes.pi.names import (
    Names,
    allowed_tools,
    direct_name,
    direct_tools,
    meetings,
    offered,
    prefix_style,
    proxy,
)
from fake_runtimes.pi.variables import DIRECT_TOOLS, NO_DIRECT_TOOLS
from fake_runtimes.profile import PiProfile

GATEWAY, SCRIPT = "mcp", "mcpScript"

ToolNames = Mapping[str, Sequence[str]]


def with_direct_tools(server: LoadedServer, environment: Mapping[str, str]) -> LoadedServer:
    """The server with `directTools` as the environment asks for them, in place of what the files say."""
    asked = environment.get(DIRECT_TOOLS)
    if asked is None:
        return server
    selectors = [] if asked == NO_DIRECT_TOOLS else [word.strip().rstrip("/") for word in asked.split(",")]
    named = [tool for name, _, tool in (word.partition("/") for word in selectors) if name == server.name and tool]
    return server._replace(raw={**server.raw, "directTools": True if server.name in selectors else named})


def wants_direct_tools(server: LoadedServer) -> bool:
    """Whether any of its tools are to be offered by themselves."""
    return bool(server.raw.get("directTools", server.settings.get("directTools")))


def offered_names(servers: Mapping[str, LoadedServer], known: ToolNames, profile: PiProfile) -> Names:
    """The names by (server, tool) of the servers whose tools are known and that did not fail."""
    return offered(known, profile, servers)[0]


def meeting_lines(servers: Mapping[str, LoadedServer], known: ToolNames, profile: PiProfile) -> list[str]:
    """What is said of servers whose proxies would have one name."""
    proxied = {}
    for name, every in known.items():
        listed = allowed_tools(servers.get(name), every)
        if listed and not direct_tools(servers.get(name), listed):
            proxied[name] = proxy(name, profile)
    return meetings(proxied)


def tool_list(names: Iterable[str], settings: Mapping[str, Any]) -> list[str]:
    """The adapter's part of a model request, sorted. The gateway is always there, unless direct tools replace it."""
    found = set(names)
    gateway = not (settings.get("disableProxyTool") is True and found)
    scripts = settings.get("scriptMode") is not False
    return sorted({*found, *((GATEWAY,) if gateway else ()), *((SCRIPT,) if scripts else ())})


def own_name(server: LoadedServer, tool: str, profile: PiProfile) -> str | None:
    """The name by which a tool is called directly; None for one that goes through a proxy."""
    if tool not in direct_tools(server, (tool,)):
        return None
    return direct_name(server.name, tool, prefix_style(server), profile)
