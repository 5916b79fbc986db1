"""Changing what a path named when it was looked at: by descriptors of directories, so that no link can come between.

Whatever else runs may put a link in the place of a directory at any moment. Nothing here follows one that it has not
been told to follow. Directories deeper than a path can be long, or than open files may be many, are no obstacle.
"""

from __future__ import annotations

import errno
import os
import stat as modes
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from harness.world.errors import failure
from harness.world.values import is_passed_on

_PLACE = getattr(os, "O_PATH", getattr(os, "O_SEARCH", os.O_RDONLY)) | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OWN_DESCRIPTORS = "/proc/self/fd"
KEPT_OPEN = 64
"""So many directories above the current one stay open; those farther up are found again by `..` and recognised."""


def place(path: str, *, follow: bool) -> int:
    """A descriptor of a directory. Unless links are followed, ELOOP where any part of the absolute path is one."""
    if follow:
        return os.open(path, _PLACE | os.O_DIRECTORY)
    here = os.open("/", _PLACE | os.O_DIRECTORY)
    for part in path.split("/"):
        if part:
            try:
                inner = _entry(here, part, path)
            finally:
                os.close(here)
            here = inner
    if not modes.S_ISDIR(os.fstat(here).st_mode):
        os.close(here)
        raise failure(errno.ENOTDIR, path)
    return here


def chmod(path: str, mode: int) -> None:
    """Change permission bits of what is really at this path. ELOOP where any part of it is a link."""
    if not is_passed_on(path):
        raise failure(errno.ENOENT, path)
    parent, _, name = path.rstrip("/").rpartition("/")
    here = place(parent or "/", follow=False)
    try:
        entry = _entry(here, name or ".", path)
        try:
            if os.path.isdir(_OWN_DESCRIPTORS):  # noqa: PTH112 - a descriptor that names a place cannot be changed itself
                os.chmod(f"{_OWN_DESCRIPTORS}/{entry}", mode)  # noqa: PTH101
            else:
                os.chmod(name or ".", mode, dir_fd=here, follow_symlinks=False)
        finally:
            os.close(entry)
    finally:
        os.close(here)


class _Level(NamedTuple):
    """A directory that is being emptied. `descriptors` holds one, or none while it is closed."""

    path: str
    name: str
    left: list[str]
    identity: tuple[int, int]
    descriptors: list[int]


def removal(path: str, *, follow: bool) -> Generator[tuple[str, str], None, None]:
    """Take away what is at an absolute path, with all it holds. Yields (verb, path) right before each step.

    The steps are `stat`, `list` of a directory, and `remove`, children first. Links are removed, never followed;
    `follow` says whether the directories above the path may be reached through some. Nothing there is no error.
    """
    parent, _, name = path.rstrip("/").rpartition("/")
    if name in ("", ".", ".."):
        raise failure(errno.EBUSY, path)
    yield "stat", path
    if not is_passed_on(path):
        return
    try:
        here = place(parent or "/", follow=follow)
    except (FileNotFoundError, NotADirectoryError):
        return
    levels = [_Level(parent, "", [], _identity(here), [here])]
    try:
        yield from _taken(levels, name, path)
        while len(levels) > 1:
            level = levels[-1]
            if level.left:
                inner = f"{level.path}/{(child := level.left.pop())}"
                yield "stat", inner
                yield from _taken(levels, child, inner)
            else:
                yield "remove", level.path
                with _named(level.path):
                    _close(levels.pop(), back_to=levels[-1])
                    os.rmdir(level.name, dir_fd=levels[-1].descriptors[0])
    finally:
        for level in levels:
            _close(level)


def _taken(levels: list[_Level], name: str, path: str) -> Iterator[tuple[str, str]]:
    """One entry of the current directory: gone, or a directory to be emptied first."""
    (here,) = levels[-1].descriptors
    with _named(path):
        try:
            status = os.stat(name, dir_fd=here, follow_symlinks=False)
        except FileNotFoundError:
            return
    is_directory = modes.S_ISDIR(status.st_mode)
    yield "list" if is_directory else "remove", path
    with _named(path):
        if not is_directory:
            os.unlink(name, dir_fd=here)
            return
        below = os.open(name, _LIST, dir_fd=here)
        levels.append(_Level(path, name, [], _identity(below), [below]))
        levels[-1].left.extend(sorted(os.listdir(below), reverse=True))  # noqa: PTH208
    if len(levels) > KEPT_OPEN + 1:
        _close(levels[-1 - KEPT_OPEN])


def _close(level: _Level, back_to: _Level | None = None) -> None:
    """Give a directory up; the one above it is opened once more where it was closed."""
    if back_to is not None and not back_to.descriptors:
        back_to.descriptors.append(os.open("..", _PLACE | os.O_DIRECTORY, dir_fd=level.descriptors[0]))
        if _identity(back_to.descriptors[0]) != back_to.identity:
            raise failure(errno.ENOENT, back_to.path)
    while level.descriptors:
        os.close(level.descriptors.pop())


def _entry(here: int, name: str, path: str) -> int:
    """A descriptor of what a directory holds under a name. ELOOP where that is a link."""
    with _named(path):
        entry = os.open(name, _PLACE | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
        if modes.S_ISLNK(os.fstat(entry).st_mode):
            os.close(entry)
            raise failure(errno.ELOOP, path)
        return entry


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


@contextmanager
def _named(path: str) -> Iterator[None]:
    """An error tells the whole path, whatever part of it was asked for."""
    try:
        yield
    except OSError as error:
        raise failure(error.errno or 0, path) from error
