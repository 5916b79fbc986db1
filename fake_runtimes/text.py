"""Reading JSON as the JavaScript runtimes read it, and writing text for a digest. Standard library alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

# Configuration files are four levels deep; a file beyond this depth is refused before it can exhaust the
# stack.
DEPTH_LIMIT = 150
# JavaScript has one kind of number; whole numbers beyond 2**53 lose their last digits there, so a float
# serves.
LONGEST_WHOLE_NUMBER = 17
"""Characters, the sign included: more is never exact."""
MAX_SAFE_INTEGER = 2**53 - 1

INTEGER_LIKE = re.compile(r"0|[1-9][0-9]{0,9}")
ARRAY_INDEX_LIMIT = 2**32 - 1
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
BYTE_ORDER_MARK = "\ufeff"
ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False)


class JsonTextError(ValueError):
    """The text is no JSON; `line` and `column` count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line, self.column = line, column


class ConstantError(Exception):
    """One of the three words that Python's reader takes and JSON does not know."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


def parse_json(text: str) -> Any:
    """The value of a JSON text: no comments, no trailing commas, no NaN; of equal keys the last one counts.

    A byte order mark is skipped. Raises JsonTextError and nothing else.
    """
    body = text.removeprefix(BYTE_ORDER_MARK)
    brackets = body.count("{") + body.count("[")
    if brackets > DEPTH_LIMIT and nesting(body) > DEPTH_LIMIT:
        raise JsonTextError("too deeply nested", 1, 1)
    try:
        return DECODER.decode(body)
    except json.JSONDecodeError as error:
        raise JsonTextError(error.msg, error.lineno, error.colno) from None
    except ConstantError as error:
        raise JsonTextError(f"{error.word} is no JSON value", *place_of(error.word, body)) from None


def nesting(text: str) -> int:
    """How deep brackets nest, those inside strings not counted."""
    depth = deepest = 0
    for found in STRING_OR_BRACKET.finditer(text):
        if found[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif found[0] in "]}":
            depth -= 1
    return deepest


def refuse_constant(word: str) -> NoReturn:
    raise ConstantError(word)


def place_of(word: str, text: str) -> tuple[int, int]:
    """Line and column of the first such word outside strings."""
    found = re.compile(rf'"(?:[^"\\]|\\.)*"|({word})', re.DOTALL)
    at = next(one.start() for one in found.finditer(text) if one[1])
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def whole_number(digits: str) -> int | float:
    """A number that JavaScript holds exactly is a whole one; a longer one is what a double makes of it."""
    if len(digits) > LONGEST_WHOLE_NUMBER:
        return float(digits)
    number = int(digits)
    return number if abs(number) <= MAX_SAFE_INTEGER else float(digits)


DECODER = json.JSONDecoder(parse_constant=refuse_constant, parse_int=whole_number)


def javascript_order(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members in the order in which a JavaScript object lists them: array indices first, ascending."""
    indices = [key for key in members if INTEGER_LIKE.fullmatch(key) and int(key) < ARRAY_INDEX_LIMIT]
    ordered = dict.fromkeys(sorted(indices, key=int))
    return {key: members[key] for key in {**ordered, **dict.fromkeys(members)}}


def own_copy(value: Any) -> Any:
    """A JSON value that may be changed without anybody else's being changed."""
    if isinstance(value, dict):
        return {name: own_copy(item) for name, item in value.items()}
    return [own_copy(item) for item in value] if isinstance(value, list) else value


def json_stringify(value: Any) -> str:
    """What JSON.stringify writes: no blanks, text unescaped except for control characters and lone surrogates."""
    written = ENCODER.encode(value)
    return written if written.isascii() else LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def utf8(text: str) -> bytes:
    """UTF-8 of the text; what no UTF-8 can hold becomes U+FFFD."""
    return LONE_SURROGATE.sub("\ufffd", text).encode()


def utf16_length(character: str) -> int:
    """How many UTF-16 units a character takes: JavaScript counts and replaces in those."""
    return 2 if ord(character) > 0xFFFF else 1


def kind(value: Any) -> str:
    """What JavaScript calls the type of a JSON value, null and array told apart from objects."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def iso_time(seconds: float) -> str:
    """UTC with milliseconds: `2026-11-30T08:46:43.698Z`."""
    milliseconds = round(seconds * 1000)
    moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"
