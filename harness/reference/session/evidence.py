"""What a runtime tells of its servers: Claude in log files, Codex and Pi in lines of their output. One reading each.

Sources: the log poller and the stderr detectors of seed 002; requirements status-claude-message-order,
status-claude-last-verdict-wins, status-claude-blob-join, status-claude-min-timestamp, status-codex-stderr-failed,
status-codex-stderr-timeout-line. Silence is no failure: a server of which nothing is told stays undecided. Claude's
`Skipping connection (cached needs-auth)` is such silence: nobody was asked (gate-skip-line-is-known-cause).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from harness.reference.prepare.request import Runtime
from harness.world import World

SEPARATOR = " | "
# What tells of a connection in the text of an entry, whatever its case.
SUCCESS = ("successfully connected", "connection established")
FAILURE = ("connection failed", "connection timed out")
COLLECTED = ("error", "failed", "timeout", "refused", "unauthorized")
LEVELS = ("error", "debug", "info")

CODEX_CLIENT = re.compile(
    r"MCP client for (?:server )?[`'\"]?(?P<name>[^`'\"\s]+?)[`'\"]?\s+(?:failed|timed out)", re.I
)
CODEX_START = re.compile(
    r"failed to (?:start|initialize|spawn|connect(?: to)?)\s+MCP server\s+[`'\"]?(?P<name>[^`'\"\s:]+)", re.I
)
CODEX_WARNING = re.compile(r"MCP server startup failed server_name=\"(?P<name>[^\"]+)\"")
CODEX_INCOMPLETE = re.compile(r"MCP startup incomplete \(failed: (?P<names>[^)]+)\)")
CODEX_UPDATE = '"mcpServer/startupStatus/updated"'
PI_FAILED = re.compile(r"MCP: Failed to connect to (?P<name>.+?): ")
PI_UNAVAILABLE = re.compile(r"MCP: (?P<name>.+) temporarily unavailable \(HTTP \d+\)")


CONVERSATIONS: Mapping[Runtime, tuple[str, str]] = {
    "claude": ("init", "session_id"),
    "codex": ("thread.started", "thread_id"),
    "pi": ("session", "id"),
}
"""The kind of the line that tells of it, and the field."""
ANSWER_WORDS = ("assistant", "item.", "turn.completed")
"""One of them is in every line that tells of an answer of the model's; most lines have none."""


class Seen(NamedTuple):
    """The servers that connected, and those that failed with all that was said of it."""

    connected: frozenset[str] = frozenset()
    failed: Mapping[str, str] = {}


# --- Claude -----------------------------------------------------------------------------------------------------------


async def claude_seen(world: World, cache: str, clone: str, names: Iterable[str], since_seconds: float) -> Seen:
    """What the log files of these servers say since then. A log that cannot be read says nothing."""
    connected: set[str] = set()
    failed: dict[str, str] = {}
    for name in names:
        lines = await log_lines(world, log_directory(cache, clone, name), since_seconds)
        verdict = claude_verdict(lines, since_seconds)
        if isinstance(verdict, str):
            failed[name] = verdict
        elif verdict:
            connected.add(name)
    return Seen(frozenset(connected), failed)


@lru_cache(maxsize=1 << 10)
def log_directory(cache: str, clone: str, name: str) -> str:
    """Where Claude logs a server; `clone` is the real path."""
    return f"{cache}/claude-cli-nodejs/{hyphened(clone)}/mcp-logs-{hyphened(name)}"


def hyphened(text: str) -> str:
    """Everything but ASCII letters and digits as `-`."""
    return re.sub(r"[^A-Za-z0-9]", "-", text)


async def log_lines(world: World, directory: str, since_seconds: float) -> list[str]:
    """The lines of a server's log files, in the order of the files' names; files that nobody has touched since then
    are of earlier runs, and are not read.
    """
    lines: list[str] = []
    try:
        for name in await world.files.names(directory, since_seconds=since_seconds):
            if name.endswith(".jsonl"):
                lines += (await world.files.read(f"{directory}/{name}")).decode(errors="replace").split("\n")
    except OSError:
        return lines
    return lines


def claude_verdict(lines: Iterable[str], since_seconds: float) -> str | bool | None:
    """True for connected, the joined errors for failed, None for neither. The last verdict line decides."""
    verdict: str | bool | None = None
    collected: dict[str, None] = {}
    for entry in log_entries(lines, since_seconds):
        if entry.connected:
            verdict, collected = True, {}
            continue
        if entry.collected:
            collected[entry.text] = None
        if entry.failed:
            verdict = False
    return SEPARATOR.join(collected) if verdict is False else verdict


class Entry(NamedTuple):
    """A line of a log: when it was written (None: it does not say), its text, and what it tells."""

    at_milliseconds: int | None
    text: str
    connected: bool
    failed: bool
    collected: bool


def log_entries(lines: Iterable[str], since_seconds: float) -> Iterator[Entry]:
    """The entries of this run: stamps have milliseconds, so the limit is cut to them; one without a stamp counts."""
    since_milliseconds = floor_milliseconds(since_seconds)
    for line in lines:
        entry = entry_of(line)
        if entry is not None and (entry.at_milliseconds is None or entry.at_milliseconds >= since_milliseconds):
            yield entry


def floor_milliseconds(seconds: float) -> int:
    """A time as a log's stamps have it."""
    return math.floor(seconds * 1000)


@lru_cache(maxsize=1 << 15)
def entry_of(line: str) -> Entry | None:
    """The entry that a line is, None where it is no JSON object. A log is read again and again while it grows."""
    read = json_object(line)
    if read is None:
        return None
    level = next((level for level in LEVELS if read.get(level)), "info")
    message = read.get(level)
    text = message if isinstance(message, str) else line
    lowered = text.lower()
    return Entry(
        milliseconds_of(str(read.get("timestamp"))),
        text,
        connected=any(words in lowered for words in SUCCESS),
        failed=any(words in lowered for words in FAILURE),
        collected=level == "error" or any(word in lowered for word in COLLECTED),
    )


def json_object(line: str) -> Mapping[str, Any] | None:
    """The object that a line is."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def milliseconds_of(timestamp: str) -> int | None:
    """A stamp as a number; None for a text that is none."""
    try:
        return round(datetime.fromisoformat(timestamp).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


# --- Codex and Pi -----------------------------------------------------------------------------------------------------


def is_telling(runtime: Runtime, line: str) -> bool:
    """Whether a line of the runtime's output tells of a server that failed."""
    return bool(tellings(runtime, line))


def lines_seen(runtime: Runtime, lines: Sequence[str], names: Iterable[str]) -> Seen:
    """What these lines say of these servers. The first words about a server are kept."""
    wanted = set(names)
    failed: dict[str, str] = {}
    for line in lines:
        for name, text in tellings(runtime, line):
            if name in wanted:
                failed.setdefault(name, text)
    return Seen(failed=failed)


def tellings(runtime: Runtime, line: str) -> tuple[tuple[str, str], ...]:
    """The servers that a line says have failed, each with its words. Claude's output tells nothing that counts."""
    if runtime == "codex":
        return codex_tellings(line)
    return pi_tellings(line) if runtime == "pi" else ()


def codex_tellings(line: str) -> tuple[tuple[str, str], ...]:
    """A line of Codex's log, or a status notification of its app server."""
    if CODEX_UPDATE in line:
        return codex_update(line)
    incomplete = CODEX_INCOMPLETE.search(line)
    if incomplete is not None:
        return tuple((name.strip(), line.strip()) for name in incomplete["names"].split(","))
    for pattern in (CODEX_WARNING, CODEX_CLIENT, CODEX_START):
        found = pattern.search(line)
        if found is not None:
            return ((found["name"], line.strip()),)
    return ()


def codex_update(line: str) -> tuple[tuple[str, str], ...]:
    """A notification about one server: only `failed` counts."""
    params = (json_object(line) or {}).get("params")
    if not isinstance(params, dict) or params.get("status") != "failed":
        return ()
    return ((str(params.get("name")), str(params.get("error") or "")),)


def pi_tellings(line: str) -> tuple[tuple[str, str], ...]:
    """Pi's adapter prints one line for each server that did not connect; several may come in one piece."""
    found = (PI_FAILED.match(part) or PI_UNAVAILABLE.match(part) for part in line.split("\n"))
    return tuple((each["name"], each.string) for each in found if each is not None)


# --- the model --------------------------------------------------------------------------------------------------------


def conversation(runtime: Runtime, line: str) -> str:
    """The id of the conversation, from the line with which a runtime's output begins; empty for any other line."""
    kind, field = CONVERSATIONS[runtime]
    if kind not in line:
        return ""
    told = json_object(line) or {}
    is_told = told.get("subtype" if runtime == "claude" else "type") == kind
    found = told.get(field) if is_told else None
    return found if isinstance(found, str) else ""


def is_answer(runtime: Runtime, line: str) -> bool:
    """Whether a line of the runtime's output shows that the model has answered: the turn has reached the agent."""
    if not any(word in line for word in ANSWER_WORDS):
        return False
    told = json_object(line) or {}
    kind, message = told.get("type"), told.get("message")
    if runtime == "codex":
        return kind == "turn.completed" or str(kind).startswith("item.")
    if runtime == "pi":
        return isinstance(message, dict) and message.get("role") == "assistant"
    return kind == "assistant"
