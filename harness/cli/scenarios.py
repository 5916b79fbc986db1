"""`mcp-harness scenarios`: the scenarios that are shipped."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from harness.cli.output import deliver, targets_of
from harness.errors import UserInputError
from harness.scenario.hints import meant
from harness.scenario.library import load_all, shipped
from harness.scenario.model import Scenario
from harness.scenario.rendering import list_document


def run(arguments: argparse.Namespace) -> int:
    """List them; 0, or 2 where one cannot be read, or where none is about the words."""
    targets = targets_of(arguments.format)
    every = load_all()
    scenarios = [each for each in every if not arguments.words or any(is_about(each, word) for word in arguments.words)]
    if not scenarios:
        scenarios = [each for each in every if any(is_written(each, word) for word in arguments.words)]
    if not scenarios:
        known = {text for each in every for text in texts(each)} - {each.title for each in every}
        near = next(filter(None, (meant(word, known) for word in arguments.words)), "")
        raise UserInputError(
            f"no scenario is about {' or '.join(arguments.words)}", fix=near or "Leave the word out to see all."
        )
    in_format = {
        "json": lambda: json.dumps(list_document(scenarios), indent=2),
        "text": lambda: "\n".join(lines(scenarios)),
    }
    deliver(targets, lambda name: in_format[name]())
    return 0


def is_about(scenario: Scenario, word: str) -> bool:
    """Whether a word is in anything by which a scenario is known; a dash is as good as an underscore."""
    wanted = folded(word)
    return any(wanted in folded(text) for text in texts(scenario))


def is_written(scenario: Scenario, word: str) -> bool:
    """Whether a word stands anywhere in its file: what servers print, what is answered, what an old bug shows."""
    return folded(word) in folded(shipped()[scenario.id].read_text(encoding="utf-8"))


def texts(scenario: Scenario) -> tuple[str, ...]:
    """By what a scenario is known."""
    bugs = (bug.name for bug in scenario.old_bugs)
    return (
        scenario.id,
        scenario.title,
        *scenario.incidents,
        *scenario.requirements,
        *scenario.runtimes,
        *bugs,
    )


def folded(text: str) -> str:
    """A text without its case and the kind of its dashes."""
    return text.casefold().replace("-", "_")


def lines(scenarios: Sequence[Scenario]) -> list[str]:
    """A line with id and title for each, one with what it stands for, and its old bugs, the names of `--variant`."""
    width = max([len("ID"), *(len(each.id) for each in scenarios)])
    shown = []
    for each in scenarios:
        shown.append(f"{each.id:<{width}}  {each.title}")
        incidents = ", ".join(each.incidents) or "no incident"
        facts = [incidents, ", ".join(each.runtimes), f"tier {', '.join(each.tiers)}"]
        facts += [counted(len(each.requirements), "requirement")] if each.requirements else []
        shown.append(f"{'':<{width}}  {'; '.join(facts)}")
        shown += [f"{'':<{width}}  --variant {bug.name}: {bug.shows}" for bug in each.old_bugs]
    how = "play one with: mcp-harness run ID, with an old bug: mcp-harness run ID --variant NAME"
    shown.append(f"{counted(len(scenarios), 'scenario')}; {how}; exit 0")
    return shown


def counted(number: int, what: str) -> str:
    """`1 scenario`, `2 scenarios`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
