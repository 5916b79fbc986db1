"""What came of a run of the canary, as the reports show it."""

from __future__ import annotations

from typing import NamedTuple

from harness.canary.claims import Claim
from harness.canary.effects import Played
from harness.canary.judging import Likeness, Row, Verdict
from harness.canary.profile_writing import Written
from harness.canary.running import Measured

FAILED, NOT_RUN = 1, 3


class Checked(NamedTuple):
    """One version of a runtime. `real` is None where only its fake was asked, `fake` where that was not.

    `against` is the version whose record it is held against; `pinned` is whether that is the one in use, `recorded`
    whether there is a record of it. `digest` is the checksum of the program. `played` are the scenarios under the
    profile of this version, where it has one; `written` is the profile that was made, `place` where that is. `unasked`
    are the claims about the runtime that were left out.
    """

    family: str
    version: str
    against: str
    pinned: bool
    recorded: bool
    rows: tuple[Row, ...]
    real: Measured | None = None
    fake: Measured | None = None
    digest: str = ""
    played: Played | None = None
    written: Written | None = None
    place: str = ""
    unasked: tuple[Claim, ...] = ()

    @property
    def label(self) -> str:
        """`claude@2.1.328`, as command lines spell it."""
        return f"{self.family}@{self.version}"

    def with_verdict(self, *verdicts: Verdict) -> tuple[Row, ...]:
        """The claims with one of these verdicts."""
        return tuple(row for row in self.rows if row.verdict in verdicts)

    def with_likeness(self, *likenesses: Likeness) -> tuple[Row, ...]:
        """The claims whose fake compares so."""
        return tuple(row for row in self.rows if row.likeness in likenesses)

    @property
    def left(self) -> tuple[str, ...]:
        """What was left behind; it must be nothing."""
        return tuple(each for measured in (self.real, self.fake) if measured for each in measured.left)

    @property
    def wall_seconds(self) -> float:
        """Of the real program, or of the fake where that alone was asked."""
        measured = self.real or self.fake
        return measured.wall_seconds if measured else 0.0

    @property
    def fails(self) -> bool:
        """Whether something broke that is relied on, a fake differs, a scenario falls, or something was left."""
        fallen = self.played is not None and bool(self.played.fallen)
        return any(row.fails for row in self.rows) or fallen or bool(self.left)


class Missing(NamedTuple):
    """A version that could not be had, and why."""

    label: str
    reason: str


class Canary(NamedTuple):
    """A whole run."""

    checked: tuple[Checked, ...]
    missing: tuple[Missing, ...]
    seconds: float
    workers: int

    @property
    def exit_code(self) -> int:
        """1 something broke or differs, 3 something could not be had or nothing could be compared, else 0."""
        if any(each.fails for each in self.checked):
            return FAILED
        return NOT_RUN if self.missing or not self.says_anything else 0

    @property
    def says_anything(self) -> bool:
        """Whether any claim was decided at all: a run that decides nothing must not look like a good one."""
        decided = self.count(*set(Verdict) - {Verdict.NOT_MEASURABLE, Verdict.TIMED_OUT})
        return bool(decided or self.count_fakes(Likeness.AGREES, Likeness.DIFFERS))

    def count(self, *verdicts: Verdict) -> int:
        """How many claims about real programs have one of these verdicts."""
        return sum(len(each.with_verdict(*verdicts)) for each in self.checked)

    def count_fakes(self, *likenesses: Likeness) -> int:
        """How many answers of fakes compare so."""
        return sum(len(each.with_likeness(*likenesses)) for each in self.checked)
