"""All kinds of ids that a report may print: a new kind is added here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from harness.cli.explaining.bugs import BUG
from harness.cli.explaining.chains import HOLE, INVARIANT, VARIANT
from harness.cli.explaining.claims import CLAIM, PROBE
from harness.cli.explaining.gate import RULE
from harness.cli.explaining.kind import Kind
from harness.cli.explaining.profiles import LINE, VERSION
from harness.cli.explaining.requirements import AREA, REQUIREMENT
from harness.cli.explaining.scenarios import FAMILY, MARK, SCENARIO
from harness.cli.explaining.vectors import VECTOR
from harness.errors import UserInputError
from harness.gate.nearness import did_you_mean
from harness.gate.rule import RULES, Rule
from harness.report.safety import visible

KINDS: Sequence[Kind] = (
    RULE, REQUIREMENT, CLAIM, INVARIANT, HOLE, LINE, SCENARIO, VARIANT, BUG, VERSION, FAMILY, MARK, PROBE, AREA, VECTOR,
)  # fmt: skip
"""In the order in which they are told where an id is of several; another spelling counts for the first alone."""
LIKE_ENOUGH = 0.6
LONGEST_ID = 200


def explained(text: str) -> str:
    """The text about an id, in any case; where it is of several kinds one after the other.

    Raises UserInputError with the nearest one of any kind.
    """
    found = [kind.explain(name) for kind in KINDS if (name := kind.find(text))]
    found = found or [kind.explain(name) for kind in KINDS if (name := kind.meant(text))][:1]
    if found:
        return "\n\n".join(found)
    near = nearest(text)
    raise UserInputError(
        f"nothing is called {visible(text[:LONGEST_ID])}",
        fix=f"Did you mean {near}?" if near else "mcp-harness explain --help says what has a name.",
    )


def rules() -> list[Rule]:
    """The rules of the gate, in the order of their ids."""
    RULE.ids()
    return sorted(RULES.values())


def nearest(text: str) -> str:
    """The id of any kind that is most like a text; "" where none is much like it."""
    short = text[:LONGEST_ID]
    near: dict[str, float] = {}
    for kind in KINDS:
        folded = {each.casefold(): each for each in kind.ids()}
        found = did_you_mean(short.casefold(), folded, LIKE_ENOUGH)
        if found:
            near[folded[found]] = SequenceMatcher(None, short.casefold(), found).ratio()
    return max(near, key=lambda each: near[each], default="")
