"""Did you mean: which of the known names a written one is probably a slip of.

Source: ARCHITECTURE section 8, "Secrets".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

CLOSE_ENOUGH = 0.8
"""difflib's measure of likeness, from 0 to 1."""

MAXIMUM_CANDIDATES = 2_000
"""How many names are compared with one another by likeness: each comparison costs microseconds."""

SMALLEST_SLIP = 5
"""Names shorter than this differ by one character for good reasons."""


def did_you_mean(name: str, candidates: Iterable[str], closeness: float = CLOSE_ENOUGH) -> str | None:
    """The candidate that is most like `name`, if one is; never `name` itself."""
    others = sorted(set(candidates) - {name})
    if len(others) > MAXIMUM_CANDIDATES:
        others = [other for other in others if other[:3] == name[:3]][:MAXIMUM_CANDIDATES]
    return next(iter(get_close_matches(name, others, n=1, cutoff=closeness)), None)


def near_misses(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """All pairs of names of which one is probably a slip of the other, each pair once, sorted."""
    buckets: dict[str, list[str]] = defaultdict(list)
    for name in names:
        for key in {name, name.rstrip("_"), *without_one_character(name)}:
            buckets[key].append(name)
    pairs = {
        (min(one, other), max(one, other))
        for group in buckets.values()
        for index, one in enumerate(group)
        for other in group[:index]
        if one != other
    }
    yield from sorted(pair for pair in pairs if is_near_miss(*pair))


def is_near_miss(one: str, other: str) -> bool:
    """Whether two variable names differ by one slip: a character too many, too few, wrong or swapped, or
    underscores at the end.

    Numbers and one-letter words tell accounts apart (`TOKEN_1`, `DB_A_URL`), so they are no slips.
    """
    if one == other or min(len(one), len(other)) < SMALLEST_SLIP:
        return False
    if one.rstrip("_") == other.rstrip("_"):
        return True
    if not one_edit_apart(one, other):
        return False
    return not any(word.isdigit() or len(word) == 1 for word in differing_words(one, other)) and (
        without_digits(one) != without_digits(other)
    )


def one_edit_apart(one: str, other: str) -> bool:
    """Whether one insertion, deletion, replacement or swap of neighbours turns one text into the other."""
    if len(one) > len(other):
        one, other = other, one
    if len(other) - len(one) > 1 or one == other:
        return False
    if len(one) < len(other):
        return one in without_one_character(other)
    differing = [index for index, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]]
    if len(differing) == 1:
        return True
    first, last = differing[0], differing[-1]
    swapped = last == first + 1 and (one[first], one[last]) == (other[last], other[first])
    return len(differing) == 2 and swapped


def without_one_character(text: str) -> set[str]:
    """Every text that is left when one character is taken out."""
    return {text[:index] + text[index + 1 :] for index in range(len(text))}


def differing_words(one: str, other: str) -> set[str]:
    """The words, parted by underscores, that only one of two names holds."""
    return set(one.split("_")) ^ set(other.split("_"))


def without_digits(text: str) -> str:
    """A name with its numbers taken out."""
    return "".join(character for character in text if not character.isdigit())
