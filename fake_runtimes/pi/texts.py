"""What Pi's adapter says: to stderr at startup, and to the model as the result of a call. Measured words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

STILL_STARTING = "MCP initialization is still in progress. Try again shortly."
REQUEST_TIMED_OUT = "Request timed out"
CALL_FAILED = "Failed to call tool: "
STDERR_LINES = 3
STDERR_TAIL_BYTES = 8 * 1024
NO_MCP = "this URL does not appear to speak MCP"
UNDETERMINED = "authentication may be required; MCP endpoint shape could not be determined"


class Said(NamedTuple):
    """The result of a call: `error` is the adapter's own code ("" when the tool answered).

    Only a failed call marks the result as an error for the model.
    """

    text: str
    error: str = ""
    details: Mapping[str, Any] = {}

    @property
    def is_error(self) -> bool:
        return self.error in ("call_failed", "tool_error", "unknown_tool")


def startup_line(server: str, failure: str, status: int | None = None) -> str:
    """One server's line on stderr once all have settled; one that connected has none."""
    if status == 503:
        return f"MCP: {server} temporarily unavailable (HTTP 503); retry later"
    return f"MCP: Failed to connect to {server}: {failure}"


def needs_auth(server: str) -> str:
    """The failure of a server that wants a token, whatever became of the one that was stored."""
    return f"OAuth authentication required. Run /mcp-auth {server}."


def with_stderr(failure: str, lines: Sequence[str]) -> str:
    """A failure with the last lines that the child wrote to stderr, in parentheses."""
    tail = "\n".join(lines).encode()[-STDERR_TAIL_BYTES:].decode(errors="ignore")
    said = [line.strip() for line in tail.split("\n") if line.strip()][-STDERR_LINES:]
    return f"{failure} ({' — '.join(said)})" if said else failure


def posting_failed(body: str) -> str:
    return f"Error POSTing to endpoint: {body}"


def stream_refused(status: int) -> str:
    return f"SSE error: Non-200 status code ({status})"


def with_probe(failure: str, shape: str) -> str:
    """A failure over HTTP with what the two unauthenticated probes made of the endpoint."""
    return f"{failure} — probe: {shape}"


def endpoint_shape(status: int, content_type: str | None) -> str:
    """What the adapter makes of the last answer to its probes."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    kind = "HTML" if kind == "text/html" else kind or "an untyped response"
    return f"endpoint returned {kind} ({status}) — {UNDETERMINED if status == 401 else NO_MCP}"


def call_failed(message: str, details: Mapping[str, Any], schema: str) -> Said:
    """A call that the server did not answer well."""
    text = f"{CALL_FAILED}{message}\n\nExpected parameters:\n{schema}"
    return Said(text, "call_failed", {"mode": "call", "error": "call_failed", **details, "message": message})


def still_starting(waited_seconds: float) -> Said:
    """The gateway is used before the slowest server has settled."""
    timeout = {"error": "init_timeout", "timeoutMs": int(waited_seconds * 1000)}
    return Said(STILL_STARTING, "init_timeout", timeout)


def backing_off(server: str, seconds_ago: float) -> Said:
    text = f'Server "{server}" not available (last failed {round(seconds_ago)}s ago)'
    return Said(text, "server_backoff", {"error": "server_backoff", "server": server})


def auth_required(server: str, replaced_by: object = None) -> Said:
    """A call of a server that wants a token; the settings may replace the text."""
    text = (
        f'Server "{server}" requires OAuth authentication. '
        f'Run mcp({{ action: "auth-start", server: "{server}" }}) to get a browser URL, '
        f"or /mcp-auth {server} in an interactive local session."
    )
    if isinstance(replaced_by, str):
        text = replaced_by.replace("${server}", server)
    return Said(text, "auth_required", {"error": "auth_required", "server": server})


def connect_failed(server: str, failure: str) -> Said:
    return Said(f'Failed to connect to "{server}": {failure}', "connect_failed", {"error": "connect_failed"})


def disabled(server: str) -> Said:
    return Said(f'Server "{server}" is disabled', "server_disabled", {"error": "server_disabled", "server": server})


def no_such_server(server: str) -> Said:
    return Said(f'Server "{server}" not found', "server_not_found", {"error": "server_not_found"})


def no_such_tool(tool: str) -> Said:
    """The gateway knows no such tool of the server."""
    return Said(f'Tool "{tool}" not found', "tool_not_found", {"error": "tool_not_found"})


def not_offered(name: str) -> Said:
    """Pi itself, of a name that is not among the tools it offered."""
    return Said(f"Tool {name} not found", "unknown_tool")


def connected_text(server: str, tools: Sequence[str]) -> Said:
    """The gateway's answer to `connect`."""
    listed = "".join(f"\n- {tool}" for tool in tools)
    return Said(f"{server} ({counted(len(tools))}):\n{listed}")


class Status(NamedTuple):
    """One server as the gateway's status shows it: `state` as in its details, `tools` where they are known."""

    name: str
    state: str
    tools: int = 0
    failed_seconds_ago: float = 0.0
    reason: str = ""


def status_text(servers: Sequence[Status]) -> Said:
    """The answer to an empty call of the gateway."""
    connected = [server for server in servers if server.state == "connected"]
    enabled = [server for server in servers if server.state != "disabled"]
    tools = sum(server.tools for server in servers)
    off = len(servers) - len(enabled)
    first = f"MCP: {len(connected)}/{len(enabled)} servers, {counted(tools)}{f' ({off} disabled)' if off else ''}"
    details = {"servers": [{"name": server.name, "status": server.state} for server in servers]}
    return Said("\n".join((first, "", *map(status_line, servers))), "", details)


def counted(tools: int) -> str:
    return f"{tools} tool{'' if tools == 1 else 's'}"


def status_line(server: Status) -> str:
    """One server's line."""
    ago = round(server.failed_seconds_ago)
    return {
        "connected": f"✓ {server.name} ({counted(server.tools)}, legacy notification path)",
        "failed": f"✗ {server.name} (failed {ago}s ago)",
        "needs-auth": f"⚠ {server.name} (needs auth)",
        "cached": f"○ {server.name} ({counted(server.tools)}, cached; not listening)",
        "disabled": f"⊘ {server.name} (disabled)",
    }.get(server.state, f"○ {server.name} (not listening; disconnected)")
