"""Shipped scenarios, the families that draw more of them, and the rare states that a campaign must reach."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from harness.cli.explaining.kind import Kind, labelled, listed, paragraphs, text_of
from harness.cli.explaining.requirements import requirement_line
from harness.cli.explaining.shipped import scenarios
from harness.scenario.families import families
from harness.scenario.library import shipped
from harness.scenario.model import Scenario
from harness.scenario.reach import Mark
from harness.scenario.tiers import MODEL


def ids() -> Collection[str]:
    """All that are shipped."""
    return shipped()


def explanation(name: str) -> str:
    """What it decides, how it is played, and under which old bugs it falls."""
    it = scenarios()[name]
    lines = [*listed("incidents", it.incidents), *paragraphs("decides", decided(it))]
    lines += listed("runtimes", it.runtimes)
    lines += labelled(
        "tiers", "; ".join([", ".join(it.tiers), *(f"not {tier}: {why}" for tier, why in it.not_at.items())])
    )
    lines += paragraphs("old bugs", old_bugs(it))
    commands = {"play it": f"mcp-harness run {it.id}"}
    if it.old_bugs:
        commands["old bug"] = f"mcp-harness run {it.id} --variant {it.old_bugs[0].name}"
    if len(it.tiers) > 1:
        tiers = " ".join(f"--tier {tier}" for tier in it.tiers if tier != MODEL)
        commands["processes"] = f"mcp-harness run {it.id} --tier {MODEL} {tiers}"
    return text_of(f"{it.id}  scenario: {it.title}", lines, commands)


def decided(scenario: Scenario) -> Iterator[str]:
    """The requirements, and what the file says must be seen."""
    yield from map(requirement_line, scenario.requirements)
    said = dict.fromkeys(expected.says for expected in scenario.expectations if expected.says)
    yield from (f"seen: {text}" for text in said)


def old_bugs(scenario: Scenario) -> Iterator[str]:
    """Each variant with what is then seen, and where."""
    for bug in scenario.old_bugs:
        where = f" (on {', '.join(bug.runtimes)})" if bug.runtimes else ""
        yield f"{bug.name}: {bug.shows}{where}"


def family_explanation(name: str) -> str:
    """What is drawn, which marks must be reached, which old bugs it finds."""
    it = families()[name]
    lines = [*labelled("says", it.says), *listed("incidents", it.incidents)]
    lines += paragraphs("reaches", (f"{mark.name}: {mark.says}" for mark in it.marks))
    lines += listed("old bugs", it.old_bugs)
    commands = {"play it": f"mcp-harness campaign --scenario-family {name} --minutes 1"}
    return text_of(f"{name}  family of scenarios, each drawn from a seed", lines, commands)


def marks() -> dict[str, Mark]:
    """All declared marks by name."""
    return {mark.name: mark for family in families().values() for mark in family.marks}


def mark_explanation(name: str) -> str:
    """Which state it is, and who must reach it."""
    mine = [family.name for family in families().values() if any(mark.name == name for mark in family.marks)]
    lines = [*labelled("says", marks()[name].says), *listed("families", mine)]
    return text_of(f"{name}  state that a campaign must have reached, or it has proved less than it seems", lines)


SCENARIO = Kind("scenario", ids, explanation)
FAMILY = Kind("family of scenarios", families, family_explanation)
MARK = Kind("mark of a campaign", marks, mark_explanation)
