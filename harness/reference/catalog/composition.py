"""How several mcp.json files become one catalog: a union by qualified id, without any override.

Source: measured behaviour of AIR 0.3.0 (catalog-compose-union-only, catalog-compose-bare-keys).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from harness.reference.catalog.catalog import RESERVED_KEY

LOCAL_SCOPE = "local"


class CompositionError(ValueError):
    """Catalogs that cannot be put together; the message is AIR's own and names the files."""


class Source(NamedTuple):
    """One mcp.json: the file, its parsed content, and the scope that its place gives to all its servers."""

    file: str
    tree: Mapping[str, Any]
    scope: str = LOCAL_SCOPE


def compose(sources: Iterable[Source]) -> dict[str, Any]:
    """Qualified id (`@scope/name`) to entry, in the order of the sources. Raises CompositionError."""
    composed: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for source in sources:
        for name, raw in source.tree.items():
            if name == RESERVED_KEY:
                continue
            identity = qualified(name, source)
            if identity in composed:
                raise CompositionError(duplicate_text(identity, origins[identity], source.file))
            composed[identity], origins[identity] = raw, source.file
    return composed


def qualified(name: str, source: Source) -> str:
    """The id of a server of this file. Its key must be bare: scopes come from the place, not from authors."""
    if name.startswith("@"):
        raise CompositionError(
            f'Artifact index entry must use a bare shortname; got qualified ID "{name}" in {source.file}.'
        )
    return f"@{source.scope}/{name}"


def duplicate_text(identity: str, first: str, second: str) -> str:
    """What is said when two files claim one id: no file wins."""
    return f'Duplicate mcp ID "{identity}" produced by both "{first}" and "{second}".'
