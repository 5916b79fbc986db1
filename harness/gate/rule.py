"""Rules of the gate: what they are called, why they exist, and how they are added.

A rule is one function in a module of `harness.gate.rules`, decorated with `@entry_rule` (asked once for
each entry) or `@catalog_rule` (asked once for the catalog). Nothing else has to be touched: the modules
are discovered, `explain` and the reports read what the decorator says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from harness.gate.model import Edit, Severity
from harness.inputs.document import Pointer

if TYPE_CHECKING:
    from harness.gate.context import Context, EntryView


class Rule(NamedTuple):
    """What `mcp-harness explain ID` shows. `why` tells what happened to whom, `fix` what to do about it.

    `covers` names rules that would report a consequence of the same mistake: on an entry where this rule
    hits, theirs stay silent, so that one mistake is one finding.
    """

    id: str
    severity: Severity
    title: str
    why: str
    fix: str
    requirements: tuple[str, ...]
    incidents: tuple[str, ...]
    covers: tuple[str, ...] = ()


class Hit(NamedTuple):
    """What a rule's function yields: the engine makes a Finding of it.

    `pointer` leads to the place in the catalog (or, with `file="roots"`, in the roots file); `at_value`
    points at the value instead of its key. `others` are further entries that have a part in it: with a
    base the hit is shown when any of them was touched. `subject` tells hits of one rule at one place
    apart (it goes into the fingerprint, so it must not change with unrelated edits).
    """

    pointer: Pointer
    message: str
    fix: str = ""
    runtimes: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    severity: Severity | None = None
    file: str = "catalog"
    at_value: bool = False
    others: tuple[str, ...] = ()
    subject: str = ""


EntryCheck = Callable[["Context", "EntryView"], Iterable[Hit]]
CatalogCheck = Callable[["Context"], Iterable[Hit]]
AnyCheck = TypeVar("AnyCheck", EntryCheck, CatalogCheck)

RULES: dict[str, Rule] = {}
ENTRY_CHECKS: dict[str, EntryCheck] = {}
CATALOG_CHECKS: dict[str, CatalogCheck] = {}


def _register(rule: Rule) -> None:
    if rule.id in RULES:
        raise ValueError(f"rule {rule.id} is registered twice")
    RULES[rule.id] = rule


def entry_rule(
    identifier: str,
    severity: Severity,
    title: str,
    *,
    why: str,
    fix: str,
    requirements: tuple[str, ...] = (),
    incidents: tuple[str, ...] = (),
    covers: tuple[str, ...] = (),
) -> Callable[[EntryCheck], EntryCheck]:
    """Register a rule that looks at one entry at a time; with a base it is asked for touched entries only."""

    def register(check: EntryCheck) -> EntryCheck:
        _register(Rule(identifier, severity, title, why, fix, requirements, incidents, covers))
        ENTRY_CHECKS[identifier] = check
        return check

    return register


def catalog_rule(
    identifier: str,
    severity: Severity,
    title: str,
    *,
    why: str,
    fix: str,
    requirements: tuple[str, ...] = (),
    incidents: tuple[str, ...] = (),
    covers: tuple[str, ...] = (),
) -> Callable[[CatalogCheck], CatalogCheck]:
    """Register a rule that needs the whole catalog (collisions, roots, the file itself)."""

    def register(check: CatalogCheck) -> CatalogCheck:
        _register(Rule(identifier, severity, title, why, fix, requirements, incidents, covers))
        CATALOG_CHECKS[identifier] = check
        return check

    return register
