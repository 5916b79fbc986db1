"""What the gate's rules find in a catalog given as text: a small frame around the rules for their unit tests."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from harness.gate.context import Context, SecretKnowledge
from harness.gate.edits import applied
from harness.gate.engine import make_finding
from harness.gate.model import Finding
from harness.gate.rule import CATALOG_CHECKS, ENTRY_CHECKS
from harness.gate.rules import load_rules
from harness.gate.spawn import runtime_named
from harness.inputs.document import Document
from harness.reference.selection.zimmer import Instance

RUNTIMES = ("claude", "codex", "pi")
PRODUCTION = Instance("production", "https://zimmer.example.com", "zimmer-api-key")


def catalog_context(
    text: str,
    *,
    runtimes: Iterable[str] = RUNTIMES,
    names: Collection[str] | None = None,
    values: Mapping[str, str] | None = None,
    instance: Instance = PRODUCTION,
) -> Context:
    """A context of one catalog. `names`: the known secrets; `values`: given ones, which are known too."""
    known = None if names is None and values is None else frozenset(names or ()) | frozenset(values or ())
    return Context(
        Document.parse("mcp.json", text.encode("utf-8")),
        runtimes=tuple(runtime_named(name) for name in runtimes),
        secrets=SecretKnowledge("secrets.env" if known is not None else None, known, values),
        instance=instance,
    )


def rule_findings(context: Context, rules: Collection[str]) -> list[Finding]:
    """What the named rules find, by rule, then in the order in which they tell it."""
    load_rules()
    found: list[Finding] = []
    for identifier in sorted(rules):
        if identifier in CATALOG_CHECKS:
            hits = list(CATALOG_CHECKS[identifier](context))
        else:
            hits = [hit for view in context.entries.values() for hit in ENTRY_CHECKS[identifier](context, view)]
        found += [make_finding(identifier, hit, context) for hit in hits]
    return found


def findings(text: str, rules: Collection[str], **given: Any) -> list[Finding]:
    """What the named rules find in a catalog; further arguments as for `catalog_context`."""
    return rule_findings(catalog_context(text, **given), rules)


def entry_findings(entry: object, rules: Collection[str], name: str = "a", **given: Any) -> list[Finding]:
    """The same for a catalog of one entry."""
    return findings(json.dumps({name: entry}), rules, **given)


def only(found: list[Finding]) -> Finding:
    """The one finding that a test speaks of."""
    assert len(found) == 1, [str(each) for each in found]
    return found[0]


def mended(text: str, finding: Finding) -> str:
    """The text after a finding's edits, which must leave JSON."""
    assert finding.edits, f"{finding.rule} offers no edit"
    result = applied(text, finding.edits)
    json.loads(result)
    return result


def where(finding: Finding) -> tuple[int, int]:
    """Line and column of a finding."""
    return finding.place.line, finding.place.column
