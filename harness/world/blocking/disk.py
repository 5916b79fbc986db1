"""What the file port asks of the operating system, in its terms: descriptors, errno, exact modes. No switch points."""

from __future__ import annotations

import errno
import os
import stat as bits
from collections.abc import Callable
from typing import Any, TypeVar

from harness.world.errors import failure
from harness.world.ports import Stat

_CHUNK = 1 << 20
_OPEN = os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
"""Of no effect on files and directories; a named pipe is not waited for."""
_MODE = 0o7777
STAMP_SECONDS = 0.02
"""A time stamp may be that much older than the change: systems take it from a clock that ticks rarely."""

Answer = TypeVar("Answer")


def asked(path: str, function: Callable[..., Answer], *arguments: Any) -> Answer:
    """Call the operating system; its error names the path. What no path can hold is none that is there."""
    try:
        return function(*arguments)
    except OSError as error:
        raise failure(error.errno or errno.EIO, path) from None
    except ValueError:
        raise failure(errno.ENOENT, path) from None


def read(path: str) -> bytes:
    """A file's content."""
    descriptor = asked(path, os.open, path, os.O_RDONLY | _OPEN)
    try:
        parts = []
        while part := asked(path, os.read, descriptor, _CHUNK):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def open_to_write(path: str, mode: int, flags: int = 0) -> int:
    """A descriptor of the file at a path. A new one gets exactly `mode`, whatever the umask says."""
    flags |= _OPEN if flags & os.O_RDWR else _OPEN | os.O_WRONLY
    try:
        return asked(path, os.open, path, flags)
    except FileNotFoundError:
        pass
    try:
        descriptor = asked(path, os.open, path, flags | os.O_CREAT | os.O_EXCL, mode & _MODE)
    except FileExistsError:  # made by somebody meanwhile, or a link to what is not there yet
        is_new = not os.path.exists(path)  # noqa: PTH110 - pathlib would be half of the time that a start takes
        descriptor = asked(path, os.open, path, flags | os.O_CREAT, mode & _MODE)
        if not is_new:
            return descriptor
    os.fchmod(descriptor, mode & _MODE)
    return descriptor


def write_to(descriptor: int, content: bytes, path: str) -> None:
    """All of it."""
    left = memoryview(content)
    while left:
        left = left[asked(path, os.write, descriptor, left[:_CHUNK]) :]


def make_exactly(path: str, content: bytes, mode: int) -> None:
    """A new file; nothing is left of it when it cannot be written."""
    descriptor = asked(path, os.open, path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN, mode & _MODE)
    try:
        os.fchmod(descriptor, mode & _MODE)
        write_to(descriptor, content, path)
    except OSError:
        os.unlink(path)  # noqa: PTH108
        raise
    finally:
        os.close(descriptor)


def stat(path: str, world_time: Callable[[float], float]) -> Stat | None:
    """What is there, the last component not followed. Anything else than a directory or a link counts as a file."""
    try:
        found = asked(path, os.lstat, path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    is_link, is_directory = bits.S_ISLNK(found.st_mode), bits.S_ISDIR(found.st_mode)
    kind = "link" if is_link else "directory" if is_directory else "file"
    return Stat(kind, bits.S_IMODE(found.st_mode), found.st_size, world_time(found.st_mtime))


def names(path: str, world_time: Callable[[float], float], since_seconds: float | None = None) -> tuple[str, ...]:
    """The sorted names in a directory, of what was modified since then. What goes away meanwhile is none."""
    found = sorted(asked(path, os.listdir, path))
    if since_seconds is None:
        return tuple(found)
    return tuple(name for name in found if is_modified_since(f"{path}/{name}", world_time, since_seconds))


def is_modified_since(path: str, world_time: Callable[[float], float], since_seconds: float) -> bool:
    """Whether what is there was modified then or later, as far as time stamps can tell."""
    there = stat(path, lambda real_seconds: world_time(real_seconds + STAMP_SECONDS))
    return there is not None and there.modified_seconds >= since_seconds


def make_directory(path: str, mode: int) -> None:
    """A directory with its parents, all of exactly this mode."""
    if _is_directory(path):
        return
    parts = [part for part in path.split("/") if part not in ("", ".")]
    for count in range(1, len(parts) + 1):
        partial = "/" + "/".join(parts[:count])
        try:
            asked(path, os.mkdir, partial, mode & _MODE)
        except FileExistsError:
            if count == len(parts) and not _is_directory(partial):
                raise
        else:
            asked(path, os.chmod, partial, mode & _MODE)


def _is_directory(path: str) -> bool:
    return os.path.isdir(path)  # noqa: PTH112


def rename(source: str, target: str) -> None:
    """Move. The error names what it is about."""
    is_there = os.path.lexists(source)
    asked(target if is_there else source, os.rename, source, target)


def remove(path: str) -> None:
    """A file, a link or an empty directory."""
    try:
        asked(path, os.unlink, path)
    except (IsADirectoryError, PermissionError) as error:
        if not bits.S_ISDIR(asked(path, os.lstat, path).st_mode):
            raise error from None
        asked(path, os.rmdir, path)


def chmod(path: str, mode: int) -> None:
    """Change the permission bits, links followed."""
    asked(path, os.chmod, path, mode & _MODE)


def make_link(path: str, target: str) -> None:
    """A symbolic link."""
    asked(path, os.symlink, target, path)


def resolve(path: str) -> str:
    """The real path. The operating system says first whether it leads anywhere: it counts links and minds `..`."""
    asked(path, os.stat, path)
    return os.path.realpath(path)
