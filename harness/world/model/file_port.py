"""The file system as one actor uses it: switch points, faults and locks over a tree."""

from __future__ import annotations

import errno
from math import inf

from harness.world.errors import failure
from harness.world.model.actors import Actor
from harness.world.model.faults import Fault
from harness.world.model.files import Node
from harness.world.model.port import Port
from harness.world.model.simulation import Simulation
from harness.world.ports import Stat
from harness.world.sites import CHANGE_ACTIONS, READ_ACTIONS, WRITE_ACTIONS, surviving
from harness.world.values import NO_TIME, octets

TRUNCATED_ACTIONS = WRITE_ACTIONS - {"eacces"}


class ModelLock(Port):
    """A held file lock. As with flock it is the file that is locked, wherever it is moved to."""

    __slots__ = ("_node", "_path")
    kind = "files"

    def __init__(self, simulation: Simulation, actor: Actor, path: str, node: Node) -> None:
        super().__init__(simulation, actor)
        self._path, self._node = path, node

    async def release(self) -> None:
        """Free it; once is enough."""
        await self._reach(f"unlock {self._path}")
        simulation = self._simulation
        if simulation.file_locks.get(self._node) is self:
            del simulation.file_locks[self._node]
            self._actor.held_files.remove(self._node)
            simulation.scheduler.notify(simulation.file_freed)


class ModelFiles(Port):
    """The one file system, as this actor's user may use it. Labels hold absolute paths."""

    __slots__ = ()
    kind = "files"

    def _absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._actor.directory.rstrip('/')}/{path}"

    async def read(self, path: str) -> bytes:
        """A file's content."""
        where = path if path.startswith("/") else self._absolute(path)
        fault = await self._reach(f"read {where}", READ_ACTIONS)
        if fault is not None:
            refuse(fault, path)
        return self._simulation.tree.read(where, self._actor.user)

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """In place: truncated first, so that a kill between the two leaves an empty file."""
        where = self._absolute(path)
        if content.__class__ is not bytes:
            content = octets(content)
        struck = refuse(await self._reach(f"write {where}", WRITE_ACTIONS), path)
        simulation, user = self._simulation, self._actor.user
        node = simulation.tree.open(where, mode, user, simulation.now)
        node.content, node.modified = b"", simulation.now
        fault = await self._reach(f"truncated {where}", TRUNCATED_ACTIONS)
        node.content, node.modified = surviving(content, struck, "" if fault is None else fault.action), simulation.now
        if struck or fault is not None:
            raise failure(errno.ENOSPC, path)

    async def append(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """At the end."""
        where = self._absolute(path)
        if content.__class__ is not bytes:
            content = octets(content)
        struck = refuse(await self._reach(f"append {where}", WRITE_ACTIONS), path)
        simulation = self._simulation
        part = surviving(content, struck)
        simulation.tree.write(where, part, mode, self._actor.user, simulation.now, append=True)
        if struck:
            raise failure(errno.ENOSPC, path)

    async def write_atomic(self, path: str, content: bytes, *, mode: int | None = None) -> None:
        """Temporary file, switch point, rename, switch point. An error leaves no temporary file, a kill does."""
        where = self._absolute(path)
        if content.__class__ is not bytes:
            content = octets(content)
        struck = refuse(await self._reach(f"write {where}", WRITE_ACTIONS), path)
        simulation, user = self._simulation, self._actor.user
        tree = simulation.tree
        existing = tree.stat(where, user)
        bits = mode if mode is not None else existing.mode if existing and existing.kind == "file" else 0o644
        temporary = f"{where}.{self._actor.pid}-{simulation.token(self._actor, 8)}.tmp"
        if struck:
            raise failure(errno.ENOSPC, path)
        tree.write(temporary, content, bits, user, simulation.now)
        fault = await self._reach(f"rename {where}", READ_ACTIONS)
        try:
            if fault is not None:
                raise failure(errno.EACCES, path)
            tree.rename(temporary, where, user, simulation.now)
        except OSError:
            if tree.stat(temporary, user) is not None:
                tree.remove(temporary, user, simulation.now)
            raise
        await self._reach(f"renamed {where}")

    async def stat(self, path: str) -> Stat | None:
        """What is there."""
        where = self._absolute(path)
        refuse(await self._reach(f"stat {where}", READ_ACTIONS), path)
        return self._simulation.tree.stat(where, self._actor.user)

    async def names(self, path: str, *, since_seconds: float | None = None) -> tuple[str, ...]:
        """The names in a directory."""
        where = self._absolute(path)
        refuse(await self._reach(f"list {where}", READ_ACTIONS), path)
        return self._simulation.tree.names(where, self._actor.user, since_seconds)

    async def make_directory(self, path: str, *, mode: int = 0o755) -> None:
        """With its parents."""
        where = self._absolute(path)
        refuse_new(await self._reach(f"mkdir {where}", CHANGE_ACTIONS), path)
        self._simulation.tree.make_directory(where, mode, self._actor.user, self._simulation.now)

    async def rename(self, source: str, target: str) -> None:
        """Move."""
        where, to = self._absolute(source), self._absolute(target)
        refuse(await self._reach(f"rename {where} to {to}", READ_ACTIONS), source)
        self._simulation.tree.rename(where, to, self._actor.user, self._simulation.now)

    async def remove(self, path: str) -> None:
        """A file, link or empty directory."""
        where = self._absolute(path)
        refuse(await self._reach(f"remove {where}", READ_ACTIONS), path)
        self._simulation.tree.remove(where, self._actor.user, self._simulation.now)

    async def remove_tree(self, path: str, *, follow: bool = True) -> None:
        """Piece by piece, children first: others may run in between, and a kill leaves a part.

        What was entered stays the directory that it was, whatever takes its place meanwhile.
        """
        simulation, user, where = self._simulation, self._actor.user, self._absolute(path)
        steps = simulation.tree.removal(where, user, lambda: simulation.now, follow=follow)
        for verb, at in steps:
            refuse(await self._reach(f"{verb} {at}", READ_ACTIONS), path)

    async def chmod(self, path: str, mode: int, *, follow: bool = True) -> None:
        """Change the permission bits."""
        where = self._absolute(path)
        refuse(await self._reach(f"chmod {where}", READ_ACTIONS), path)
        if not follow:
            self._simulation.tree.require_plain(where, self._actor.user)
        self._simulation.tree.chmod(where, mode, self._actor.user)

    async def make_link(self, path: str, target: str) -> None:
        """A symbolic link."""
        where = self._absolute(path)
        refuse_new(await self._reach(f"symlink {where}", CHANGE_ACTIONS), path)
        self._simulation.tree.make_link(where, target, self._actor.user, self._simulation.now)

    async def resolve(self, path: str) -> str:
        """The real path."""
        where = self._absolute(path)
        refuse(await self._reach(f"resolve {where}", READ_ACTIONS), path)
        return self._simulation.tree.resolve(where, self._actor.user)

    async def lock(self, path: str, *, timeout_seconds: float | None = None) -> ModelLock | None:
        """An exclusive lock on the file at a path; the file is made when it is not there."""
        if timeout_seconds is not None and not timeout_seconds > -inf:
            await self._misused(NO_TIME)
        where = self._absolute(path)
        refuse_new(await self._reach(f"lock {where}", CHANGE_ACTIONS), path)
        simulation = self._simulation
        node = simulation.tree.open(where, 0o644, self._actor.user, simulation.now)
        until = None if timeout_seconds is None else simulation.now + timeout_seconds
        while node in simulation.file_locks:
            if not await simulation.file_freed.wait(until) and node in simulation.file_locks:
                return None
        lock = ModelLock(simulation, self._actor, where, node)
        simulation.file_locks[node] = lock
        self._actor.held_files.append(node)
        return lock


def refuse(fault: Fault | None, path: str) -> str:
    """Raise where access is denied; else what strikes that the caller must give its effect (torn, enospc)."""
    if fault is None:
        return ""
    if fault.action == "eacces":
        raise failure(errno.EACCES, path)
    return fault.action


def refuse_new(fault: Fault | None, path: str) -> None:
    """Before something new is made: a full disk has no room for it either."""
    if refuse(fault, path):
        raise failure(errno.ENOSPC, path)
