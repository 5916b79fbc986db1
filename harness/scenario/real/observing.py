"""What really happened in a run of a real program, as the events that a fake emits: from its own words, from what it
asked its model, and from what our servers received. What nothing tells is told of nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fake_runtimes.plan import Plan, ToolCall
from fake_servers.models import ToolResult
from harness.canary.settings import of_servers

CONNECTING, CONNECTED = "server.connecting", "server.connected"
FAILED, NEEDS_AUTH = "server.failed", "server.needs_auth"
MODEL_REQUEST, TOOL_CALL, RUN_ENDED = "model.request", "tool.call", "run.ended"
VERDICTS = (CONNECTED, FAILED, NEEDS_AUTH)
IDENTITY = re.compile(r"^[a-z]+_[0-9a-f]{24}(\d+)$")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Happened(NamedTuple):
    """An event of the runtime."""

    name: str
    details: Mapping[str, Any]


class Asked(NamedTuple):
    """A request to the model: its number from 1, what it offers, and what calls gave that was not told before."""

    number: int
    tools: Sequence[str]
    results: Sequence[ToolResult] = ()


class Around(NamedTuple):
    """What an observer may know of a run besides: the plan of its model, the servers of its configuration, the names
    of their tools by (server, tool), and whether a server has been asked for its tools in this run.
    """

    plan: Plan
    servers: tuple[str, ...] = ()
    names: Mapping[tuple[str, str], str] = {}
    reached: Callable[[str], bool] = bool


class Observer:
    """One run. Each method takes what was seen and answers what that means, in the order in which it happened."""

    family = ""

    def __init__(self, around: Around) -> None:
        self.around = around
        self.states: dict[str, str] = {}

    def printed(self, stream: str, line: str) -> list[Happened]:  # noqa: ARG002 - some print nothing that counts
        """A line of its output."""
        return []

    def awaits(self, asked: Asked) -> bool:  # noqa: ARG002
        """Whether something is still to come that was printed before this request was sent."""
        return False

    def logged(self, server: str, lines: Iterable[str]) -> list[Happened]:  # noqa: ARG002
        """New lines of its log of one server; only some keep one."""
        return []

    def offered(self, asked: Asked) -> list[Happened]:  # noqa: ARG002
        """What a request says of the servers."""
        return []

    def called(self, call: ToolCall, result: ToolResult) -> Mapping[str, Any]:  # noqa: ARG002
        """Whether a call came through, and the text of what it gave."""
        return {"ok": result.is_error is False, "text": result.text}

    def asked(self, asked: Asked) -> list[Happened]:
        """A request to the model. One that no turn of the plan answers only ends the run, and is not told."""
        turns = self.around.plan.turns
        happened: list[Happened] = []
        for call, result in self.answered(asked):
            details = {"server": call.server, "tool": call.tool, **self.called(call, result)}
            happened += self.vouched(call, details)
            happened.append(Happened(TOOL_CALL, details))
        happened += self.offered(asked)
        if asked.number <= len(turns):
            told = {"number": asked.number, "tools": of_servers(self.family, asked.tools), **self.more(asked)}
            happened.append(Happened(MODEL_REQUEST, told))
        return happened

    def answered(self, asked: Asked) -> list[tuple[ToolCall, ToolResult]]:
        """The calls of the turn before, with what they gave."""
        turns = self.around.plan.turns
        calls = turns[asked.number - 2].calls if 2 <= asked.number <= len(turns) + 1 else ()
        placed = ((place_of(result), result) for result in asked.results)
        return [(calls[place], result) for place, result in placed if place is not None and place < len(calls)]

    def more(self, asked: Asked) -> Mapping[str, Any]:  # noqa: ARG002
        """What else is known of a request."""
        return {}

    def vouched(self, call: ToolCall, details: Mapping[str, Any]) -> list[Happened]:
        """A call that came through proves that its server is there."""
        if details["ok"] and self.states.get(call.server) != CONNECTED:
            return self.became(CONNECTED, call.server)
        return []

    def became(self, name: str, server: str, **details: Any) -> list[Happened]:
        """A server's new state; the same state again is no news."""
        if server not in self.around.servers or self.states.get(server) == name:
            return []
        self.states[server] = name
        return [Happened(name, {"server": server, **details})]

    @property
    def untold(self) -> tuple[str, ...]:
        """The servers of which nothing tells what became of them."""
        return tuple(name for name in self.around.servers if self.states.get(name) not in VERDICTS)


def place_of(result: ToolResult) -> int | None:
    """Which call of its turn gave a result, from 0; None for one that is not our model's."""
    found = IDENTITY.match(result.id)
    return int(found[1]) if found else None


def json_line(line: str) -> Mapping[str, Any]:
    """The object in a line; empty for any other."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def plain(line: str) -> str:
    """A line without colours."""
    return COLOUR.sub("", line)
