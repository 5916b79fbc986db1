"""How Pi's adapter names what it offers to the model: one proxy a server, or a server's tools directly."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from fake_runtimes.loaded import LoadedServer
from fake_runtimes.profile import PiProfile
from fake_runtimes.text import utf8

PROXY_PREFIX = "mcp__"
ENCODED_PREFIX = "_mcpns_"
PLAIN = re.compile(r"[A-Za-z0-9_]*")
ODD = re.compile(r"[^A-Za-z0-9_]")
OUTSIDE_PREFIX = re.compile(r"[^A-Za-z0-9_-]")
OWN_TOOLS = frozenset({"read", "bash", "edit", "write", "grep", "find", "ls", "mcp"})
"""Names that Pi has itself: no server's tool gets one."""
HASH_MARK = "_h_"
DIGEST_LENGTH = 16

Names = dict[tuple[str, str], str]
Dropped = tuple[tuple[str, str], ...]


def namespace(server: str, profile: PiProfile) -> str:
    """The server's name as it reads in its proxy: `-` becomes `_`; an odd character puts it into hexadecimal."""
    flat = server.replace("-", "_")
    if PLAIN.fullmatch(flat) and not flat.startswith(ENCODED_PREFIX):
        return limited(flat, flat, profile)
    if profile.namespace_whole_name_in_hex:
        encoded = "_".join(f"{ord(character):x}" for character in flat)
    else:
        encoded = ODD.sub(lambda found: f"_{ord(found[0]):x}_", flat.replace("_", "__"))
    return limited(ENCODED_PREFIX + encoded, encoded, profile)


def limited(name: str, readable: str, profile: PiProfile) -> str:
    """The name, or where the version has a limit and it is longer, its beginning and a digest."""
    if not profile.namespace_limit or len(name) <= profile.namespace_limit:
        return name
    import hashlib  # loads a library, which most runs do not need

    digest = f"_{hashlib.sha256(utf8(name)).hexdigest()[:DIGEST_LENGTH]}"
    room = profile.namespace_limit - len(ENCODED_PREFIX) - len(HASH_MARK) - len(digest)
    return f"{ENCODED_PREFIX}{HASH_MARK}{readable[:room]}{digest}"


def proxy(server: str, profile: PiProfile) -> str:
    return PROXY_PREFIX + namespace(server, profile)


def direct_prefix(server: str, style: object) -> str:
    """What stands before a direct tool's name, its `_` included, by `toolPrefix`."""
    if style == "none":
        return ""
    name = server.removesuffix("-mcp") if style == "short" else server
    safe = OUTSIDE_PREFIX.sub(lambda found: f"_{ord(found[0]):x}_", name)
    return f"mcp__{safe}_" if style == "mcp" else f"{safe}_"


def direct_name(server: str, tool: str, style: object, profile: PiProfile) -> str:
    """A direct tool's name: dots become `_`, everything else and any length is sent as it is."""
    prefix, name = direct_prefix(server, style), tool.replace(".", "_")
    return name if profile.direct_prefix_once and prefix and name.startswith(prefix) else prefix + name


def direct_tools(server: LoadedServer | None, tools: Sequence[str]) -> tuple[str, ...]:
    """Which of a server's tools are offered directly; with any, the server has no proxy."""
    declared = None if server is None else server.raw.get("directTools", server.settings.get("directTools"))
    if declared is True:
        return tuple(dict.fromkeys(tools))
    return tuple(tool for tool in dict.fromkeys(tools) if isinstance(declared, list) and tool in declared)


def allowed_tools(server: LoadedServer | None, tools: Sequence[str]) -> tuple[str, ...]:
    """Which of a server's tools there are at all, by `includeTools` and `excludeTools`, which name them exactly."""
    raw = {} if server is None else server.raw
    wanted, unwanted = raw.get("includeTools"), raw.get("excludeTools")
    return tuple(
        tool
        for tool in tools
        if (not isinstance(wanted, list) or tool in wanted) and not (isinstance(unwanted, list) and tool in unwanted)
    )


def prefix_style(server: LoadedServer | None) -> object:
    return "server" if server is None else server.raw.get("toolPrefix", server.settings.get("toolPrefix", "server"))


def offered(
    tools: Mapping[str, Sequence[str]], profile: PiProfile, entries: Mapping[str, LoadedServer]
) -> tuple[Names, Dropped]:
    """The names by (server, tool) and the tools that are left out.

    All tools behind a proxy share its name. Proxies that meet are all skipped. `entries` tells which servers
    offer tools directly; a server that is not in it has a proxy.
    """
    direct: Names = {}
    proxied: Names = {}
    for server, every in tools.items():
        entry = entries.get(server)
        listed = allowed_tools(entry, every)
        chosen = direct_tools(entry, listed)
        style = prefix_style(entry)
        direct |= {(server, tool): direct_name(server, tool, style, profile) for tool in chosen}
        if not chosen:
            proxied |= {(server, tool): proxy(server, profile) for tool in dict.fromkeys(listed)}
    kept = {**proxies_apart(proxied), **directs_apart(direct, profile)}
    return kept, tuple(tool for tool in {**proxied, **direct} if tool not in kept)


def proxies_apart(names: Names) -> Names:
    """Proxies without those that two servers share."""
    servers = Counter(name for _, name in {(server, name) for (server, _), name in names.items()})
    return {tool: name for tool, name in names.items() if servers[name] == 1}


def meetings(names: Mapping[str, str]) -> list[str]:
    """What is said of proxies that meet; `names` are by server."""
    by_name: dict[str, list[str]] = {}
    for server, name in names.items():
        by_name.setdefault(name, []).append(f'"{server}"')
    return [
        f'MCP: skipping namespace proxy "{name}" because servers {", ".join(sorted(servers))} '
        "normalize to the same name"
        for name, servers in by_name.items()
        if len(servers) > 1
    ]


def directs_apart(names: Names, profile: PiProfile) -> Names:
    """Direct tools without equal names: by version all of them go, or the first stays."""
    names = {tool: name for tool, name in names.items() if name not in OWN_TOOLS}
    counted = Counter(names.values())
    if profile.direct_duplicates_all_dropped:
        return {tool: name for tool, name in names.items() if counted[name] == 1}
    first: dict[str, tuple[str, str]] = {}
    for tool, name in names.items():
        first.setdefault(name, tool)
    return {tool: name for name, tool in first.items()}
