"""The fakes held against what was recorded of the real programs, for the tests of each runtime's probes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.canary.checking import Asked, run_canary
from harness.canary.claims import Claim, chosen
from harness.canary.installing import parse_wanted
from harness.canary.judging import Likeness
from harness.canary.running import untold


class Compared(NamedTuple):
    """What a fake does otherwise than was recorded, by claim: (recorded, observed); and what its probes left behind."""

    differing: Mapping[str, tuple[Any, Any]]
    left: tuple[Any, ...]


def claims_of(family: str) -> dict[str, Claim]:
    """Every claim about a runtime, by its id."""
    return {claim.id: claim for probe in chosen(family) for claim in probe.claims}


def compared(label: str, at_a_time: int) -> Compared:
    """The fake with that profile, asked by so many workers all that it models, as `canary --fakes` asks it.

    So what differs was asked twice, the second time with no other probe beside it: a busy machine is no difference.
    """
    wanted = parse_wanted(label.replace("-", "@", 1))
    asked = Asked((wanted,), with_real=False, with_fakes=True, workers=at_a_time)
    (checked,) = run_canary(asked, {}, untold).checked
    differing = {row.claim.id: (row.before, row.faked) for row in checked.with_likeness(Likeness.DIFFERS)}
    return Compared(differing, checked.left)


def broken(claims: Mapping[str, Claim], record: Mapping[str, Any]) -> set[str]:
    """The claims that do not hold of what was recorded."""
    return {name for name, claim in claims.items() if claim.holds(record[name]) is False}
