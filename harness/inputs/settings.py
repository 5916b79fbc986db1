"""mcp-harness.toml: pins, defaults and the findings that a catalog's owner lets pass."""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from harness.errors import UserInputError
from harness.inputs.files import display_path, read_text


class Allow(BaseModel):
    """One `[[allow]]`: findings of `rule` on `entry` (absent: on any) do not fail the gate until `until` is over."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rule: str = Field(pattern=r"^MH\d{3}$")
    entry: str | None = None
    reason: str = Field(min_length=1)
    until: datetime.date | None = None


class Settings(BaseModel):
    """The file's content. Paths are relative to the file; `file` and `allow_lines` say where it stands."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    catalog: str | None = None
    roots: str | None = None
    runtimes: tuple[str, ...] | None = None
    environment: Literal["production", "staging", "development"] = "production"
    fail_on: Literal["error", "warning", "note"] | None = None
    known_secrets: str | None = None
    allow: tuple[Allow, ...] = ()
    folder: Path = Field(default=Path(), exclude=True)
    file: str = Field(default="", exclude=True)
    allow_lines: tuple[int, ...] = Field(default=(), exclude=True)


_INTERNAL = ("folder", "file", "allow_lines")


def read_settings(path: Path) -> Settings:
    """The settings in `path`. Raises UserInputError with file, line and what to write instead."""
    name, text = display_path(path), read_text(path)
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(place[1]), int(place[2])) if place else (len(text.splitlines()) or 1, None)
        what = re.sub(r" \(at .*\)$", "", str(error))
        raise UserInputError(f"not TOML: {what}", file=name, line=line, column=column) from None
    for key in _INTERNAL:
        if key in values:
            raise UserInputError(f"{key}: unknown setting", file=name, line=_line_of(text, (key,)), fix=_known())
    try:
        return Settings(
            **values,
            folder=path.parent,
            file=name,
            allow_lines=tuple(
                n for n, line in enumerate(text.splitlines(), 1) if re.match(r"\s*\[\[\s*allow\s*\]\]", line)
            ),
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = tuple(part for part in first["loc"] if isinstance(part, str | int))
        raise UserInputError(_in_words(where, first), file=name, line=_line_of(text, where), fix=_known()) from None


_WORDS = {
    "extra_forbidden": "is no setting",
    "missing": "is missing",
    "string_type": "must be a text",
    "tuple_type": "must be a list",
    "model_type": "must be a table, written [[allow]]",
    "date_type": "must be a date, written 2027-01-31",
    "date_parsing": "must be a date, written 2027-01-31",
    "date_from_datetime_parsing": "must be a date, written 2027-01-31",
    "date_from_datetime_inexact": "must be a date, written 2027-01-31",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must be a rule's id, e.g. MH431",
}


def _in_words(where: Sequence[str | int], error: ErrorDetails) -> str:
    """What is wrong with a setting, in the file's own terms: `[[allow]] 2, until: must be a date`."""
    what = _WORDS.get(error["type"]) or error["msg"][0].lower() + error["msg"][1:]
    match where:
        case [str(table), int(index), *rest]:
            return ", ".join((f"[[{table}]] {index + 1}", *map(str, rest))) + f": {what}"
        case _:
            return f"{'.'.join(map(str, where))}: {what}"


def _known() -> str:
    return f"Known settings: {', '.join(key for key in Settings.model_fields if key not in _INTERNAL)}."


def _line_of(text: str, where: Sequence[str | int]) -> int | None:
    """The line of a faulty setting: the n-th [[allow]] for `allow.n`, else the line that assigns the key."""
    lines = text.splitlines()
    start = 0
    if len(where) > 1 and isinstance(where[1], int):
        headers = [n for n, line in enumerate(lines) if re.match(rf"\s*\[\[\s*{re.escape(str(where[0]))}\s*\]\]", line)]
        if where[1] < len(headers):
            start = headers[where[1]]
    key = re.compile(rf"\s*{re.escape(str(where[-1]))}\s*=")
    found = next((n for n in range(start, len(lines)) if key.match(lines[n])), start)
    return found + 1 if lines else None
