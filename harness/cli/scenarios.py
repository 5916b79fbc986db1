"""`mcp-harness scenarios`: the scenarios that are shipped."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from harness.scenario.library import load_all
from harness.scenario.model import Scenario
from harness.scenario.rendering import list_document

WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")


def run(arguments: argparse.Namespace) -> int:
    """List them; 0, or 2 where one cannot be read."""
    scenarios = load_all()
    if arguments.format == "json":
        sys.stdout.write(json.dumps(list_document(scenarios), indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(lines(scenarios)) + "\n")
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
