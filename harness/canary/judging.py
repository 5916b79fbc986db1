"""What an observation means: for the reference, against what was recorded of another version, and for the fake."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from harness.canary.claims import Claim
from harness.canary.running import TIMED_OUT, Measured, Problem

NOTHING = object()
"""Stands for an observation that is not there; None may be one."""


class Verdict(StrEnum):
    """Of a claim about a real program, worst first."""

    BROKEN = "broken"
    TIMED_OUT = "timed out"
    NOT_MEASURABLE = "not measurable"
    CHANGED = "changed"
    KNOWN = "broken as recorded"
    UNRECORDED = "not recorded"
    HOLDS = "holds"
    SAME = "same"


class Likeness(StrEnum):
    """How the fake's answer compares, worst first."""

    DIFFERS = "differs"
    NOT_COMPARED = "not compared"
    NOT_MODELLED = "not modelled"
    AGREES = "agrees"


class Row(NamedTuple):
    """A claim with what is known of it. `before`, `observed` and `faked` are NOTHING where there is no observation.

    `verdict` and `likeness` are None where no real program or no fake was asked; `reason` says why there is no
    observation, `fake_reason` the same of the fake's, or why it does not model it.
    """

    claim: Claim
    before: Any
    observed: Any
    faked: Any
    verdict: Verdict | None
    likeness: Likeness | None
    reason: str = ""
    fake_reason: str = ""

    @property
    def answers_otherwise(self) -> bool:
        """Whether the program did something else than was recorded, whatever that means for what is relied on."""
        return NOTHING not in (self.before, self.observed) and not alike(self.before, self.observed)

    @property
    def fails(self) -> bool:
        """Whether it makes the exit code 1."""
        return self.verdict is Verdict.BROKEN or self.likeness is Likeness.DIFFERS


def judge(
    claims: Sequence[Claim], *, before: Mapping[str, Any], real: Measured | None, fake: Measured | None
) -> tuple[Row, ...]:
    """A row for each claim. `before` is the record that the real program is held against.

    Without a real program the fake is held against that record.
    """
    return tuple(_row(claim, before, real, fake) for claim in claims)


def _row(claim: Claim, before: Mapping[str, Any], real: Measured | None, fake: Measured | None) -> Row:
    recorded = before.get(claim.id, NOTHING)
    observed = NOTHING if real is None else real.observations.get(claim.id, NOTHING)
    problem = None if real is None else real.problems.get(claim.id)
    verdict = None if real is None else _verdict(claim, recorded, observed, problem)
    faked = NOTHING if fake is None else fake.observations.get(claim.id, NOTHING)
    likeness, why = None, ""
    if fake is not None:
        likeness, why = _likeness(claim, recorded if real is None else observed, faked, fake.problems.get(claim.id))
    return Row(claim, recorded, observed, faked, verdict, likeness, problem.reason if problem else "", why)


def _verdict(claim: Claim, recorded: Any, observed: Any, problem: Problem | None) -> Verdict:
    if observed is NOTHING:
        return Verdict.TIMED_OUT if problem is not None and problem.kind == TIMED_OUT else Verdict.NOT_MEASURABLE
    holds = claim.holds(observed)
    if holds:
        return Verdict.HOLDS
    if holds is False:
        was_broken = recorded is not NOTHING and claim.holds(recorded) is False
        return Verdict.KNOWN if was_broken else Verdict.BROKEN
    if recorded is NOTHING:
        return Verdict.UNRECORDED
    if alike(recorded, observed):
        return Verdict.SAME
    return Verdict.BROKEN if claim.relied_on else Verdict.CHANGED


def _likeness(claim: Claim, real: Any, faked: Any, problem: Problem | None) -> tuple[Likeness, str]:
    if claim.not_modelled:
        return Likeness.NOT_MODELLED, claim.not_modelled
    if real is NOTHING:
        return Likeness.NOT_COMPARED, "nothing was observed of the real program"
    if faked is NOTHING:
        return Likeness.DIFFERS, problem.reason if problem else "no answer"
    return (Likeness.AGREES if alike(real, faked) else Likeness.DIFFERS), ""


def alike(one: Any, other: Any) -> bool:
    """Whether two observations are the same JSON value: `true` is not 1, and the order of an object does not count."""
    return canonical(one) == canonical(other)


def canonical(value: Any) -> str:
    """The one text of an observation."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
