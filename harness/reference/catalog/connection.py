"""Which entries can be turned into a runtime's entry at all, and what is said about those that cannot.

Source: seed 000, "The entry format": command belongs to stdio, url to remote entries (catalog-stdio-fields,
catalog-remote-fields). An entry that lacks its own is left out alone; the others are unaffected.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness.reference.catalog.entry import Entry


class Connectable(NamedTuple):
    """The entries that can be prepared, in order, and one warning for each that cannot."""

    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]


def connectable(entries: Iterable[Entry]) -> Connectable:
    """Part entries into those a runtime entry can be made of and warnings about the rest."""
    usable: list[Entry] = []
    warnings: list[str] = []
    for entry in entries:
        missing = missing_member(entry)
        if missing is None:
            usable.append(entry)
        else:
            warnings.append(skip_warning(entry.name, missing))
    return Connectable(tuple(usable), tuple(warnings))


def missing_member(entry: Entry) -> str | None:
    """The member without which nothing can be connected: "type", "command" or "url"; None: all is there."""
    if entry.stdio:
        return None if is_given(entry.command) else "command"
    if entry.remote:
        return None if is_given(entry.url) else "url"
    return "type"


def is_given(text: str | None) -> bool:
    """Is there anything but blanks in it?"""
    return text is not None and bool(text.strip())


def skip_warning(server: str, missing: str) -> str:
    """The line that the application log gets for an entry that is left out."""
    return f"Skipping MCP server '{server}': its catalog entry has no usable {missing}"
