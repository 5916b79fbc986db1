"""What each runtime must be told so that it talks to nobody but the servers of its trial, and how its model speaks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from fake_servers.models import Answer, ModelServer, anthropic, completions, responses
from fake_servers.models import Call as Spoken
from fake_servers.models.server import Api
from harness.canary.script import Call, Script
from harness.canary.subject import Subject

NOBODY = "http://127.0.0.1:9"
"""Where no model is served: whoever asks it is refused."""
QUIET_CLAUDE = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
}
QUIET_PI = {"PI_OFFLINE": "1"}
APIS: dict[str, Api] = {"claude": anthropic, "codex": responses, "pi": completions}
KEPT_TEMPORARY = {"pi": ("jiti",)}
"""Folders among a runtime's temporary files in which it keeps what it has made of its own program: it starts ten
times as fast where they are there."""
PI_GATEWAY = "mcp"
PI_BUILT_IN = frozenset({"read", "bash", "edit", "write", "grep", "find", "ls", "bash_start", "process"})
ODD_IN_CLAUDE, ODD_IN_CODEX = re.compile(r"[^A-Za-z0-9_-]"), re.compile(r"[^A-Za-z0-9_]")


def settings_of(subject: Subject, home: Path, model_url: str) -> dict[str, str]:  # noqa: ARG001 - one form for all
    """Variables of its environment; a probe writes what else a runtime needs into the files that it is about."""
    url = model_url or NOBODY
    if subject.family == "claude":
        return {**QUIET_CLAUDE, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "dummy"}
    return dict(QUIET_PI) if subject.family == "pi" else {}


def kept_folder(subject: Subject, among_trials: Path) -> Path:
    """Where those folders are: beside what was installed, else for as long as the trials of a run last."""
    if subject.adapter:
        return Path(subject.adapter).parents[2] / "kept"
    return among_trials / "kept" / subject.label


def model_server(family: str, script: Script) -> ModelServer:
    """The API that the runtime asks, following a script."""
    answers = [
        Answer(turn.text, tuple(spoken(family, call) for call in turn.calls), turn.seconds) for turn in script.turns
    ]
    return ModelServer(APIS[family], answers)


def spoken(family: str, call: Call) -> Spoken:
    """A call as a model makes it: by the name that the runtime offers, where no two names have met.

    With Pi it goes through the gateway, which takes every server's tools; a call of no server is one of what Pi
    itself offers, of the gateway where it names nothing.
    """
    if family == "claude":
        return Spoken(f"mcp__{ODD_IN_CLAUDE.sub('_', call.server)}__{ODD_IN_CLAUDE.sub('_', call.tool)}", call.args)
    if family == "codex":
        return Spoken(ODD_IN_CODEX.sub("_", call.tool), call.args, f"mcp__{ODD_IN_CODEX.sub('_', call.server)}")
    if not call.server:
        return Spoken(call.tool or PI_GATEWAY, call.args)
    return Spoken(PI_GATEWAY, {"server": call.server, "tool": call.tool, "args": json.dumps(dict(call.args))})


def of_servers(family: str, tools: Iterable[str]) -> list[str]:
    """Those of the offered names that are there for MCP servers, sorted; with Pi also what its adapter always adds."""
    if family == "pi":
        return sorted(name for name in tools if name not in PI_BUILT_IN)
    return sorted(name for name in tools if name.startswith("mcp__"))
