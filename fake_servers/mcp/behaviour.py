"""What one MCP server does, as data: a default one is well-behaved, each field is one way to differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

CHOICES: Mapping[str, tuple[str, ...]] = {
    "initialize": ("answer", "never", "error", "garbage"),
    "list_tools": ("answer", "never", "error"),
    "exits": ("never", "at-start", "at-initialize", "after-initialize", "on-call"),
    "discover": ("not-found", "never", "empty", "exits", "answer"),
    "drops": ("never", "before", "after"),
    "answers_as": ("json", "sse"),
}
STATUSES = range(100, 600)
EXIT_CODES = range(256)


class Tool(NamedTuple):
    """A tool: how it is listed, and what a call of it gives after how many seconds."""

    name: str
    description: str = ""
    read_only: bool = False
    answers_after_seconds: float = 0.0
    text: str = "ok"
    is_error: bool = False


class Behaviour(NamedTuple):
    """One server. Times are seconds; `stderr` and `stdout_noise` are lines, written before anything else.

    `starts_after_seconds` passes before stdin is read. `exits` says where the process ends with `exit_code`:
    at-initialize without an answer, after-initialize behind its answer, on-call without one. `discover` is the
    answer to the newer `server/discover` probe; `exits` ends the process there, as some servers do, and with `answer`
    the newer revision is spoken with whoever speaks it.
    Over HTTP alone: `status` answers every POST in place of the protocol, with `challenge` (WWW-Authenticate),
    `body` and `content_type`; `content_type` alone replaces that of ordinary answers. `requires_bearer` lists the
    tokens that are let in. `drops` breaks the connection before or after a request was processed.
    The process fields mean nothing over HTTP, and the HTTP fields nothing over stdio.
    """

    name: str = "server"
    version: str = "1.0.0"
    tools: tuple[Tool, ...] = (Tool("echo"),)
    starts_after_seconds: float = 0.0
    initialize: str = "answer"
    initialize_after_seconds: float = 0.0
    list_tools: str = "answer"
    list_after_seconds: float = 0.0
    stderr: tuple[str, ...] = ()
    stdout_noise: tuple[str, ...] = ()
    exits: str = "never"
    exit_code: int = 1
    ignores_signals: bool = False
    ignores_stdin_end: bool = False
    discover: str = "not-found"
    protocol_version: str = "2025-06-18"
    status: int | None = None
    challenge: str | None = None
    body: str = ""
    content_type: str | None = None
    requires_bearer: tuple[str, ...] = ()
    drops: str = "never"
    answers_as: str = "json"
    supports_get: bool = False


def from_table(table: Mapping[str, Any]) -> Behaviour:
    """A behaviour as a scenario file writes it; a tool is a table or only its name.

    Raises ValueError that names the key which is unknown, of a wrong type or out of range.
    """
    return Behaviour(**_fields(table, _BEHAVIOUR_READERS, "a server's behaviour"))


def to_table(behaviour: Behaviour) -> dict[str, Any]:
    """A behaviour as `from_table` reads it, as JSON can hold it: what differs from a good server's."""
    table = _differing(behaviour, Behaviour())
    if "tools" in table:
        table["tools"] = [{"name": tool.name, **_differing(tool, Tool(tool.name))} for tool in behaviour.tools]
    return {key: list(value) if isinstance(value, tuple) else value for key, value in table.items()}


def _differing(record: Behaviour | Tool, usual: Behaviour | Tool) -> dict[str, Any]:
    default = usual._asdict()
    return {key: value for key, value in record._asdict().items() if value != default[key]}


def tool_from_table(value: object) -> Tool:
    """One tool. Raises ValueError."""
    if isinstance(value, str):
        return Tool(value)
    if not isinstance(value, Mapping):
        raise wrong("a tool", "a name or a table", value)
    fields = _fields(value, _TOOL_READERS, "a tool")
    if "name" not in fields:
        raise ValueError("a tool needs a name")
    return Tool(**fields)


def wrong(key: str, expected: str, value: object) -> ValueError:
    """What is raised for a value that cannot be taken."""
    return ValueError(f"{key} must be {expected}, not {value!r}")


Reader = Callable[[str, object], Any]


def _fields(table: Mapping[str, Any], readers: Mapping[str, Reader], what: str) -> dict[str, Any]:
    unknown = sorted(set(table) - set(readers))
    if unknown:
        raise ValueError(f"{what} has no {unknown[0]!r}; it may have {', '.join(sorted(readers))}")
    return {key: readers[key](key, value) for key, value in table.items()}


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise wrong(key, "a text", value)
    return value


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise wrong(key, "true or false", value)
    return value


def _seconds(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(key, "a number of seconds", value)
    if not math.isfinite(value) or value < 0:
        raise wrong(key, "zero or more seconds", value)
    return float(value)


def _integer(key: str, value: object, allowed: range) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(key, "an integer", value)
    if value not in allowed:
        raise wrong(key, f"from {allowed[0]} to {allowed[-1]}", value)
    return value


def _status(key: str, value: object) -> int:
    return _integer(key, value, STATUSES)


def _exit_code(key: str, value: object) -> int:
    return _integer(key, value, EXIT_CODES)


def _choice(key: str, value: object) -> str:
    if value not in CHOICES[key]:
        raise wrong(key, f"one of {', '.join(CHOICES[key])}", value)
    return str(value)


def _texts(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise wrong(key, "a list of texts", value)
    return tuple(_text(key, item) for item in value)


def _tools(key: str, value: object) -> tuple[Tool, ...]:
    if not isinstance(value, list | tuple):
        raise wrong(key, "a list of tools", value)
    return tuple(tool_from_table(item) for item in value)


_TOOL_READERS: Mapping[str, Reader] = {
    "name": _text,
    "description": _text,
    "read_only": _flag,
    "answers_after_seconds": _seconds,
    "text": _text,
    "is_error": _flag,
}
_BEHAVIOUR_READERS: Mapping[str, Reader] = {
    "name": _text,
    "version": _text,
    "tools": _tools,
    "starts_after_seconds": _seconds,
    "initialize_after_seconds": _seconds,
    "list_after_seconds": _seconds,
    "stderr": _texts,
    "stdout_noise": _texts,
    "exit_code": _exit_code,
    "ignores_signals": _flag,
    "ignores_stdin_end": _flag,
    "protocol_version": _text,
    "status": _status,
    "challenge": _text,
    "body": _text,
    "content_type": _text,
    "requires_bearer": _texts,
    "supports_get": _flag,
    **dict.fromkeys(CHOICES, _choice),
}
