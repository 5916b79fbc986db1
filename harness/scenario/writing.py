"""A scenario's tree as TOML, laid out as a person would: plain keys first, then tables, small tables in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

WIDTH = 110
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ROW_TABLES = ("catalog", "server", "package")
"""Tables whose items are written as tables of their own."""


def toml_text(tree: Mapping[str, Any], comment: str = "") -> str:
    """The whole text; `comment` goes in front. The tree holds what TOML knows, and no None."""
    head = "".join(f"# {line}\n" for line in comment.splitlines())
    return head + "\n".join(_table((), tree)).strip("\n") + "\n"


def _table(path: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a table's keys, those that need a header of their own last."""
    later: list[tuple[str, Any]] = []
    for key, value in table.items():
        if _has_header(path, value):
            later.append((key, value))
        else:
            yield from _pair(key, value)
    for key, value in later:
        inner = (*path, key)
        if isinstance(value, Mapping):
            if not value or not all(_has_header(inner, item) for item in value.values()):
                yield f"\n[{_dotted(inner)}]"
            yield from _table(inner, value)
            continue
        for item in value:
            yield f"\n[[{_dotted(inner)}]]"
            yield from _table(inner, item)


def _has_header(path: tuple[str, ...], value: Any) -> bool:
    """Whether a value is written under a header: the sections of a file, the rows of its tables."""
    depth = len(path) - (1 if path[:1] == ("scenario",) else 0)
    if isinstance(value, Mapping):
        return depth == 0 or (depth == 1 and path[-1] in _ROW_TABLES)
    is_rows = isinstance(value, Sequence) and not isinstance(value, str) and bool(value)
    return depth == 0 and is_rows and all(isinstance(item, Mapping) for item in value)


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(map(_key, path))


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _pair(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, str) and "\n" in value and "'''" not in value and not _CONTROL.search(value):
        yield f"{_key(key)} = '''\n{value}'''"
        return
    line = f"{_key(key)} = {_inline(value)}"
    if len(line) <= WIDTH or not isinstance(value, list) or not value:
        yield line
        return
    yield f"{_key(key)} = ["
    yield from (f"  {_inline(item)}," for item in value)
    yield "]"


def _inline(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_inline(item)}' for key, item in value.items())} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_inline, value))}]"
    return repr(value)
