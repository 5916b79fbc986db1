"""Text that cannot break the format it stands in: control characters become visible escapes.

An entry's name may hold a line break, an ANSI escape or a character that turns the reading direction.
Shown raw, such a name could hide a finding or forge another line of the report.
"""

from __future__ import annotations

import unicodedata

ELLIPSIS = "..."

_SHORT_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str) -> str:
    """`text` on one line: what has no glyph of its own becomes an escape (`\\n`, `\\x1b`, `\\u202e`).

    Ordinary text comes back unchanged, so this may be applied twice.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def visible_lines(text: str) -> list[str]:
    """The lines of a text that is meant to have several (a diff), each one visible."""
    return [visible(line.expandtabs(4)) for line in text.split("\n")]


def _escape(char: str) -> str:
    code = ord(char)
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def display_width(text: str) -> int:
    """How many columns a terminal takes for `text` (wide East Asian characters count twice)."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def pad(text: str, width: int) -> str:
    """`text` filled up with blanks to `width` columns; longer text is left alone."""
    return text + " " * (width - display_width(text))


NO_NAME = '""'
"""How an empty name is shown."""


def shorten(text: str, limit: int) -> str:
    """`text` cut in the middle to at most `limit` characters, so that both ends stay readable."""
    if len(text) <= limit:
        return text
    kept = limit - len(ELLIPSIS)
    head = (kept + 1) // 2
    return text[:head] + ELLIPSIS + text[len(text) - (kept - head) :]


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 error`, `2 errors`, `3 entries`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
