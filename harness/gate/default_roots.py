"""Which agent roots get an entry by default: one answer for the table, the rules and the comparison.

Source: requirement catalog-default-unknown-root. A root that the roots file does not hold gets nothing.
"""

from __future__ import annotations

from collections.abc import Collection

from harness.gate.context import Context
from harness.reference.catalog.entry import Entry
from harness.reference.catalog.roots import is_default_in


def default_roots(context: Context, entry: Entry | None, known: Collection[str] | None = None) -> tuple[str, ...]:
    """The roots whose new sessions get the entry, in the order of the roots file.

    Without a roots file the `known` roots count, and without those the entry's own list is believed.
    """
    if entry is None:
        return ()
    if context.roots_document is not None:
        known = context.roots
    if known is None:
        return tuple(dict.fromkeys(entry.default_in_roots))
    return tuple(root for root in known if is_default_in(entry, root))


def roots_before_and_after(name: str, base: Context, head: Context) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The roots that get an entry by default on both sides. A base without a roots file has today's roots."""
    known = None if head.roots_document is None else tuple(head.roots)
    return default_roots(base, base.catalog.find(name), known), default_roots(head, head.catalog.find(name))


def defaults_moved(name: str, base: Context, head: Context) -> bool:
    """Whether other roots get the entry by default than before."""
    before, after = roots_before_and_after(name, base, head)
    return set(before) != set(after)
