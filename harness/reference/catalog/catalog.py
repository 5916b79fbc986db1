"""The catalog: one flat, ordered map of server name to entry.

Source: seed 000, "The entry format". Reading looks at the given tree alone and never fails.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.reference.catalog.entry import Entry, read_entry
from harness.reference.catalog.startup_timeout import FIELD, accept, refusal_warning

RESERVED_KEY = "$schema"

SWALLOWED_NAMES = frozenset({"__proto__"})
"""Names that a JavaScript object does not keep as a key: AIR loses the entry, so nothing can prepare it."""


class UnknownServerError(LookupError):
    """A server that the catalog does not hold was asked for by name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Server '{name}' not found in catalog")
        self.name = name


@dataclass(frozen=True, slots=True)
class Catalog:
    """The servers in the order of the file, and one warning for each budget that was refused at loading."""

    entries: Mapping[str, Entry]
    warnings: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all servers, in the order of the file."""
        return tuple(self.entries)

    def find(self, name: str) -> Entry | None:
        """The entry of exactly this name, or None."""
        return find_exact(self.entries, name)

    def require(self, name: str) -> Entry:
        """The entry of exactly this name; raises UnknownServerError."""
        entry = find_exact(self.entries, name)
        if entry is None:
            raise UnknownServerError(name)
        return entry

    def snapshot_text(self) -> str:
        """The resolved tree as it is kept for the next start: entries as written, placeholders unexpanded."""
        return json.dumps({name: entry.raw for name, entry in self.entries.items()}, ensure_ascii=False, indent=2)


def find_exact(entries: Mapping[str, Entry], name: str) -> Entry | None:
    """Look a server up by its exact name (catalog-lookup-exact)."""
    return entries.get(name)


def read_catalog(tree: Mapping[str, Any]) -> Catalog:
    """Read a parsed mcp.json (or the `mcp` part of a resolved tree).

    `$schema` is no server whatever it holds; neither is a member that is not an object. All other
    members are taken, however wrong they are inside: one bad entry costs no other.
    """
    entries = {name: read_entry(name, raw) for name, raw in tree.items() if is_server(name, raw)}
    return Catalog(entries=entries, warnings=budget_warnings(entries))


def is_server(name: str, raw: object) -> bool:
    """Is this member of the map a server?"""
    return name != RESERVED_KEY and name not in SWALLOWED_NAMES and isinstance(raw, Mapping)


def budget_warnings(entries: Mapping[str, Entry]) -> tuple[str, ...]:
    """One warning for each server whose budget was refused (startup-timeout-warn-once-per-load)."""
    return tuple(
        refusal_warning(name, entry.raw.get(FIELD), refused)
        for name, entry in entries.items()
        if (refused := accept(entry.raw.get(FIELD)).refused) is not None
    )
