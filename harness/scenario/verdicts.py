"""How a run of a scenario can come out."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """Best first."""

    PASS = "pass"
    NOT_APPLICABLE = "not-applicable"
    WARN = "warn"
    FAIL = "fail"
    UNTESTABLE = "untestable"
    TIMEOUT = "timeout"
    DEADLOCK = "deadlock"
    CRASH = "crash"
    DIVERGENCE = "divergence"
    HARNESS_ERROR = "harness-error"

    @property
    def exit_code(self) -> int:
        """That of a command whose worst verdict it is."""
        if self is Verdict.HARNESS_ERROR:
            return 4
        return 0 if self in (Verdict.PASS, Verdict.NOT_APPLICABLE, Verdict.WARN) else 1


BROKEN = (Verdict.CRASH, Verdict.DIVERGENCE, Verdict.HARNESS_ERROR)
"""Verdicts that say nothing of what the scenario expects."""


def worst(verdicts: list[Verdict]) -> Verdict:
    """The worst of them; pass where there are none."""
    order = list(Verdict)
    return max(verdicts, key=order.index, default=Verdict.PASS)
