"""Agent roots, and the servers that each gets by default.

Source: seed 000, "The entry format" (default_in_roots) and "Selection is per session". Membership is
declared on the server's entry; a root's own file says nothing about it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.reference.catalog.catalog import Catalog
from harness.reference.catalog.entry import Entry, root_names, text_or_none

RESERVED_KEY = "$schema"
EVERY_ROOT = "*"


@dataclass(frozen=True, slots=True)
class Root:
    """An agent root of roots.json: a flat map of root name to object.

    `display_name` defaults to the name. `default_subagent_roots` are the roots whose agents this one may
    start; a root that has some gets the `zimmer` server injected. Other members stay in `raw`.
    """

    name: str
    display_name: str = ""
    description: str | None = None
    default_subagent_roots: tuple[str, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict)


def read_roots(tree: Mapping[str, Any]) -> dict[str, Root]:
    """Read a parsed roots.json, in the order of the file; `$schema` and what is no object are no roots."""
    return {
        name: read_root(name, raw) for name, raw in tree.items() if name != RESERVED_KEY and isinstance(raw, Mapping)
    }


def read_root(name: str, raw: Mapping[str, Any]) -> Root:
    """Read one root."""
    return Root(
        name=name,
        display_name=text_or_none(raw.get("display_name")) or name,
        description=text_or_none(raw.get("description")),
        default_subagent_roots=root_names(raw.get("default_subagent_roots")),
        raw=raw,
    )


def default_mcp_servers(
    root_name: str, catalog: Catalog, known_roots: Collection[str], *, star: bool = False
) -> tuple[str, ...]:
    """The servers that a new session of this root starts with, in catalog order and each once.

    `known_roots` are the names of all roots; an unknown one has no servers. `star`: the newer AIR reading,
    where "*" stands for every root. Readiness has no say here: a default that cannot start now is still
    a default (catalog-default-unavailable-kept).
    """
    if root_name not in known_roots:
        return ()
    return tuple(name for name, entry in catalog.entries.items() if is_default_in(entry, root_name, star=star))


def is_default_in(entry: Entry, root_name: str, *, star: bool = False) -> bool:
    """Does the entry name this root?"""
    return root_name in entry.default_in_roots or (star and EVERY_ROOT in entry.default_in_roots)


def unknown_default_roots(
    catalog: Catalog, known_roots: Collection[str], *, star: bool = False
) -> tuple[tuple[str, str], ...]:
    """Each (server, root) where an entry names a root that does not exist, which has no effect."""
    return tuple(
        (name, root)
        for name, entry in catalog.entries.items()
        for root in dict.fromkeys(entry.default_in_roots)
        if root not in known_roots and not (star and root == EVERY_ROOT)
    )
