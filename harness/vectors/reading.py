"""Read test vectors: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

REQUIRED_KEYS = frozenset({"op", "case", "input", "expected"})
MATCHES = ("exact", "subset")
MAX_LINE_BYTES = 4 * 1024 * 1024


class Vector(NamedTuple):
    """One test case; `subset` as the line's "match" says. `line` counts from 1."""

    file: str
    line: int
    op: str
    case: str
    input: Any
    expected: Any
    subset: bool


class Unreadable(NamedTuple):
    """A line that is no vector, and why."""

    file: str
    line: int
    why: str


Read = Vector | Unreadable


def read_vectors(file: str, content: bytes) -> Iterator[Read]:
    """Each line of a file that is not blank.

    Numbers keep their spelling: 60.0 is read as a fraction, 60 as an integer.
    """
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            yield _read_line(file, number, line)


def _read_line(file: str, number: int, line: bytes) -> Read:
    if len(line) > MAX_LINE_BYTES:
        return Unreadable(file, number, f"longer than {MAX_LINE_BYTES} bytes")
    try:
        parsed = json.loads(line.decode("utf-8"), object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except RecursionError:
        return Unreadable(file, number, "nested too deeply")
    except ValueError as error:
        return Unreadable(file, number, str(error))
    if not isinstance(parsed, dict):
        return Unreadable(file, number, "not a JSON object")
    if not REQUIRED_KEYS <= parsed.keys() <= REQUIRED_KEYS | {"match"}:
        return Unreadable(file, number, "the keys must be op, case, input, expected and perhaps match")
    if not isinstance(parsed["op"], str) or not isinstance(parsed["case"], str):
        return Unreadable(file, number, "op and case must be texts")
    match = parsed.get("match", MATCHES[0])
    if match not in MATCHES:
        return Unreadable(file, number, f"match must be {' or '.join(MATCHES)}")
    return Vector(
        file,
        number,
        parsed["op"],
        parsed["case"],
        parsed["input"],
        parsed["expected"],
        subset=match == "subset",
    )


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} twice in one object")
    return members


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")
