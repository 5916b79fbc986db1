"""Compare an answer with what a vector expects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple


class Absent:
    """Stands for a key that is not there, which is not the same as a key that holds null."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT: Final = Absent()


class Mismatch(NamedTuple):
    """The first thing that differs at a place; `path` is a JSON pointer, "" for the whole answer."""

    path: str
    expected: Any
    got: Any


def mismatches(expected: Any, got: Any, *, subset: bool, path: str = "") -> Iterator[Mismatch]:
    """Every place where the answer differs.

    `subset`: the answer's objects may hold more keys than expected, at every depth; arrays have one length.
    """
    if isinstance(expected, dict) and isinstance(got, dict):
        names = expected if subset else {**expected, **got}
        for name in names:
            yield from mismatches(
                expected.get(name, ABSENT),
                got.get(name, ABSENT),
                subset=subset,
                path=f"{path}/{_escaped(name)}",
            )
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for position, (wanted, given) in enumerate(zip(expected, got, strict=True)):
            yield from mismatches(wanted, given, subset=subset, path=f"{path}/{position}")
    elif isinstance(expected, (dict, list)) or not _same_scalar(expected, got):
        yield Mismatch(path, expected, got)


def _same_scalar(expected: Any, got: Any) -> bool:
    """Equal and of one JSON type: true is not 1, "1" is not 1; 1 equals 1.0."""
    return _json_type(expected) == _json_type(got) and bool(expected == got)


def _json_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


def _escaped(name: str) -> str:
    return str(name).replace("~", "~0").replace("/", "~1")
