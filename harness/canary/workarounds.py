"""Bugs of runtimes that something of ours is there for: whether a version still has them, so whether that may go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from fake_runtimes.codex.bugs import LOGIN_IS_LOST, REFRESH_IS_UNUSED
from harness.canary.claims import Claim
from harness.canary.judging import NOTHING, Row


class Workaround(NamedTuple):
    """A bug in a clause, and what of ours works around it."""

    bug: str
    says: str
    ours: str


WORKAROUNDS: Sequence[Workaround] = (
    Workaround(
        LOGIN_IS_LOST,
        "Codex has forgotten at its next start what somebody has signed in to with it",
        "Zimmer writes Codex's store at every spawn",
    ),
    Workaround(
        REFRESH_IS_UNUSED,
        "Codex does not use a stored refresh token",
        "Zimmer renews tokens in Codex's place, by its cron and before a spawn",
    ),
)


class Need(StrEnum):
    """Whether a version still needs what works around a bug."""

    STILL = "still needed"
    NO_LONGER = "no longer needed"
    UNKNOWN = "not known"


class Evidence(NamedTuple):
    """What a version shows of a bug: the claims that show it, those that show the contrary, those that say nothing."""

    workaround: Workaround
    shown_by: tuple[str, ...]
    denied_by: tuple[str, ...]
    silent: tuple[str, ...]

    @property
    def need(self) -> Need:
        """One claim that shows the bug is enough; that it is gone takes all of them."""
        if self.shown_by:
            return Need.STILL
        return Need.NO_LONGER if self.denied_by and not self.silent else Need.UNKNOWN


def evidence(rows: Sequence[Row], unasked: Iterable[Claim] = ()) -> Iterator[Evidence]:
    """For each bug that a claim among these is about. Rows without a real program say nothing.

    `unasked` are the claims that this run left out: of a bug that one of them is about, what was asked is not all.
    """
    for workaround in WORKAROUNDS:
        found: dict[bool | None, list[str]] = {True: [], False: [], None: []}
        for row in rows:
            if row.verdict is not None and workaround.bug in row.claim.shows:
                found[shown(row, workaround.bug)].append(row.claim.id)
        if any(found.values()):
            found[None] += [claim.id for claim in unasked if workaround.bug in claim.shows]
            yield Evidence(workaround, tuple(found[True]), tuple(found[False]), tuple(found[None]))


def shown(row: Row, bug: str) -> bool | None:
    """Whether an observation shows a bug; None where there is none, or one that cannot be read."""
    if row.observed is NOTHING:
        return None
    try:
        return bool(row.claim.shows[bug](row.observed))
    except (LookupError, TypeError, ValueError, AttributeError):
        return None
