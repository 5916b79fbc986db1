"""Reading a file as it was at a revision, from the repository that holds it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from harness.errors import CannotRunError, UserInputError

_GIT_TIMEOUT_SECONDS = 60


class Revision(NamedTuple):
    """A commit that a name stands for; `root` is the work tree's top folder."""

    name: str
    commit: str
    root: Path

    @property
    def label(self) -> str:
        """How reports name it: the ref with the short commit."""
        return f"{self.name}@{self.commit[:7]}"


def resolve(ref: str, beside: Path) -> Revision:
    """The commit of `ref` in the repository that holds the folder `beside`.

    Raises UserInputError for a text that can be no ref, CannotRunError when there is no git, no repository or no
    such commit here; for a shallow or single-branch clone the message names the fetch to run.
    """
    if not ref or ref.startswith("-") or any(c.isspace() or c in "\0:" for c in ref):
        raise UserInputError(
            f"--base {ref!r} is neither a file nor a git revision", fix="Name a file, branch, tag or commit."
        )
    top = _git(beside, "rev-parse", "--show-toplevel")
    if top is None:
        raise CannotRunError(
            f"--base {ref}: no such file, and {beside.as_posix() or '.'} is in no git repository."
            " Name a file that holds the base."
        )
    root = Path(top.decode("utf-8", "surrogateescape").rstrip("\n"))
    commit = _git(beside, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if commit is None:
        raise CannotRunError(f"--base {ref}: this clone does not have it. Run: {_fetch_command(ref, beside)}")
    return Revision(ref, commit.decode("ascii").strip(), root)


def read_at(revision: Revision, path: Path) -> bytes | None:
    """The bytes of `path` at `revision`; None when the commit holds no such file."""
    relative = Path(os.path.relpath(path.resolve(), revision.root.resolve())).as_posix()
    return _git(revision.root, "cat-file", "blob", f"{revision.commit}:{relative}")


def _fetch_command(ref: str, beside: Path) -> str:
    shallow = (_git(beside, "rev-parse", "--is-shallow-repository") or b"").strip() == b"true"
    depth = "--depth=1 " if shallow else ""
    remotes = (_git(beside, "remote") or b"").decode("utf-8", "replace").split()
    remote, _, branch = ref.partition("/")
    if branch and remote in remotes:
        return f"git fetch {depth}{remote} +refs/heads/{branch}:refs/remotes/{remote}/{branch}"
    return f"git fetch {depth}{remotes[0] if remotes else 'origin'} {ref}"


def _git(folder: Path, *arguments: str) -> bytes | None:
    environment = {k: v for k, v in os.environ.items() if k not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")}
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program, an argument list, no shell
            ["git", *arguments],  # noqa: S607 - git is found on the user's PATH, as in their own terminal
            cwd=folder,
            capture_output=True,
            check=False,
            timeout=_GIT_TIMEOUT_SECONDS,
            env={**environment, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
        )
    except FileNotFoundError:
        raise CannotRunError(
            "--base names a git revision, but there is no git on PATH. Install git, or name a file."
        ) from None
    except subprocess.TimeoutExpired:
        raise CannotRunError(f"git {arguments[0]} gave no answer in {_GIT_TIMEOUT_SECONDS} s.") from None
    return done.stdout if done.returncode == 0 else None
