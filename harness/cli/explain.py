"""`mcp-harness explain ID`: what stands behind an id that a report names, be it of a rule, a requirement or a claim."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Iterator

from harness.canary.claims import Claim, all_probes
from harness.canary.differing import shown
from harness.canary.records import load_record, recorded_labels
from harness.errors import UserInputError
from harness.gate import allowances
from harness.gate.nearness import did_you_mean
from harness.gate.rule import RULES, Rule
from harness.gate.rules import load_rules
from harness.report.masking import mask
from harness.report.safety import shorten, visible
from harness.requirements.manifest import Requirement, load_manifest

_WIDTH = 100
_LABEL = 10
_HANGING = " " * (_LABEL + 2)
_LONGEST_ANSWER = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument(
        "ids",
        nargs="*",
        metavar="ID",
        help="what a report names: a rule of the gate (MH203), a requirement (prepare-canary-budgets) or a claim of "
        "the canary (codex.wait.optional); without one: list the rules of the gate",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what was asked for, or the list of all rules of the gate."""
    load_rules()
    if not arguments.ids:
        for rule in sorted(RULES.values()):
            print(f"{rule.id}  {rule.severity:<8} {rule.title}")
        return 0
    print("\n\n".join([explained(text) for text in arguments.ids]))
    return 0


def explained(text: str) -> str:
    """The text about an id, in any case. Raises UserInputError with the nearest one."""
    rule = RULES.get(text.upper())
    if rule is not None:
        return explanation(rule)
    requirements, claims = load_manifest().requirements, claims_by_id()
    if text.lower() in requirements:
        return of_requirement(requirements[text.lower()])
    if text.lower() in claims:
        return of_claim(claims[text.lower()])
    near = did_you_mean(text.upper(), RULES) or did_you_mean(text.lower(), (*requirements, *claims))
    lists = "mcp-harness explain lists the rules of the gate, mcp-harness canary list the claims."
    raise UserInputError(
        f"there is no rule {visible(text)}, nor a requirement or claim of that name",
        fix=f"Did you mean {near}?" if near else lists,
    )


def claims_by_id() -> dict[str, Claim]:
    """All claims of the canary."""
    return {claim.id: claim for probe in all_probes() for claim in probe.claims}


def explanation(rule: Rule) -> str:
    """The text of one rule of the gate, 100 columns wide."""
    lines = [f"{rule.id}  {rule.severity}: {rule.title}", ""]
    lines += labelled("why", rule.why)
    lines += labelled("fix", rule.fix)
    lines += labelled("incidents", ", ".join(rule.incidents))
    lines += labelled("rules", ", ".join(rule.requirements))
    lines += ["", f'  allow it    [[allow]] rule = "{rule.id}", entry, reason, until  in mcp-harness.toml']
    return "\n".join(lines)


def of_requirement(requirement: Requirement) -> str:
    """The text of one requirement: what must be so, how that is decided, and who rests on it."""
    lines = [f"{requirement.id}  requirement of the area {requirement.area}, {requirement.level}", ""]
    lines += labelled("says", requirement.statement)
    lines += labelled("check", requirement.check)
    lines += labelled("old bug", requirement.mutant)
    lines += labelled("note", requirement.note)
    lines += labelled("incidents", ", ".join(requirement.incidents))
    lines += labelled(
        "gate", ", ".join(sorted(rule.id for rule in RULES.values() if requirement.id in rule.requirements))
    )
    resting = [claim.id for claim in claims_by_id().values() if requirement.id in claim.relied_on]
    return "\n".join([*lines, *labelled("claims", ", ".join(resting))])


def of_claim(claim: Claim) -> str:
    """The text of one claim: what is asked, what rests on it, and what each version was seen to do."""
    requirements = load_manifest().requirements
    lines = [f"{claim.id}  claim of the canary about {claim.family}, {claim.source}", ""]
    lines += labelled("says", claim.says)
    lines += labelled("affects", claim.affects)
    for number, name in enumerate(claim.relied_on):
        lines += labelled("" if number else "rules", f"{name}: {requirements[name].statement}")
    lines += labelled("profile", ", ".join(claim.lines))
    lines += labelled("no fake", claim.not_modelled)
    for number, told in enumerate(answers(claim)):
        lines += labelled("" if number else "measured", told)
    return "\n".join([*lines, "", f"  ask it      mcp-harness canary {claim.family} --claims {claim.id}"])


def answers(claim: Claim) -> Iterator[str]:
    """What each recorded version was seen to do."""
    words = {True: "holds", False: "broken", None: "seen"}
    found = {label: record[claim.id] for label in recorded_labels() if claim.id in (record := load_record(label))}
    for label, observed in found.items():
        answer = shorten(visible(mask(shown(observed))), _LONGEST_ANSWER)
        yield f"{label} {words[claim.holds(observed)]}: {answer}"
    if not found:
        yield "on no version"


def labelled(label: str, text: str) -> Iterable[str]:
    """A paragraph behind its label; nothing where there is no text."""
    return textwrap.wrap(
        visible(text),
        _WIDTH,
        initial_indent=f"  {label:<{_LABEL}}",
        subsequent_indent=_HANGING,
        break_on_hyphens=False,
    )


__all__ = ["add_arguments", "allowances", "explained", "explanation", "run"]
