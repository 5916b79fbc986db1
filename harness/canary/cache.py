"""A cache outside the repository: folders that are there whole or not at all, however many processes fill them."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import TypeVar

from harness.errors import CannotRunError

CACHE_VARIABLE = "MCP_HARNESS_CACHE"
LOCK_LIMIT_SECONDS = 1200.0
LOCK_POLL_SECONDS = 0.1
HALF_PREFIX = ".installing-"
"""Of folders that are being filled or taken away; `@` ends the name, because no name holds one."""
LOCK_SUFFIX = ".lock"

Tell = Callable[[str], None]
"""Takes a line about what is going on, for whoever waits."""
Found = TypeVar("Found")


class NotInstalledError(CannotRunError):
    """Something that is needed could not be had; the message says what and why, in one line."""


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Where installed things are kept from run to run."""
    named = environment.get(CACHE_VARIABLE)
    if named:
        return Path(named).absolute()
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mcp-harness"


def untold(_: str) -> None:
    """For those who do not want to hear what is going on."""


def kept(folder: Path, needed: Path, fill: Callable[[Path], None], tell: Tell = untold) -> Path:
    """The needed file of a folder, which is filled when it is not there. Raises NotInstalledError."""
    return folder / filled(
        folder, lambda there: needed if (there / needed).is_file() else None, fill, lacks=str(needed), tell=tell
    )


def filled(
    folder: Path,
    read: Callable[[Path], Found | None],
    fill: Callable[[Path], None],
    *,
    lacks: str,
    adopt: Callable[[Path], None] | None = None,
    tell: Tell = untold,
) -> Found:
    """What `read` finds in a folder that is whole; it is filled anew when `read` finds it is not.

    `fill` gets an empty folder beside it, which takes its place when it is whole. `adopt` may make whole what is there
    already. `lacks` says what a folder that is not whole has not got. Raises NotInstalledError.
    """
    try:
        found = read(folder)
        if found is not None:
            return found
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder, tell):
            return made(folder, read, fill, lacks, adopt)
    except OSError as error:
        raise NotInstalledError(f"{folder} cannot be filled: {error.strerror or error}") from error


def made(
    folder: Path,
    read: Callable[[Path], Found | None],
    fill: Callable[[Path], None],
    lacks: str,
    adopt: Callable[[Path], None] | None,
) -> Found:
    """The same for who has the lock."""
    found = read(folder)  # whoever had the lock before may have done all
    if found is None and adopt is not None and folder.is_dir():
        adopt(folder)
        found = read(folder)
    if found is not None:
        return found
    with beside(folder) as aside:
        half = aside / folder.name
        half.mkdir()
        fill(half)
        found = read(half)
        if found is None:
            raise NotInstalledError(f"what was installed holds no {lacks}")
        put(half, folder, aside, read)
    return found


def put(half: Path, folder: Path, aside: Path, read: Callable[[Path], Found | None]) -> None:
    """Move what was installed to where it is kept, unless somebody who knows no locks was faster.

    What was there is moved away first, never deleted in place: half a folder must not look like a whole one.
    """
    if read(folder) is not None:
        return
    with suppress(FileNotFoundError):
        folder.rename(aside / "replaced")
    half.rename(folder)


@contextmanager
def beside(folder: Path) -> Iterator[Path]:
    """A folder for what is not whole, on the same file system; gone at the end.

    To be used with the lock alone: what others left there when they were killed is removed as well.
    """
    prefix = f"{HALF_PREFIX}{folder.name}@"
    for left in folder.parent.glob(f"{escape(prefix)}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=folder.parent) as name:
        yield Path(name)


@contextmanager
def locked(folder: Path, tell: Tell = untold, limit_seconds: float = LOCK_LIMIT_SECONDS) -> Iterator[None]:
    """Alone with a folder, among all processes. The lock goes with its holder, and its file at the end.

    Raises NotInstalledError when somebody else has it for too long.
    """
    path = folder.with_name(f".{folder.name}{LOCK_SUFFIX}")
    deadline, waits = time.monotonic() + limit_seconds, False
    while (handle := try_lock(path)) is None:
        if time.monotonic() >= deadline:
            raise NotInstalledError(f"{folder.name} is being installed by another process")
        if not waits:
            tell(f"{folder.name}: waiting for another process that installs it")
        waits = True
        time.sleep(LOCK_POLL_SECONDS)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def try_lock(path: Path) -> int | None:
    """The handle of a lock that is ours, or None."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The one who had it may have removed the file after we opened it: such a lock keeps nobody out.
        if os.path.samestat(os.fstat(handle), path.stat()):
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(handle)
    return None


def size(folder: Path) -> int:
    """How many bytes the files of a folder hold, as far as they can be seen while it changes."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118 - there are ten thousands
    return total


def megabytes(count: int) -> str:
    """A number of bytes as people say it."""
    return f"{count / 1e6:.0f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"
