"""Scenarios and known-bad variants as far as they are there, read once; variants are in the source tree alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from harness.requirements.source_tree import find_source_root, import_variants
from harness.requirements.variants import VARIANTS, Variant
from harness.scenario.library import load_all
from harness.scenario.model import OldBug, Scenario
from harness.scenario.production import play
from harness.scenario.tiers import MODEL


@cache
def scenarios() -> Mapping[str, Scenario]:
    """The shipped ones by id."""
    return {each.id: each for each in load_all()}


@cache
def variants() -> Mapping[str, Variant]:
    """All of them by name, proposals too; none where there is no source tree."""
    root = find_source_root()
    if root is not None:
        import_variants(root)
    return dict(sorted(VARIANTS.items())) if root is not None else {}


def about_requirement(name: str) -> list[Scenario]:
    """The scenarios that decide a requirement."""
    return [each for each in scenarios().values() if name in each.requirements]


def showing(variant: str) -> Iterator[tuple[Scenario, OldBug]]:
    """The scenarios that fall under a variant, or, of a proposal, in which it closes a hole."""
    for scenario in scenarios().values():
        yield from ((scenario, bug) for bug in scenario.old_bugs if bug.name == variant)


@cache
def walking() -> Mapping[str, Sequence[str]]:
    """The scenarios that walk into each accepted hole in the calmest order: they are played for that."""
    found: dict[str, list[str]] = {}
    for scenario in scenarios().values():
        if MODEL in scenario.tiers and scenario.authorizations:
            for hole in dict.fromkeys(name for runtime in scenario.runtimes for name in play(scenario, runtime).holes):
                found.setdefault(hole, []).append(scenario.id)
    return found
