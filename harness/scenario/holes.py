"""The accepted holes by their names in `harness/requirements/holes.toml`, and how often a run walked into each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

READ_THEN_ROTATED = "rotated-between-read-and-request"
NOT_YET_WRITTEN = "rotated-and-not-yet-written"
STALE_UNDER_RUNTIME = "refreshed-under-a-live-runtime"
OVERWRITTEN = "stores-overwrite-each-other"
ANSWER_LOST = "answer-lost"
REPUBLISHED = "keyring-republished"
OTHER_RUNTIME = "store-of-another-runtime"
ONE_SESSION = "store-of-one-session"
NO_LATER = "expires-no-later"
NOT_READABLE = "store-not-readable"
OLD_GRANT = "replaced-grant-comes-back"
NAMES = (
    READ_THEN_ROTATED, NOT_YET_WRITTEN, STALE_UNDER_RUNTIME, OVERWRITTEN, ANSWER_LOST, REPUBLISHED, OTHER_RUNTIME,
    ONE_SESSION, NO_LATER, NOT_READABLE, OLD_GRANT,
)  # fmt: skip


class Walked(NamedTuple):
    """How often a hole was walked into (a spent token presented, an entry overwritten), and how many chains it cost."""

    met: int = 0
    lost: int = 0

    def __add__(self, other: object) -> Walked:
        if not isinstance(other, Walked):
            return NotImplemented
        return Walked(self.met + other.met, self.lost + other.lost)


Count = Mapping[str, Walked]


def counted(met: Iterable[str], lost: Iterable[str]) -> Count:
    """The count of a run, by name; the empty name is none. A chain that was lost was walked over, told or not."""
    found: dict[str, Walked] = {}
    for name in met:
        found[name] = found.get(name, Walked()) + Walked(met=1)
    for name in lost:
        found[name] = found.get(name, Walked()) + Walked(lost=1)
    found.pop("", None)
    return {name: Walked(max(found[name]), found[name].lost) for name in sorted(found)}


def summed(into: dict[str, Walked], more: Count) -> None:
    """Add a count to another one."""
    for name, walked in more.items():
        into[name] = into.get(name, Walked()) + walked
