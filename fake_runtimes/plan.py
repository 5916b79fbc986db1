"""What the model of a headless run does, as data: one turn after the other, each with the tools it calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class ToolCall(NamedTuple):
    """A call of a server's tool by their raw names."""

    server: str
    tool: str
    args: Mapping[str, Any] = {}


class Turn(NamedTuple):
    """One model request: the answer takes `seconds`, then its calls run in order."""

    calls: tuple[ToolCall, ...] = ()
    seconds: float = 1.0


class Plan(NamedTuple):
    """All turns of a run; without a turn the model is never asked."""

    turns: tuple[Turn, ...] = (Turn(),)
