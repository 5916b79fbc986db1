"""What the probes of Claude Code share: its files and where they lie, what it prints and logs, doors on loopback."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from fake_servers.mcp.behaviour import Behaviour
from fake_servers.mcp.http import HttpServer, bearer
from harness.canary.trial import Finished, Trial
from harness.reference.credentials.key import runtime_key
from harness.reference.session.evidence import log_directory
from harness.world.ports import Request, Response

STORE, CACHE = "~/.claude/.credentials.json", "~/.claude/mcp-needs-auth-cache.json"
SETTINGS, USER = "~/.claude/settings.json", "~/.claude.json"
APPROVED = {"enableAllProjectMcpServers": True}
SETTLED = {"MCP_CONNECTION_NONBLOCKING": "0", "ENABLE_TOOL_SEARCH": "false"}
"""With these a session begins when every server has its outcome, and all tools are sent."""
STREAM = ("-p", "hello", "--output-format", "stream-json", "--verbose")
WITNESS = Path(__file__).with_name("witness.py")
NOWHERE = (".well-known", "register", "token", "authorize")
"""Where an authorization server would be: there is none."""
LISTED = re.compile(r"^(?P<name>.*?): (?P<target>.*) - (?P<status>[✔!✘⏸⊘-] .*)$")


def project(trial: Trial, servers: Mapping[str, Any]) -> None:
    """A project with these servers, all of which the user has approved."""
    trial.write_json(".mcp.json", {"mcpServers": servers})
    trial.write_json(SETTINGS, APPROVED)


def store(trial: Trial, entries: Mapping[str, Mapping[str, Any]], servers: Mapping[str, Any]) -> None:
    """Stored credentials by the names of their servers, under the keys of the reference."""
    keyed = {runtime_key("claude", name, servers[name], {}): entry for name, entry in entries.items()}
    trial.write_json(STORE, {"mcpOAuth": keyed}, mode=0o600)


def stored(trial: Trial, servers: Mapping[str, Any], name: str) -> Any:
    """What the store holds now for a server."""
    held = trial.read_json(STORE) or {}
    return held.get("mcpOAuth", {}).get(runtime_key("claude", name, servers[name], {}))


def session(trial: Trial, *words: str, env: Mapping[str, str] | None = None, limit_seconds: float = 60.0) -> Finished:
    """A headless session that prints all it does."""
    return trial.run(*STREAM, *words, env=env, limit_seconds=limit_seconds)


def init(run: Finished) -> Mapping[str, Any]:
    """The line with which a session begins; empty when there is none."""
    return next((line for line in run.lines if isinstance(line, dict) and line.get("subtype") == "init"), {})


def statuses(run: Finished) -> dict[str, str]:
    """The servers of a session by name, as its first line shows them."""
    return {server["name"]: server["status"] for server in init(run).get("mcp_servers", [])}


def listing(run: Finished) -> dict[str, str]:
    """The servers of `claude mcp list` by name, each with its status and reason."""
    found = (LISTED.match(line) for line in run.stdout.splitlines())
    return {match["name"]: match["status"] for match in found if match is not None}


def results(run: Finished) -> list[Any]:
    """What the model is told of its calls."""
    told = []
    for line in run.lines:
        content = (
            line.get("message", {}).get("content") if isinstance(line, dict) and line.get("type") == "user" else None
        )
        blocks = content if isinstance(content, list) else []
        told += [block.get("content") for block in blocks if block.get("type") == "tool_result"]
    return told


def log(trial: Trial, name: str) -> list[Mapping[str, Any]]:
    """The lines of a server's log, in order."""
    folder = Path(log_directory(str(trial.home / ".cache"), str(trial.project), name))
    lines: list[Mapping[str, Any]] = []
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError):
                lines.append(json.loads(line))
    return lines


def said(lines: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Level and text of log lines."""
    return [(level, str(line[level])) for line in lines for level in ("debug", "error") if level in line]


def witness(trial: Trial, name: str, **does: Any) -> dict[str, Any]:
    """The entry of a stdio server that notes what happens to it, and behaves as told (see `witness`)."""
    notes = trial.folder / f"notes-{name}.jsonl"
    return {"type": "stdio", "command": sys.executable, "args": ["-IS", str(WITNESS), str(notes), json.dumps(does)]}


def notes(trial: Trial, name: str, kind: str = "") -> list[Mapping[str, Any]]:
    """What a witness has noted."""
    file = trial.folder / f"notes-{name}.jsonl"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    found = [json.loads(line) for line in text.splitlines()]
    return [note for note in found if not kind or note["note"] == kind]


class Visit(NamedTuple):
    """A request at a door."""

    at: float
    method: str
    rpc_method: str | None
    token: str | None
    headers: Mapping[str, str]
    path: str


class Doors:
    """Many servers on one port: the first part of the path says which, and every request is kept under it.

    A door that is not named is that of a good server.
    """

    def __init__(self, behaviours: Mapping[str, Behaviour] | None = None, *, sse: Sequence[str] = ()) -> None:
        self.servers: dict[str, HttpServer] = {
            name: HttpServer(behaviour, transport="sse" if name in sse else "http")
            for name, behaviour in (behaviours or {}).items()
        }
        self.visits: dict[str, list[Visit]] = {}

    def handle(self, request: Request, now: float, who: str) -> Response:
        """Keep the request, then answer as the server behind the door."""
        path = request.url.partition("://")[2].partition("/")[2]
        door = path.partition("/")[0].partition("?")[0]
        if door in NOWHERE:
            return Response(404)
        server = self.servers.setdefault(door, HttpServer())
        response = server.handle(request, now, who)
        seen = server.requests[-1]
        self.visits.setdefault(door, []).append(
            Visit(now, request.method, seen.rpc_method, bearer(request), dict(request.headers), path)
        )
        return response

    def shown(self, door: str) -> str | None:
        """The first token that was shown at a door."""
        return next((visit.token for visit in self.visits.get(door, ()) if visit.token), None)

    def visited(self, door: str) -> bool:
        """Whether anybody came."""
        return bool(self.visits.get(door))
