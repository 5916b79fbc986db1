"""A run of the battery on a catalog given as a tree: for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.gate.battery.course import Trial
from harness.gate.battery.results import Mode, no_progress
from harness.gate.battery.trial import try_faults
from harness.gate.judge import judge
from harness.gate.rules import load_rules
from scenarios.units.gate_run import context_of

LOCAL: Mapping[str, Any] = {"type": "stdio", "command": "/opt/tools/local"}
PACKAGE: Mapping[str, Any] = {"type": "stdio", "command": "npx", "args": ["-y", "pkg@1.0.0"]}
REMOTE: Mapping[str, Any] = {"type": "streamable-http", "url": "https://remote.example.com/mcp"}


def tried(
    tree: Mapping[str, Any],
    *,
    runtimes: Iterable[str] = ("claude", "codex", "pi"),
    struck: Iterable[str] | None = None,
    mode: Mode = Mode.FULL,
) -> Trial:
    """What the battery finds in a catalog. `struck` None: every entry is struck."""
    load_rules()
    context = context_of(tree, runtimes=runtimes)
    judged = {name: judge(view, context, touched=True) for name, view in context.entries.items()}
    return try_faults(context, judged, tuple(struck or context.entries), mode, no_progress)


def rules_of(trial: Trial) -> set[tuple[str, str]]:
    """The rules that have something to say, each with the entry."""
    return {(trouble.hurt.rule, trouble.entry) for trouble in trial.troubles}
