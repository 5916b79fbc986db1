"""Where two observations differ: a whole one may hold many texts, of which one is another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.canary.judging import NOTHING, alike


class Difference(NamedTuple):
    """A place in an observation, empty for the whole, with what was there and what is; NOTHING for what is absent."""

    place: str
    old: Any
    new: Any


def differences(old: Any, new: Any, place: str = "", parts: Sequence[str] = ()) -> Iterator[Difference]:
    """Each smallest part that differs, in the order of the old one, then of the new.

    `parts` are what the positions are called where the whole is a list of so many.
    """
    if old is not NOTHING and new is not NOTHING and alike(old, new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            inner = f"{place}.{key}" if place else str(key)
            yield from differences(old.get(key, NOTHING), new.get(key, NOTHING), inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, position(place, number, len(old), parts))
    else:
        yield Difference(place, old, new)


def position(place: str, number: int, of: int, parts: Sequence[str] = ()) -> str:
    """A place in a list: by what it is called, else by its number among all; the only one is the list itself."""
    if len(parts) == of:
        return parts[number]
    return place if of == 1 else f"{place} ({number + 1} of {of})".lstrip()


def shown(value: Any) -> str:
    """An observation or a part of one as JSON; what is not there in words."""
    return "nothing" if value is NOTHING else json.dumps(value, ensure_ascii=False)
