"""What to do about a name that is none: the one that was meant, or the first few that there are. Always one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.gate.nearness import did_you_mean

NEAR = 0.6
"""How like a name must be to be offered instead of a slip."""
NAMES_SHOWN = 6


def meant(written: object, known: Iterable[object], *, before: str = "") -> str:
    """Which name was probably meant, as a question; empty where none is like it. `before` stands before the name."""
    names = named(known)
    folded = {name.casefold(): name for name in names}
    near = folded.get(str(written).casefold()) or did_you_mean(str(written), names, NEAR)
    return f"Did you mean {before}{near}?" if near else ""


def nearest(written: object, known: Iterable[object], *, lead: str = "There are", before: str = "") -> str:
    """The name that was meant, else the first few; empty where there is none at all."""
    names = named(known)
    return meant(written, names, before=before) or (f"{lead} {few(names)}." if names else "")


def named(known: Iterable[object]) -> list[str]:
    """Each name once."""
    return [name for name in dict.fromkeys(str(each) for each in known) if name]


def few(names: Sequence[str]) -> str:
    """The first of many names, and how many more there are."""
    more = len(names) - NAMES_SHOWN
    return ", ".join([*names[:NAMES_SHOWN], *([f"and {more} more"] if more > 0 else [])])
