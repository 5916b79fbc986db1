"""What the outcome of a variant's tests says.

Was it caught by an assertion of each rule it breaks? No I/O, no pytest session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

import pytest


class Outcome(StrEnum):
    """How one test ended."""

    PASSED = "passed"
    ASSERTED = "asserted"
    CRASHED = "crashed"
    SKIPPED = "skipped"


class Ran(NamedTuple):
    """One test run: its node id, the requirement ids it is marked with, how it ended."""

    test: str
    ids: frozenset[str]
    outcome: Outcome
    error: str


class Verdict(StrEnum):
    """What became of a variant, worst first."""

    TARGET_MISSING = "target missing"
    SMOKE_FAILED = "smoke failed"
    CRASHED = "crashed"
    SURVIVED = "survived"
    CAUGHT = "caught"


class Judgement(NamedTuple):
    """A variant's verdict, and the ids that it was not caught by.

    `survived`: no assertion failed for them; `untested`: those among them that no test names; `crashed`: id to
    the error. `smoke` names the smoke tests that failed, `problem` why there was no target, `tests` how many ran.
    """

    name: str
    target: str
    bug: str
    catches: tuple[str, ...]
    verdict: Verdict
    survived: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
    crashed: Mapping[str, str] = {}
    smoke: tuple[str, ...] = ()
    problem: str = ""
    tests: int = 0


def classify(raised: BaseException | None, phase: str) -> Outcome:
    """Only an assertion in the test's own body counts as one: a broken fixture or any other error is a crash.

    `pytest.fail` and `pytest.raises` that saw nothing raised are assertions of the test too.
    """
    if raised is None:
        return Outcome.PASSED
    if isinstance(raised, pytest.skip.Exception):
        return Outcome.SKIPPED
    return Outcome.ASSERTED if phase == "call" and _is_assertion(raised) else Outcome.CRASHED


def _is_assertion(raised: BaseException) -> bool:
    if isinstance(raised, BaseExceptionGroup):  # Hypothesis wraps what it finds flaky or several times
        return all(_is_assertion(inner) for inner in raised.exceptions)
    return isinstance(raised, (AssertionError, pytest.fail.Exception))


def undecided(catches: Iterable[str], runs: Iterable[Ran]) -> frozenset[str]:
    """The ids for which no assertion has failed so far."""
    return frozenset(catches).difference(*(ran.ids for ran in runs if ran.outcome is Outcome.ASSERTED))


def judge(
    catches: tuple[str, ...], runs: Iterable[Ran], smoke: Iterable[Ran]
) -> tuple[Verdict, tuple[str, ...], dict[str, str]]:
    """The verdict, the ids that survived, and the ids whose tests did nothing but crash (with the error)."""
    ran = tuple(runs)
    left = undecided(catches, ran)
    crashed = {
        identifier: next(run.error for run in ran if identifier in run.ids and run.outcome is Outcome.CRASHED)
        for identifier in sorted(left)
        if any(identifier in run.ids and run.outcome is Outcome.CRASHED for run in ran)
    }
    survived = tuple(sorted(left - crashed.keys()))
    if any(run.outcome is not Outcome.PASSED for run in smoke):
        return Verdict.SMOKE_FAILED, survived, crashed
    if crashed:
        return Verdict.CRASHED, survived, crashed
    return (Verdict.SURVIVED if survived else Verdict.CAUGHT), survived, crashed
