"""What the model of a headless run does, as data: one turn after the other, each with the tools it calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

LAST_WORDS = "Done."
KEYS = {"": ("turns",), "turn": ("calls", "seconds", "text"), "call": ("server", "tool", "args")}


class ToolCall(NamedTuple):
    """A call of a server's tool by their raw names; without a server, of one that Pi itself offers."""

    server: str
    tool: str
    args: Mapping[str, Any] = {}


class Turn(NamedTuple):
    """One model request: the answer takes `seconds`, says `text`, then its calls run in order.

    A turn that is given no text says `LAST_WORDS` where it calls nothing, else nothing.
    """

    calls: tuple[ToolCall, ...] = ()
    seconds: float = 1.0
    text: str | None = None

    @property
    def words(self) -> str:
        """What the model says in this turn."""
        if self.text is not None:
            return self.text
        return "" if self.calls else LAST_WORDS


class Plan(NamedTuple):
    """All turns of a run; without a turn the model is never asked."""

    turns: tuple[Turn, ...] = (Turn(),)

    @property
    def last_words(self) -> str:
        """What a run ends with: the text of its last turn that says anything."""
        return next((turn.words for turn in reversed(self.turns) if turn.words), "")


AT_ONCE = Plan((Turn(seconds=0.0),))
"""One answer without delay: what a run does that was given no plan."""


def require_servers(plan: Plan) -> None:
    """Raise PlanError where a call names no server, for a runtime that offers no tools of its own to call."""
    for number, turn in enumerate(plan.turns):
        for count, call in enumerate(turn.calls):
            if not call.server:
                raise PlanError(f"turns[{number}].calls[{count}].server: a call needs one")


class PlanError(ValueError):
    """A plan that cannot be read; the message names the place."""


def read_plan(value: Any) -> Plan:
    """A plan from JSON: `{"turns": [{"seconds": 2, "text": "..", "calls": [{"server", "tool", "args"}]}]}`.

    A bare list is the list of turns; every field of a turn may be left out, `seconds` is then 0. Raises PlanError.
    """
    if isinstance(value, dict):
        table(value, "", "plan")
        value = value.get("turns")
    if not isinstance(value, list):
        raise PlanError("plan: expected a list of turns")
    return Plan(tuple(read_turn(turn, f"turns[{number}]") for number, turn in enumerate(value)))


def read_turn(value: Any, place: str) -> Turn:
    """One turn. Raises PlanError."""
    fields = table(value, "turn", place)
    calls, seconds, text = fields.get("calls", []), fields.get("seconds", 0), fields.get("text")
    if not isinstance(calls, list):
        raise PlanError(f"{place}.calls: expected a list")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < float("inf"):
        raise PlanError(f"{place}.seconds: expected a number that is not negative")
    if not isinstance(text, str | None):
        raise PlanError(f"{place}.text: expected a text")
    read = tuple(read_call(call, f"{place}.calls[{number}]") for number, call in enumerate(calls))
    return Turn(read, float(seconds), text)


def read_call(value: Any, place: str) -> ToolCall:
    """One call. Raises PlanError."""
    fields = table(value, "call", place)
    server, tool, args = fields.get("server", ""), fields.get("tool", ""), fields.get("args", {})
    if not isinstance(server, str) or not isinstance(tool, str):
        raise PlanError(f"{place}: server and tool must be texts")
    if not isinstance(args, dict):
        raise PlanError(f"{place}.args: expected an object")
    if not tool:
        raise PlanError(f"{place}.tool: a call needs one")
    return ToolCall(server, tool, args)


def table(value: Any, kind: str, place: str) -> dict[str, Any]:
    """An object with known keys alone. Raises PlanError."""
    if not isinstance(value, dict):
        raise PlanError(f"{place}: expected an object")
    unknown = sorted(value.keys() - set(KEYS[kind]))
    if unknown:
        raise PlanError(f"{place}: unknown key {unknown[0]!r}, known are {', '.join(KEYS[kind])}")
    return value
