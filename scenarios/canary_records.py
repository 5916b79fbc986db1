"""The fakes held against what was recorded of the real programs, for the tests of each runtime's probes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_runtimes.profile import load_profile
from harness.canary.claims import Claim, chosen
from harness.canary.judging import alike
from harness.canary.records import load_record
from harness.canary.running import measure
from harness.canary.subject import fake_of


class Compared(NamedTuple):
    """What a fake does otherwise than was recorded, by claim: (recorded, observed); and what its probes left behind."""

    differing: Mapping[str, tuple[Any, Any]]
    left: tuple[Any, ...]


def claims_of(family: str) -> dict[str, Claim]:
    """Every claim about a runtime, by its id."""
    return {claim.id: claim for probe in chosen(family) for claim in probe.claims}


def compared(label: str, at_a_time: int) -> Compared:
    """The fake with that profile, asked by so many workers all that it models."""
    profile = load_profile(label)
    (measured,) = measure([(fake_of(profile), chosen(profile.runtime))], workers=at_a_time)
    record = load_record(label)
    modelled = [name for name, claim in claims_of(profile.runtime).items() if not claim.not_modelled]
    differing = {
        name: (record.get(name), measured.observations.get(name))
        for name in modelled
        if name not in measured.observations or not alike(record.get(name), measured.observations[name])
    }
    return Compared(differing, measured.left)


def broken(claims: Mapping[str, Claim], record: Mapping[str, Any]) -> set[str]:
    """The claims that do not hold of what was recorded."""
    return {name for name, claim in claims.items() if claim.holds(record[name]) is False}
