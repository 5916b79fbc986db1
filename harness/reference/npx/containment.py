"""What may be touched as part of a clone's npx cache, by text and on resolved paths.

Source: seed 000 "Timeouts and caching" (containment of guard and heal); requirements npx-layout-containment,
npx-layout-containment-resolved, npx-layout-symlinked-base-ok.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.reference.npx import paths
from harness.reference.npx.layout import CACHE_DIRECTORY, INSTALL_DIRECTORY

CLONES_BELOW_HOME = ".zimmer/clones"


def clones_base(home: str, agent_clones_dir: str | None = None) -> str:
    """Where clones live: AGENT_CLONES_DIR when it names a place, else `$HOME/.zimmer/clones`."""
    if agent_clones_dir and agent_clones_dir.strip():
        return agent_clones_dir
    return paths.join(home, CLONES_BELOW_HOME)


def is_contained(path: str | None, base: str) -> bool:
    """May `path` be touched, by its text alone? It lies under the clones base, and in a cache's install root.

    `..` is worked out first. A `.npm-cache` segment must have something below it, an `_npx` segment may be the last.
    """
    if not path or not paths.is_absolute(path) or not paths.is_absolute(base):
        return False
    below = paths.relative_to(path, base)
    segments = paths.segments(below) if below is not None else ()
    return CACHE_DIRECTORY in segments[:-1] and INSTALL_DIRECTORY in segments


def clone_of(path: str) -> str:
    """The directory that holds the cache `path` lies in: everything before the first `.npm-cache` segment."""
    segments = paths.segments(path)
    return "/" + "/".join(segments[: segments.index(CACHE_DIRECTORY)])


def is_contained_resolved(path: str, base: str, links: Mapping[str, str]) -> bool:
    """May `path` be touched once links are followed? Only if it ends in the cache of its own clone.

    Base and path are resolved the same way, so a clones base that is itself a link stays usable.
    """
    if not is_contained(path, base):
        return False
    flat = paths.normalise(path)
    resolved, home = paths.resolve(flat, links), paths.resolve(clone_of(flat), links)
    real_base = paths.resolve(base, links)
    if resolved is None or home is None or real_base is None:
        return False
    return is_contained(resolved, real_base) and paths.is_within(resolved, home)
