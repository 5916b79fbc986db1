"""What Pi's adapter tells: a line on stderr of each server that did not connect, and what came of each call.

That a server is there shows in its proxy, once our server was asked for its tools: a proxy alone may be of an earlier
run, whose memory the adapter keeps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fake_runtimes.plan import ToolCall
from fake_servers.models import ToolResult
from harness.scenario.real.observing import CONNECTED, FAILED, NEEDS_AUTH, Asked, Happened, Observer, json_line, plain

NOT_CONNECTED = re.compile(r"MCP: Failed to connect to (?P<name>.+?): (?P<text>.*)")
UNAVAILABLE = re.compile(r"MCP: (?P<name>.+) temporarily unavailable \(HTTP \d+\)")
WANTS_LOGIN = "OAuth authentication required"
CALL_ENDED = "tool_execution_end"


class Pi(Observer):
    """One run of `pi -p --mode json` with the adapter."""

    family = "pi"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.calls: dict[str, Mapping[str, Any]] = {}

    def printed(self, stream: str, line: str) -> list[Happened]:
        """A server that failed is told on stderr, a call that is over on stdout."""
        if stream == "stdout":
            told = json_line(line)
            if told.get("type") == CALL_ENDED:
                self.calls[str(told.get("toolCallId"))] = told
            return []
        text = plain(line)
        found = NOT_CONNECTED.match(text) or UNAVAILABLE.match(text)
        if found is None:
            return []
        name = NEEDS_AUTH if found.groupdict().get("text", "").startswith(WANTS_LOGIN) else FAILED
        return self.became(name, found["name"], text=text.strip())

    def awaits(self, asked: Asked) -> bool:
        """What it prints of the calls."""
        return any(result.id not in self.calls for _, result in self.answered(asked))

    def offered(self, asked: Asked) -> list[Happened]:
        """A server is there that is offered, and that was asked for its tools in this run."""
        there = set(asked.tools)
        happened: list[Happened] = []
        for server in self.around.servers:
            names = {name for (of, _), name in self.around.names.items() if of == server}
            if names & there and self.around.reached(server):
                happened += self.became(CONNECTED, server)
        return happened

    def called(self, call: ToolCall, result: ToolResult) -> Mapping[str, Any]:  # noqa: ARG002
        """The adapter has a code of its own for each way in which a call fails."""
        details = (self.calls.get(result.id, {}).get("result") or {}).get("details") or {}
        error, failed = str(details.get("error") or ""), self.calls.get(result.id, {}).get("isError", True)
        return {"ok": not error and not failed, "text": result.text, "error": error}
