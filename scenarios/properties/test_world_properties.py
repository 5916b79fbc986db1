"""The model's file system beside the real one, and what holds for every list of decisions."""

# The calls of the operating system are what is compared.
# ruff: noqa: PTH101, PTH102, PTH104, PTH112, PTH115, PTH208, PTH211

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.world import World
from harness.world.model import Fault, Hold, Listed, Replayed, Tree
from scenarios.worlds import ran

NOBODY = 65_534
DEEP = "/d" * 30  # links may climb; never above what is ours
NAMES = ("a", "b", "c")
MODES = (0o644, 0o600, 0o755, 0o700, 0o555, 0o444, 0o222, 0o111, 0o000)

names = st.sampled_from(NAMES)
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
dotted = st.tuples(names, names, st.sampled_from(["", "/a", "/b"])).map(
    lambda parts: f"{parts[0]}/../{parts[1]}{parts[2]}"
)
any_path = st.one_of(paths, paths, dotted)
targets = st.one_of(
    paths, dotted, st.just("."), st.sampled_from(["../a", "../b/c", ".."]), paths.map(lambda path: f"{DEEP}/{path}")
)
modes = st.sampled_from(MODES)
contents = st.sampled_from([b"", b"x", b"longer"])
operations = st.one_of(
    st.tuples(st.just("write"), any_path, contents, modes),
    st.tuples(st.just("append"), any_path, contents, modes),
    st.tuples(st.just("read"), any_path),
    st.tuples(st.just("stat"), any_path),
    st.tuples(st.just("names"), any_path),
    st.tuples(st.just("make_directory"), paths, modes),
    st.tuples(st.just("rename"), any_path, any_path),
    st.tuples(st.just("remove"), any_path),
    st.tuples(st.just("chmod"), any_path, modes),
    st.tuples(st.just("make_link"), any_path, targets),
    st.tuples(st.just("resolve"), any_path),
)


class Real:
    """The same operations on a real directory, by the functions of `os`."""

    def __init__(self, base: str) -> None:
        self.base = base

    def at(self, path: str) -> str:
        return f"{self.base}{path}"

    def write(self, path: str, content: bytes, mode: int, *, flags: int = os.O_TRUNC) -> None:
        number = os.open(self.at(path), os.O_WRONLY | os.O_CREAT | flags, mode)
        try:
            os.write(number, content)
        finally:
            os.close(number)

    def append(self, path: str, content: bytes, mode: int) -> None:
        self.write(path, content, mode, flags=os.O_APPEND)

    def read(self, path: str) -> bytes:
        number = os.open(self.at(path), os.O_RDONLY)
        try:
            return os.read(number, 1_000_000)
        finally:
            os.close(number)

    def stat(self, path: str) -> Any:
        try:
            status = os.lstat(self.at(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISLNK(status.st_mode):
            return "link"
        if stat.S_ISDIR(status.st_mode):
            return "directory", stat.S_IMODE(status.st_mode)
        return "file", stat.S_IMODE(status.st_mode), status.st_size

    def names(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(os.listdir(self.at(path))))

    def make_directory(self, path: str, mode: int) -> None:
        """As makedirs does it, but with the mode for every part."""
        parts = path.split("/")[1:]
        for count in range(1, len(parts) + 1):
            partial = "/" + "/".join(parts[:count])
            try:
                os.mkdir(self.at(partial), mode)
            except FileExistsError:
                if count == len(parts) and not os.path.isdir(self.at(partial)):
                    raise

    def rename(self, source: str, target: str) -> None:
        os.rename(self.at(source), self.at(target))

    def remove(self, path: str) -> None:
        status = os.lstat(self.at(path))
        (os.rmdir if stat.S_ISDIR(status.st_mode) else os.unlink)(self.at(path))

    def chmod(self, path: str, mode: int) -> None:
        os.chmod(self.at(path), mode)

    def make_link(self, path: str, target: str) -> None:
        os.symlink(self.at(target) if target.startswith("/") else target, self.at(path))

    def resolve(self, path: str) -> str:
        number = os.open(self.at(path), os.O_PATH)
        try:
            return os.readlink(f"/proc/self/fd/{number}").removeprefix(self.base)
        finally:
            os.close(number)


class Modelled:
    """The same operations on a model's tree."""

    def __init__(self, user: int) -> None:
        self.tree, self.user = Tree(), user
        self.tree.root.owner = user

    def write(self, path: str, content: bytes, mode: int) -> None:
        self.tree.write(path, content, mode, self.user, 0)

    def append(self, path: str, content: bytes, mode: int) -> None:
        self.tree.write(path, content, mode, self.user, 0, append=True)

    def read(self, path: str) -> bytes:
        return self.tree.read(path, self.user)

    def stat(self, path: str) -> Any:
        status = self.tree.stat(path, self.user)
        if status is None or status.kind == "link":
            return status and "link"
        return status[:2] if status.kind == "directory" else status[:3]

    def names(self, path: str) -> tuple[str, ...]:
        return self.tree.names(path, self.user)

    def make_directory(self, path: str, mode: int) -> None:
        self.tree.make_directory(path, mode, self.user, 0)

    def rename(self, source: str, target: str) -> None:
        self.tree.rename(source, target, self.user, 0)

    def remove(self, path: str) -> None:
        self.tree.remove(path, self.user, 0)

    def chmod(self, path: str, mode: int) -> None:
        self.tree.chmod(path, mode, self.user)

    def make_link(self, path: str, target: str) -> None:
        self.tree.make_link(path, target, self.user, 0)

    def resolve(self, path: str) -> str:
        return self.tree.resolve(path, self.user)


class Answer(NamedTuple):
    """What a call gave, or the errno that it raised."""

    value: Any
    error: str


def answer(call: Callable[..., Any], *arguments: Any) -> Answer:
    try:
        return Answer(call(*arguments), "")
    except OSError as error:
        return Answer(None, errno.errorcode[error.errno or 0])


@contextmanager
def acting_as(user: int) -> Iterator[None]:
    """With this effective user, no groups, and no umask."""
    mask, groups, root = os.umask(0), os.getgroups(), os.geteuid() == 0
    try:
        if root and user != 0:
            os.setgroups([])
            os.setegid(user)
            os.seteuid(user)
        yield
    finally:
        if root and user != 0:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(groups)
        os.umask(mask)


USERS = (0, NOBODY) if os.geteuid() == 0 else (os.geteuid(),)


@pytest.mark.parametrize("user", USERS)
@given(steps=st.lists(operations, max_size=25))
def test_the_model_tree_answers_as_the_real_file_system_with_the_same_errno(user, steps):
    base = tempfile.mkdtemp()
    try:
        os.chmod(base, 0o755)  # noqa: S103 - whom it is compared for must get in
        os.chown(base, user, -1)
        real, modelled = Real(base), Modelled(user)
        with acting_as(user):
            for side in (real, modelled):
                side.make_directory(DEEP, 0o755)
            for number, (name, *arguments) in enumerate(steps):
                placed = placed_at(name, arguments)
                expected = answer(getattr(real, name), *placed)
                assert answer(getattr(modelled, name), *placed) == expected, (number, name, *placed)
        assert snapshot(modelled.tree) == snapshot_of(base)
    finally:
        for folder, _, _ in os.walk(base):
            os.chmod(folder, 0o700)
        shutil.rmtree(base)


def placed_at(name: str, arguments: list[Any]) -> list[Any]:
    """Paths below our directory; a link's target is left as it is."""
    count = 2 if name == "rename" else 1
    return [f"{DEEP}/{path}" for path in arguments[:count]] + arguments[count:]


def snapshot(tree: Tree) -> dict[str, Any]:
    return {
        path: (node.kind, node.target or node.content) if node.kind != "directory" else (node.kind, node.mode)
        for path, node in tree.walk()
    }


def snapshot_of(base: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in sorted(Path(base).rglob("*")):
        place = str(path).removeprefix(base)
        if path.is_symlink():
            found[place] = ("link", str(path.readlink()).removeprefix(base))
        elif path.is_dir():
            found[place] = ("directory", stat.S_IMODE(path.stat().st_mode))
        else:
            path.chmod(0o600)
            found[place] = ("file", path.read_bytes())
    return found


async def job(world: World) -> list[bytes]:
    """Takes a lock, counts up a file by an atomic write, and a row."""
    seen = []
    for _ in range(2):
        lock = await world.files.lock("/lock")
        assert lock
        count = await world.files.read("/count") if await world.files.stat("/count") else b""
        await world.files.write_atomic("/count", count + b"x")
        seen.append(await world.files.read("/count"))
        await lock.release()
        transaction = await world.store.begin()
        row = await transaction.get("rows", "count", lock=True)
        await transaction.put("rows", "count", {"count": (row.values["count"] if row else 0) + 1})
        await transaction.commit()
        await world.clock.sleep(1)
    return seen


choices = st.lists(st.integers(0, 3), max_size=60)


@given(values=choices)
def test_any_list_of_decisions_keeps_locks_and_rows_whole_and_replays(values):
    finished = ran(Listed(values), bodies=dict.fromkeys("abc", job))
    assert finished.outcome.verdict == "done"
    assert finished.simulation.tree.read("/count", 0) == b"x" * 6
    assert finished.simulation.table.rows("rows")[0].values == {"count": 6}
    again = ran(Replayed(finished.outcome.decisions, complete=True), bodies=dict.fromkeys("abc", job))
    assert again.outcome == finished.outcome


@given(values=choices)
def test_faults_that_never_match_and_holds_that_nobody_reaches_change_no_decision(values):
    without = ran(Listed(values), bodies=dict.fromkeys("abc", job)).outcome
    faults = [Fault("kill", label="nowhere", drawn=True), Fault("refused", port="http"), Fault("torn", actor="d")]
    held = Hold("*", "nowhere", until=lambda event: False)
    with_them = ran(Listed(values), bodies=dict.fromkeys("abc", job), faults=faults, holds=[held]).outcome
    assert with_them == without._replace(unreached_holds=(held,))


@given(
    values=choices,
    label=st.sampled_from(["lock /lock", "write /count", "rename /count", "renamed /count", "unlock /lock"]),
)
def test_a_kill_anywhere_leaves_a_whole_file_and_the_lock_to_the_others(values, label):
    finished = ran(
        Listed(values),
        bodies=dict.fromkeys("abc", job),
        faults=[Fault("kill", actor="b", label=label, drawn=True, times=1)],
    )
    assert finished.outcome.verdict == "done"
    count = finished.simulation.tree.read("/count", 0)
    assert set(count) == {ord("x")}
    assert 4 <= len(count) <= 6
    assert not finished.simulation.file_locks
