"""What Pi's adapter offers to the model: the gateway, a proxy for each server, tools by themselves."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fake_servers.mcp.behaviour import Behaviour, Tool
from fake_servers.mcp.http import HttpServer
from harness.canary.claims import Claim, probe
from harness.canary.probes.pi.ground import CACHE, configure, session, told
from harness.canary.trial import Trial

LONG = "s" * 58
PROXIES: Mapping[str, Sequence[str]] = {
    "plain": ("plain",),
    "capitals": ("Upper_Case9",),
    "hyphens": ("my-srv",),
    "dots": ("dotted.srv_x-y",),
    "letters": ("ünï日",),
    "blanks": ("a b",),
    "slash": ("@s/t",),
    "digit": ("1st",),
    "own-prefix": ("mcp__own",),
    "encoded": ("_mcpns_own",),
    "long": (LONG,),
    "longer": (f"{LONG}tt",),
    "longer-hyphens": (f"x-{LONG}",),
    "longer-dots": (f"o.{LONG}",),
    "twins": ("twin-a", "twin_a"),
}
"""Servers that offer nothing directly, by what is odd about their names."""
VERSIONED = ("namespace_whole_name_in_hex",)
READ_BY: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("dots", "letters", "blanks", "slash", "encoded"), VERSIONED),
    **dict.fromkeys(("long", "longer", "longer-hyphens"), ("namespace_limit",)),
    "longer-dots": ("namespace_limit", *VERSIONED),
}


def pinned_names(servers: Iterable[str]) -> list[str]:
    """The names of proxies as the reference reads them: those of the pinned version, none for two that meet."""
    found = []
    for name in servers:
        flat = name.replace("-", "_")
        plain = re.fullmatch("[A-Za-z0-9_]+", flat) and not flat.startswith("_mcpns_")
        found.append("mcp__" + (flat if plain else "_mcpns_" + "_".join(f"{ord(each):x}" for each in flat)))
    return sorted(found) if len(set(found)) == len(found) else []


DERIVED: Mapping[str, Mapping[str, Any]] = {
    "dots": {"namespace_whole_name_in_hex": lambda seen: seen == pinned_names(PROXIES["dots"])},
    "longer": {"namespace_limit": lambda seen: len(seen[0].removeprefix("mcp__")) if "_h_" in seen[0] else 0},
}
"""The lines of a profile that follow from one of these."""


@probe(
    *(
        Claim(
            f"pi.proxy.{name}",
            f"under which name the proxy of `{', '.join(servers)}` is offered",
            assumes=pinned_names(servers),
            relied_on=("status-pi-namespace-name", *(("status-pi-twins-report-nothing",) if name == "twins" else ())),
            affects="servers with such names",
            reads=READ_BY.get(name, ()),
            derive=DERIVED.get(name, {}),
        )
        for name, servers in PROXIES.items()
    ),
    Claim("pi.offer.always", "the gateway and scripts are always offered", assumes=["mcp", "mcpScript"]),
    Claim("pi.offer.nothing", "a server without a tool has no proxy", affects="servers without tools"),
    Claim("pi.stderr.twins", "two proxies that meet are told of", affects="servers whose names meet"),
    seconds=3.0,
)
def proxies(trial: Trial) -> Mapping[str, Any]:
    """All servers in one session; then one alone that has no tools."""
    names = [name for servers in PROXIES.values() for name in servers]
    with trial.serving(full=HttpServer(), none=HttpServer(Behaviour(tools=()))) as urls, trial.modelled():
        configure(trial, {name: {"url": urls["full"]} for name in names})
        run = session(trial)
        trial.place(CACHE).unlink(missing_ok=True)
        configure(trial, {"none": {"url": urls["none"]}})
        session(trial)
        offered, nothing = [*trial.offered(), [], []][:2]
    return {
        **{
            f"pi.proxy.{name}": [each for each in offered if any(is_of(each, server) for server in servers)]
            for name, servers in PROXIES.items()
        },
        "pi.offer.always": [name for name in offered if not name.startswith("mcp__")],
        "pi.offer.nothing": nothing,
        "pi.stderr.twins": told(trial, run),
    }


def is_of(name: str, server: str) -> bool:
    """Whether a name is that of a server's proxy, in one of the forms that are known."""
    flat = server.replace("-", "_")
    whole = "_mcpns_" + "_".join(f"{ord(each):x}" for each in flat)
    odd = "_mcpns_" + re.sub("[^A-Za-z0-9_]", lambda each: f"_{ord(each[0]):x}_", flat.replace("_", "__"))
    cut = name.endswith(hashlib.sha256(server.encode()).hexdigest()[:16])
    return cut or name.removeprefix("mcp__") in (flat, whole, odd)


TOOLS = ("echo", "dup.x", "dup_x", "a b", "ü", "dir_own", "t" * 70)
DIRECT: Mapping[str, tuple[str, Mapping[str, Any], tuple[str, ...]]] = {
    "all": ("dir", {}, TOOLS),
    "dotted-server": ("dot.srv", {}, ("echo",)),
    "hyphened-server": ("hy-srv", {}, ("echo",)),
    "short": ("cut-mcp", {"toolPrefix": "short"}, ("echo",)),
    "mcp": ("sty-le", {"toolPrefix": "mcp"}, ("echo",)),
    "none": ("bare", {"toolPrefix": "none"}, ("only", "same")),
    "some": ("some", {"directTools": ["chosen", "missing"]}, ("chosen", "other")),
    "no-list": ("nolist", {"directTools": []}, ("echo",)),
    "include": ("incl", {"includeTools": ["kept"]}, ("kept", "other")),
    "exclude": ("excl", {"excludeTools": ["other"]}, ("kept", "other")),
}
"""Servers that offer tools directly: the name, what the entry says besides, the tools."""
MEETING = ("rival", {"toolPrefix": "none"}, ("same", "read"))
"""A server with the name of another's tool, and of one of Pi's own."""


def direct_claim(name: str, says: str, reads: tuple[str, ...] = (), **derive: Any) -> Claim:
    """A claim about names of direct tools."""
    return Claim(f"pi.direct.{name}", says, affects="servers with `directTools`", reads=reads, derive=derive)


@probe(
    direct_claim("all", "how tools of a server are called when it offers them directly",
                 ("direct_prefix_once", "direct_duplicates_all_dropped"),
                 direct_prefix_once=lambda seen: "dir_dir_own" not in seen,
                 direct_duplicates_all_dropped=lambda seen: "dir_dup_x" not in seen),
    *(direct_claim(name, f"the same with {settings or server}") for name, (server, settings, _) in DIRECT.items()
      if name not in ("all", "none")),
    direct_claim("none", "the same with no prefix, where another server has a tool of that name",
                 ("direct_duplicates_all_dropped",)),
    direct_claim("variable", "MCP_DIRECT_TOOLS goes over the files, by server and by tool"),
    direct_claim("variable-none", "MCP_DIRECT_TOOLS=__none__ leaves proxies alone"),
    direct_claim("no-gateway", "`disableProxyTool` takes the gateway away where tools are offered directly"),
    direct_claim("no-scripts", "`scriptMode` false takes scripts away"),
    seconds=6.0,
)  # fmt: skip
def direct_tools(trial: Trial) -> Mapping[str, Any]:
    """All servers in one session, then three with other settings."""
    entries = {**DIRECT, "rival": MEETING}
    servers = {
        f"s{number}": HttpServer(Behaviour(tools=tuple(map(Tool, tools))))
        for number, (_, _, tools) in enumerate(entries.values())
    }
    with trial.serving(**servers) as urls, trial.modelled():
        whole = {
            name: {"url": urls[f"s{number}"], "directTools": True, "lifecycle": "eager", **settings}
            for number, (name, settings, _) in enumerate(entries.values())
        }
        configure(trial, whole)
        session(trial)
        session(trial, env={"MCP_DIRECT_TOOLS": "dot.srv, some/other"})
        session(trial, env={"MCP_DIRECT_TOOLS": "__none__"})
        configure(trial, {"dir": whole["dir"]}, disableProxyTool=True, scriptMode=False)
        session(trial)
        first, variable, none, alone = [*trial.offered(), *[[]] * 4][:4]
    prefixes = {"all": "dir_", "dotted-server": "dot", "hyphened-server": "hy", "short": "cut", "mcp": "mcp__sty",
                "some": "some", "no-list": "nolist", "include": "incl", "exclude": "excl"}  # fmt: skip
    return {
        **{f"pi.direct.{name}": about(first, prefix) for name, prefix in prefixes.items()},
        "pi.direct.none": [name for name in first if name in ("only", "same", "read")],
        "pi.direct.variable": [name for name in variable if not name.startswith("mcp")],
        "pi.direct.variable-none": [name for name in none if not name.startswith("mcp")],
        "pi.direct.no-gateway": "mcp" in alone,
        "pi.direct.no-scripts": "mcpScript" in alone,
    }


def about(offered: Iterable[str], prefix: str) -> list[str]:
    """The names that begin so, those of proxies too; long ones are cut."""
    found = [name for name in offered if name.startswith((prefix, f"mcp__{prefix}"))]
    return [re.sub("t{9,}", lambda each: f"t times {len(each[0])}", name) for name in found]
