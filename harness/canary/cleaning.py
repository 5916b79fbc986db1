"""Taking away what the canary has installed, and nothing else."""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from harness.canary.cache import HALF_PREFIX, LOCK_SUFFIX, NotInstalledError, beside, locked, size, untold
from harness.canary.installing import PACKAGES, RUNTIMES, parse_wanted
from harness.canary.manifest import package_file
from harness.canary.packages import NODE_PROGRAM
from harness.errors import UserInputError

LEFT = re.compile(rf"{re.escape(HALF_PREFIX)}(?P<half>[^@]+)@[^@]+|\.(?P<lock>[^@]+){re.escape(LOCK_SUFFIX)}")
NODE_FOLDERS = "node-*"
ADVICE = "Remove it yourself if it is not needed."


class Removed(NamedTuple):
    """What was removed, and how many bytes it held."""

    name: str
    size: int


def clean(cache: Path) -> tuple[Removed, ...]:
    """Remove all runtimes and Nodes from a cache; what else it holds stays.

    Raises UserInputError, and nothing is removed, when it is no cache of ours: a folder `runtimes` with something that
    no install leaves, or only strange things. Raises NotInstalledError while something is being installed there.
    """
    try:
        folders, left = ours(cache)
        removed = tuple(remove(folder) for folder in folders)
        for path, name in left.items():
            remove_left(path, name)
        for empty in (cache / RUNTIMES, cache):
            with suppress(OSError):
                empty.rmdir()
    except OSError as error:
        raise NotInstalledError(f"{cache} cannot be cleaned: {error.strerror or error}") from error
    return removed


def ours(cache: Path) -> tuple[list[Path], dict[Path, str]]:
    """The folders that installs have made in a cache, and what they left, with the folder that it is about.

    Raises UserInputError.
    """
    if not cache.exists():
        return [], {}
    runtimes = cache / RUNTIMES
    if not cache.is_dir() or (runtimes.exists() and (runtimes.is_symlink() or not runtimes.is_dir())):
        raise UserInputError(f"{cache} is no cache of the canary", fix=ADVICE)
    nodes = [folder for folder in sorted(cache.glob(NODE_FOLDERS)) if is_node(folder)]
    left = {path: name for path in sorted(cache.iterdir()) if (name := left_of(path)) and name.startswith("node-")}
    if not runtimes.exists():
        if not nodes and not left and any(cache.iterdir()):
            raise UserInputError(f"{cache} is no cache of the canary: it has no folder {RUNTIMES}", fix=ADVICE)
        return nodes, left
    folders = []
    for path in sorted(runtimes.iterdir()):
        name = left_of(path)
        if name is not None and is_label(name):
            left[path] = name
        elif is_runtime(path):
            folders.append(path)
        else:
            raise UserInputError(f"{runtimes} is no folder of the canary: it holds {path.name!r}", fix=ADVICE)
    return [*folders, *nodes], left


def is_runtime(path: Path) -> bool:
    """Whether it is a folder with the package that its name tells."""
    if path.is_symlink() or not path.is_dir() or not is_label(path.name):
        return False
    return bool(package_file(path, PACKAGES[parse_wanted(path.name).family]))


def is_label(name: str) -> bool:
    """Whether it is the label of a runtime."""
    try:
        return parse_wanted(name).label == name
    except UserInputError:
        return False


def is_node(path: Path) -> bool:
    """Whether it is a folder that holds the Node of a wheel."""
    return not path.is_symlink() and (path / NODE_PROGRAM).is_file()


def left_of(path: Path) -> str | None:
    """The name of the folder for which an install that was killed, or one that goes on, has made this; None: nobody."""
    found = LEFT.fullmatch(path.name)
    if found is None or path.is_symlink() or path.is_dir() != (found["half"] is not None):
        return None
    return found["half"] or found["lock"]


def remove(folder: Path) -> Removed:
    """Remove a folder of which nobody ever sees a half."""
    with locked(folder, untold, limit_seconds=0), beside(folder) as aside:
        removed = Removed(folder.name, size(folder))
        folder.rename(aside / folder.name)
    return removed


def remove_left(path: Path, name: str) -> None:
    """Remove what was left, unless its install goes on."""
    with locked(path.with_name(name), untold, limit_seconds=0):
        if path.is_dir():
            shutil.rmtree(path)
