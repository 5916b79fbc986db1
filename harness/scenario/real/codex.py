"""What Codex tells: a line on stderr of a server that failed (only newer versions name it), and what came of calls.

That a server is there shows in what the model is offered. Of one that is left out an older version says nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from fake_runtimes.codex.names import namespace, server_suffix
from fake_runtimes.plan import ToolCall
from fake_servers.models import ToolResult
from harness.scenario.real.observing import CONNECTED, FAILED, NEEDS_AUTH, Asked, Happened, Observer, json_line, plain

NOT_STARTED = re.compile(r'MCP server startup failed server_name="(?P<name>[^"]+)" error=(?P<text>.*)')
WANTS_LOGIN = ("Auth required", "not logged in")
CALL = "mcp_tool_call"


class Codex(Observer):
    """One run of `codex exec --json`."""

    family = "codex"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.calls: list[Mapping[str, Any]] = []

    def printed(self, stream: str, line: str) -> list[Happened]:
        """A server that failed is told on stderr, a call that is over on stdout."""
        if stream == "stdout":
            told = json_line(line)
            item = told.get("item") if told.get("type") == "item.completed" else None
            if isinstance(item, dict) and item.get("type") == CALL:
                self.calls.append(item)
            return []
        found = NOT_STARTED.search(plain(line))
        if found is None:
            return []
        name = NEEDS_AUTH if any(word in found["text"] for word in WANTS_LOGIN) else FAILED
        return self.became(name, found["name"], text=found["text"].strip())

    def awaits(self, asked: Asked) -> bool:
        """What it prints of the calls."""
        printed = Counter((str(item.get("server")), str(item.get("tool"))) for item in self.calls)
        return bool(Counter((call.server, call.tool) for call, _ in self.answered(asked)) - printed)

    def offered(self, asked: Asked) -> list[Happened]:
        """A server is there whose namespace is; one that several could have tells of none of them."""
        spaces = {tool.partition("/")[0] for tool in asked.tools if "/" in tool}
        shared = Counter(map(namespace, self.around.servers))
        happened: list[Happened] = []
        for server in self.around.servers:
            own = namespace(server)
            if own + server_suffix(server) in spaces or (own in spaces and shared[own] == 1):
                happened += self.became(CONNECTED, server)
        return happened

    def called(self, call: ToolCall, result: ToolResult) -> Mapping[str, Any]:
        """What it prints of a call says whether that came through; of what is no tool it prints nothing."""
        for item in self.calls:
            if (item.get("server"), item.get("tool")) == (call.server, call.tool):
                self.calls.remove(item)
                return outcome(item)
        return {"ok": False, "text": result.text}


def outcome(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an item of a call says."""
    given, error = item.get("result") or {}, item.get("error") or {}
    text = "\n".join(str(block.get("text", "")) for block in given.get("content", ()))
    return {"ok": item.get("status") == "completed", "text": text or str(error.get("message", ""))}
