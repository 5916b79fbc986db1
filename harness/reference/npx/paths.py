"""Paths as text: absolute POSIX paths, normalised without looking at a disk."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from functools import lru_cache

MAXIMUM_LINKS = 40


def is_absolute(path: str) -> bool:
    """Is this an absolute path? A blank one is not."""
    return path.startswith("/")


def join(directory: str, name: str) -> str:
    """`directory`/`name` with one slash between; the directory's own text stays as it is."""
    return f"{directory.rstrip('/')}/{name}"


@lru_cache(maxsize=1 << 12)
def normalise(path: str) -> str:
    """`path` with `.`, `..` and repeated slashes worked out; two leading slashes are one."""
    flat = posixpath.normpath(path)
    return f"/{flat.lstrip('/')}" if flat.startswith("/") else flat


def segments(path: str) -> tuple[str, ...]:
    """The normalised path's names; those of the root and of an empty path are none."""
    return tuple(part for part in normalise(path).split("/") if part not in ("", "."))


def relative_to(path: str, directory: str) -> str | None:
    """`path` seen from `directory` (both absolute): "" for the directory itself, None when it lies outside."""
    inner, outer = segments(path), segments(directory)
    return "/".join(inner[len(outer) :]) if inner[: len(outer)] == outer else None


def is_within(path: str, directory: str) -> bool:
    """Is `path` the directory or below it? Segment by segment: `/a/bc` is not within `/a/b`."""
    return relative_to(path, directory) is not None


def resolve(path: str, links: Mapping[str, str]) -> str | None:
    """`path` with every symbolic link followed; `links` maps a link's absolute path to its target. None
    for a loop.

    `..` after a link climbs from the link's target, as the kernel does it.
    """
    waiting = list(reversed(_raw_segments(path)))
    reached: list[str] = []
    followed = 0
    while waiting:
        name = waiting.pop()
        if name == "..":
            reached = reached[:-1]
            continue
        target = links.get("/" + "/".join([*reached, name]))
        if target is None:
            reached.append(name)
            continue
        followed += 1
        if followed > MAXIMUM_LINKS:
            return None
        reached = [] if target.startswith("/") else reached
        waiting.extend(reversed(_raw_segments(target)))
    return "/" + "/".join(reached)


def _raw_segments(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
