"""What the probes of Pi share: its files, its two ways to be asked, and what it prints."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.canary.trial import Finished, Trial

AGENT = "~/.pi/agent"
CONFIG, CACHE, RESOLVED = (f"{AGENT}/{name}" for name in ("mcp.json", "mcp-cache.json", "mcp-npx-cache.json"))
HANDOFF = f"{AGENT}/mcp-oauth"
NO_ADAPTER = "adapter"
"""What a fake, which has the adapter in it, is told to load."""
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
ADAPTER_PLACE = re.compile(r"(Extension )\S+( registers command)")
AGO = re.compile(r"\b\d+s ago\b")


def configure(trial: Trial, servers: Mapping[str, Any], path: str = CONFIG, **settings: Any) -> None:
    """One file of the adapter's with these servers, the agent's own unless another is named."""
    trial.write_json(path, {"mcpServers": servers, **({"settings": settings} if settings else {})})


def words(trial: Trial, mode: str, agent: str = AGENT) -> tuple[str, ...]:
    """The command line of every run, and the model's file, which it needs."""
    model = {
        "baseUrl": f"{trial.model_url}/v1",
        "api": "openai-completions",
        "apiKey": "dummy",
        "models": [{"id": "m"}],
    }
    trial.write_json(f"{agent}/models.json", {"providers": {"fake": model}})
    return ("-e", trial.subject.adapter or NO_ADAPTER, "--model", "fake/m", "--mode", mode)


def session(
    trial: Trial,
    *more: str,
    env: Mapping[str, str | None] | None = None,
    limit_seconds: float = 60.0,
    agent: str = AGENT,
    **run: Any,
) -> Finished:
    """A headless session that prints all its events; its model is that of the moment. `agent` is its directory."""
    return trial.run(*words(trial, "json", agent), *more, "-p", "hello", env=env, limit_seconds=limit_seconds, **run)


def told(trial: Trial, run: Finished) -> list[str]:
    """What a session says on stderr, line by line."""
    lines = ADAPTER_PLACE.sub(r"\1ADAPTER\2", plain(trial.normal(run.stderr))).splitlines()
    return [line for line in lines if line.strip()]


def told_of(trial: Trial, run: Finished, name: str) -> str | None:
    """What a session says on stderr of a server; None where that is nothing."""
    named = (f"MCP: Failed to connect to {name}: ", f"MCP: {name} temporarily ")
    return next((line for line in told(trial, run) if line.startswith(named)), None)


def plain(text: str) -> str:
    """A text without colours and ages."""
    return AGO.sub("Ns ago", COLOURS.sub("", text))


def results(run: Finished) -> list[Mapping[str, Any]]:
    """What became of each call: its tool, its text, the adapter's own code, and whether it counts as an error."""
    found: list[Mapping[str, Any]] = []
    for line in run.lines:
        if isinstance(line, dict) and line.get("type") == "tool_execution_end":
            result = line["result"]
            text = "\n".join(block.get("text", "") for block in result.get("content", ()))
            details = result.get("details") or {}
            found.append(
                {"tool": line["toolName"], "text": plain(text), "code": details.get("error"), "error": line["isError"]}
            )
    return found


def account(name: str) -> str:
    """Where the credential of a server lies, by the name that it has in the configuration."""
    return f"sha256-{hashlib.sha256(name.encode()).hexdigest()}"


def hand_in(trial: Trial, name: str, entry: Any, folder: str = HANDOFF, *, under: str = "") -> Path:
    """Stage a credential as the reference does; `under` names another folder than the server's own."""
    text = entry if isinstance(entry, str) else json.dumps(entry)
    return trial.write(f"{folder}/{under or account(name)}/tokens.json", text, mode=0o600)


def credential(url: str, token: str, **more: Any) -> dict[str, Any]:
    """An entry of the hand-in file; a member that is None is left out."""
    tokens = {"accessToken": token, "refreshToken": f"refresh-{token}"}
    whole = {"serverUrl": url, "tokens": tokens, "clientInfo": {"clientId": "c", "redirectUris": ["http://localhost/"]}}
    return {field: value for field, value in {**whole, **more}.items() if value is not None}
