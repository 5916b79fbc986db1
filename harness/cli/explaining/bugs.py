"""Bugs that were reported, and incidents: whom they hurt, which rules came of them, what shows them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache

from fake_runtimes.codex.bugs import KNOWN
from harness.canary.claims import all_probes
from harness.canary.workarounds import WORKAROUNDS
from harness.cli.explaining.kind import Kind, labelled, listed, paragraphs, text_of
from harness.cli.explaining.requirements import requirement_line
from harness.cli.explaining.shipped import scenarios
from harness.gate.rule import RULES
from harness.gate.rules import load_rules
from harness.requirements.manifest import load_manifest
from harness.scenario.families import families


@cache
def ids() -> Collection[str]:
    """Every number that something of ours names."""
    load_rules()
    named = [*KNOWN, *(each.bug for each in WORKAROUNDS)]
    for holders in (RULES, load_manifest().requirements, scenarios(), families()):
        named += [number for holder in holders.values() for number in holder.incidents]
    return tuple(dict.fromkeys(named))


def meant(text: str) -> str:
    """An incident by its bare number, a bug of a runtime by the end of its name."""
    number = f"#{text.removeprefix('#')}"
    if number in ids():
        return number
    found = [name for name in ids() if name.casefold().endswith(text.casefold()) and name.endswith(number)]
    return found[0] if len(found) == 1 else ""


def explanation(name: str) -> str:
    """What is known of it here."""
    lines: list[str] = []
    for known in WORKAROUNDS:
        if known.bug == name:
            lines += [*labelled("bug", known.says), *labelled("ours", f"{known.ours}, because of it")]
    showing = [claim.id for probe in all_probes() for claim in probe.claims if name in claim.shows]
    lines += listed("claims", showing)
    lines += paragraphs("rules", map(requirement_line, rules_of(name)))
    lines += listed("gate", sorted(rule.id for rule in RULES.values() if name in rule.incidents))
    mine = [each for each in scenarios().values() if name in each.incidents]
    lines += paragraphs("scenarios", (f"{each.id}: {each.title}" for each in mine))
    lines += listed("families", [each.name for each in families().values() if name in each.incidents])
    commands = {"play it": f"mcp-harness run {mine[0].id}"} if mine else {}
    if showing:
        commands["is it there"] = f"mcp-harness canary {showing[0].partition('.')[0]} --claims {showing[0]}"
    what = "bug of a runtime" if "/" in name else "incident"
    return text_of(f"{name}  {what}", lines, commands)


def rules_of(name: str) -> Iterator[str]:
    """The requirements that came of it."""
    return (each.id for each in load_manifest().requirements.values() if name in each.incidents)


BUG = Kind("bug or incident", ids, explanation, meant)
