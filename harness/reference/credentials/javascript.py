"""Compact JSON exactly as JavaScript's `JSON.stringify` writes it, for values that were read from JSON.

Two other programs hash this text, so every character counts (credential-key-preimage).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

LAST_ARRAY_INDEX = 2**32 - 2
"""The highest property name that JavaScript orders as a number."""

EXPONENT_FROM, EXPONENT_BELOW = 21, -6
"""A number is written with an exponent from 1e21 on, and below 1e-6."""

WORDS = {None: "null", True: "true", False: "false"}
SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}

ESCAPED = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')
CANONICAL_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,9})\Z")


def stringify(value: Any) -> str:
    """The text of a JSON value: no blanks, members in JavaScript's order, no needless escape."""
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, bool):
        return WORDS[value]
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, (dict, Mapping)):
        return "{" + ",".join(f"{quoted(str(name))}:{stringify(value[name])}" for name in member_order(value)) + "}"
    return "[" + ",".join(stringify(item) for item in value) + "]"


@lru_cache(maxsize=1 << 10)
def quoted(text: str) -> str:
    """A text in quotes. Non-ASCII, `/`, `& < >` and U+2028 stay raw; a lone surrogate is escaped."""
    return '"' + ESCAPED.sub(_escape, whole(text)) + '"'


def whole(text: str) -> str:
    """A text in which the halves of a surrogate pair that stand together are the character that they are there."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def utf8(text: str) -> bytes:
    """A text as JavaScript encodes it: what is no character becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _escape(match: re.Match[str]) -> str:
    return SHORT_ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}"


def member_order(members: Mapping[str, Any]) -> list[str]:
    """Integer-like names first, ascending; the rest as written (credential-key-integer-header-names)."""
    indices = sorted(filter(is_array_index, members), key=int)
    return indices + [name for name in members if not is_array_index(name)] if indices else list(members)


def is_array_index(name: str) -> bool:
    """Whether JavaScript orders a property by number: a canonical decimal up to 2**32 - 2."""
    return CANONICAL_INDEX.match(name) is not None and int(name) <= LAST_ARRAY_INDEX


def number(value: float) -> str:
    """A number as JavaScript prints its double: 60.0 is 60, and an exponent only where it writes one."""
    try:
        double = float(value)
    except OverflowError:
        return "null"
    if not math.isfinite(double):
        return "null"
    if double == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(double)).normalize().as_tuple()
    return ("-" if sign else "") + _positional("".join(map(str, digits)), int(exponent))


def _positional(digits: str, exponent: int) -> str:
    """Shortest digits times ten to the exponent, in the notation that JavaScript chooses."""
    point = len(digits) + exponent
    if len(digits) <= point <= EXPONENT_FROM:
        return digits + "0" * exponent
    if 0 < point <= EXPONENT_FROM:
        return f"{digits[:point]}.{digits[point:]}"
    if EXPONENT_BELOW < point <= 0:
        return f"0.{'0' * -point}{digits}"
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"
