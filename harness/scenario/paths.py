"""The paths that a scenario file names: ones that a system can have, and that do not stand in each other's way."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

from harness.scenario.document import Document
from harness.scenario.model import CLONES, CODEX_HOME, HOME
from harness.scenario.positions import Path

LONGEST_PATH, LONGEST_NAME = 2_000, 255
"""What systems take: a path's characters, half of the usual limit, and the bytes of one name in it."""


def checked_path(document: Document, path: str, place: Path, *, is_file: bool = True) -> str:
    """The path, if a system can have it and it does not climb out of where it lies; of a file unless said otherwise."""
    parts = path.split("/")
    if ".." in parts:
        document.fail(place, f"the path {path!r} climbs out", "Write an absolute path, or ~/ for the home directory.")
    what = ""
    if not path.strip("/. ") or path in ("~", "~/"):
        what = f"the path {path!r} names nothing"
    elif is_file and parts[-1] in ("", "."):
        what = f"the path {path!r} names a folder"
    elif "\0" in path:
        what = f"the path {path!r} holds a character that no path can have"
    elif len(path) > LONGEST_PATH or max(len(part.encode()) for part in parts) > LONGEST_NAME:
        what = f"the path has {len(path):,} characters, more than a system takes in one path or name"
    if what:
        document.fail(place, what, "Write the path of a file: .mcp.json, ~/.claude.json." if is_file else "Name one.")
    return path


def check_files(document: Document, paths: Iterable[str], clone: str) -> None:
    """Files that can be there together: none is a folder that another one, or a session, lies in; `clone` is where
    relative paths begin. Raises UserInputError.
    """
    folders = {*above(f"{CLONES}/S"), *above(f"{CODEX_HOME}/S"), *above(f"{clone}/S")}
    whole: dict[str, str] = {}
    for path in paths:
        checked_path(document, path, ("files", path))
        whole[absolute(path, clone)] = path
    for place, path in whole.items():
        inner = next((other for at, other in whole.items() if place in above(at)), None)
        if inner is not None or place in folders:
            what = f"the path {path!r} is a folder" + (f", which {inner!r} lies in" if inner is not None else "")
            document.fail(("files", path), what, "Write the path of a file.")


def absolute(path: str, clone: str) -> str:
    """A path without what it may leave out."""
    path = f"{HOME}/{path[2:]}" if path.startswith("~/") else path
    return posixpath.normpath(path if path.startswith("/") else f"{clone}/{path}")


def above(path: str) -> Iterator[str]:
    """The folders that a path lies in, the nearest first."""
    while path not in ("/", ""):
        path = posixpath.dirname(path)
        yield path
