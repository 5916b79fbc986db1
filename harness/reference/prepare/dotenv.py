"""The clone's `.env` file: `NAME=value` lines, matching outer quotes taken off, nothing expanded, never an
error.
"""

from __future__ import annotations

import re

MAXIMUM_CHARACTERS = 1024 * 1024
LINE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)")
QUOTES = ("'", '"')


def read_dotenv(text: str | None) -> dict[str, str]:
    """The variables of a `.env` text; a later line wins. None or an oversized text gives none."""
    if text is None or len(text) > MAXIMUM_CHARACTERS:
        return {}
    lines = (LINE.fullmatch(line.strip()) for line in text.splitlines())
    return {line[1]: unquoted(line[2].strip()) for line in lines if line}


def unquoted(value: str) -> str:
    """A value without one pair of matching outer quotes."""
    if len(value) >= 2 and value[0] == value[-1] and value[0] in QUOTES:
        return value[1:-1]
    return value
