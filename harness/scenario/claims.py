"""What a scenario file says of itself: the requirements that it decides, the old bugs that it finds, its tiers."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection

from harness.gate.nearness import did_you_mean
from harness.requirements.manifest import load_manifest
from harness.requirements.source_tree import find_source_root
from harness.scenario.document import Document
from harness.scenario.model import TIERS
from harness.scenario.vocabulary import NEAR

VARIANTS = "scenarios/variants"
_DECORATED = re.compile(r"^@variant\(.*?^(?:async )?def (\w+)\(", re.MULTILINE | re.DOTALL)


def check_claims(document: Document) -> None:
    """Names that stand for something. Raises UserInputError."""
    tree = document.tree
    for index, name in enumerate(tree.get("requirements", ())):
        known = load_manifest().requirements
        if name not in known:
            near = did_you_mean(name, known, NEAR)
            hint = f"Did you mean {near}?" if near else "mcp-harness dev requirements lists them."
            document.fail(("requirements", index), f"no requirement is called {name!r}", hint)
    for tier in tree.get("tiers", ()):
        if tier not in TIERS:
            fix = f"There is {', '.join(TIERS)}; `not_at` says why not the others."
            document.fail(("tiers",), f"the tier {tier} is not available", fix)
    for index, bug in enumerate(tree.get("old_bug", ())):
        variants = known_variants()
        if variants and bug["name"] not in variants:
            near = did_you_mean(bug["name"], variants, NEAR)
            hint = f"Did you mean {near}?" if near else "mcp-harness dev variants lists them."
            document.fail(("old_bug", index, "name"), f"no known-bad variant is called {bug['name']!r}", hint)


@functools.cache
def known_variants() -> Collection[str]:
    """The names of all known-bad variants, read from their files and not imported; none without a source tree."""
    root = find_source_root()
    if root is None:
        return frozenset()
    return frozenset(
        f"{path.stem}.{name}"
        for path in (root / VARIANTS).glob("*.py")
        for name in _DECORATED.findall(path.read_text(encoding="utf-8"))
    )
