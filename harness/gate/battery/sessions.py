"""One session with a party of servers, prepared once; every spawn of it starts from these bytes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from fake_runtimes import runtimes as fakes
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.plan import Plan, ToolCall, Turn
from harness.gate.spawn import Runtime
from harness.preparation import PRODUCTION, Written, written_config
from harness.reference.catalog.catalog import read_catalog
from harness.reference.prepare.failures import PreparationError
from harness.reference.prepare.spawn import SpawnEnvironment, claude_spawn, codex_spawn, pi_spawn
from harness.reference.secrets.placeholders import MissingVariableError
from harness.reference.selection.zimmer import Instance
from harness.scenario.model import CLONES, CODEX_HOME, HOME
from harness.scenario.sessions import PROMPT, argv

SESSION = "S"
CLONE = f"{CLONES}/{SESSION}"
PARENT: Mapping[str, str] = {"HOME": HOME, "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
FILE_MODE = 0o644
TOOL = "echo"
"""The one tool that every stand-in has."""

SECOND_REQUEST_SECONDS = 1.0
LISTING_SECONDS = 60.0
ALLOWANCE_SECONDS = 60.0
"""For what is done besides the budgets: an npx resolver that is given up, a queue."""


class Session(NamedTuple):
    """What all spawns of a party on one runtime share.

    `servers` are those that the runtime reads from the written file; `names` its own name for each one's tool.
    `catalog` and `secrets` are what it was prepared from. `patience_seconds` is when every budget is over.
    """

    runtime: Runtime
    catalog: Mapping[str, Any]
    secrets: Mapping[str, str]
    servers: Mapping[str, LoadedServer]
    names: Mapping[str, str]
    files: Mapping[str, tuple[bytes, int]]
    directories: tuple[str, ...]
    variables: Mapping[str, str]
    argv: tuple[str, ...]
    patience_seconds: float

    @property
    def plan(self) -> Plan:
        """Three model requests: at once, soon after, and when every budget is over; then each tool is called."""
        return Plan(
            (
                Turn(seconds=SECOND_REQUEST_SECONDS),
                Turn(seconds=self.patience_seconds),
                Turn(tuple(ToolCall(name, TOOL) for name in self.servers), seconds=0.0),
            )
        )


def prepare_session(
    runtime: Runtime, catalog: Mapping[str, Any], secrets: Mapping[str, str], instance: Instance = PRODUCTION
) -> Session | None:
    """Prepare a session with all entries of `catalog`; None where it cannot be prepared or the run would not begin."""
    try:
        written = written_config(
            runtime.family, tuple(catalog), catalog, values=secrets, clone=CLONE, instance=instance
        )
    except (PreparationError, MissingVariableError):
        return None
    start = environment(runtime, catalog, written)
    loaded = fakes.read(runtime.profile, written.text, start.variables)
    if loaded.run_killed:
        return None
    servers = {server.name: server for server in loaded.servers}
    writes = {
        f"{CLONE}/{write.path}": (write.text.encode(), write.mode or FILE_MODE) for write in written.prepared.writes
    }
    return Session(
        runtime,
        catalog,
        secrets,
        servers,
        tool_names(runtime, loaded.servers),
        writes,
        (HOME, CLONE, CODEX_HOME, *start.directories),
        start.variables,
        (*argv(runtime), PROMPT),
        patience(runtime, loaded.servers, start.variables),
    )


def environment(runtime: Runtime, catalog: Mapping[str, Any], written: Written) -> SpawnEnvironment:
    """What the reference gives the runtime's process."""
    if runtime.family == "claude":
        known = read_catalog(catalog)
        return claude_spawn(PARENT, {}, CLONE, known, mcp_json=written.text, has_mcp=bool(written.servers))
    return codex_spawn(PARENT, {}, HOME) if runtime.family == "codex" else pi_spawn(PARENT, {})


def tool_names(runtime: Runtime, servers: Collection[LoadedServer]) -> dict[str, str]:
    """The runtime's name of each server's tool."""
    offered = fakes.offered(runtime.profile, {server.name: (TOOL,) for server in servers}, tuple(servers))
    return {server: name for (server, _), name in offered.names.items()}


def patience(runtime: Runtime, servers: Sequence[LoadedServer], variables: Mapping[str, str]) -> float:
    """After how long every attempt has ended: a budget for the handshake, one for the list, and something on top."""
    budgets = [fakes.start_budget(runtime.profile, server, variables).attempt_seconds for server in servers]
    return max(budgets, default=0.0) * 2 + LISTING_SECONDS + ALLOWANCE_SECONDS
