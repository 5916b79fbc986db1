"""What to run when a clone does not have the revision that was named. Pure: the clone is described, not asked."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from typing import NamedTuple

_STEPS = re.compile(r"(?:~\d*|\^\d*)+$")
_STEP = re.compile(r"([~^])(\d*)")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_FULL_COMMIT_CHARACTERS = 40
_TAG = re.compile(r"v?\d+(?:\.\d+)+\S*")
_FILE_SUFFIX = re.compile(r"\.(?:jsonc?|json5|toml|ya?ml|txt|bak|orig|old)$", re.IGNORECASE)
_USUAL_REMOTES = ("origin", "upstream")
_HEADS, _TAGS, _REMOTES = "refs/heads/", "refs/tags/", "refs/remotes/"


class Clone(NamedTuple):
    """What advice depends on. `holds` tells whether a name stands for a commit in the clone."""

    remotes: tuple[str, ...]
    is_shallow: bool
    holds: Callable[[str], bool]

    @property
    def remote(self) -> str:
        """The remote to fetch from."""
        return _USUAL_REMOTES[0] if _USUAL_REMOTES[0] in self.remotes else self.remotes[0]


def is_path_like(text: str) -> bool:
    """Whether a text that names no file was meant to: it begins or ends like a path, or names a folder."""
    begins = text.startswith(("./", "../", "/", "~/", ".\\", "..\\")) or text in (".", "..")
    return begins or bool(_FILE_SUFFIX.search(text)) or os.path.isdir(text)  # noqa: PTH112 - any text, never an error


def advice(ref: str, clone: Clone) -> str:
    """What is missing and what to run, for a `ref` that stands for no commit in the clone."""
    steps = _STEPS.search(ref)
    start = ref[: steps.start()] if steps else ref
    if steps and (start in ("", "@") or clone.holds(start)):
        return _deeper(start or "HEAD", _generations(steps[0]), clone)
    if start in ("HEAD", "@"):
        return "the repository has no commit yet."
    if not clone.remotes:
        return "this clone does not have it, and has no remote to fetch it from. Name a file, or another revision."
    return _fetch(start, ref[len(start) :], clone)


def _generations(steps: str) -> int:
    """How far back `~2^` and the like lead; the second parent of a merge is one step away too."""
    return sum((int(count or 1) if sign == "~" else min(int(count or 1), 1)) for sign, count in _STEP.findall(steps))


def _deeper(start: str, generations: int, clone: Clone) -> str:
    if not clone.is_shallow:
        return f"the history of {start} has no such commit."
    if not clone.remotes:
        return "this shallow clone does not go back that far, and has no remote to fetch more from."
    return (
        f"this shallow clone does not go back that far. Run: git fetch --deepen={generations}"
        " (or git fetch --unshallow for all of it)"
    )


def _fetch(name: str, steps: str, clone: Clone) -> str:
    """The fetch for a branch, tag or commit; `steps` is what stood behind it (`~1`), kept in the name to use."""
    remote, _, branch = name.removeprefix(_REMOTES).partition("/")
    if branch and remote in clone.remotes:
        return f"this clone does not have it. Run: {_fetch_branch(remote, branch, clone)}"
    if branch and (remote in _USUAL_REMOTES or name.startswith(_REMOTES)):
        return (
            f"no remote of this clone is called {remote} (there is {', '.join(clone.remotes)})."
            f" Run: {_fetch_branch(clone.remote, branch, clone)} (then --base {clone.remote}/{branch}{steps})"
        )
    if _COMMIT.fullmatch(name):
        return f"this clone does not have that commit. Run: {_fetch_commit(name, clone)}"
    if name.startswith(_TAGS) or _TAG.fullmatch(name):
        tag = f"{_TAGS}{name.removeprefix(_TAGS)}"
        return f"this clone does not have it. Run: {_command(clone.remote, f'+{tag}:{tag}', clone)}"
    if name.startswith("refs/") and not name.startswith(_HEADS):
        return f"this clone does not have it. Run: {_command(clone.remote, f'+{name}:{name}', clone)}"
    branch = name.removeprefix(_HEADS)
    tracking = f"{clone.remote}/{branch}"
    if clone.holds(tracking):
        return f"this clone has no branch of that name, but it has {tracking}. Use --base {tracking}{steps}"
    return (
        f"this clone does not have it. Run: {_fetch_branch(clone.remote, branch, clone)}"
        f" (then --base {tracking}{steps})"
    )


def _fetch_branch(remote: str, branch: str, clone: Clone) -> str:
    return _command(remote, f"+{_HEADS}{branch}:{_REMOTES}{remote}/{branch}", clone)


def _fetch_commit(commit: str, clone: Clone) -> str:
    """A server gives out a commit only by its whole id."""
    if len(commit) == _FULL_COMMIT_CHARACTERS:
        return _command(clone.remote, commit, clone)
    return "git fetch --unshallow" if clone.is_shallow else f"git fetch {shlex.quote(clone.remote)}"


def _command(remote: str, what: str, clone: Clone) -> str:
    depth = ["--depth=1"] if clone.is_shallow else []
    return shlex.join(["git", "fetch", *depth, remote, what])
