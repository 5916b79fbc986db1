"""The TOML text of server tables, and of a whole document where the user's spelling cannot be kept."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

ENCODER = json.JSONEncoder(ensure_ascii=False)
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def table_text(path: tuple[str, ...], table: Mapping[str, Any]) -> str:
    """A table with its header, plain keys first, tables below it after; ends with a newline."""
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    header = f"[{dotted(path)}]\n" if path and (plain or not table) else ""
    text = header + "".join(f"{key_text(key)} = {value_text(value)}\n" for key, value in plain.items())
    below = [table_text((*path, key), value) for key, value in table.items() if isinstance(value, Mapping)]
    return "\n".join([text, *below] if text else below)


def dotted(path: tuple[str, ...]) -> str:
    """A table's name in its header."""
    return ".".join(map(key_text, path))


def key_text(key: str) -> str:
    """A bare key where TOML allows one, else a quoted one."""
    return key if BARE_KEY.fullmatch(key) else quoted(key)


def quoted(text: str) -> str:
    """A basic string. JSON's escapes are TOML's; DEL is the one character that only TOML wants escaped."""
    return ENCODER.encode(text).replace("\x7f", "\\u007F")


def value_text(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key_text(key)} = {value_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def float_text(value: float) -> str:
    """A TOML float: Python's spelling, with a fraction before an exponent as TOML allows it."""
    return repr(value)
