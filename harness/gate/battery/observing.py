"""What one spawn shows, boiled down: how each server fared, whom the outputs name, which markers they hold."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

from fake_runtimes.loaded import LoadedServer
from harness.gate.battery.sessions import tool_names
from harness.gate.battery.spawning import Spawn
from harness.reference.prepare.request import CONFIG_FILES
from harness.world.model import Event
from harness.world.model.pipes import Tee

STATES = {
    "server.connected": "connected",
    "server.failed": "failed",
    "server.needs_auth": "needs-auth",
    "server.skipped": "skipped",
}
FAILURE_WORDS = re.compile(
    r"fail|error|auth|timed out|timeout|closed|refused|rejected|unavailable|not logged in", re.IGNORECASE
)
LOGGED_FAILURES = re.compile(r"Connection failed|Connection timeout|Authentication required|Server rejected")
FAILED_STATUSES = ("failed", "needs-auth")
SHORTEST_MARKER = 6
"""A shorter value turns up by chance."""
OWN_EVENTS = ("spawn", "request")
"""What the simulation writes down for itself: command lines and addresses as they were used."""
LOG_FOLDER = "/mcp-logs-"
OF_NPM = ("/_npx/", "/_cacache/")
SECRET_FILES = (".credentials.json", "tokens.json", "credentials.json")
_OUTSIDE = re.compile(r"[^A-Za-z0-9]")


class Seen(NamedTuple):
    """One server in one spawn. `offered` tells for each model request whether it carried the server's tool.

    `answered`: the tool could be called at the end. `settled_seconds` is when its first outcome was known.
    """

    state: str
    text: str
    settled_seconds: float | None
    offered: tuple[bool, ...]
    answered: bool
    events: tuple[int, ...]


class Leak(NamedTuple):
    """A marker in an output: the variable it stands for, where it is, and the event where it is one."""

    variable: str
    where: str
    event: int | None = None


class Observation(NamedTuple):
    """One spawn. `ended` is done, deadlock or limit, or the error by which a program fell.

    `named` are the servers that an output names together with words of failure. `requests` are the times of
    the model requests.
    """

    ended: str
    exit_code: int | None
    servers: Mapping[str, Seen]
    requests: tuple[float, ...]
    request_events: tuple[int, ...]
    named: frozenset[str]
    leaks: tuple[Leak, ...]


def observe(spawn: Spawn, more_markers: Mapping[str, str] | None = None) -> Observation:
    """Run a spawn and look at what is left of it."""
    outcome = spawn.run()
    runtime = spawn.run_of_runtime
    crash = next((error for actor in spawn.actors for error in errors_of(spawn, actor)), None)
    ended = outcome.verdict if crash is None else f"{type(crash).__name__}: {crash}"
    if ended == "deadlock" and runtime.exit_code is not None:
        ended = "done"  # a server that outlives the run is no part of it
    requests = [(number, event) for number, event in enumerate(outcome.events) if event.name == "model.request"]
    shown = [(where, text) for where, text in outputs(spawn) if text]
    return Observation(
        ended,
        runtime.exit_code,
        {name: seen(spawn, name, [event for _, event in requests]) for name in spawn.session.servers},
        tuple(event.at_seconds - spawn.started_seconds for _, event in requests),
        tuple(number for number, _ in requests),
        frozenset(named_failures(shown, tuple(spawn.session.servers))),
        tuple(leaks(spawn, shown, {**spawn.session.secrets, **(more_markers or {})})),
    )


def errors_of(spawn: Spawn, actor: Any) -> Iterator[BaseException]:
    """What an actor's program and its tasks raised, which none may."""
    ended = spawn.ended(actor)
    if ended.error is not None:
        yield ended.error
    yield from ended.lost


def seen(spawn: Spawn, name: str, requests: Sequence[Event]) -> Seen:
    """How one server fared: its first outcome counts, a later attempt is one of a call."""
    state, text, at, told = "pending", "", None, []
    answered = False
    for number, event in enumerate(spawn.events):
        if event.details.get("server") != name or event.actor != spawn.run_of_runtime.name:
            continue
        if event.name == "tool.call":
            answered = event.details["ok"]
            told.append(number)
        elif event.name in STATES and at is None:
            state, text = STATES[event.name], str(event.details.get("text") or "")
            at = event.at_seconds - spawn.started_seconds
            told.append(number)
    offered = tuple(is_offered(spawn, name, event) for event in requests)
    return Seen(state, text, at, offered, answered, tuple(told))


def is_offered(spawn: Spawn, name: str, request: Event) -> bool:
    """Whether a request carries a server's tool, by its name among all or by that among those that are there.

    Codex names servers that read alike by what else is there, so that a failure of one gives another name to the other.
    """
    tools = request.details["tools"]
    if spawn.session.names.get(name) in tools:
        return True
    there = connected(spawn, request)
    return name in there and tool_names(spawn.session.runtime, there.values()).get(name) in tools


def connected(spawn: Spawn, request: Event) -> dict[str, LoadedServer]:
    """The servers that have connected when a model request leaves."""
    there = set()
    for event in spawn.events:
        if event is request:
            break
        if event.name == "server.connected" and event.actor == spawn.run_of_runtime.name:
            there.add(event.details["server"])
    return {name: server for name, server in spawn.session.servers.items() if name in there}


# --- outputs


def outputs(spawn: Spawn) -> Iterator[tuple[str, str]]:
    """What the runtime printed and every file that it wrote, save the config and what is made for secrets."""
    runtime = spawn.run_of_runtime
    for stream, pipe in (("stdout", runtime.stdout), ("stderr", runtime.stderr)):
        if isinstance(pipe, Tee):
            yield stream, "\n".join(pipe.written)
    configs = tuple(f"/{path}" for path in CONFIG_FILES.values())
    for path, node in spawn.tree.walk():
        is_given = path in spawn.session.files or path.endswith((*configs, *SECRET_FILES))
        if node.content and not is_given and not any(part in path for part in OF_NPM):
            yield path, node.content.decode("utf-8", "replace")


def named_failures(shown: Sequence[tuple[str, str]], servers: Sequence[str]) -> Iterator[str]:
    """The servers of which an output says that they failed. A log folder that two servers share names both."""
    folders: dict[str, list[str]] = {}
    for name in servers:
        folders.setdefault(_OUTSIDE.sub("-", name), []).append(name)
    for where, text in shown:
        if LOG_FOLDER in where:
            owners = folders.get(where.rpartition(LOG_FOLDER)[2].partition("/")[0], [])
            if LOGGED_FAILURES.search(text):
                yield from owners
        elif where == "stdout":
            yield from (name for line in text.split("\n") for name in failed_in(line) if name in servers)
        elif where == "stderr":
            for line in text.split("\n"):
                if FAILURE_WORDS.search(line):
                    yield from (name for name in servers if names(line, name))


def names(line: str, server: str) -> bool:
    """Whether a line has the name as a word of its own, and not as a part of a path."""
    return server in line and _word(server).search(line) is not None


@lru_cache(maxsize=256)
def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-]){re.escape(name)}(?![\w/-]|\.\w)")


def failed_in(line: str) -> Iterator[str]:
    """The servers that a line of the event stream lists as failed."""
    if '"mcp_servers"' not in line:
        return
    try:
        document = json.loads(line)
    except ValueError:
        return
    for server in document.get("mcp_servers", ()):
        if server.get("status") in FAILED_STATUSES:
            yield server["name"]


# --- markers


def leaks(spawn: Spawn, shown: Sequence[tuple[str, str]], markers: Mapping[str, str]) -> Iterator[Leak]:
    """Each marker that an output or an event of the runtime holds, once."""
    forms = marker_forms(markers)
    if not forms:
        return
    found: set[str] = set()
    for where, text in shown:
        for variable, form in forms:
            if variable not in found and form in text:
                found.add(variable)
                yield Leak(variable, where)
    for number, event in enumerate(spawn.events):
        if event.name not in OWN_EVENTS and event.actor == spawn.run_of_runtime.name:
            text = json.dumps(event.details, default=str, ensure_ascii=False)
            for variable, form in forms:
                if variable not in found and form in text:
                    found.add(variable)
                    yield Leak(variable, f"event {event.name}", number)


def marker_forms(secrets: Mapping[str, str]) -> list[tuple[str, str]]:
    """Each variable with its marker raw, in a URL, in base64 (at each of three offsets) and in JSON."""
    forms = []
    for name, value in secrets.items():
        if len(value) >= SHORTEST_MARKER:
            texts = (value, quote(value, safe=""), *in_base64(value), json.dumps(value)[1:-1])
            forms += [(name, form) for form in dict.fromkeys(texts)]
    return forms


def in_base64(value: str) -> Iterator[str]:
    """The characters that the value alone decides, wherever it stands in what is encoded."""
    for offset in range(3):
        text = base64.b64encode(b"\0" * offset + value.encode()).decode().rstrip("=")
        yield text[(0, 2, 3)[offset] : len(text) - (0 if (offset + len(value.encode())) % 3 == 0 else 1)]
