"""Requirements and their areas."""

from __future__ import annotations

from collections.abc import Collection

from harness.canary.claims import all_probes
from harness.cli.explaining.kind import Kind, labelled, listed, text_of
from harness.cli.explaining.shipped import about_requirement, variants
from harness.gate.rule import RULES
from harness.gate.rules import load_rules
from harness.requirements.manifest import load_manifest

MOST_NAMED = 12


def ids() -> Collection[str]:
    """All of them."""
    return load_manifest().requirements


def explanation(name: str) -> str:
    """What must be so, how that is decided, and who rests on it."""
    load_rules()
    it = load_manifest().requirements[name]
    lines = [*labelled("says", it.statement), *labelled("check", it.check), *labelled("old bug", it.mutant)]
    lines += [*labelled("note", it.note), *listed("incidents", it.incidents)]
    lines += listed("gate", sorted(rule.id for rule in RULES.values() if name in rule.requirements))
    resting = [claim.id for probe in all_probes() for claim in probe.claims if name in claim.relied_on]
    lines += listed("claims", resting)
    lines += listed("variants", [each for each, bug in variants().items() if name in bug.catches])
    lines += listed("scenarios", [scenario.id for scenario in about_requirement(name)])
    return text_of(f"{it.id}  requirement of the area {it.area}, {it.level}", lines)


def requirement_line(name: str) -> str:
    """A requirement with what it says, for whoever names it."""
    found = load_manifest().requirements.get(name)
    return f"{name}: {found.statement}" if found else name


def area_ids() -> Collection[str]:
    """All areas."""
    return load_manifest().areas


def area_explanation(name: str) -> str:
    """How far an area is, and what it holds."""
    area = load_manifest().areas[name]
    mine = [each.id for each in load_manifest().requirements.values() if each.area == name]
    lines = [*labelled("status", area.status), *listed("rules", mine, MOST_NAMED)]
    command = {"more": f"mcp-harness dev requirements {name}"}
    return text_of(f"{name}  area of {len(mine)} requirements", lines, command)


REQUIREMENT = Kind("requirement", ids, explanation)
AREA = Kind("area of requirements", area_ids, area_explanation)
