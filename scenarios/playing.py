"""Short scenarios for tests: a text with the parts that every one needs."""

from __future__ import annotations

from typing import Any

from harness.gate.rules import load_rules
from harness.scenario.model import Scenario
from harness.scenario.production import Report, play
from harness.scenario.reading import read_scenario

# Known-bad variants import parts of this registry, and pytester forgets what its runs import: it is loaded whole first.
load_rules()

HEAD = """
schema = 1
id = "short"
title = "A short one"
runtime = ["claude", "codex", "pi"]

[catalog.a]
type = "stdio"
command = "/opt/a"

[catalog.b]
type = "streamable-http"
url = "https://b.test/mcp"
"""
SESSION = """
[[step]]
start = "S"
turns = [{ seconds = 5 }, { calls = [{ server = "a", tool = "echo" }] }]
"""


def short(*parts: str, session: str = SESSION, head: str = HEAD) -> str:
    """The text of a scenario with a stdio server `a` and a remote `b`, and these parts."""
    return "\n".join([head, *parts, session]) if session else "\n".join([head, *parts])


def played(*parts: str, runtime: str = "claude", session: str = SESSION, **options: Any) -> Report:
    """Play a short scenario."""
    return play(read_scenario(short(*parts, session=session)), runtime, **options)


SLOWER = 5


def slower(scenario: Scenario) -> Scenario:
    """The same with more real time for everything: a machine may stand still for half a second, which at the pace of a
    scenario can be all of a budget.
    """
    return scenario._replace(time_scale=scenario.time_scale / SLOWER)


def names(report: Report, name: str) -> list[dict[str, Any]]:
    """The details of all events of a name."""
    return [event.details for event in report.events if event.name == name]


def told(report: Report) -> tuple[str, ...]:
    """What a failing test shows of a run."""
    return (report.verdict, report.detail, *report.failures)
