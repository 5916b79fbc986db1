"""Files: what the operating system would say, writes in place and atomic ones under kills and faults, locks."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from harness.world import Stat, World
from harness.world.model import Fault, Seeded, Simulation, Tree
from scenarios.worlds import alone, ran

OLD, NEW = b"old content", b"new content"
OWNER, OTHER = 1_000, 1_001


def code(call: Callable[[], Any]) -> int:
    """The errno that a call raises; 0 when it raises none."""
    try:
        call()
    except OSError as error:
        return error.errno or -1
    return 0


def tree() -> Tree:
    """Directories d and d/e, files f and d/f, links of every kind."""
    made = Tree()
    made.make_directory("/d/e", 0o755, 0, 0)
    made.write("/f", OLD, 0o644, 0, 0)
    made.write("/d/f", OLD, 0o644, 0, 0)
    for name, target in {
        "to-file": "f", "to-directory": "d/e", "dangling": "nothing", "loop": "loop", "ping": "pong", "pong": "ping",
        "absolute": "/d/f", "up": "d/e/../f", "through": "to-directory/../f",
    }.items():  # fmt: skip
        made.make_link(f"/{name}", target, 0, 0)
    return made


def open_tree() -> Tree:
    """An empty tree in whose root everybody may make something."""
    made = Tree()
    made.root.mode = 0o777
    return made


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("/", "/"),
        ("/..", "/"),
        ("/d/./e//", "/d/e"),
        ("/to-file", "/f"),
        ("/to-directory", "/d/e"),
        ("/to-directory/..", "/d"),
        ("/to-directory/../f", "/d/f"),
        ("/absolute", "/d/f"),
        ("/up", "/d/f"),
        ("/through", "/d/f"),
        ("/d/e/../../to-directory/../../f", "/f"),
    ],
)
def test_a_path_resolves_as_the_kernel_would_with_dots_after_links(path, real):
    assert tree().resolve(path, 0) == real


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/loop", errno.ELOOP),
        ("/ping", errno.ELOOP),
        ("/loop/x", errno.ELOOP),
        ("/dangling", errno.ENOENT),
        ("/missing", errno.ENOENT),
        ("/missing/..", errno.ENOENT),
        ("/f/x", errno.ENOTDIR),
        ("/f/..", errno.ENOTDIR),
        ("/f/", errno.ENOTDIR),
        ("/to-file/x", errno.ENOTDIR),
    ],
)
def test_what_cannot_be_resolved_says_why(path, error):
    assert code(lambda: tree().resolve(path, 0)) == error


@pytest.mark.parametrize(("links", "error"), [(40, 0), (41, errno.ELOOP)])
def test_forty_links_are_followed_and_no_more(links, error):
    chain = Tree()
    chain.write("/0", b"", 0o644, 0, 0)
    for number in range(1, links + 1):
        chain.make_link(f"/{number}", str(number - 1), 0, 0)
    assert code(lambda: chain.read(f"/{links}", 0)) == error


@pytest.mark.parametrize(
    ("source", "target", "error"),
    [
        ("/f", "/g", 0),
        ("/f", "/f", 0),
        ("/d", "/d", 0),
        ("/f", "/d/f", 0),
        ("/d", "/d/e", errno.EINVAL),
        ("/d", "/d/new", errno.EINVAL),
        ("/d/e", "/d", errno.ENOTEMPTY),
        ("/d/e", "/f", errno.ENOTDIR),
        ("/f", "/d/e", errno.EISDIR),
        ("/missing", "/g", errno.ENOENT),
        ("/missing", "/f/g", errno.ENOTDIR),
        ("/f", "/missing/g", errno.ENOENT),
        ("/d", "/", errno.EBUSY),
        ("/to-directory", "/d/link", 0),
    ],
)
def test_renaming_replaces_what_may_be_replaced(source, target, error):
    assert code(lambda: tree().rename(source, target, 0, 0)) == error


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/d/e", 0),
        ("/to-directory", 0),
        ("/to-directory/new", 0),
        ("/new/newer", 0),
        ("/f", errno.EEXIST),
        ("/to-file", errno.EEXIST),
        ("/dangling", errno.EEXIST),
        ("/loop", errno.EEXIST),
        ("/f/new", errno.ENOTDIR),
        ("/to-file/new", errno.ENOTDIR),
        ("/dangling/new", errno.ENOENT),
        ("/loop/new", errno.ELOOP),
    ],
)
def test_making_a_directory_with_its_parents_leaves_what_is_one(path, error):
    made = tree()
    assert code(lambda: made.make_directory(path, 0o700, 0, 0)) == error
    assert error or made.is_directory(path, 0)


def test_a_directory_is_as_young_as_the_last_change_of_what_it_holds():
    made = Tree(now=0)
    made.make_directory("/d", 0o755, 0, 1)
    ages = []
    for at, change in enumerate(
        [
            lambda at: made.write("/d/a", b"", 0o644, 0, at),
            lambda at: made.write("/d/a", b"x", 0o644, 0, at),
            lambda at: made.rename("/d/a", "/d/b", 0, at),
            lambda at: made.make_link("/d/l", "b", 0, at),
            lambda at: made.remove("/d/b", 0, at),
        ],
        start=10,
    ):
        change(at)
        status = made.stat("/d", 0)
        assert status
        ages.append(status.modified_seconds)
    assert ages == [10, 10, 12, 13, 14]


READ, WRITE, SEARCH = 0o4, 0o2, 0o1


@pytest.mark.parametrize("user", [0, OWNER, OTHER])
@pytest.mark.parametrize("mode", [0o700, 0o070, 0o007, 0o444, 0o222, 0o111, 0o604, 0o406, 0])
def test_permission_bits_of_files_bind_the_owner_by_the_first_three_and_others_by_the_last(mode, user):
    made = open_tree()
    made.write("/f", OLD, mode, OWNER, 0)
    bits = 0o7 if user == 0 else mode >> 6 if user == OWNER else mode & 0o7
    assert code(lambda: made.read("/f", user)) == (0 if bits & READ else errno.EACCES)
    assert code(lambda: made.write("/f", NEW, 0, user, 0)) == (0 if bits & WRITE else errno.EACCES)
    assert code(lambda: made.chmod("/f", 0o600, user)) == (errno.EPERM if user == OTHER else 0)
    assert made.stat("/f", user)


@pytest.mark.parametrize("user", [0, OWNER, OTHER])
@pytest.mark.parametrize("mode", [0o700, 0o500, 0o300, 0o100, 0o007, 0o005, 0o003, 0o001, 0])
def test_permission_bits_of_directories_say_who_lists_enters_and_changes(mode, user):
    made = open_tree()
    made.make_directory("/d", 0o777, OWNER, 0)
    made.write("/d/f", OLD, 0o666, OWNER, 0)
    made.make_directory("/d/empty", 0o777, OWNER, 0)
    made.chmod("/d", mode, OWNER)
    bits = 0o7 if user == 0 else mode >> 6 if user == OWNER else mode & 0o7
    lists = 0 if bits & READ else errno.EACCES
    enters = 0 if bits & SEARCH else errno.EACCES
    changes = 0 if bits & SEARCH and bits & WRITE else errno.EACCES
    assert code(lambda: made.names("/d", user)) == lists
    assert code(lambda: made.read("/d/f", user)) == enters
    assert code(lambda: made.stat("/d/f", user)) == enters
    assert code(lambda: made.stat("/d/missing", user)) == enters
    assert code(lambda: made.enter("/d", user)) == enters
    assert code(lambda: made.resolve("/d/empty/..", user)) == enters
    assert code(lambda: made.write("/d/new", b"", 0o644, user, 0)) == changes
    assert code(lambda: made.make_link("/d/link", "f", user, 0)) == changes
    assert code(lambda: made.make_directory("/d/directory", 0o755, user, 0)) == changes
    assert code(lambda: made.rename("/d/f", "/d/g", user, 0)) == changes
    assert code(lambda: made.remove("/d/empty", user, 0)) == changes


def test_moving_a_directory_elsewhere_needs_its_own_write_bit():
    made = open_tree()
    for path in ("/a/moved", "/b"):
        made.make_directory(path, 0o777, OWNER, 0)
    made.chmod("/a/moved", 0o555, OWNER)
    assert code(lambda: made.rename("/a/moved", "/a/other", OWNER, 0)) == 0
    assert code(lambda: made.rename("/a/other", "/b/moved", OWNER, 0)) == errno.EACCES


def files_of(simulation: Simulation) -> dict[str, bytes | None]:
    return {path: node.content for path, node in simulation.tree.walk() if node.kind == "file"}


def with_old(simulation: Simulation) -> None:
    simulation.tree.write("/f", OLD, 0o600, 0, 0)


async def in_place(world: World) -> None:
    await world.files.write("/f", NEW)


async def atomically(world: World) -> None:
    await world.files.write_atomic("/f", NEW)


def killed_at(body: Any, label: str) -> dict[str, bytes | None]:
    """The files after a kill at a switch point, which must have struck."""
    finished = ran(bodies={"a": body}, build=with_old, faults=[Fault("kill", label=label)])
    assert finished.ended("a").exit_code == -9, label
    return files_of(finished.simulation)


@pytest.mark.parametrize(
    ("label", "left"), [("write /f", OLD), ("truncated /f", b"")]
)  # fmt: skip
def test_a_write_in_place_that_is_killed_leaves_the_old_or_nothing(label, left):
    assert killed_at(in_place, label) == {"/f": left}


@pytest.mark.parametrize(("label", "left"), [("write /f", OLD), ("rename /f", OLD), ("renamed /f", NEW)])
def test_an_atomic_write_that_is_killed_leaves_the_old_or_the_new(label, left):
    files = killed_at(atomically, label)
    assert files.pop("/f") == left
    assert list(files.values()) == ([NEW] if label == "rename /f" else [])
    assert all(name.startswith("/f.") and name.endswith(".tmp") for name in files)


@pytest.mark.parametrize("seed", range(40))
def test_a_reader_of_an_atomic_write_sees_the_old_or_the_new_under_any_schedule(seed):
    async def reader(world: World) -> set[bytes]:
        seen = set()
        for _ in range(4):
            seen.add(await world.files.read("/f"))
            await world.clock.sleep(0)
        return seen

    finished = ran(Seeded(seed, run=0.6), bodies={"writer": atomically, "reader": reader}, build=with_old)
    assert finished.results["reader"] <= {OLD, NEW}


def test_some_reader_of_a_write_in_place_sees_an_empty_file():
    async def reader(world: World) -> bytes:
        return await world.files.read("/f")

    seen = {
        ran(Seeded(seed), bodies={"writer": in_place, "reader": reader}, build=with_old).results["reader"]
        for seed in range(60)
    }
    assert seen == {OLD, b"", NEW}


@pytest.mark.parametrize(
    ("action", "label", "body", "error", "left"),
    [
        ("eacces", "write /f", in_place, errno.EACCES, OLD),
        ("enospc", "write /f", in_place, errno.ENOSPC, b""),
        ("enospc", "truncated /f", in_place, errno.ENOSPC, b""),
        ("torn", "write /f", in_place, errno.ENOSPC, NEW[:5]),
        ("torn", "truncated /f", in_place, errno.ENOSPC, NEW[:5]),
        ("eacces", "write /f", atomically, errno.EACCES, OLD),
        ("enospc", "write /f", atomically, errno.ENOSPC, OLD),
        ("torn", "write /f", atomically, errno.ENOSPC, OLD),
        ("eacces", "rename /f", atomically, errno.EACCES, OLD),
    ],
)
def test_a_full_or_forbidding_disk_tells_its_errno_and_leaves_what_it_would(action, label, body, error, left):
    finished = ran(bodies={"a": body}, build=with_old, faults=[Fault(action, label=label)])
    caught = finished.ended("a").error
    assert isinstance(caught, OSError)
    assert caught.errno == error
    assert files_of(finished.simulation) == {"/f": left}


@pytest.mark.parametrize(("action", "left"), [("torn", OLD + NEW[:5]), ("enospc", OLD), ("eacces", OLD)])
def test_what_is_appended_to_a_full_disk_is_a_part(action, left):
    async def body(world: World) -> None:
        with pytest.raises(OSError, match="/f"):
            await world.files.append("/f", NEW)

    assert files_of(ran(bodies={"a": body}, build=with_old, faults=[Fault(action)]).simulation) == {"/f": left}


def test_an_atomic_write_keeps_the_mode_unless_one_is_given_and_replaces_a_link():
    async def body(world: World) -> list[Stat | None]:
        await world.files.write_atomic("/f", NEW)
        seen = [await world.files.stat("/f")]
        await world.files.write_atomic("/f", NEW, mode=0o640)
        seen.append(await world.files.stat("/f"))
        await world.files.write_atomic("/new", NEW)
        seen.append(await world.files.stat("/new"))
        await world.files.make_link("/link", "f")
        await world.files.write_atomic("/link", b"")
        seen.append(await world.files.stat("/link"))
        assert await world.files.read("/f") == NEW
        return seen

    finished = ran(bodies={"a": body}, build=with_old)
    assert [(stat.kind, stat.mode) for stat in finished.results["a"]] == [
        ("file", 0o600), ("file", 0o640), ("file", 0o644), ("file", 0o644)
    ]  # fmt: skip


def test_a_failed_rename_of_an_atomic_write_leaves_no_temporary_file():
    async def body(world: World) -> tuple[str, ...]:
        await world.files.make_directory("/directory/full")
        with pytest.raises(IsADirectoryError):
            await world.files.write_atomic("/directory", NEW)
        return await world.files.names("/")

    assert alone(body) == ("directory",)


def test_temporary_names_are_unique_among_actors_and_writes():
    seen: list[str] = []

    async def body(world: World) -> None:
        for _ in range(3):
            await world.files.write_atomic("/f", NEW)

    async def watch(world: World) -> None:
        for _ in range(200):
            seen.extend(name for name in await world.files.names("/") if name.endswith(".tmp"))

    for seed in range(6):
        ran(Seeded(seed, run=0.7), bodies={"a": body, "b": body, "watch": watch})
    assert len(set(seen)) >= 6
    # Two actors of one run never meet on a name: each holds its pid.
    assert {name.split(".")[1].split("-")[0] for name in seen} == {"100", "101"}


def test_removing_a_tree_follows_no_links_and_is_no_error_where_nothing_is():
    async def body(world: World) -> tuple[str, ...]:
        await world.files.make_directory("/d/e/f")
        await world.files.write("/kept", b"")
        await world.files.make_link("/d/e/link", "/")
        await world.files.remove_tree("/d")
        await world.files.remove_tree("/nothing")
        return await world.files.names("/")

    assert alone(body) == ("kept",)


def test_removing_a_tree_that_is_killed_leaves_a_part():
    async def body(world: World) -> None:
        for name in "abc":
            await world.files.make_directory(f"/d/{name}")
        await world.files.remove_tree("/d")

    finished = ran(bodies={"a": body}, faults=[Fault("kill", label="remove /d/b")])
    assert finished.simulation.tree.names("/d", 0) == ("b", "c")


def test_a_relative_path_starts_at_the_actors_directory():
    async def body(world: World, argv: Any) -> int:
        await world.files.write("x", b"")
        return 0

    simulation = Simulation(faults=[Fault("kill", label="truncated /clone/x")])
    simulation.tree.make_directory("/clone", 0o755, 0, 0)
    actor = simulation.start("a", body, directory="/clone")
    simulation.run()
    assert (actor.exit_code, files_of(simulation)) == (-9, {"/clone/x": b""})


async def holder(world: World) -> None:
    lock = await world.files.lock("/lock")
    assert lock
    world.events.emit("locked")
    await world.clock.sleep(10)
    world.events.emit("unlocks")
    await lock.release()


@pytest.mark.parametrize("seed", range(20))
def test_a_lock_excludes(seed):
    finished = ran(Seeded(seed), bodies=dict.fromkeys("abc", holder))
    names = [name for _, name in finished.events("locked", "unlocks")]
    assert names == ["locked", "unlocks"] * 3
    assert files_of(finished.simulation) == {"/lock": b""}


@pytest.mark.parametrize(("timeout", "got", "at"), [(0, False, 1), (8.9, False, 9.9), (9, True, 10), (None, True, 10)])
def test_a_lock_that_is_not_free_in_time_is_none(timeout, got, at):
    async def tries(world: World) -> tuple[bool, float]:
        await world.clock.sleep(1)
        lock = await world.files.lock("/lock", timeout_seconds=timeout)
        return lock is not None, world.clock.now()

    assert ran(bodies={"holder": holder, "tries": tries}, start_seconds=0).results["tries"] == (got, at)


def test_a_lock_is_freed_by_death_and_its_file_stays():
    async def dies(world: World) -> None:
        await world.files.lock("/lock")
        await world.clock.sleep(3)
        await world.files.stat("/")

    async def tries(world: World) -> float:
        await world.clock.sleep(1)
        assert await world.files.lock("/lock")
        return world.clock.now()

    finished = ran(bodies={"dies": dies, "tries": tries}, faults=[Fault("kill", label="stat /")], start_seconds=0)
    assert finished.results["tries"] == 3
    assert files_of(finished.simulation) == {"/lock": b""}


def test_who_dies_waiting_for_a_lock_never_gets_it():
    async def parent(world: World) -> bool:
        lock = await world.files.lock("/lock")
        assert lock
        child = await world.processes.spawn(["waits"], env={}, directory="/")
        await world.clock.sleep(1)
        await child.signal("SIGKILL")
        await lock.release()
        await world.clock.sleep(1)
        return await world.files.lock("/lock", timeout_seconds=0) is not None

    async def waits(world: World, argv: Any) -> int:
        await world.files.lock("/lock")
        return 0

    finished = ran(bodies={"parent": parent}, launcher=lambda argv, env, directory: waits)
    assert finished.results["parent"] is True


def test_releasing_twice_does_not_free_the_lock_of_another():
    async def twice(world: World) -> None:
        lock = await world.files.lock("/lock")
        assert lock
        await lock.release()
        await world.clock.sleep(5)
        await lock.release()

    async def third(world: World) -> bool:
        await world.clock.sleep(6)
        return await world.files.lock("/lock", timeout_seconds=0) is None

    async def second(world: World) -> None:
        await world.clock.sleep(1)
        await holder(world)

    finished = ran(bodies={"twice": twice, "second": second, "third": third})
    assert finished.results["third"] is True
    assert finished.ended("twice").error is None


def test_it_is_the_file_that_is_locked_not_its_name():
    async def tries(world: World) -> tuple[bool, bool]:
        await world.clock.sleep(1)
        await world.files.make_link("/other", "lock")
        through_link = await world.files.lock("/other", timeout_seconds=0)
        await world.files.remove("/lock")
        recreated = await world.files.lock("/lock", timeout_seconds=0)
        return through_link is not None, recreated is not None

    assert ran(bodies={"holder": holder, "tries": tries}).results["tries"] == (False, True)


def test_locking_twice_in_one_actor_waits_for_oneself():
    async def body(world: World) -> bool:
        await world.files.lock("/lock")
        return await world.files.lock("/lock", timeout_seconds=1) is None

    assert alone(body) is True


def test_what_was_read_at_a_path_is_looked_for_anew_once_it_was_moved_replaced_or_taken_away():
    made = Tree()
    for path in ("/a/b/f", "/a/g", "/h"):
        made.make_directory(path.rpartition("/")[0] or "/", 0o755, 0, 0)
        made.write(path, path.encode(), 0o644, 0, 0)
        assert made.read(path, 0) == path.encode()
    made.rename("/h", "/a/g", 0, 0)
    assert (made.read("/a/g", 0), code(lambda: made.read("/h", 0))) == (b"/h", errno.ENOENT)
    made.rename("/a", "/moved", 0, 0)
    assert (made.read("/moved/b/f", 0), code(lambda: made.read("/a/b/f", 0))) == (b"/a/b/f", errno.ENOENT)
    made.make_directory("/a/b", 0o755, 0, 0)
    assert made.stat("/a/b/f", 0) is None
    made.remove("/moved/g", 0, 0)
    assert made.stat("/moved/g", 0) is None
    for _ in made.removal("/moved", 0, lambda: 0.0, follow=True):
        pass
    assert code(lambda: made.read("/moved/b/f", 0)) == errno.ENOENT
