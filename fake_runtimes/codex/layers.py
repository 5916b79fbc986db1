"""The layers of Codex's configuration: the user's file, the project's over it, and `-c` over both, key by key."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from fake_runtimes.loaded import EntryError

# Configuration tables are four levels deep; deeper ones are refused before a merge could exhaust the stack.
DEPTH_LIMIT = 60
# The same few files are read by run after run.
TEXTS_REMEMBERED = 64


@lru_cache(maxsize=TEXTS_REMEMBERED)
def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text, which nobody may change. Raises EntryError with the text that ends the run."""
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise EntryError("recursion limit exceeded") from None
    except ValueError as error:
        # A number with thousands of digits is a ValueError that is no TOMLDecodeError.
        raise EntryError(str(error)) from None
    if deeper_than(tables, DEPTH_LIMIT):
        raise EntryError("recursion limit exceeded")
    return tables


def deeper_than(value: Any, limit: int) -> bool:
    """Whether containers nest deeper than `limit`. Works level by level, so that depth costs no stack."""
    level = [value]
    for _ in range(limit + 1):
        level = [inner for outer in level for inner in contained(outer)]
        if not level:
            return False
    return True


def contained(value: Any) -> list[Any]:
    """The containers directly inside a value."""
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [member for member in members if isinstance(member, dict | list)]


def overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` over `below`: tables merge key by key, everything else is replaced.

    So a project table that holds a budget alone is valid over a user's complete entry.
    """
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = overlay(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def overrides(words: Sequence[str]) -> dict[str, Any]:
    """The tables that `-c dotted.key=value` asks for: a value that is no TOML is a text. Raises EntryError."""
    tables: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key.strip():
            raise EntryError(f"Invalid override (missing '='): {word}")
        value: Any = override_value(text.strip())
        for part in reversed(key.strip().split(".")):
            value = {part: value}
        tables = overlay(tables, value)
    return tables


def override_value(text: str) -> Any:
    """The value of one override."""
    try:
        return parse_toml(f"value = {text}")["value"]
    except EntryError:
        return text.strip("\"'")
