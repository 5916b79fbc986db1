"""What Pi's adapter says: to stderr at startup, and to the model as the result of a call. Measured words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

STILL_STARTING = "MCP initialization is still in progress. Try again shortly."
REQUEST_TIMED_OUT = "Request timed out"
CALL_FAILED = "Failed to call tool: "
ADVICE = 'mcp({ server: "name" }) to list tools, mcp({ search: "..." }) to search'
STDERR_LINES = 3
STDERR_TAIL_BYTES = 8 * 1024
NO_MCP = "this URL does not appear to speak MCP"
UNDETERMINED = "MCP endpoint shape could not be determined"
SHAPES = {
    202: UNDETERMINED,
    401: f"authentication may be required; {UNDETERMINED}",
    503: f"server is temporarily unavailable; {UNDETERMINED}",
}


class Said(NamedTuple):
    """The result of a call: `error` is the adapter's own code ("" when the tool answered).

    Only a failed call marks the result as an error for the model.
    """

    text: str
    error: str = ""
    details: Mapping[str, Any] = {}

    @property
    def is_error(self) -> bool:
        return self.error in ("call_failed", "tool_error", "unknown_tool", "invalid_arguments")


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
    tail = "".join(f"{line}\n" for line in lines).encode()[-STDERR_TAIL_BYTES:].decode(errors="ignore")
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
    return f"endpoint returned {kind} ({status}) — {SHAPES.get(status, NO_MCP)}"


def call_failed(message: str, details: Mapping[str, Any], schema: Any) -> Said:
    """A call that the server did not answer well."""
    text = f"{CALL_FAILED}{message}{expected(schema)}"
    return Said(text, "call_failed", {"mode": "call", "error": "call_failed", **details, "message": message})


def tool_error(text: str, details: Mapping[str, Any], schema: Any) -> Said:
    """What a tool says that failed; without a schema only that."""
    said = f"Error: {text or 'Tool execution failed'}{'' if schema is None else expected(schema)}"
    return Said(said, "tool_error", {"mode": "call", "error": "tool_error", **details})


def expected(schema: Any) -> str:
    """What a tool takes, as the adapter tells it: its parameters, one a line, where they are no tables themselves."""
    return f"\n\nExpected parameters:\n{parameters(schema)}"


def parameters(schema: Any) -> str:
    """The lines of a schema."""
    if not isinstance(schema, dict):
        return "  (no schema)"
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict):
        return f"  ({schema['type']})" if isinstance(schema.get("type"), str) else "  (complex schema)"
    listed = schema.get("required")
    required = listed if isinstance(listed, list) else []
    lines = [
        f"  {name}{kind_of(member)}{' *required*' if name in required else ''}" for name, member in properties.items()
    ]
    return "\n".join(lines) or "  (no parameters)"


def kind_of(member: Any) -> str:
    """The type of one parameter in parentheses, where it has one."""
    kind = member.get("type") if isinstance(member, dict) else None
    return f" ({kind})" if isinstance(kind, str) else ""


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
    text = f'Server "{server}" is disabled. Run /mcp enable {server} and /reload to enable it.'
    return Said(text, "server_disabled", {"error": "server_disabled", "server": server})


def no_such_server(server: str, code: str = "server_not_found") -> Said:
    return Said(f'Server "{server}" not found. Use mcp({{}}) to see available servers.', code, {"error": code})


def no_such_tool(tool: str, server: str, tools: Sequence[str]) -> Said:
    """The gateway knows no such tool of the server; `tools` are the names by which it lists those that there are."""
    has = f'Server "{server}" has: {", ".join(tools)}' if tools else f'Server "{server}" has no tools'
    return Said(f'Tool "{tool}" not found. {has}', "tool_not_found", {"error": "tool_not_found"})


def not_offered(name: str) -> Said:
    """Pi itself, of a name that is not among the tools it offered."""
    return Said(f"Tool {name} not found", "unknown_tool")


def no_table(name: str, args: Mapping[str, Any], fault: str) -> Said:
    """Pi itself, of a call of a proxy whose arguments are a text."""
    received = json.dumps(args, indent=2, ensure_ascii=False)
    text = f'Validation failed for tool "{name}":\n  - args: {fault}\n\nReceived arguments:\n{received}'
    return Said(text, "invalid_arguments")


def tools_text(server: str, tools: Sequence[str], state: str) -> Said:
    """The gateway's answer to `connect`, and to who asks for a server's tools, by the names that they have there."""
    if not tools:
        nothing = {"connected": f'Server "{server}" has no tools.',
                   "cached": f'Server "{server}" has no cached tools (not connected).'}  # fmt: skip
        unknown = f'Server "{server}" is configured but not connected. '
        advice = f'Use mcp({{ connect: "{server}" }}) or /mcp reconnect {server} to retry.'
        return Said(nothing.get(state, unknown + advice), "" if state in nothing else "not_connected")
    notes = {
        "connected": "",
        "needs-auth": f' (needs auth — run mcp({{ action: "auth-start", server: "{server}" }}))',
    }
    lazy = f' (lazy: tools from cache, not connected yet — mcp({{ connect: "{server}" }}) to connect)'
    listed = "".join(f"\n- {tool}" for tool in tools)
    return Said(f"{server} ({counted(len(tools))}{notes.get(state, lazy)}):\n{listed}")


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
    return Said("\n".join((first, "", *map(status_line, servers), *((("", ADVICE)) if servers else ()))), "", details)


def counted(tools: int) -> str:
    """A number of tools, one of them too, as the adapter writes it."""
    return f"{tools} tools"


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
