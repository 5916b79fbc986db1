"""Rules of the gate: what they are called, why they exist, and how they are added.

A rule is one function in a module of `harness.gate.rules`, decorated with `@entry_rule` (asked once for
each entry), `@catalog_rule` (asked once for the catalog) or `@comparison_rule` (asked, with a base, once for each
entry that a change alters). Nothing else has to be touched: the modules
are discovered, `explain` and the reports read what the decorator says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from harness.gate.model import Edit, ScenarioFile, Severity
from harness.inputs.document import Pointer

if TYPE_CHECKING:
    from harness.gate.context import Context, EntryView


class Asked(StrEnum):
    """When a rule is asked. An allowance for one that was not is of no use in that run, and yet no stale one."""

    ALWAYS = ""
    WITH_NAMES = "with --known-secrets or --secrets"
    WITHOUT_NAMES = "without --known-secrets and --secrets"
    WITH_VALUES = "with --secrets"
    WITH_TOOLS = "with --tools"
    WITH_FAULTS = "unless --battery is off"


class Rule(NamedTuple):
    """What `mcp-harness explain ID` shows. `why` tells what happened to whom, `fix` what to do about it.

    `covers` names rules that would report a consequence of the same mistake: on an entry where this rule
    hits, theirs stay silent, so that one mistake is one finding.

    `never_starts`: each hit of this rule that is an error means that the server cannot start (on the hit's
    runtimes, or on all). The table of outcomes asks these rules, so none of them may ask for outcomes.

    `asked` says when it is asked at all, where that is not in every run. `not_allowable` says why no allowance can let
    it pass.
    """

    id: str
    severity: Severity
    title: str
    why: str
    fix: str
    requirements: tuple[str, ...]
    incidents: tuple[str, ...]
    covers: tuple[str, ...] = ()
    never_starts: bool = False
    asked: Asked = Asked.ALWAYS
    not_allowable: str = ""


class Hit(NamedTuple):
    """What a rule's function yields: the engine makes a Finding of it.

    `pointer` leads to the place in the catalog (or, with `file="roots"`, in the roots file); `at_value`
    points at the value instead of its key. `others` are further entries that have a part in it: with a
    base the hit is shown when any of them was touched. `subject` tells hits of one rule at one place
    apart (it goes into the fingerprint, so it must not change with unrelated edits).

    `events` and `proof`: see Finding. `anchors` are places that would do as well as `pointer`: with a base the hit is
    shown at the first of them whose entry was touched.

    The message says what happens to whom without the entry's name: every report puts it in front.
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
    events: tuple[int, ...] = ()
    proof: ScenarioFile | None = None
    anchors: tuple[Pointer, ...] = ()


class Comparison(NamedTuple):
    """An entry that both sides of a comparison hold and that the change alters.

    `explained`: the runtimes on which an error that the change brings says already what is wrong.
    """

    base: Context
    head: Context
    before: EntryView
    after: EntryView
    explained: frozenset[str]


EntryCheck = Callable[["Context", "EntryView"], Iterable[Hit]]
CatalogCheck = Callable[["Context"], Iterable[Hit]]
ComparisonCheck = Callable[[Comparison], Iterable[Hit]]
AnyCheck = TypeVar("AnyCheck", EntryCheck, CatalogCheck, ComparisonCheck)

RULES: dict[str, Rule] = {}
ENTRY_CHECKS: dict[str, EntryCheck] = {}
CATALOG_CHECKS: dict[str, CatalogCheck] = {}
COMPARISON_CHECKS: dict[str, ComparisonCheck] = {}


def _registering(checks: dict[str, AnyCheck], rule: Rule) -> Callable[[AnyCheck], AnyCheck]:
    """The decorator that enters a rule and its function."""

    def register(check: AnyCheck) -> AnyCheck:
        if rule.id in RULES:
            raise ValueError(f"rule {rule.id} is registered twice")
        RULES[rule.id] = rule
        checks[rule.id] = check
        return check

    return register


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
    never_starts: bool = False,
    asked: Asked = Asked.ALWAYS,
    not_allowable: str = "",
) -> Callable[[EntryCheck], EntryCheck]:
    """Register a rule that looks at one entry at a time; with a base it is asked for touched entries only."""
    rule = Rule(
        identifier,
        severity,
        title,
        why,
        fix,
        requirements,
        incidents,
        covers,
        never_starts,
        asked=asked,
        not_allowable=not_allowable,
    )
    return _registering(ENTRY_CHECKS, rule)


def catalog_rule(
    identifier: str,
    severity: Severity,
    title: str,
    *,
    why: str,
    fix: str,
    requirements: tuple[str, ...] = (),
    asked: Asked = Asked.ALWAYS,
) -> Callable[[CatalogCheck], CatalogCheck]:
    """Register a rule that needs the whole catalog (collisions, roots, the file itself)."""
    return _registering(CATALOG_CHECKS, Rule(identifier, severity, title, why, fix, requirements, (), asked=asked))


def comparison_rule(
    identifier: str,
    severity: Severity,
    title: str,
    *,
    why: str,
    fix: str,
    requirements: tuple[str, ...] = (),
) -> Callable[[ComparisonCheck], ComparisonCheck]:
    """Register a rule that looks at both sides of an altered entry."""
    return _registering(COMPARISON_CHECKS, Rule(identifier, severity, title, why, fix, requirements, ()))
