"""What a scenario file says of itself: the requirements that it decides, the old bugs that it finds, its tiers."""

from __future__ import annotations

from harness.requirements.manifest import load_manifest
from harness.scenario.document import Document
from harness.scenario.hints import meant
from harness.scenario.tiers import REAL
from harness.scenario.variants import known_variants


def check_claims(document: Document) -> None:
    """Names that stand for something. Raises UserInputError."""
    tree = document.tree
    for index, name in enumerate(tree.get("requirements", ())):
        known = load_manifest().requirements
        if name not in known:
            hint = meant(name, known) or "mcp-harness dev requirements lists them."
            document.fail(("requirements", index), f"no requirement is called {name!r}", hint)
    if REAL in tree.get("tiers", ()):
        check_unsteered(document)
    for index, bug in enumerate(tree.get("old_bug", ())):
        variants = known_variants()
        if variants and bug["name"] not in variants:
            hint = meant(bug["name"], variants) or "mcp-harness dev variants --list has them."
            document.fail(("old_bug", index, "name"), f"no known-bad variant is called {bug['name']!r}", hint)


def check_unsteered(document: Document) -> None:
    """A real program can neither be held nor struck: what would do so keeps a scenario from this tier.

    Sessions are ours at every tier, so what is about them stays.
    """
    if document.tree.get("codex_bugs"):
        document.fail(("codex_bugs",), f"at the tier {REAL} Codex has the bugs that it has", "Leave this tier out.")
    for rows in ("hold", "fault"):
        for index, table in enumerate(document.tree.get(rows, ())):
            if "server" in table or not is_of_session(str(table.get("actor", "*")), document):
                whom = table.get("server") or table.get("actor", "anybody")
                what = f"[[{rows}]] is about {whom}: at the tier {REAL} only sessions can be held or struck"
                fix = f'Say why not in not_at = {{ {REAL} = "..." }}.'
                document.fail((rows, index), what, fix)


def is_of_session(actor: str, document: Document) -> bool:
    """Whether an actor is named as sessions are."""
    sessions = {step["start"] for step in document.tree.get("step", ()) if "start" in step}
    return actor.partition("#")[0].removeprefix("session ") in sessions
