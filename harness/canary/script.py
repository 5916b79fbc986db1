"""What the model of a trial says, in one form for the real programs and for the fakes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Call(NamedTuple):
    """A call of a server's tool, by their names in the configuration."""

    server: str
    tool: str
    args: Mapping[str, Any] = {}


class Turn(NamedTuple):
    """One answer of the model, after so many seconds: words, then calls."""

    calls: tuple[Call, ...] = ()
    text: str = ""
    seconds: float = 0.0


class Script(NamedTuple):
    """All answers; whoever asks on gets a last word."""

    turns: tuple[Turn, ...] = (Turn(text="done"),)


def plan_text(script: Script) -> str:
    """The script as the fake runtimes read their plans."""
    turns = [
        {
            "seconds": turn.seconds,
            "calls": [call._asdict() for call in turn.calls],
            **({"text": turn.text} if turn.text else {}),
        }
        for turn in script.turns
    ]
    return json.dumps({"turns": turns})


def asked_of_fake(events: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """The tools of each request that a fake says it has sent; none where they are deferred."""
    told = [event["details"] for event in events]
    return [[] if details.get("deferred") else sorted(details["tools"]) for details in told]
