"""The one place that knows where a clone's npm caches live; isolation, heal, clear and guard take roots from here.

Source: seed 000 "Timeouts and caching" (NpxCacheLayout); requirements npx-layout-*.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from harness.reference.npx import paths

CACHE_DIRECTORY = ".npm-cache"
INSTALL_DIRECTORY = "_npx"
ISOLATED_DIRECTORY = "isolated"
UNNAMED = "unnamed"
ANY = "*"

# The shapes of an install root, relative to a clone, segment by segment. `*` is any one directory.
ROOT_SHAPES: tuple[tuple[str, ...], ...] = (
    (CACHE_DIRECTORY, INSTALL_DIRECTORY),
    (CACHE_DIRECTORY, ANY, ANY, INSTALL_DIRECTORY),
)

_OUTSIDE_NAME = re.compile(r"[^A-Za-z0-9._-]")


class Located(NamedTuple):
    """A path inside an install root: the root and the rest, both relative (to the clone, to the root)."""

    root: str
    rest: str


def shared_cache(clone: str) -> str:
    """`<clone>/.npm-cache`, used by every npx server that shares its package with no other."""
    return paths.join(clone, CACHE_DIRECTORY)


def isolated_cache(clone: str, server: str) -> str:
    """`<clone>/.npm-cache/isolated/<server>`: keyed by server, for two servers of one package must not share it."""
    return paths.join(shared_cache(clone), f"{ISOLATED_DIRECTORY}/{directory_name(server)}")


def directory_name(name: str | None) -> str:
    """The directory of a server's isolated cache: one segment that never climbs
    (npx-layout-name-sanitize).
    """
    safe = _OUTSIDE_NAME.sub("_", name or "")
    return safe if safe.strip(".") else UNNAMED


def shared_root(clone: str) -> str:
    """`<clone>/.npm-cache/_npx`."""
    return paths.join(shared_cache(clone), INSTALL_DIRECTORY)


def matches(shape: tuple[str, ...], segments: tuple[str, ...]) -> bool:
    """Has a relative path exactly this shape?"""
    pairs = zip(shape, segments, strict=False)
    return len(shape) == len(segments) and all(want in (ANY, got) for want, got in pairs)


def locate(relative: str) -> Located | None:
    """The install root that a path relative to the clone lies in (or is), or None."""
    segments = paths.segments(relative)
    for shape in ROOT_SHAPES:
        if matches(shape, segments[: len(shape)]):
            return Located("/".join(segments[: len(shape)]), "/".join(segments[len(shape) :]))
    return None


def install_roots(clone: str, directories: Collection[str]) -> tuple[str, ...]:
    """Every install root of a clone: the shared one always, then each existing nested one, sorted.

    `directories`: absolute paths of existing directories. A blank clone has none
    (npx-layout-discovery-roots).
    """
    if not paths.is_absolute(clone):
        return ()
    found = set()
    for directory in directories:
        relative = paths.relative_to(directory, clone)
        located = locate(relative) if relative is not None else None
        if located is not None:
            found.add(paths.join(clone, located.root))
    shared = shared_root(clone)
    return (shared, *sorted(found - {shared}))


def install_trees(clone: str, directories: Collection[str], digest: str) -> tuple[str, ...]:
    """`_npx/<digest>` of the shared root, and of every nested root that has it
    (npx-layout-discovery-hash).
    """
    shared = shared_root(clone)
    trees = [(root, paths.join(root, digest)) for root in install_roots(clone, directories)]
    return tuple(tree for root, tree in trees if root == shared or _has(tree, directories))


def _has(tree: str, directories: Collection[str]) -> bool:
    return any(paths.is_within(directory, tree) for directory in directories)


def clear_targets(clone: str, directories: Collection[str]) -> tuple[str, ...]:
    """What a cache clear removes: the whole cache directory, and any install root that lies elsewhere."""
    if not paths.is_absolute(clone):
        return ()
    cache = shared_cache(clone)
    outside = [root for root in install_roots(clone, directories) if not paths.is_within(root, cache)]
    return (cache, *outside)
