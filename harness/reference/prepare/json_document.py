"""A `.mcp.json` read and written without losing the user's part: key order, other keys, numbers as
spelled.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from harness.reference.prepare.failures import MalformedConfigError

INDENT = "  "
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
ENCODER = json.JSONEncoder(ensure_ascii=False)


class SpelledNumber(float):
    """A fraction that remembers its spelling: 1E400 or 0.10 must come out of a rewrite as they went in."""

    __slots__ = ("spelling",)
    spelling: str


class SpelledInteger(int):
    """An integer that remembers its spelling, `-0` for one."""

    spelling: str


SPELLED = (SpelledNumber, SpelledInteger)


class JsonDocument(NamedTuple):
    """A parsed file: its top-level object, and the keys that stand in it more than once (dotted paths)."""

    content: dict[str, Any]
    duplicates: tuple[str, ...]


def read(text: str, *, file: str, servers_key: str) -> JsonDocument:
    """Parse a config text. Raises MalformedConfigError where it is no object, or its servers are none.

    A byte order mark is accepted, as the runtimes accept it.
    """
    duplicates: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            times = Counter(key for key, _ in pairs)
            duplicates.extend(key for key, count in times.items() if count > 1)
        return found

    try:
        content = json.loads(
            text.removeprefix("\ufeff"),
            object_pairs_hook=members,
            parse_float=fraction,
            parse_int=integer,
            parse_constant=refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise MalformedConfigError(file, f"no JSON (line {error.lineno}, column {error.colno}: {error.msg})") from None
    except ConstantError as error:
        raise MalformedConfigError(file, f"no JSON ({error})") from None
    except RecursionError:
        raise MalformedConfigError(file, "nested too deeply") from None
    if not isinstance(content, dict):
        raise MalformedConfigError(file, "the top level is no object")
    if not isinstance(content.get(servers_key, {}), dict):
        raise MalformedConfigError(file, f"`{servers_key}` is no object")
    return JsonDocument(content, tuple(duplicates))


class ConstantError(ValueError):
    """NaN or Infinity, which Python's parser would let pass."""


def refuse_constant(name: str) -> NoReturn:
    """NaN and the infinities are no JSON."""
    raise ConstantError(name)


def fraction(spelling: str) -> SpelledNumber:
    """A number with a fraction or an exponent."""
    number = SpelledNumber(spelling)
    number.spelling = spelling
    return number


def integer(spelling: str) -> int:
    """An integer, as spelled; one beyond Python's conversion limit stays readable as its spelling alone."""
    number = SpelledInteger(spelling) if len(spelling) < 4000 else SpelledInteger()
    number.spelling = spelling
    return number


def write(content: Mapping[str, Any]) -> str:
    """UTF-8 safe JSON text with two spaces of indentation, keys in the order given, a newline at the end."""
    return value_text(content, "\n") + "\n"


def value_text(value: Any, line: str) -> str:
    """The text of one value; `line` is the newline and indentation of the line it starts on."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, SPELLED):
        return value.spelling
    if isinstance(value, (dict, Mapping)):
        inner = line + INDENT
        members = [f"{inner}{quoted(str(key))}: {value_text(item, inner)}" for key, item in value.items()]
        return "{" + ",".join(members) + line + "}" if members else "{}"
    if isinstance(value, (list, tuple)):
        inner = line + INDENT
        items = [inner + value_text(item, inner) for item in value]
        return "[" + ",".join(items) + line + "]" if items else "[]"
    return json.dumps(value)


@lru_cache(maxsize=1 << 10)
def quoted(text: str) -> str:
    """A JSON string; half a surrogate pair keeps its escape, since UTF-8 has no form for it."""
    written = ENCODER.encode(text)
    return written if written.isascii() else LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)
