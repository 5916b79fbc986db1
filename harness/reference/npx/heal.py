"""Which install trees an npm error text says are corrupt, and may be removed.

Source: seed 000 "Timeouts and caching" (NpxCacheHealService); requirements npx-heal-*.
The text comes from a server, so no path in it is believed: each one is checked against the clone's own cache.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from harness.reference.npx import layout, paths
from harness.reference.npx.containment import is_contained_resolved
from harness.reference.npx.listing import Listing

CORRUPTION_MARKS = (
    "ENOTEMPTY",
    "ERR_UNSUPPORTED_DIR_IMPORT",
    "MODULE_NOT_FOUND",
    "ERR_MODULE_NOT_FOUND",
    "Cannot find module",
    "Cannot find package",
    "ERR_PACKAGE_PATH_NOT_EXPORTED",
    "is not supported resolving ES modules",
    "TAR_ENTRY_ERROR",
)

# What cannot be part of a path in an error text. Words are searched one by one, so a hostile text costs
# linear time.
_BETWEEN_WORDS = re.compile(r"[\s'\"`()<>|,:;=\[\]{}]+")
_TREE = re.compile(r"(?:^|/)_npx/([0-9a-f]+)(?![\w-])(?!\.\w)")


class HealPlan(NamedTuple):
    """`removals`: absolute directories to remove, in the order found, each once."""

    removals: tuple[str, ...] = ()


class HealResult(NamedTuple):
    """What was really removed; `healed` is False when nothing was."""

    healed: bool
    removed: tuple[str, ...]


def is_corruption(error: str) -> bool:
    """Is this error text a corrupt npx cache? It names `_npx` (as npm spells it) and one of the marks, in any case."""
    lowered = error.lower()
    return layout.INSTALL_DIRECTORY in error and any(mark.lower() in lowered for mark in CORRUPTION_MARKS)


def named_trees(error: str) -> tuple[str, ...]:
    """The absolute `.../_npx/<hex>` directories a text names."""
    return tuple(dict.fromkeys(paths.normalise(word) for word, _ in _tree_words(error) if paths.is_absolute(word)))


def bare_hashes(error: str) -> tuple[str, ...]:
    """The hashes of `_npx/<hex>` tokens that stand without an absolute path."""
    return tuple(dict.fromkeys(digest for word, digest in _tree_words(error) if not paths.is_absolute(word)))


def _tree_words(error: str) -> Iterator[tuple[str, str]]:
    """Each word up to the first `_npx/<hex>` in it, and that hash."""
    for word in _BETWEEN_WORDS.split(error):
        found = _TREE.search(word)
        if found is not None:
            yield word[: found.end()], found.group(1)


def candidates(error: str, working_directory: str | None, listing: Listing) -> tuple[str, ...]:
    """The trees a corruption text points at, existing and allowed or not.

    Named absolute trees win over bare hashes; a text without either points at every install root of the clone.
    """
    named = named_trees(error)
    if named:
        return named
    clone = working_directory or ""
    hashes = bare_hashes(error)
    if hashes:
        found = (layout.install_trees(clone, listing.directories, digest) for digest in hashes)
        return tuple(tree for trees in found for tree in trees if clone)
    return layout.install_roots(clone, listing.directories)


def removable(tree: str, listing: Listing, base: str) -> bool:
    """May this tree be removed? It exists and lies, links followed, in a clone's npm cache
    (npx-heal-containment).
    """
    return is_contained_resolved(tree, base, listing.links) and listing.exists(tree)


def plan(error: str, working_directory: str | None, listing: Listing, clones_base: str) -> HealPlan:
    """What to remove after `error`; nothing when the text is no corruption or nothing it names may be touched."""
    if not is_corruption(error):
        return HealPlan()
    trees = candidates(error, working_directory, listing)
    return HealPlan(tuple(dict.fromkeys(tree for tree in trees if removable(tree, listing, clones_base))))


def carry_out(removals: Iterable[str], remove: Callable[[str], None]) -> HealResult:
    """Remove each tree with `remove`; one that fails (OSError) is left out and does not stop the rest."""
    removed = tuple(tree for tree in removals if _removed(tree, remove))
    return HealResult(bool(removed), removed)


def _removed(tree: str, remove: Callable[[str], None]) -> bool:
    try:
        remove(tree)
    except OSError:
        return False
    return True
