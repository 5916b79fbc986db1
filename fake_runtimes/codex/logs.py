"""Which lines Codex's own log puts on stderr: RUST_LOG turns it up, at the default level it is almost silent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fake_runtimes.codex.texts import NotStarted
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.profile import CodexProfile

VARIABLE = "RUST_LOG"
LEVELS = ("off", "error", "warn", "info", "debug", "trace")
DEFAULT_LEVEL = "error"
TRANSPORT_TARGET = "rmcp::transport::worker"
CLIENT_TARGET = "codex_mcp::rmcp_client"
RENEWAL_TARGET = "codex_rmcp_client::oauth::refresh_transaction"
LAUNCHER_TARGET = "codex_rmcp_client::stdio_server_launcher"


def shown(variables: Mapping[str, str], target: str, level: str) -> bool:
    """Whether a line of that target and level is written. The longest matching target decides."""
    found, length = DEFAULT_LEVEL, -1
    for directive in variables.get(VARIABLE, "").split(","):
        name, equals, named_level = directive.strip().partition("=")
        scope, wanted = (name, named_level) if equals else ("", name)
        if wanted.lower() in LEVELS and len(scope) > length and f"{target}::".startswith(f"{scope}::" if scope else ""):
            found, length = wanted.lower(), len(scope)
    return LEVELS.index(level) <= LEVELS.index(found)


def server_lines(server: LoadedServer, stderr: Sequence[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """What a server printed, with its command and without its name; nothing by default."""
    if not stderr or not shown(variables, LAUNCHER_TARGET, "info"):
        return ()
    return tuple(f"INFO {LAUNCHER_TARGET}: MCP server stderr ({server.command}): {line}" for line in stderr)


def failure_lines(
    server: LoadedServer, failed: NotStarted, variables: Mapping[str, str], profile: CodexProfile
) -> tuple[str, ...]:
    """What a version says of a failed start as it happens; by default no more than that a token was not renewed."""
    if failed.kind == "renewal" and profile.renewal_failure_text and shown(variables, RENEWAL_TARGET, "error"):
        return (f"ERROR {RENEWAL_TARGET}: error={failed.cause}",)
    if not profile.names_failed_servers or not shown(variables, CLIENT_TARGET, "warn"):
        return ()
    told = f'MCP server startup failed server_name="{server.name}" error={failed.cause}'
    return (f"WARN mcp.request: {CLIENT_TARGET}: {told}",)


def shutdown_lines(failures: Sequence[NotStarted], variables: Mapping[str, str]) -> tuple[str, ...]:
    """What is said at the end of the servers that had not started; nothing by default."""
    if not failures or not shown(variables, CLIENT_TARGET, "warn"):
        return ()
    told = f"WARN {CLIENT_TARGET}: failed to initialize MCP client during shutdown: MCP startup failed: "
    return tuple(f"{told}{failed.cause}" for failed in failures)
