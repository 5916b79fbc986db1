"""What the probes of Claude Code share: its files and where they lie, what it prints and logs, doors on loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.canary.trial import Finished, Trial
from harness.reference.credentials.key import runtime_key
from harness.reference.session.evidence import log_directory

STORE, CACHE = "~/.claude/.credentials.json", "~/.claude/mcp-needs-auth-cache.json"
SETTINGS, USER = "~/.claude/settings.json", "~/.claude.json"
APPROVED = {"enableAllProjectMcpServers": True}
SETTLED = {"MCP_CONNECTION_NONBLOCKING": "0", "ENABLE_TOOL_SEARCH": "false"}
"""With these a session begins when every server has its outcome, and all tools are sent."""
STREAM = ("-p", "hello", "--output-format", "stream-json", "--verbose")
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
