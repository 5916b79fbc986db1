"""A TOML writer as small as AIR's use of it: a parsed document goes out anew, comments and spelling lost."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def emit(document: Mapping[str, Any]) -> str:
    """The TOML text of a document, plain keys before tables. Values without a TOML form (null) are left
    out.
    """
    return "\n".join(table_lines((), document)) + "\n"


def table_lines(path: tuple[str, ...], table: Mapping[str, Any]) -> list[str]:
    """The lines of a table and of the tables below it."""
    plain = {k: v for k, v in table.items() if not isinstance(v, Mapping) and v is not None}
    lines = [f"[{'.'.join(map(key_text, path))}]"] if path and (plain or not table) else []
    lines += [f"{key_text(key)} = {value_text(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += table_lines((*path, key), value)
    return lines


def key_text(key: str) -> str:
    """A bare key where TOML allows it, else a quoted one."""
    return key if BARE_KEY.fullmatch(key) else quoted(key)


def quoted(text: str) -> str:
    """A basic string: JSON's escapes are a subset of TOML's, except for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def value_text(value: Any) -> str:
    """An inline value."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key_text(k)} = {value_text(v)}" for k, v in value.items() if v is not None) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(value_text(item) for item in value if item is not None) + "]"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
