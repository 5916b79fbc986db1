"""Where the keys of a TOML text stand: the standard parser tells values, not lines. Never raises."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

Path = tuple[str | int, ...]

_SEGMENT = r"""\s*(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)\s*"""
_DOTTED = rf"{_SEGMENT}(?:\.{_SEGMENT})*"
_HEADER = re.compile(rf"\s*(\[\[?)({_DOTTED})\]\]?")
_KEY = re.compile(rf"({_DOTTED})=")
_ONE_SEGMENT = re.compile(_SEGMENT)
_QUOTES = ('"""', "'''", '"', "'")


class Positions(NamedTuple):
    """Line numbers, counted from 1, of the keys and tables of one text."""

    lines: dict[Path, int]

    def line(self, path: Path) -> int:
        """The line of a value, or of the nearest table around it that has a line of its own."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return 1


def positions(text: str) -> Positions:
    """The positions in a text. What cannot be understood is left out."""
    lines: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    for number, statement in _statements(text):
        header = _HEADER.match(statement)
        if header:
            table = _table(header[2], counts, is_array=header[1] == "[[")
            for length in range(1, len(table) + 1):
                lines.setdefault(table[:length], number)
            continue
        key = _KEY.match(statement)
        if key:
            path = table
            for segment in _segments(key[1]):
                path = (*path, segment)
                lines.setdefault(path, number)
            lines[path] = number
    return Positions(lines)


def _table(dotted: str, counts: dict[Path, int], *, is_array: bool) -> Path:
    """The path that a header opens, with the index of the table that each array has come to."""
    path: Path = ()
    segments = _segments(dotted)
    for place, segment in enumerate(segments):
        path = (*path, segment)
        if is_array and place == len(segments) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _segments(dotted: str) -> list[str]:
    return [_plain(found.strip()) for found in _ONE_SEGMENT.findall(dotted)]


def _plain(segment: str) -> str:
    if segment.startswith("'"):
        return segment[1:-1]
    if segment.startswith('"'):
        try:
            return str(json.loads(segment))
        except ValueError:  # an escape that JSON does not know
            return segment[1:-1]
    return segment


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The first line of each statement: lines inside a text or a list of several lines are left out."""
    quote, depth = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if not quote and depth == 0:
            yield number, line
        if not quote and depth == 0 and _HEADER.match(line):
            continue
        quote, depth = _scan(line, quote, depth)


def _scan(line: str, quote: str, depth: int) -> tuple[str, int]:
    """The open quote and the depth of brackets at the end of a line."""
    index = 0
    while index < len(line):
        if quote:
            escaped = line[index] == "\\" and quote[0] == '"'
            closes = not escaped and line.startswith(quote, index)
            index += 2 if escaped else len(quote) if closes else 1
            quote = "" if closes else quote
            continue
        opened = next((each for each in _QUOTES if line.startswith(each, index)), "")
        if line[index] == "#":
            break
        depth += (line[index] in "[{") - (line[index] in "]}")
        quote = opened
        index += len(opened) or 1
    return (quote if len(quote) == 3 else ""), max(depth, 0)
