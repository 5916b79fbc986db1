"""What Claude Code tells: in a log of each server, and in the first line of its stream."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from harness.scenario.real.observing import (
    CONNECTED,
    CONNECTING,
    FAILED,
    NEEDS_AUTH,
    Asked,
    Happened,
    Observer,
    json_line,
)

STARTING = "Starting connection with timeout of"
SUCCESS = re.compile(r"Successfully connected \(transport: \S+\) in (\d+)ms")
SKIPPED = "Skipping connection (cached needs-auth)"
UNAUTHORIZED = "Authentication required for "
FAILURES = ("Connection failed", "Connection timed out", "Server rejected the configured Authorization header")


class Claude(Observer):
    """One run of `claude -p` with stream-json."""

    family = "claude"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.first: Mapping[str, str] | None = None

    def printed(self, stream: str, line: str) -> list[Happened]:
        """The first line says how each server stands when the session begins."""
        told = json_line(line) if stream == "stdout" and self.first is None else {}
        if told.get("subtype") == "init":
            self.first = {str(server["name"]): str(server["status"]) for server in told.get("mcp_servers", ())}
        return []

    def awaits(self, asked: Asked) -> bool:
        """The first line is printed before the first request."""
        return asked.number == 1 and self.first is None

    def logged(self, server: str, lines: Iterable[str]) -> list[Happened]:
        """What new lines of a server's log say of it."""
        happened: list[Happened] = []
        for line in lines:
            happened += self._read(server, json_line(line))
        return happened

    def _read(self, server: str, entry: Mapping[str, Any]) -> list[Happened]:
        text, loud = str(entry.get("error") or entry.get("debug") or ""), "error" in entry
        success = SUCCESS.match(text)
        if text.startswith(STARTING):
            return self.became(CONNECTING, server)
        if success:
            return self.became(CONNECTED, server, seconds=int(success[1]) / 1000)
        if text.startswith(SKIPPED):
            return self.became(NEEDS_AUTH, server, text=text, cached=True)
        if text.startswith(UNAUTHORIZED):
            return self.became(NEEDS_AUTH, server, text=text, cached=False)
        if loud and text.startswith(FAILURES):
            return self.became(FAILED, server, text=text)
        return []

    def more(self, asked: Asked) -> Mapping[str, Any]:
        """Who was still connecting is told when the session begins, and never again."""
        if asked.number > 1 or self.first is None:
            return {}
        return {"pending": [name for name, status in self.first.items() if status == "pending"]}
