"""The lines that `codex exec --json` writes: a thread, a turn, and MCP as tool call items alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fake_runtimes.codex.calls import Called
from fake_runtimes.plan import ToolCall

Line = Mapping[str, Any]
ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False)
TURN_STARTED: Line = {"type": "turn.started"}
TURN_COMPLETED: Line = {
    "type": "turn.completed",
    "usage": {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0},
}


def encode(line: Line) -> str:
    """One line of compact JSON."""
    return ENCODER.encode(line)


def thread_started(thread: str) -> Line:
    """The first line, once the required servers have started."""
    return {"type": "thread.started", "thread_id": thread}


def call_started(number: int, call: ToolCall) -> Line:
    """A call as it begins, under the raw names of server and tool."""
    return {"type": "item.started", "item": item(number, call, "in_progress")}


def call_completed(number: int, called: Called) -> Line:
    """A call's end: completed, or failed with what the model reads."""
    ended = item(number, called.call, "completed" if called.ok else "failed")
    if called.answered:
        ended["result"] = {"content": [{"type": "text", "text": called.text}], "structured_content": None}
    else:
        ended["error"] = {"message": called.text}
    return {"type": "item.completed", "item": ended}


def item(number: int, call: ToolCall, status: str) -> dict[str, Any]:
    """A tool call item."""
    return {
        "id": f"item_{number}",
        "type": "mcp_tool_call",
        "server": call.server,
        "tool": call.tool,
        "arguments": dict(call.args),
        "result": None,
        "error": None,
        "status": status,
    }


def message(number: int, text: str) -> Line:
    """The model's last words."""
    return {"type": "item.completed", "item": {"id": f"item_{number}", "type": "agent_message", "text": text}}
