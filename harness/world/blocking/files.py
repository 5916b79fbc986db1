"""The real file system, with the switch points, faults and locks of the model."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import closing
from math import inf

from harness.world.blocking import disk, held
from harness.world.blocking.port import Port
from harness.world.blocking.process import Process
from harness.world.errors import failure
from harness.world.ports import Stat
from harness.world.sites import CHANGE_ACTIONS, READ_ACTIONS, WRITE_ACTIONS, surviving
from harness.world.values import octets

LOCK_INTERVAL_SECONDS = 0.002
"""How often, in real seconds, a lock that is waited for with an end is tried: the system has no such wait."""


class BlockingLock(Port):
    """A held file lock (flock). It is the file that is locked, wherever it is moved to."""

    __slots__ = ("_descriptor", "_path")
    kind = "files"

    def __init__(self, process: Process, path: str, descriptor: int) -> None:
        super().__init__(process)
        self._path, self._descriptor = path, descriptor

    async def release(self) -> None:
        """Free it; once is enough."""
        self._reach(f"unlock {self._path}")
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class BlockingFiles(Port):
    """The file system as this process may use it. Labels hold absolute paths."""

    __slots__ = ()
    kind = "files"

    def _enter(
        self, verb: str, path: str, actions: frozenset[str] = READ_ACTIONS, *, behind: str = ""
    ) -> tuple[str, str]:
        """The absolute path, and what strikes that the caller must give its effect (torn, enospc)."""
        where = self._process.absolute(path)
        fault = self._reach(f"{verb} {where}{behind}", actions)
        if fault is not None and fault.action == "eacces":
            raise failure(errno.EACCES, path)
        return where, "" if fault is None else fault.action

    def _change(self, verb: str, path: str) -> str:
        """Before something new is made: a full disk has no room for it."""
        where, struck = self._enter(verb, path, CHANGE_ACTIONS)
        if struck:
            raise failure(errno.ENOSPC, path)
        return where

    async def read(self, path: str) -> bytes:
        """A file's content."""
        where, _ = self._enter("read", path)
        return disk.read(where)

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """In place: truncated first, so that a kill between the two leaves an empty file."""
        content = octets(content)
        where, struck = self._enter("write", path, WRITE_ACTIONS)
        descriptor = disk.open_to_write(where, mode, os.O_TRUNC)
        try:
            fault = self._reach(f"truncated {where}", WRITE_ACTIONS - {"eacces"})
            disk.write_to(descriptor, surviving(content, struck, "" if fault is None else fault.action), where)
        finally:
            os.close(descriptor)
        if struck or fault is not None:
            raise failure(errno.ENOSPC, path)

    async def append(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """At the end."""
        content = octets(content)
        where, struck = self._enter("append", path, WRITE_ACTIONS)
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
        where, struck = self._enter("write", path, WRITE_ACTIONS)
        existing = disk.stat(where, self._process.pace.world_time)
        bits = mode if mode is not None else existing.mode if existing and existing.kind == "file" else 0o644
        temporary = f"{where}.{self._process.pid}-{os.urandom(4).hex()}.tmp"
        if struck:
            raise failure(errno.ENOSPC, path)
        disk.make_exactly(temporary, content, bits)
        fault = self._reach(f"rename {where}", READ_ACTIONS)
        try:
            if fault is not None:
                raise failure(errno.EACCES, path)
            disk.rename(temporary, where)
        except OSError:
            if os.path.lexists(temporary):
                disk.remove(temporary)
            raise
        self._reach(f"renamed {where}")

    async def stat(self, path: str) -> Stat | None:
        """What is there."""
        where, _ = self._enter("stat", path)
        return disk.stat(where, self._process.pace.world_time)

    async def names(self, path: str, *, since_seconds: float | None = None) -> tuple[str, ...]:
        """The names in a directory."""
        where, _ = self._enter("list", path)
        return disk.names(where, self._process.pace.world_time, since_seconds)

    async def make_directory(self, path: str, *, mode: int = 0o755) -> None:
        """With its parents."""
        disk.make_directory(self._change("mkdir", path), mode)

    async def rename(self, source: str, target: str) -> None:
        """Move."""
        to = self._process.absolute(target)
        where, _ = self._enter("rename", source, behind=f" to {to}")
        disk.rename(where, to)

    async def remove(self, path: str) -> None:
        """A file, link or empty directory."""
        where, _ = self._enter("remove", path)
        disk.remove(where)

    async def remove_tree(self, path: str, *, follow: bool = True) -> None:
        """Piece by piece, children first: others may run in between, and a kill leaves a part."""
        with closing(held.removal(self._process.absolute(path), follow=follow)) as steps:
            for verb, where in steps:
                self._enter(verb, where)

    async def chmod(self, path: str, mode: int, *, follow: bool = True) -> None:
        """Change the permission bits."""
        where, _ = self._enter("chmod", path)
        (disk if follow else held).chmod(where, mode)

    async def make_link(self, path: str, target: str) -> None:
        """A symbolic link."""
        disk.make_link(self._change("symlink", path), target)

    async def resolve(self, path: str) -> str:
        """The real path."""
        where, _ = self._enter("resolve", path)
        return disk.resolve(where)

    async def lock(self, path: str, *, timeout_seconds: float | None = None) -> BlockingLock | None:
        """An exclusive lock on the file at a path; the file is made when it is not there."""
        self._process.require_times(timeout_seconds)
        where = self._change("lock", path)
        descriptor = disk.open_to_write(where, 0o644)
        try:
            is_held = self._locked(descriptor, timeout_seconds)
        except OSError as error:
            os.close(descriptor)
            raise failure(error.errno or errno.EIO, where) from None
        if is_held:
            return BlockingLock(self._process, where, descriptor)
        os.close(descriptor)
        return None

    def _locked(self, descriptor: int, timeout_seconds: float | None) -> bool:
        if _is_free(descriptor):
            return True
        with self._process.baton.put_down():
            if timeout_seconds is None or timeout_seconds == inf:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                return True
            deadline = self._process.deadline(timeout_seconds)
            while not deadline.over:
                time.sleep(min(LOCK_INTERVAL_SECONDS, deadline.left or 0.0))
                if _is_free(descriptor):
                    return True
            return False


def _is_free(descriptor: int) -> bool:
    """Whether the lock was free; then it is held."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
