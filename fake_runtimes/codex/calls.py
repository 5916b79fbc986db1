"""One tool call of Codex's model: offered or not, let through or not, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_runtimes.client import CallResult, Connection
from fake_runtimes.codex import bugs
from fake_runtimes.codex.names import Name, namespace
from fake_runtimes.codex.offers import runs_unasked
from fake_runtimes.codex.servers import Servers
from fake_runtimes.codex.startup import call_timeout_text
from fake_runtimes.codex.texts import UNAUTHORIZED
from fake_runtimes.plan import ToolCall
from fake_runtimes.profile import CodexProfile

# The default was not measured; this is the documented one.
TOOL_TIMEOUT_SECONDS = 60.0
# A version that would renew a refused token says so of one that it cannot; it is an answer, not an error.
AUTHENTICATION_REQUIRED = "Authentication required"


class Called(NamedTuple):
    """A call's end. `name` is None for a tool that was not offered: no item tells of such a call."""

    call: ToolCall
    name: Name | None
    ok: bool
    text: str
    answered: bool = False


async def run_call(servers: Servers, offers: Mapping[tuple[str, str], Name], call: ToolCall) -> Called:
    """Run one call. It never raises: a failure is what the model reads."""
    name = offers.get((call.server, call.tool))
    connection = servers.connections.get(call.server)
    if name is None or connection is None:
        return Called(call, None, ok=False, text=f"unsupported call: {namespace(call.server)}__{call.tool}")
    described = next((tool for tool in connection.tool_list if tool.get("name") == call.tool), {})
    if not runs_unasked(connection.server, described, servers.held.sandbox):
        return Called(call, name, ok=False, text=servers.profile.refusal_text)
    seconds = timeout_seconds(connection.server.raw)
    result = await connection.call(call.tool, call.args, seconds)
    if is_refused(result) and await servers.renewed(connection):
        result = await connection.call(call.tool, call.args, seconds)
    if is_refused(result) and not bugs.uses_refresh_token(servers.held.bugs):
        text = f"{failed_call(connection, call.tool)}{bugs.AUTHORIZATION_REQUIRED}"
        return Called(call, name, ok=False, text=text)
    if is_refused(result) and servers.profile.renews_refused:
        return Called(call, name, ok=False, text=AUTHENTICATION_REQUIRED, answered=True)
    text = text_of(connection, call.tool, result, seconds, servers.profile)
    return Called(call, name, result.ok, text, result.kind in (None, "error"))


def is_refused(result: CallResult) -> bool:
    """Whether the server has refused whoever called."""
    return result.failure is not None and result.failure.status == UNAUTHORIZED


def timeout_seconds(raw: Mapping[str, Any]) -> float:
    """How long a call of a server's tool may take."""
    return float(raw.get("tool_timeout_sec", TOOL_TIMEOUT_SECONDS))


def text_of(connection: Connection, tool: str, result: CallResult, seconds: float, profile: CodexProfile) -> str:
    """What the model reads of a call that reached its server."""
    if result.failure is None:
        return result.text
    if result.kind == "timeout":
        return call_timeout_text(connection.server, tool, seconds)
    return f"{failed_call(connection, tool)}{cause_of(result, profile)}"


def failed_call(connection: Connection, tool: str) -> str:
    """The beginning of what is said of a call that failed on its way."""
    return f"tool call error: tool call failed for `{connection.server.name}/{tool}`\n\nCaused by:\n    "


def cause_of(result: CallResult, profile: CodexProfile) -> str:
    """Why a call failed on its way."""
    failure = result.failure
    if failure is None or result.kind in ("exited", "reset"):
        return "Transport closed"
    if failure.status == UNAUTHORIZED:
        return f"Transport send error: Transport [{profile.transport_type}] error: Auth required"
    if result.kind == "protocol" and failure.code is not None:
        return f"Mcp error: {failure.code}: {failure.detail}"
    return f"Transport send error: {failure.status or failure.detail}"
