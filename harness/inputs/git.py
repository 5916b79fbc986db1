"""Reading a file as it was at a revision, from the repository that holds it.

A name stands for the commit where the work at hand left it (the merge base of HEAD), so that what others have
merged meanwhile is no part of the comparison.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from harness.errors import CannotRunError, UserInputError
from harness.inputs.git_advice import Clone, advice, is_path_like

MERGE_BASE = "merge base"
TIP_OF_SHALLOW = "tip; this shallow clone does not hold the merge base"
TIP_WITHOUT_HISTORY = "tip; no history in common with HEAD"

CAUTION = (
    "compared with the tip of {place}, since {why}: what others have merged there meanwhile may be told as a part of "
    "this change{fix}"
)
FETCH_MORE = "; git fetch --unshallow lets it be found (actions/checkout: fetch-depth: 0)"

_GIT_TIMEOUT_SECONDS = 60
_NEVER_IN_A_REVISION = "\0:*?["
_SHORT_COMMIT = 7
_NOT_A_REPOSITORY = "not a git repository"
_UNKNOWN_REVISION = "Needed a single revision"
_OWNERSHIP_COMMAND = "git config --global --add safe.directory"


class Revision(NamedTuple):
    """A commit that stands for a name; `root` is the work tree's top folder, `note` how it was found ("": the tip)."""

    name: str
    commit: str
    root: Path
    note: str = ""

    @property
    def place(self) -> str:
        """The name with the short commit."""
        return f"{self.name}@{self.commit[:_SHORT_COMMIT]}"

    @property
    def caution(self) -> str:
        """What whoever reads of the comparison must know of it: that it counts too much; "" where it does not."""
        if self.note == TIP_OF_SHALLOW:
            return CAUTION.format(
                place=self.place, why="this shallow clone does not hold the merge base", fix=FETCH_MORE
            )
        if self.note == TIP_WITHOUT_HISTORY:
            return CAUTION.format(place=self.place, why="it has no history in common with HEAD", fix="")
        return ""

    @property
    def label(self) -> str:
        """How reports name it: `main@4f1c2e9 (merge base)`, or `main@4f1c2e9` where that is the tip."""
        return f"{self.place} ({self.note})" if self.note else self.place


class _Answer(NamedTuple):
    """What a git command gave back; `complaint` is the first line of its stderr."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "surrogateescape").rstrip("\n")

    @property
    def complaint(self) -> str:
        lines = self.err.decode("utf-8", "replace").strip().splitlines()
        return lines[0].strip() if lines else f"exit code {self.code}"


def names_file(text: str) -> bool:
    """Whether a text names something to be read; a folder is none, for a branch may be called like it."""
    return os.path.exists(text) and not os.path.isdir(text)  # noqa: PTH110, PTH112 - a text of any kind, never an error


def resolve(ref: str, beside: Path) -> Revision:
    """The commit to compare with: the merge base of HEAD and `ref` in the repository that holds the folder `beside`.

    Where the clone holds no common history (a shallow one, say) it is the tip of `ref`; the label tells. Raises
    UserInputError for a text that can be no ref and for a path that leads nowhere; CannotRunError when there is no
    git, no repository or no such commit here, with what git said or the fetch to run.
    """
    if not ref.strip():
        raise UserInputError("--base is empty", fix="Name a file, branch, tag or commit.")
    if ".." in ref and not is_path_like(ref):
        raise UserInputError(f"--base {ref!r} is a range", fix="Name the one revision to compare with.")
    if ref.startswith("-") or any(c.isspace() or c in _NEVER_IN_A_REVISION for c in ref):
        raise UserInputError(
            f"--base {ref!r} is neither a file nor a git revision", fix="Name a file, branch, tag or commit."
        )
    top = _git(beside, "rev-parse", "--show-toplevel")
    if top.code:
        raise _no_repository(ref, beside, top)
    found = _git(beside, "rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}")
    if found.code:
        raise _no_commit(ref, beside, found)
    commit, note = _merge_base(found.text, beside)
    return Revision(ref, commit, Path(top.text), note)


def read_at(revision: Revision, path: Path) -> bytes | None:
    """The bytes of `path` at `revision`; None when the commit holds no such file.

    Raises CannotRunError where git names the file and cannot read it.
    """
    relative = Path(os.path.relpath(path.resolve(), revision.root.resolve())).as_posix()
    blob = _git(revision.root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision.commit}:{relative}")
    if blob.code:
        return None
    content = _git(revision.root, "cat-file", "blob", blob.text)
    if content.code:
        raise CannotRunError(f"--base {revision.name}: git cannot read {relative} there: {content.complaint}")
    return content.out


def _merge_base(tip: str, beside: Path) -> tuple[str, str]:
    """The commit to compare with, and the note on how it was found."""
    found = _git(beside, "merge-base", "HEAD", tip)
    if found.code or not found.text:
        return tip, TIP_OF_SHALLOW if _is_shallow(beside) else TIP_WITHOUT_HISTORY
    commit = found.text.splitlines()[0]
    return commit, "" if commit == tip else MERGE_BASE


def _no_repository(ref: str, beside: Path, answer: _Answer) -> CannotRunError | UserInputError:
    if is_path_like(ref):
        return _no_file(ref)
    if _NOT_A_REPOSITORY in answer.complaint:
        return CannotRunError(
            f"--base {ref}: no such file, and {beside.as_posix() or '.'} is in no git repository."
            " Name a file that holds the base."
        )
    lines = answer.err.decode("utf-8", "replace").splitlines()
    command = next((line.strip() for line in lines if _OWNERSHIP_COMMAND in line), None)
    run = f" Run: {command}" if command else ""
    return CannotRunError(f"--base {ref}: git says: {answer.complaint}.{run}")


def _no_commit(ref: str, beside: Path, answer: _Answer) -> CannotRunError | UserInputError:
    if _UNKNOWN_REVISION not in answer.complaint:
        return CannotRunError(f"--base {ref}: git says: {answer.complaint}")
    remotes = tuple(_git(beside, "remote").text.split())
    if is_path_like(ref) and ref.partition("/")[0] not in remotes:
        return _no_file(ref)

    def holds(name: str) -> bool:
        return not _git(beside, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").code

    return CannotRunError(f"--base {ref}: {advice(ref, Clone(remotes, _is_shallow(beside), holds))}")


def _no_file(ref: str) -> UserInputError:
    what = "is a folder" if os.path.isdir(ref) else "no such file"  # noqa: PTH112 - a text of any kind, never an error
    return UserInputError(what, file=ref, fix="Name a file, branch, tag or commit.")


def _is_shallow(beside: Path) -> bool:
    return _git(beside, "rev-parse", "--is-shallow-repository").text == "true"


def _git(folder: Path, *arguments: str) -> _Answer:
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
    return _Answer(done.returncode, done.stdout, done.stderr)
