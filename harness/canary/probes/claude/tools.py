"""Under which names tools are offered to the model, and which are lost where names collide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fake_servers.mcp.behaviour import Behaviour, Tool
from harness.canary.claims import Claim, probe
from harness.canary.probes.claude.credentials import allow
from harness.canary.probes.claude.ground import SETTLED, init, project, session, statuses
from harness.canary.probes.doors import Doors
from harness.canary.trial import Trial

LONG = "long_" + "x" * 65
ODD: Mapping[str, tuple[str, ...]] = {
    "with.dot": ("echo",),
    "unï": ("echo",),
    "@org/x": ("echo",),
    "a__b": ("echo",),
    "-lead": ("echo",),
    "emoji😀": ("echo",),
    "one": ("with.dot", "with space", "ünï", "UPPER-case_1", LONG),
}
NAMES = [
    "mcp__-lead__echo",
    "mcp___org_x__echo",
    "mcp__a__b__echo",
    "mcp__emoji____echo",
    f"mcp__one__{LONG}",
    "mcp__one__UPPER-case_1",
    "mcp__one___n_",
    "mcp__one__with_dot",
    "mcp__one__with_space",
    "mcp__un___echo",
    "mcp__with_dot__echo",
]


def offering(names: tuple[str, ...]) -> Behaviour:
    """A server with these tools."""
    return Behaviour(tools=tuple(Tool(name) for name in names))


@probe(
    Claim(
        "claude.tools.names",
        "a tool is mcp__SERVER__TOOL, everything but ASCII letters, digits, _ and - as _, however long it is",
        assumes=sorted(NAMES),
        relied_on=("translate-server-name-pattern",),
        affects="names of tools, and rules that allow them",
    ),
    Claim(
        "claude.tools.init",
        "the first line of a session lists the same names",
        assumes=sorted(NAMES),
        affects="whoever reads the first line",
    ),
    seconds=2.0,
)
def tool_names(trial: Trial) -> Mapping[str, Any]:
    """Odd names of servers and of tools."""
    doors = Doors({f"d{number}": offering(names) for number, names in enumerate(ODD.values())})
    with trial.serving(doors=doors) as urls, trial.modelled():
        base = urls["doors"].removesuffix("/mcp")
        project(trial, {name: {"type": "http", "url": f"{base}/d{number}"} for number, name in enumerate(ODD)})
        run = session(trial, env=SETTLED)
        offered = trial.offered()
    return {
        "claude.tools.names": sorted(offered[0]) if offered else None,
        "claude.tools.init": sorted(name for name in init(run).get("tools", []) if name.startswith("mcp__")),
    }


@probe(
    Claim(
        "claude.tools.collision",
        "of tools whose names fall together one is offered, and both servers count as connected",
        assumes={"offered": ["mcp__one__dup_x", "mcp__two_a__echo"], "connected": ["one", "two.a", "two_a"]},
        relied_on=("status-claude-dirname-collision",),
        affects="servers and tools with names that look alike",
    ),
    seconds=2.0,
)
def tool_collisions(trial: Trial) -> Mapping[str, Any]:
    """Two tools of a server, and two servers."""
    servers = {"one": ("dup.x", "dup_x"), "two.a": ("echo",), "two_a": ("echo",)}
    doors = Doors({f"d{number}": offering(names) for number, names in enumerate(servers.values())})
    with trial.serving(doors=doors) as urls, trial.modelled():
        base = urls["doors"].removesuffix("/mcp")
        project(trial, {name: {"type": "http", "url": f"{base}/d{number}"} for number, name in enumerate(servers)})
        allow(trial)
        run = session(trial, env=SETTLED)
        offered = trial.offered()
    connected = sorted(name for name, status in statuses(run).items() if status == "connected")
    return {"claude.tools.collision": {"offered": sorted(offered[0]) if offered else None, "connected": connected}}
