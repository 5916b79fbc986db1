"""Rules on what a change does to an entry; they are asked with a base alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from harness.gate.model import Severity, State
from harness.gate.outcome_changes import outcome_changes
from harness.gate.rule import Comparison, Hit, comparison_rule
from harness.gate.wording import named
from harness.inputs.document import Pointer

_WAS = {
    State.STARTS: "it started",
    State.AUTHORIZE: "users could authorize it",
    State.UNAVAILABLE: "it was declared unavailable",
    State.FAILS: "it failed alone",
    State.SKIPPED: "it was left out",
    State.NOT_WRITTEN: "it was not written",
}
_IS = {
    State.FAILS: "the server never connects",
    State.SKIPPED: "the runtime does not load it",
    State.NOT_WRITTEN: "it does not reach the runtime's config",
    State.KILLS_RUN: "it stops every session that carries it",
}


@comparison_rule(
    "MH850",
    Severity.ERROR,
    "a change that takes a runtime away from an entry",
    why=(
        "Sessions on every runtime share one catalog. A change that is meant for one of them (a routine header, another"
        " transport, another name for a variable) can take the server away from another, and who has it there sees"
        " its tools missing without a word."
    ),
    fix="Change the entry so that it works there too, or let it pass with a reason in mcp-harness.toml.",
)
def worse_on_a_runtime(comparison: Comparison) -> Iterator[Hit]:
    groups: dict[tuple[State, State, str], list[str]] = defaultdict(list)
    for moved in outcome_changes(comparison.before, comparison.after, comparison.base, comparison.head):
        if moved.is_worse and moved.after.runtime not in comparison.explained:
            groups[moved.before.state, moved.after.state, moved.after.detail].append(moved.after.runtime)
    for (before, after, detail), runtimes in groups.items():
        words = f": {' '.join(detail.split())}" if detail else "."
        yield Hit(
            changed_place(comparison),
            f"{_WAS[before]} on {named(comparison.head, runtimes)}; after this change {_IS[after]}{words}",
            runtimes=tuple(runtimes),
            subject=f"{before} {after}",
        )


def changed_place(comparison: Comparison) -> Pointer:
    """The field that was changed where it is one that stands in the new text, else the entry."""
    name, old, new = comparison.after.name, comparison.before.fields, comparison.after.fields
    differing = [field for field in dict.fromkeys((*old, *new)) if repr(old.get(field)) != repr(new.get(field))]
    return (name, differing[0]) if len(differing) == 1 and differing[0] in new else (name,)
