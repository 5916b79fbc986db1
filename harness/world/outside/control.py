"""Asking whoever steers the world: one JSON object a line over a Unix socket, one answer to each.

    {"do": "started", "actor": A}                                                        -> {}
    {"do": "event", "actor": A, "event": NAME, "details": {...}}                         -> {}
    {"do": "point", "actor": A, "port": P, "label": L, "actions": [...], "content": C}   -> {} or {"fault": {...}}
    {"do": "launch", "actor": A, "argv": [...], "env": {...}, "directory": D}            -> {"argv", "name", "env"}
                                                                                            or {"errno": 2}
    {"do": "printed", "actor": A, "stream": "stdout", "text": LINES}                     -> {}
    {"do": "ended", "actor": A, "exit_code": N}                                          -> {}
    {"do": "reaped", "actor": A, "child": C, "exit_code": N}                             -> {}
    {"do": "resolve", "actor": A, "origin": "https://mcp.test"}                          -> {"host", "port"} or {}

A point is answered when its holds let go; the actor stays at it until then. An actor that is to be killed there gets
no answer. An actor whose last connection is closed without a word has been killed; of one that was killed before it
said anything only its parent can tell (`reaped`, which means nothing of any other). Where nobody steers, nothing is
asked: events go to a file or nowhere, programs and hosts are what they are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from harness.world.errors import failure
from harness.world.ports import Response

ACTOR_HEADER = "X-World-Actor"
FAULT_HEADER = "X-World-Fault"
"""Headers by which a client tells the mount of a fake server who asks, and what is to befall the connection.

They are sent only where somebody steers, and are no part of the request that the server sees.
"""


class Struck(NamedTuple):
    """A fault that strikes at a point. `port` is a port of 127.0.0.1 where nobody listens, for `refused`."""

    action: str
    seconds: float = 0.0
    answer: Response | None = None
    port: int = 0


class Launch(NamedTuple):
    """What is started in place of a program: its argv, its actor's name, what is added to its environment."""

    argv: tuple[str, ...]
    name: str
    env: Mapping[str, str]


def encode(message: Mapping[str, Any]) -> bytes:
    """A message as it is sent."""
    return json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n"


def event_message(actor: str, event: str, details: Mapping[str, Any]) -> dict[str, Any]:
    """Something happened."""
    return {"do": "event", "actor": actor, "event": event, "details": dict(details)}


def point_message(actor: str, port: str, label: str, actions: Collection[str], content: str) -> dict[str, Any]:
    """An actor has come to a switch point."""
    return {
        "do": "point",
        "actor": actor,
        "port": port,
        "label": label,
        "actions": sorted(actions),
        "content": content,
    }


def reaped_message(actor: str, child: str, exit_code: int) -> dict[str, Any]:
    """A child has ended, and its exit code was taken."""
    return {"do": "reaped", "actor": actor, "child": child, "exit_code": exit_code}


def launch_message(actor: str, argv: Sequence[str], env: Mapping[str, str], directory: str) -> dict[str, Any]:
    """An actor starts a program."""
    return {"do": "launch", "actor": actor, "argv": list(argv), "env": dict(env), "directory": directory}


def resolve_message(actor: str, origin: str) -> dict[str, Any]:
    """An actor connects to an origin."""
    return {"do": "resolve", "actor": actor, "origin": origin}


def struck(answer: Mapping[str, Any]) -> Struck | None:
    """The fault in the answer to a point."""
    fault = answer.get("fault")
    if fault is None:
        return None
    given = fault.get("answer")
    response = None if given is None else Response(given["status"], given["headers"], given["body"].encode())
    return Struck(fault["action"], fault.get("seconds", 0.0), response, fault.get("port", 0))


def launched(answer: Mapping[str, Any], program: str) -> Launch:
    """The answer to a launch. Raises OSError as the operating system would."""
    number = answer.get("errno")
    if number is not None:
        raise failure(number, program)
    return Launch(tuple(answer["argv"]), answer["name"], answer.get("env", {}))
