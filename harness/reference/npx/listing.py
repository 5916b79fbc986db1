"""A described file tree: what heal and guard decide on, in place of a disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.reference.npx import paths


class Listing(NamedTuple):
    """Absolute paths of what exists: `directories`, and symbolic `links` with their targets."""

    directories: frozenset[str] = frozenset()
    links: Mapping[str, str] = {}

    def resolve(self, path: str) -> str | None:
        """`path` with links followed, None for a loop."""
        return paths.resolve(path, self.links)

    def exists(self, path: str) -> bool:
        """Is there something at `path`, links followed? A directory's parents exist with it."""
        found = self.resolve(path)
        if found is None:
            return False
        return any(paths.is_within(self.resolve(each) or each, found) for each in self.directories)
