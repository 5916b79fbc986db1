"""`mcp-harness scenarios`: the scenarios that are shipped."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from harness.cli.output import add_format, deliver, targets_of
from harness.scenario.library import load_all
from harness.scenario.model import Scenario
from harness.scenario.rendering import list_document

WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """List them; 0, or 2 where one cannot be read."""
    targets = targets_of(arguments.format)
    scenarios = load_all()
    in_format = {
        "json": lambda: json.dumps(list_document(scenarios), indent=2),
        "text": lambda: "\n".join(lines(scenarios)),
    }
    deliver(targets, lambda name: in_format[name]())
    return 0


def lines(scenarios: Sequence[Scenario]) -> list[str]:
    """A line with id, runtimes and title for each, and one with what it stands for."""
    width = max([len("ID"), *(len(each.id) for each in scenarios)])
    shown = []
    for each in scenarios:
        shown.append(f"{each.id:<{width}}  {each.title}")
        incidents = ", ".join(each.incidents) or "no incident"
        facts = [incidents, ", ".join(each.runtimes), f"tier {', '.join(each.tiers)}"]
        facts += [counted(len(each.requirements), "requirement")] if each.requirements else []
        shown.append(f"{'':<{width}}  {'; '.join(facts)}")
    shown.append(f"{counted(len(scenarios), 'scenario')}; play one with: mcp-harness run ID; exit 0")
    return shown


def counted(number: int, what: str) -> str:
    """`1 scenario`, `2 scenarios`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
