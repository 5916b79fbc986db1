"""The operating system's files as one actor uses them: switch points and faults around plain calls."""

from __future__ import annotations

import errno
import os
from contextlib import closing

from harness.world.blocking import disk, held
from harness.world.errors import failure
from harness.world.live.driver import Driver, LivePort
from harness.world.live.waiting import locked
from harness.world.ports import Stat
from harness.world.sites import CHANGE_ACTIONS, READ_ACTIONS, WRITE_ACTIONS, surviving
from harness.world.values import octets

DEFAULT_MODE = 0o644


class LiveLock(LivePort):
    """A held file lock. It is the file that is locked, wherever it is moved to."""

    __slots__ = ("_path",)
    kind = "files"

    def __init__(self, driver: Driver, path: str, descriptor: int) -> None:
        super().__init__(driver)
        self._path = path
        driver.closers[self] = lambda: os.close(descriptor)

    async def release(self) -> None:
        """Free it; once is enough."""
        await self._reach(f"unlock {self._path}")
        close = self._driver.closers.pop(self, None)
        if close is not None:
            close()


class LiveFiles(LivePort):
    """The file system, as the user of this process may use it. Labels hold absolute paths."""

    __slots__ = ()
    kind = "files"

    async def _enter(
        self, verb: str, path: str, actions: frozenset[str] = READ_ACTIONS, *, behind: str = ""
    ) -> tuple[str, str]:
        """The absolute path, and what strikes that the caller must give its effect (torn, enospc)."""
        where = self._driver.absolute(path)
        fault = await self._reach(f"{verb} {where}{behind}", actions)
        if fault is not None and fault.action == "eacces":
            raise failure(errno.EACCES, path)
        return where, "" if fault is None else fault.action

    async def _change(self, verb: str, path: str) -> str:
        """Before something new is made: a full disk has no room for it."""
        where, struck = await self._enter(verb, path, CHANGE_ACTIONS)
        if struck:
            raise failure(errno.ENOSPC, path)
        return where

    async def read(self, path: str) -> bytes:
        """A file's content."""
        where, _ = await self._enter("read", path)
        return disk.read(where)

    async def write(self, path: str, content: bytes, *, mode: int = DEFAULT_MODE) -> None:
        """In place: truncated first, so that a kill between the two leaves an empty file."""
        content = octets(content)
        where, struck = await self._enter("write", path, WRITE_ACTIONS)
        descriptor = disk.open_to_write(where, mode, os.O_TRUNC)
        try:
            fault = await self._reach(f"truncated {where}", WRITE_ACTIONS - {"eacces"})
            disk.write_to(descriptor, surviving(content, struck, "" if fault is None else fault.action), where)
        finally:
            os.close(descriptor)
        if struck or fault is not None:
            raise failure(errno.ENOSPC, path)

    async def append(self, path: str, content: bytes, *, mode: int = DEFAULT_MODE) -> None:
        """At the end."""
        content = octets(content)
        where, struck = await self._enter("append", path, WRITE_ACTIONS)
        descriptor = disk.open_to_write(where, mode, os.O_APPEND)
        try:
            disk.write_to(descriptor, surviving(content, struck), where)
        finally:
            os.close(descriptor)
        if struck:
            raise failure(errno.ENOSPC, path)

    async def write_atomic(self, path: str, content: bytes, *, mode: int | None = None) -> None:
        """Temporary file, switch point, rename, switch point. An error leaves no temporary file, a kill does."""
        content = octets(content)
        where, struck = await self._enter("write", path, WRITE_ACTIONS)
        existing = disk.stat(where, self._driver.pace.world_time)
        bits = mode if mode is not None else existing.mode if existing and existing.kind == "file" else DEFAULT_MODE
        temporary = f"{where}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
        if struck:
            raise failure(errno.ENOSPC, path)
        disk.make_exactly(temporary, content, bits)
        fault = await self._reach(f"rename {where}", READ_ACTIONS)
        try:
            if fault is not None:
                raise failure(errno.EACCES, path)
            disk.rename(temporary, where)
        except OSError:
            if os.path.lexists(temporary):
                disk.remove(temporary)
            raise
        await self._reach(f"renamed {where}")

    async def stat(self, path: str) -> Stat | None:
        """What is there, its age in the world's time."""
        where, _ = await self._enter("stat", path)
        return disk.stat(where, self._driver.pace.world_time)

    async def names(self, path: str, *, since_seconds: float | None = None) -> tuple[str, ...]:
        """The names in a directory."""
        where, _ = await self._enter("list", path)
        return disk.names(where, self._driver.pace.world_time, since_seconds)

    async def make_directory(self, path: str, *, mode: int = 0o755) -> None:
        """With its parents."""
        disk.make_directory(await self._change("mkdir", path), mode)

    async def rename(self, source: str, target: str) -> None:
        """Move."""
        to = self._driver.absolute(target)
        where, _ = await self._enter("rename", source, behind=f" to {to}")
        disk.rename(where, to)

    async def remove(self, path: str) -> None:
        """A file, link or empty directory."""
        where, _ = await self._enter("remove", path)
        disk.remove(where)

    async def remove_tree(self, path: str, *, follow: bool = True) -> None:
        """Piece by piece, children first: others may run in between, and a kill leaves a part."""
        with closing(held.removal(self._driver.absolute(path), follow=follow)) as steps:
            for verb, where in steps:
                await self._enter(verb, where)

    async def chmod(self, path: str, mode: int, *, follow: bool = True) -> None:
        """Change the permission bits."""
        where, _ = await self._enter("chmod", path)
        (disk if follow else held).chmod(where, mode)

    async def make_link(self, path: str, target: str) -> None:
        """A symbolic link."""
        disk.make_link(await self._change("symlink", path), target)

    async def resolve(self, path: str) -> str:
        """The real path."""
        where, _ = await self._enter("resolve", path)
        return disk.resolve(where)

    async def lock(self, path: str, *, timeout_seconds: float | None = None) -> LiveLock | None:
        """An exclusive flock on the file at a path; the file is made when it is not there."""
        self._require_time(timeout_seconds)
        where = await self._change("lock", path)
        descriptor = disk.open_to_write(where, DEFAULT_MODE)
        held = False
        try:
            real_seconds = None if timeout_seconds is None else self._driver.pace.real(max(timeout_seconds, 0.0))
            held = await locked(descriptor, real_seconds)
        finally:
            if not held:
                os.close(descriptor)
        return LiveLock(self._driver, where, descriptor) if held else None
