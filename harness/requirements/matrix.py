"""The traceability matrix: what checks a rule, which known-bad variant that must catch, and what is missing.

Pure: it is given what others found (the manifest, the scan of the tests, the registries).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from harness.requirements.manifest import Area, Level, Manifest, Requirement, Status

# At most this share of an area's `should` may be deferred.
DEFERRED_SHARE_PERCENT = 10
BINDING = (Status.OPEN, Status.DONE)

Names = Mapping[str, tuple[str, ...]]


class FaultKind(StrEnum):
    """What can be wrong between the manifest, its accepted gaps and what the tests name."""

    MUST_WITHOUT_CHECK = "must-without-check"
    MUST_WITHOUT_VARIANT = "must-without-variant"
    SHOULD_WITHOUT_CHECK = "should-without-check"
    TOO_MANY_DEFERRED = "too-many-deferred"
    UNKNOWN_ID = "unknown-id"
    COVERED = "covered-but-listed"
    LISTED_TWICE = "listed-twice"
    WRONG_LEVEL = "wrong-level"
    PENDING_IN_DONE = "pending-in-done"
    UNKNOWN_AREA = "unknown-area"
    AREA_NOT_LISTED = "area-not-listed"
    UNUSABLE_CHECK = "unusable-check"


class Fault(NamedTuple):
    """One fault with one clear message. `area` is "" where none can be told."""

    kind: FaultKind
    area: str
    id: str
    message: str


class Summary(NamedTuple):
    """An area in numbers. A `must` is covered by a check and a variant, a `should` or `may` by a check."""

    area: str
    status: Status
    must_covered: int
    must: int
    should_covered: int
    should: int
    may_covered: int
    may: int
    deferred: int
    pending: int


class Gap(NamedTuple):
    """A rule that is not covered, what it lacks ("check", "variant"), and the reason if that is accepted."""

    requirement: Requirement
    lacks: tuple[str, ...]
    accepted: str


class Matrix(NamedTuple):
    """`checks` and `variants` map an id to the places or names that answer for it.

    `unusable` are marks that count for nothing.
    """

    manifest: Manifest
    checks: Names
    variants: Names
    unusable: tuple[str, ...] = ()

    def lacks(self, requirement: Requirement) -> tuple[str, ...]:
        """What a rule still needs: a check, and for a `must` a variant."""
        check = () if self.checks.get(requirement.id) else ("check",)
        needs_variant = requirement.level is Level.MUST and not self.variants.get(requirement.id)
        return (*check, "variant") if needs_variant else check

    def area_names(self) -> list[str]:
        """Every area that has a file or a line in areas.toml."""
        return sorted(
            {requirement.area for requirement in self.manifest.requirements.values()} | set(self.manifest.areas)
        )

    def requirements_of(self, area: str) -> list[Requirement]:
        """The area's rules in the order of its file."""
        return [requirement for requirement in self.manifest.requirements.values() if requirement.area == area]

    def standing_of(self, area: str) -> Area:
        """The area's line in areas.toml; planned where it has none."""
        return self.manifest.areas.get(area, Area(area, Status.PLANNED))

    def summary(self, area: str) -> Summary:
        """The area in numbers."""
        levels = {level: [rule for rule in self.requirements_of(area) if rule.level is level] for level in Level}
        covered = {level: sum(not self.lacks(rule) for rule in rules) for level, rules in levels.items()}
        standing = self.standing_of(area)
        return Summary(
            area,
            standing.status,
            covered[Level.MUST],
            len(levels[Level.MUST]),
            covered[Level.SHOULD],
            len(levels[Level.SHOULD]),
            covered[Level.MAY],
            len(levels[Level.MAY]),
            len(standing.deferred),
            len(standing.pending),
        )

    def gaps(self, area: str) -> list[Gap]:
        """All rules of an area that are not covered, accepted or not, the binding ones first."""
        standing = self.standing_of(area)
        rules = sorted(self.requirements_of(area), key=lambda each: tuple(Level).index(each.level))
        return [Gap(rule, lacks, _accepted(standing, rule.id)) for rule in rules if (lacks := self.lacks(rule))]

    def faults(self) -> list[Fault]:
        """Every fault, areas in order."""
        found = [Fault(FaultKind.UNUSABLE_CHECK, "", "", message) for message in self.unusable]
        found += self._unknown_ids()
        for area in self.area_names():
            found += self._faults_of(area)
        return found

    def _unknown_ids(self) -> Iterator[Fault]:
        for what, named in (("check", self.checks), ("variant", self.variants)):
            for identifier, places in sorted(named.items()):
                if identifier not in self.manifest.requirements:
                    area = self._area_by_prefix(identifier)
                    message = f"{what} {places[0]} names {identifier}, which is not in the manifest"
                    yield Fault(FaultKind.UNKNOWN_ID, area, identifier, message)

    def _area_by_prefix(self, identifier: str) -> str:
        return max((area for area in self.area_names() if identifier.startswith(f"{area}-")), key=len, default="")

    def _faults_of(self, area: str) -> Iterator[Fault]:
        rules = self.requirements_of(area)
        if not rules:
            yield Fault(FaultKind.UNKNOWN_AREA, area, "", f"areas.toml: {area}: no such area in the manifest")
            return
        if area not in self.manifest.areas:
            yield Fault(
                FaultKind.AREA_NOT_LISTED,
                area,
                "",
                f"areas.toml: {area} is missing; it needs at least a status",
            )
            return
        standing = self.manifest.areas[area]
        yield from self._uncovered(standing, rules)
        yield from self._listed(standing)
        yield from _too_many_deferred(standing, rules)

    def _uncovered(self, standing: Area, rules: Iterable[Requirement]) -> Iterator[Fault]:
        if standing.status not in BINDING:
            return
        for rule in rules:
            if rule.level is Level.MAY or _accepted(standing, rule.id):
                continue
            lacks = self.lacks(rule)
            if rule.level is Level.SHOULD and lacks:
                yield Fault(
                    FaultKind.SHOULD_WITHOUT_CHECK,
                    standing.name,
                    rule.id,
                    f"{rule.id}: a should that is neither checked nor deferred",
                )
                continue
            if "check" in lacks:
                yield Fault(FaultKind.MUST_WITHOUT_CHECK, standing.name, rule.id, f"{rule.id}: a must without a check")
            if "variant" in lacks:
                yield Fault(
                    FaultKind.MUST_WITHOUT_VARIANT,
                    standing.name,
                    rule.id,
                    f"{rule.id}: a must that no known-bad variant names",
                )

    def _listed(self, standing: Area) -> Iterator[Fault]:
        for word, entries in (("deferred", standing.deferred), ("pending", standing.pending)):
            for identifier in entries:
                place = f"areas.toml: {standing.name}: {word} {identifier}"
                rule = self.manifest.requirements.get(identifier)
                if rule is None or rule.area != standing.name:
                    yield Fault(FaultKind.UNKNOWN_ID, standing.name, identifier, f"{place} is no rule of this area")
                    continue
                if not self.lacks(rule):
                    yield Fault(
                        FaultKind.COVERED,
                        standing.name,
                        identifier,
                        f"{place} is covered now; remove the line",
                    )
                forbidden = Level.MUST if word == "deferred" else Level.MAY
                if rule.level is forbidden:
                    yield Fault(
                        FaultKind.WRONG_LEVEL,
                        standing.name,
                        identifier,
                        f"{place} is a {rule.level}, which cannot be {word}",
                    )
        for identifier in sorted(set(standing.deferred) & set(standing.pending)):
            message = f"areas.toml: {standing.name}: {identifier} is both deferred and pending"
            yield Fault(FaultKind.LISTED_TWICE, standing.name, identifier, message)
        if standing.status is Status.DONE:
            for identifier in standing.pending:
                message = f"areas.toml: {standing.name} is done, yet {identifier} is pending"
                yield Fault(FaultKind.PENDING_IN_DONE, standing.name, identifier, message)


def _accepted(standing: Area, identifier: str) -> str:
    """Why a rule may be uncovered for now, or ""."""
    for word, entries in (("deferred", standing.deferred), ("pending", standing.pending)):
        if identifier in entries:
            return f"{word}: {entries[identifier]}"
    return ""


def _too_many_deferred(standing: Area, rules: Iterable[Requirement]) -> Iterator[Fault]:
    shoulds = {rule.id for rule in rules if rule.level is Level.SHOULD}
    deferred = len(shoulds & set(standing.deferred))
    if deferred * 100 > len(shoulds) * DEFERRED_SHARE_PERCENT:
        message = (
            f"areas.toml: {standing.name}: {deferred} of {len(shoulds)} shoulds are deferred; "
            f"{len(shoulds) * DEFERRED_SHARE_PERCENT // 100} may be ({DEFERRED_SHARE_PERCENT} %)"
        )
        yield Fault(FaultKind.TOO_MANY_DEFERRED, standing.name, "", message)
