"""Keeping a file that holds secrets out of commits: an entry in the repository's own exclude file.

Source: requirement prepare-secret-file-mode. `.gitignore` belongs to the repository and is never changed.
"""

from __future__ import annotations

import posixpath

from harness.world import World

GIT = ".git"
LINK_PREFIX = "gitdir:"


async def exclude(world: World, clone: str, path: str) -> None:
    """Make git ignore `path` (relative to the clone) if it does not yet. No repository: nothing. Raises OSError."""
    directory = await git_directory(world, clone)
    if directory is None:
        return
    file, line = f"{directory}/info/exclude", f"/{path}"
    text = await text_of(world, file)
    if line in text.splitlines():
        return
    await world.files.make_directory(f"{directory}/info")
    await world.files.append(file, entry(text, line).encode())


def entry(text: str, line: str) -> str:
    """The line as it is appended: a last line without a break gets one first."""
    return f"{line}\n" if not text or text.endswith("\n") else f"\n{line}\n"


async def git_directory(world: World, clone: str) -> str | None:
    """Where the repository keeps what all its worktrees share; None where the clone is no repository."""
    status = await world.files.stat(f"{clone}/{GIT}")
    if status is None:
        return None
    if status.kind == "directory":
        return f"{clone}/{GIT}"
    linked = (await text_of(world, f"{clone}/{GIT}")).strip()
    if not linked.startswith(LINK_PREFIX):
        return None
    own = posixpath.join(clone, linked.removeprefix(LINK_PREFIX).strip())
    common = (await text_of(world, f"{own}/commondir")).strip()
    return posixpath.normpath(posixpath.join(own, common)) if common else own


async def text_of(world: World, path: str) -> str:
    """A file's text; empty where there is none."""
    try:
        return (await world.files.read(path)).decode(errors="replace")
    except FileNotFoundError:
        return ""
