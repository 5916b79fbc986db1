"""What Codex offers its model: namespaces and names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from fake_servers.mcp.behaviour import Behaviour, Tool
from fake_servers.mcp.http import HttpServer
from harness.canary.claims import Claim, probe
from harness.canary.probes.codex.asking import FULL_ACCESS, GRACE_SLOWLY, configure, executed
from harness.canary.trial import Trial

LONG_SERVER = "s" * 60
LONG_TOOLS = ("s" * 52, "t" * 53, "u" * 116, "v" * 117)
TOOLS: Mapping[str, tuple[str, ...]] = {
    "my-srv": ("echo", "dup.x", "dup_x"),
    "my_srv": ("echo",),
    "mcp__own": ("echo",),
    "Plain": ("a-b.c/d", "ü", "under__score", *LONG_TOOLS),
    LONG_SERVER: ("echo", "other"),
    "x.y": ("echo",),
    "filtered": ("kept", "denied", "other"),
}
FILTERS: Mapping[str, Any] = {"enabled_tools": ["kept", "denied"], "disabled_tools": ["denied"]}
CUT = re.compile(r"_[0-9a-f]{12}$")
RELIED_ON = ("status-codex-drift-canary", "status-codex-namespace-field")


def limit(offered: list[str]) -> int:
    """The limit by the first name that was cut: its two parts, and two characters more."""
    cut = [name for name in offered if CUT.search(name)]
    return len(cut[0].replace("/", "")) + 2


def claim(name: str, says: str, reads: tuple[str, ...] = (), relied_on: tuple[str, ...] = RELIED_ON) -> Claim:
    """The claim about one kind of name."""
    derive = {"name_limit": limit} if name == "long-tool" else {}
    parts = {
        "long-tool": tuple(f"a tool of {len(tool)} letters" for tool in LONG_TOOLS),
        "long-server": tuple(f"its tool {tool}" for tool in TOOLS[LONG_SERVER]),
    }
    return Claim(
        f"codex.names.{name}",
        says,
        relied_on=relied_on,
        affects="names of servers and tools",
        reads=reads,
        derive=derive,
        parts=parts.get(name, ()),
    )


@probe(
    claim("plain", "every character but ASCII letters, digits and `_` becomes `_`, and case is kept", ("name_limit",)),
    claim("servers-meet", "two servers whose names become one both get a hash"),
    claim("tools-meet", "two tools whose names become one both get a hash"),
    claim("own-prefix", "a server named `mcp__…` gets no second prefix"),
    claim("long-tool", "a long tool name is cut to a limit", ("name_limit",), ("status-codex-length-budget",)),
    claim("long-server", "a long server name is cut to a limit", ("name_limit",), ("status-codex-length-budget",)),
    claim("dotted-server", "a server with a dot in its name", ("server_name_pattern",), ("status-codex-name-pattern",)),
    claim(
        "filtered",
        "`enabled_tools`, then `disabled_tools`, by the server's own names",
        (),
        ("translate-security-allowlist-mapping",),
    ),
    seconds=1.0,
)
def offered_names(trial: Trial) -> Mapping[str, Any]:
    """One run with all of these servers; what its first request offers."""
    servers = {f"s{number}": HttpServer(with_tools(tools)) for number, tools in enumerate(TOOLS.values())}
    trial.hurry(GRACE_SLOWLY)
    with trial.serving(**servers) as urls, trial.modelled():
        entries = {name: {"url": urls[f"s{number}"], "required": name != "x.y"} for number, name in enumerate(TOOLS)}
        entries["filtered"] |= FILTERS
        configure(trial, entries, **FULL_ACCESS)
        executed(trial)
        offered = (trial.offered() or [[]])[0]
    return {
        "codex.names.plain": starting(offered, "mcp__Plain/", but=("ss", "tt", "uu", "vv")),
        "codex.names.servers-meet": starting(offered, "mcp__my_srv_"),
        "codex.names.tools-meet": [name for name in offered if "/dup_x" in name],
        "codex.names.own-prefix": starting(offered, "mcp__own"),
        "codex.names.long-tool": [name for name in offered if any(f"/{letter * 5}" in name for letter in "stuv")],
        "codex.names.long-server": starting(offered, "mcp__sssss"),
        "codex.names.dotted-server": starting(offered, "mcp__x_y"),
        "codex.names.filtered": starting(offered, "mcp__filtered"),
    }


def with_tools(names: Iterable[str]) -> Behaviour:
    """A server with these tools."""
    return Behaviour(tools=tuple(Tool(name) for name in names))


def starting(offered: Iterable[str], prefix: str, but: tuple[str, ...] = ()) -> list[str]:
    """The names of one beginning."""
    return [
        name for name in offered if name.startswith(prefix) and not name.removeprefix(prefix).startswith(but or "\0")
    ]
