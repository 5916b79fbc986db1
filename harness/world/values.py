"""What may pass through a port: the values that every driver takes, and refuses, alike."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from math import inf
from typing import Any

NO_TIME = "waits for a time that is no number"
NO_DETAIL = "details of an event are plain values"
LONGEST_NAME_BYTES = 255
"""Of a file, as most file systems have it."""
USUAL_METHODS = frozenset({"GET", "POST", "DELETE"})
_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
_ROW_SCALARS = frozenset({str, int, bool, type(None)})
_SEPARATORS = frozenset('()<>@,;:\\"/[]?={} \t\r\n\0')
_BREAKS = frozenset("\r\n\v\f\0")


def is_time(seconds: float | None) -> bool:
    """Whether a wait can take so long: None and infinity are for ever, less than nothing is over at once."""
    return seconds is None or seconds > -inf


def require_text(line: object) -> None:
    """Raise TypeError unless it is a text, which a line to be written is."""
    if not isinstance(line, str):
        raise TypeError(f"a line is a str, not {type(line).__qualname__}")


def octets(content: object) -> bytes:
    """A content that nobody changes any more. Raises TypeError unless it is made of bytes."""
    if isinstance(content, bytes):
        return content
    if isinstance(content, (bytearray, memoryview)):
        return bytes(content)
    raise TypeError(f"a content is bytes, not {type(content).__qualname__}")


def is_plain(values: Collection[Any]) -> bool:
    """Whether all of them can be told to anybody: texts, numbers, bytes, None, and lists and dicts of such."""
    return _PLAIN.issuperset(map(type, values)) or all(map(_is_plain, values))


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return is_plain(value)
    if isinstance(value, dict):
        return all(isinstance(name, str) for name in value) and is_plain(value.values())
    return value is None or isinstance(value, (str, bytes, int, float))


def row_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """A row's values as JSON keeps them, to be changed by nobody else. Raises TypeError for what is no JSON."""
    kept = {}
    for name, value in values.items():
        if not isinstance(name, str):
            raise TypeError(f"a name in a row is a str, not {name!r}")
        kept[name] = value if value.__class__ in _ROW_SCALARS else _row_value(value)
    return kept


def _row_value(value: Any) -> Any:
    if value is None or value.__class__ in _ROW_SCALARS:
        return value
    if isinstance(value, dict):
        return row_values(value)
    if isinstance(value, (list, tuple)):
        return [_row_value(item) for item in value]
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and -inf < value < inf:
        return float(value)
    raise TypeError(f"{value!r} cannot be kept in a row")


def is_sendable(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a request can be written: its method and the names of its headers are tokens, no value breaks a line."""
    if not (_is_token(method) and all(map(_is_token, headers))):
        return False
    text = "".join(headers.values())
    return text.isprintable() or not _BREAKS.intersection(text)


@lru_cache(maxsize=1024)
def _is_token(text: str) -> bool:
    return bool(text) and text.isascii() and text.isprintable() and not _SEPARATORS.intersection(text)


def is_passed_on(text: str) -> bool:
    """Whether the operating system could be told it: a path, an argument, a variable."""
    if text.isascii():
        return "\0" not in text
    try:
        return b"\0" not in text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False


def is_long_name(name: str) -> bool:
    """Whether no file can be called that: it has too many bytes."""
    return len(name.encode(errors="surrogateescape")) > LONGEST_NAME_BYTES
