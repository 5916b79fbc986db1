"""Which tools Codex offers its model, and which of their calls its approvals let through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fake_runtimes.client import Connection
from fake_runtimes.codex.arguments import FULL_ACCESS
from fake_runtimes.codex.names import Name, offered
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.profile import CodexProfile

AUTO, APPROVE, PROMPT = "auto", "approve", "prompt"


def allowed_tools(connection: Connection) -> tuple[str, ...]:
    """A server's tools by their raw names: those that are enabled, without those that are disabled."""
    raw = connection.server.raw
    enabled, disabled = raw.get("enabled_tools"), raw.get("disabled_tools", ())
    return tuple(tool for tool in connection.tools if (enabled is None or tool in enabled) and tool not in disabled)


def offer(connections: Mapping[str, Connection], profile: CodexProfile) -> dict[tuple[str, str], Name]:
    """The names of all tools by server and tool. A server without an allowed tool has no namespace."""
    tools = {name: allowed_tools(connection) for name, connection in connections.items()}
    return offered({name: listed for name, listed in tools.items() if listed}, profile)


def approval_mode(server: LoadedServer, tool: str) -> str:
    """The mode of one tool: its own, else the server's."""
    own = server.raw.get("tools", {}).get(tool, {}).get("approval_mode")
    return str(own or server.raw.get("default_tools_approval_mode", AUTO))


def runs_unasked(server: LoadedServer, tool: Mapping[str, Any], sandbox: str) -> bool:
    """Whether a call runs when nobody can be asked: everything under full access, else by mode and by what it does."""
    if sandbox == FULL_ACCESS:
        return True
    mode = approval_mode(server, str(tool.get("name")))
    annotations = tool.get("annotations")
    read_only = isinstance(annotations, dict) and annotations.get("readOnlyHint") is True
    return mode == APPROVE or (mode != PROMPT and read_only)
