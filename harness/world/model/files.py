"""A file system in memory: directories, files with modes, symbolic links; errors as the operating system's.

Only the tree is here; switch points, faults and locks belong to the port (`harness.world.model.actor`).
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from harness.world.errors import failure
from harness.world.ports import Stat
from harness.world.values import LONGEST_NAME_BYTES, is_long_name, is_passed_on

MAXIMUM_LINKS = 40
NO_NAMES = ("", ".", "..")
_READ, _WRITE, _SEARCH = 4, 2, 1


class Node:
    """A file (`content`), a directory (`children`) or a link (`target`)."""

    __slots__ = ("children", "content", "mode", "modified", "owner", "target")

    def __init__(self, mode: int, owner: int, modified: float) -> None:
        self.mode, self.owner, self.modified = mode, owner, modified
        self.content: bytes | None = None
        self.children: dict[str, Node] | None = None
        self.target: str | None = None

    @property
    def kind(self) -> str:
        """file, directory or link."""
        if self.children is not None:
            return "directory"
        return "link" if self.target is not None else "file"


class Found(NamedTuple):
    """Where a path leads: the directory that holds (or would hold) it, the name in it, what is there, the real path.

    The root's name is empty.
    """

    parent: Node
    name: str
    node: Node | None
    path: str


class Tree:
    """The whole file system. `user` 0 is root, whom permission bits do not stop; there are no groups and no umask.

    Paths are absolute POSIX texts. A change of what a directory holds is a change of the directory, at `now`.

    What root found at a path by names and directories alone is there until something is moved or taken away:
    new names make no path lead elsewhere.
    """

    def __init__(self, *, now: float = 0.0) -> None:
        self.root = _directory(0o755, 0, now)
        self._known: dict[str, Node] = {}

    def read(self, path: str, user: int) -> bytes:
        """A file's content."""
        node = None if user else self._known.get(path)
        if node is None:
            node = self._at(path, user)
            _permit(node, _READ, user, path)
        if node.content is None:
            raise failure(errno.EISDIR, path)
        return node.content

    def open(self, path: str, mode: int, user: int, now: float) -> Node:
        """The file at a path, to be written; a new empty one gets `mode`."""
        known = None if user else self._known.get(path)
        if known is not None and known.content is not None:
            return known
        found = self._find(path, user)
        node = found.node
        if node is None:
            node = Node(mode & 0o7777, user, now)
            node.content = b""
            _put(found, node, user, path, now)
        elif node.content is None:
            raise failure(errno.EISDIR, path)
        else:
            _permit(node, _WRITE, user, path)
        return node

    def write(self, path: str, content: bytes, mode: int, user: int, now: float, *, append: bool = False) -> None:
        """Truncate, or append to, a file; a new one gets `mode`."""
        node = self.open(path, mode, user, now)
        node.content = (node.content or b"") + content if append else content
        node.modified = now

    def stat(self, path: str, user: int) -> Stat | None:
        """What is there; the last component is not followed."""
        node = None if user else self._known.get(path)
        try:
            node = node or self._find(path, user, follow=False).node
        except (FileNotFoundError, NotADirectoryError):
            return None
        if node is None:
            return None
        size = len(node.content) if node.content is not None else len(node.target or node.children or ())
        return Stat(node.kind, node.mode, size, node.modified)

    def names(self, path: str, user: int, since_seconds: float | None = None) -> tuple[str, ...]:
        """The sorted names in a directory, of what was modified since then."""
        node = self._at(path, user)
        children = _children(node, path)
        _permit(node, _READ, user, path)
        if since_seconds is None:
            return tuple(sorted(children))
        return tuple(sorted(name for name, child in children.items() if child.modified >= since_seconds))

    def make_directory(self, path: str, mode: int, user: int, now: float) -> None:
        """A directory with its parents."""
        known = None if user else self._known.get(path)
        if known is not None and known.children is not None:
            return
        parts = _parts(path)
        if user == 0 and self._make_plainly(parts, mode, now):
            return
        if self.is_directory(path, user):
            return
        for count in range(1, len(parts) + 1):
            partial = "/" + "/".join(parts[:count])
            last = count == len(parts)
            found = self._find(partial, user, follow=False)
            if found.node is None:
                _put(found, _directory(mode, user, now), user, path, now)
            elif last and not self.is_directory(partial, user):
                raise failure(errno.EEXIST, path)
            elif not last:
                _children(self._at(partial, user), path)

    def is_directory(self, path: str, user: int) -> bool:
        """Whether a directory is there, links followed."""
        try:
            return self._at(path, user).children is not None
        except OSError:
            return False

    def enter(self, path: str, user: int) -> None:
        """What a process does that makes it its current directory: raise unless it may."""
        node = self._at(path, user)
        _children(node, path)
        _permit(node, _SEARCH, user, path)

    def rename(self, source: str, target: str, user: int, now: float) -> None:
        """Move; an existing file is replaced, an existing directory must be empty. No link is followed."""
        moved, place = self._find(source, user, follow=False), self._find(target, user, follow=False)
        node, existing = moved.node, place.node
        if not moved.name or not place.name:
            raise failure(errno.EBUSY, source)
        if node is None:
            raise failure(errno.ENOENT, source)
        if node is existing:
            return
        if place.path.startswith(f"{moved.path}/"):
            raise failure(errno.EINVAL, target)
        if moved.path.startswith(f"{place.path}/"):
            raise failure(errno.ENOTEMPTY, target)
        for parent in (moved.parent, place.parent):
            _permit(parent, _WRITE, user, target)
        if existing is not None:
            _replaceable(node, existing, target)
        if node.children is not None and moved.parent is not place.parent:
            _permit(node, _WRITE, user, source)
        if existing is not None and existing.children:
            raise failure(errno.ENOTEMPTY, target)
        self._forget(moved, place)
        _take(moved, user, source, now)
        _put(place, node, user, target, now)

    def remove(self, path: str, user: int, now: float) -> None:
        """A file, a link or an empty directory."""
        found = self._find(path, user, follow=False)
        if not found.name:
            raise failure(errno.EBUSY, path)
        if found.node is None:
            raise failure(errno.ENOENT, path)
        _permit(found.parent, _WRITE, user, path)
        if found.node.children:
            raise failure(errno.ENOTEMPTY, path)
        self._forget(found)
        _take(found, user, path, now)

    def removal(self, path: str, user: int, now: Callable[[], float], *, follow: bool) -> Iterator[tuple[str, str]]:
        """Take away what is at a path with all it holds. Yields (verb, path) right before each step, children first."""
        parent, _, name = path.rstrip("/").rpartition("/")
        if name in ("", ".", ".."):
            raise failure(errno.EBUSY, path)
        yield "stat", path
        try:
            if not follow:
                self.require_plain(parent or "/", user)
            top = self._at(parent or "/", user)
            _children(top, parent)
        except (FileNotFoundError, NotADirectoryError):
            return
        levels = [(top, parent, [name])]
        first = True
        while True:
            holder, at, left = levels[-1]
            if not left:
                levels.pop()
                if not levels:
                    return
                yield "remove", at
                self._known.clear()
                _drop(levels[-1][0], at, user, now())
                continue
            inner = f"{at}/{left.pop()}"
            if not first:
                yield "stat", inner
            first = False
            _permit(holder, _SEARCH, user, inner)
            node = _children(holder, at).get(inner.rpartition("/")[2])
            if node is None:
                with suppress(FileNotFoundError):
                    _require_name(name, inner)
                continue
            yield "list" if node.children is not None else "remove", inner
            if node.children is None:
                self._known.clear()
                _drop(holder, inner, user, now())
                continue
            if _children(holder, at).get(inner.rpartition("/")[2]) is not node:
                raise failure(errno.ELOOP, inner)
            _permit(node, _READ, user, inner)
            levels.append((node, inner, sorted(node.children, reverse=True)))

    def require_plain(self, path: str, user: int) -> None:
        """Raise ELOOP where any part of a path is a link."""
        if self.resolve(path, user) != "/" + "/".join(_parts(path)):
            raise failure(errno.ELOOP, path)

    def chmod(self, path: str, mode: int, user: int) -> None:
        """Change the permission bits, links followed."""
        node = self._at(path, user)
        if user not in (0, node.owner):
            raise failure(errno.EPERM, path)
        node.mode = mode & 0o7777

    def make_link(self, path: str, target: str, user: int, now: float) -> None:
        """A symbolic link; `target` may be relative and need not exist."""
        if not target or not is_passed_on(target):
            raise failure(errno.ENOENT, path)
        found = self._find(path, user, follow=False)
        if found.node is not None:
            raise failure(errno.EEXIST, path)
        link = Node(0o777, user, now)
        link.target = target
        _put(found, link, user, path, now)

    def resolve(self, path: str, user: int) -> str:
        """The real path of something that exists."""
        found = self._find(path, user)
        if found.node is None:
            raise failure(errno.ENOENT, path)
        return found.path

    def walk(self, path: str = "/") -> Iterator[tuple[str, Node]]:
        """Every path below a directory with its node, in sorted order; links are not followed. For judges and tests."""
        base = path.rstrip("/")
        pending = [(base, self._find(path, 0).node)]
        while pending:
            at, node = pending.pop()
            children = (node.children if node else None) or {}
            pending += [(f"{at}/{name}", children[name]) for name in sorted(children, reverse=True)]
            if node is not None and at != base:
                yield at, node

    def _forget(self, *changed: Found) -> None:
        """Look anew at what is about to be moved, replaced or taken away; below a directory, at everything."""
        if any(each.node is not None and each.node.children is not None for each in changed):
            self._known.clear()
        for each in changed:
            self._known.pop(each.path, None)

    def _at(self, path: str, user: int) -> Node:
        if not user and (known := self._known.get(path)) is not None:
            return known
        node = self._find(path, user).node
        if node is None:
            raise failure(errno.ENOENT, path)
        return node

    def _find(self, path: str, user: int, *, follow: bool = True) -> Found:
        """Where a path leads; its last component may be missing, and is followed when it is a link and `follow`."""
        if user == 0 and path.startswith("/"):
            plain = self._find_plainly(path)
            if plain is not None:
                return plain
        waiting = _parts(path)[::-1]
        reached = [("", self.root)]
        links = 0
        while waiting:
            part = waiting.pop()
            here = reached[-1][1]
            children = _children(here, path)
            _permit(here, _SEARCH, user, path)
            if part == "..":
                reached = reached[:-1] or reached
                continue
            child = children.get(part)
            if child is None:
                _require_name(part, path)
                if waiting:
                    raise failure(errno.ENOENT, path)
                return Found(here, part, None, _joined(reached, part))
            if child.target is not None and (waiting or follow):
                links += 1
                if links > MAXIMUM_LINKS:
                    raise failure(errno.ELOOP, path)
                if child.target.startswith("/"):
                    reached = reached[:1]
                waiting += _parts(child.target)[::-1]
                continue
            reached.append((part, child))
        name, node = reached[-1]
        if path.endswith("/"):
            _children(node, path)
        return Found(reached[-2][1] if name else self.root, name, node, _joined(reached))

    def _find_plainly(self, path: str) -> Found | None:
        """The common case, for root: names and directories alone on the way, no link; None where it is another."""
        above, _, name = path.rpartition("/")
        if name in NO_NAMES:
            return None
        node = self._known.get(above) or self._holder_plainly(above, path)
        if node is None or node.children is None:
            return None
        child = node.children.get(name)
        if child is None:
            if not name.isascii() or len(name) > LONGEST_NAME_BYTES or "\0" in name:
                _require_name(name, path)
            return Found(node, name, None, path)
        if child.target is not None:
            return None
        self._known[path] = child
        return Found(node, name, child, path)

    def _holder_plainly(self, above: str, path: str) -> Node | None:
        """The same for what comes before the last name."""
        node = self.root
        for part in above.split("/")[1:]:
            if node.children is None:
                return None
            child = node.children.get(part)
            if child is None:
                if part in NO_NAMES:
                    return None
                _require_name(part, path)
                raise failure(errno.ENOENT, path)
            if child.target is not None:
                return None
            node = child
        self._known[above] = node
        return node

    def _make_plainly(self, parts: list[str], mode: int, now: float) -> bool:
        """The common case of making a directory, for root: nothing but directories on the way. False: it is another."""
        node, depth = self.root, 0
        for part in parts:
            child = (node.children or {}).get(part)
            if child is None:
                break
            if child.children is None:
                return False
            node, depth = child, depth + 1
        missing = parts[depth:]
        if ".." in missing:
            return False
        for part in missing:
            _require_name(part, part)
            made = _children(node, part)[part] = _directory(mode, 0, now)
            node.modified = now
            node = made
        return True


def _directory(mode: int, user: int, now: float) -> Node:
    node = Node(mode & 0o7777, user, now)
    node.children = {}
    return node


def _require_name(name: str, path: str) -> None:
    """Raise where nothing can be called that. Asked when nothing is: what is there has a name that can be."""
    if len(name) <= LONGEST_NAME_BYTES and name.isascii() and "\0" not in name:
        return
    if not is_passed_on(name):
        raise failure(errno.ENOENT, path)
    if is_long_name(name):
        raise failure(errno.ENAMETOOLONG, path)


def _put(found: Found, node: Node, user: int, path: str, now: float) -> None:
    """Put a node where there is none, or in place of what may be replaced."""
    _permit(found.parent, _WRITE, user, path)
    _children(found.parent, path)[found.name] = node
    found.parent.modified = now


def _take(found: Found, user: int, path: str, now: float) -> None:
    _permit(found.parent, _WRITE, user, path)
    del _children(found.parent, path)[found.name]
    found.parent.modified = now


def _drop(holder: Node, path: str, user: int, now: float) -> None:
    """Remove an entry of a directory by its name; a directory must be empty."""
    name = path.rpartition("/")[2]
    _permit(holder, _SEARCH, user, path)
    _permit(holder, _WRITE, user, path)
    child = _children(holder, path).get(name)
    if child is None:
        raise failure(errno.ENOENT, path)
    if child.children:
        raise failure(errno.ENOTEMPTY, path)
    del _children(holder, path)[name]
    holder.modified = now


def _replaceable(node: Node, existing: Node, path: str) -> None:
    if node.children is not None and existing.children is None:
        raise failure(errno.ENOTDIR, path)
    if node.children is None and existing.children is not None:
        raise failure(errno.EISDIR, path)


def _children(node: Node, path: str) -> dict[str, Node]:
    if node.children is None:
        raise failure(errno.ENOTDIR, path)
    return node.children


def _permit(node: Node, wanted: int, user: int, path: str) -> None:
    """Raise EACCES unless the owner's bits (for the owner) or everybody's (for others) grant it."""
    if user == 0:
        return
    granted = node.mode >> 6 if user == node.owner else node.mode
    if not granted & wanted:
        raise failure(errno.EACCES, path)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _joined(reached: list[tuple[str, Node]], last: str = "") -> str:
    path = "/".join(name for name, _ in reached)
    return f"{path}/{last}" if last else path or "/"
