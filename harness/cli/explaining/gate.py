"""Rules of the gate."""

from __future__ import annotations

from collections.abc import Collection

from harness.cli.explaining.kind import Kind, labelled, listed, text_of
from harness.gate import allowances
from harness.gate.rule import CATALOG_CHECKS, RULES, Rule
from harness.gate.rules import load_rules

__all__ = ["RULE", "allowances", "explanation"]


def ids() -> Collection[str]:
    """All of them."""
    load_rules()
    return RULES


def explanation(rule: Rule) -> str:
    """The text of one rule."""
    lines = [*labelled("why", rule.why), *labelled("fix", rule.fix)]
    lines += labelled("asked", rule.asked)
    lines += [*listed("incidents", rule.incidents), *listed("rules", rule.requirements)]
    return text_of(f"{rule.id}  {rule.severity}: {rule.title}", lines, {"allow it": allowing(rule)})


def allowing(rule: Rule) -> str:
    """What lets its findings pass; what is no finding cannot be let pass, and an entry for it would be warned of."""
    if rule.not_allowable:
        return rule.not_allowable
    entry = "entry (where the finding names one)" if rule.id in CATALOG_CHECKS else "entry"
    return f'[[allow]] rule = "{rule.id}", {entry}, reason, until  in mcp-harness.toml'


RULE = Kind("rule of the gate", ids, lambda name: explanation(RULES[name]))
