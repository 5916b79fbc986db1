"""`mcp-harness explain RULE`: why a rule exists and what to do about a finding."""

from __future__ import annotations

import argparse
import textwrap

from harness.errors import UserInputError
from harness.gate import allowances
from harness.gate.nearness import did_you_mean
from harness.gate.rule import RULES, Rule
from harness.gate.rules import load_rules

_WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("rules", nargs="*", metavar="RULE", help="ids, e.g. MH203 (without one: list all rules)")


def run(arguments: argparse.Namespace) -> int:
    """Print the rules that were asked for, or the list of all."""
    load_rules()
    if not arguments.rules:
        for rule in sorted(RULES.values()):
            print(f"{rule.id}  {rule.severity:<8} {rule.title}")
        return 0
    print("\n\n".join(explanation(rule) for rule in [find_rule(text) for text in arguments.rules]))
    return 0


def find_rule(text: str) -> Rule:
    """The rule of that id, in any case. Raises UserInputError with the nearest ones."""
    rule = RULES.get(text.upper())
    if rule is None:
        near = did_you_mean(text.upper(), RULES)
        hint = f"Did you mean {near}?" if near else "mcp-harness explain lists all rules."
        raise UserInputError(f"there is no rule {text}", fix=hint)
    return rule


def explanation(rule: Rule) -> str:
    """The text of one rule, 100 columns wide."""
    lines = [f"{rule.id}  {rule.severity}: {rule.title}", ""]
    for label, text in (("why", rule.why), ("fix", rule.fix)):
        lines += textwrap.wrap(text, _WIDTH, initial_indent=f"  {label:<10}", subsequent_indent=" " * 12)
    for label, items in (("incidents", rule.incidents), ("rules", rule.requirements)):
        if items:
            lines += textwrap.wrap(
                ", ".join(items),
                _WIDTH,
                initial_indent=f"  {label:<10}",
                subsequent_indent=" " * 12,
                break_on_hyphens=False,
            )
    lines += ["", f'  allow it    [[allow]] rule = "{rule.id}", entry, reason, until  in mcp-harness.toml']
    return "\n".join(lines)


__all__ = ["add_arguments", "allowances", "explanation", "find_rule", "run"]
