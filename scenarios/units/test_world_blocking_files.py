"""The blocking driver's files: the operating system's errors, exact modes, atomic writes, locks, and what strikes."""

from __future__ import annotations

import errno
import fcntl
import os

import pytest

from scenarios.units.blocking_run import PATIENCE_SECONDS, Controller, ran, script, started, striking

TREE = """
files = world.files
await files.make_directory("d/e")
await files.write("f", b"old")
await files.write("d/f", b"old")
for name, target in {
    "to-file": "f", "to-directory": "d/e", "dangling": "nothing", "loop": "loop", "up": "d/e/../f",
}.items():
    await files.make_link(name, target)
"""
LINKS_AND_DOTS = [
    ("d/./e//", "d/e"),
    ("to-file", "f"),
    ("to-directory/..", "d"),
    ("to-directory/../f", "d/f"),
    ("up", "d/f"),
    ("loop", errno.ELOOP),
    ("loop/x", errno.ELOOP),
    ("dangling", errno.ENOENT),
    ("missing/..", errno.ENOENT),
    ("f/x", errno.ENOTDIR),
    ("f/..", errno.ENOTDIR),
    ("f/", errno.ENOTDIR),
]


def test_a_path_resolves_as_the_kernel_says(tmp_path):
    body = f"""
    {TREE.replace(chr(10), chr(10) + "    ")}
    for path in {[path for path, _ in LINKS_AND_DOTS]}:
        try:
            say(os.path.relpath(await files.resolve(path)))
        except OSError as error:
            say(error.errno)
    return 0
    """
    assert ran(tmp_path, body).said == [expected for _, expected in LINKS_AND_DOTS]


CALLS = {
    "files.read('missing')": errno.ENOENT,
    "files.read('d')": errno.EISDIR,
    "files.read('f/x')": errno.ENOTDIR,
    "files.read('to-file')": 0,
    "files.read('nul\\0')": errno.ENOENT,
    "files.write('d', b'')": errno.EISDIR,
    "files.write('missing/x', b'')": errno.ENOENT,
    "files.append('f/x', b'')": errno.ENOTDIR,
    "files.write_atomic('d', b'')": errno.EISDIR,
    "files.write_atomic('missing/x', b'')": errno.ENOENT,
    "files.names('f')": errno.ENOTDIR,
    "files.names('missing')": errno.ENOENT,
    "files.make_directory('d/e')": 0,
    "files.make_directory('to-directory')": 0,
    "files.make_directory('f')": errno.EEXIST,
    "files.make_directory('f/x')": errno.ENOTDIR,
    "files.make_directory('dangling')": errno.EEXIST,
    "files.make_directory('dangling/x')": errno.ENOENT,
    "files.rename('f', 'f')": 0,
    "files.rename('d', 'd/e/x')": errno.EINVAL,
    "files.rename('d/e', 'd')": errno.ENOTEMPTY,
    "files.rename('d/e', 'f')": errno.ENOTDIR,
    "files.rename('f', 'd/e')": errno.EISDIR,
    "files.rename('missing', 'f')": errno.ENOENT,
    "files.rename('f', 'missing/f')": errno.ENOENT,
    "files.remove('missing')": errno.ENOENT,
    "files.remove('d')": errno.ENOTEMPTY,
    "files.remove('/')": errno.EBUSY,
    "files.chmod('dangling', 0o600)": errno.ENOENT,
    "files.make_link('f', 'x')": errno.EEXIST,
    "files.make_link('new', '')": errno.ENOENT,
    "files.lock('d')": errno.EISDIR,
    "files.lock('missing/x')": errno.ENOENT,
    "files.remove_tree('missing')": 0,
    "files.remove_tree('f/x')": 0,
}


def test_errors_are_the_operating_systems_and_leave_nothing_open(tmp_path):
    calls = "\n".join(f"say(await errno_of({call}))" for call in CALLS)
    body = f"{TREE}\nopen_before = len(os.listdir('/dev/fd'))\n{calls}\n"
    body += "say(len(os.listdir('/dev/fd')) - open_before, sorted(os.listdir('.')))\nreturn 0"
    said = ran(tmp_path, body).said
    assert dict(zip(CALLS, said, strict=False)) == CALLS
    names = ["d", "dangling", "f", "loop", "program.py", "to-directory", "to-file", "up"]
    assert said[-1] == (0, names)


def test_an_error_names_the_path(tmp_path):
    body = """
    for call in (world.files.read("x"), world.files.rename("x", "y"), world.files.names("x/y")):
        try:
            await call
        except OSError as error:
            say(str(error))
    return 0
    """
    text = "[Errno 2] No such file or directory: "
    assert ran(tmp_path, body).said == [f"{text}'{tmp_path}/{name}'" for name in ("x", "x", "x/y")]


@pytest.mark.parametrize("umask", [0, 0o77, 0o777])
def test_a_new_file_has_exactly_the_mode_that_was_asked_for(tmp_path, umask):
    body = """
    files = world.files
    await files.write("written", b"", mode=0o666)
    await files.append("appended", b"", mode=0o640)
    await files.write_atomic("atomic", b"", mode=0o4711)
    await files.write_atomic("usual", b"")
    await files.make_directory("deep/er", mode=0o777)
    await files.make_link("dangling", "deep/through")
    await files.write("dangling", b"", mode=0o606)
    await files.lock("lock")
    await files.write("written", b"again", mode=0o600)
    await files.write_atomic("atomic", b"again")
    say({name: oct((await files.stat(name)).mode) for name in (
        "written", "appended", "atomic", "usual", "deep", "deep/er", "deep/through", "lock")})
    return 0
    """
    assert ran(tmp_path, body, umask=umask).said == [
        {
            "written": "0o666", "appended": "0o640", "atomic": "0o4711", "usual": "0o644", "deep": "0o777",
            "deep/er": "0o777", "deep/through": "0o606", "lock": "0o644",
        }
    ]  # fmt: skip


def test_what_is_written_is_read_and_a_link_is_followed_unless_it_is_replaced(tmp_path):
    body = """
    files = world.files
    await files.write("f", b"a" * 3_000_000)
    await files.write("f", b"short")
    await files.append("f", b"+")
    await files.make_link("link", "f")
    await files.append("link", b"!")
    say(await files.read("link"), (await files.stat("link"))[:2])
    await files.write_atomic("link", b"new")
    say(await files.read("link"), await files.read("f"), (await files.stat("link"))[:3], await files.names("."))
    await files.chmod("f", 0o4755)
    found = await files.stat("f")
    say(found.kind, oct(found.mode), found.size, abs(found.modified_seconds - world.clock.now()) < 60)
    say(await files.stat("missing"), await files.stat("f/x"), (await files.stat(".")).kind)
    return 0
    """
    assert ran(tmp_path, body).said == [
        (b"short+!", ("link", 0o777)),
        (b"new", b"short+!", ("file", 0o644, 3), ("f", "link", "program.py")),
        ("file", "0o4755", 7, True),
        (None, None, "directory"),
    ]


def test_a_tree_is_removed_and_its_links_are_not_followed(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    body = """
    await world.files.make_directory("d/e")
    await world.files.make_link("d/e/link", "../../kept")
    await world.files.write("d/e/f", b"")
    await world.files.remove_tree("d")
    return 0
    """
    assert ran(tmp_path, body).code == 0
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "kept", "program.py"]


def test_a_pipe_or_a_device_in_a_hostile_tree_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    body = """
    say(await world.files.read("fifo"), (await world.files.stat("fifo")).kind)
    say(await errno_of(world.files.write("fifo", b"x")))
    await world.files.remove("fifo")
    return 0
    """
    assert ran(tmp_path, body).said == [(b"", "file"), errno.ENXIO]


# --- locks


def test_a_lock_excludes_other_processes_until_it_is_released(tmp_path):
    body = """
    lock = await world.files.lock("lock")
    say("locked")
    await world.processes.read_line()
    await lock.release()
    await lock.release()
    say("released")
    await world.processes.read_line()
    return 0
    """
    with started(script(tmp_path, body), env={}, cwd=tmp_path) as process, (tmp_path / "lock").open("w") as mine:
        assert process.stdout.readline() == b"'locked'\n"
        with pytest.raises(BlockingIOError):
            fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"'released'\n"
        fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_lock_that_is_not_free_in_time_is_none_and_one_that_is_freed_is_had(tmp_path):
    body = """
    first = await world.files.lock("lock")
    await world.files.make_link("other", "lock")
    say(await world.files.lock("other", timeout_seconds=0) is None)
    say(await world.files.lock("lock", timeout_seconds=0.01) is None)
    waiting = [world.tasks.start(world.files.lock("lock", timeout_seconds=seconds), "w") for seconds in (600, None)]
    await world.clock.sleep(0.01)
    say([task.done for task in waiting])
    await first.release()
    await world.tasks.wait(waiting, first=True)
    had = next(task for task in waiting if task.done).result()
    say(had is not None, sum(task.done for task in waiting))
    await world.files.remove("lock")
    say(await world.files.lock("lock", timeout_seconds=0) is not None)
    await had.release()
    await world.tasks.wait(waiting)
    say([task.result() is not None for task in waiting])
    return 0
    """
    assert ran(tmp_path, body).said == [True, True, [False, False], (True, 1), True, [True, True]]


def test_a_lock_is_freed_by_death_and_no_child_keeps_it(tmp_path):
    body = """
    if argv[1:]:
        await world.processes.read_line()
        return 0
    await world.files.lock("lock")
    child = await world.processes.spawn([*ME, "child"], env={}, directory=".")
    say("locked")
    await world.processes.read_line()
    return 0
    """
    with started(script(tmp_path, body), env={}, cwd=tmp_path) as process, (tmp_path / "lock").open("w") as mine:
        assert process.stdout.readline() == b"'locked'\n"
        process.kill()
        process.wait(PATIENCE_SECONDS)
        fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)


# --- what strikes


@pytest.mark.parametrize(
    ("label", "fault", "call", "number", "left"),
    [
        ("read {f}", "eacces", "read('f')", errno.EACCES, b"old content"),
        ("write {f}", "eacces", "write('f', NEW)", errno.EACCES, b"old content"),
        ("write {f}", "enospc", "write('f', NEW)", errno.ENOSPC, b""),
        ("write {f}", "torn", "write('f', NEW)", errno.ENOSPC, b"new c"),
        ("truncated {f}", "enospc", "write('f', NEW)", errno.ENOSPC, b""),
        ("truncated {f}", "torn", "write('f', NEW)", errno.ENOSPC, b"new c"),
        ("append {f}", "enospc", "append('f', NEW)", errno.ENOSPC, b"old content"),
        ("append {f}", "torn", "append('f', NEW)", errno.ENOSPC, b"old contentnew c"),
        ("write {f}", "torn", "write_atomic('f', NEW)", errno.ENOSPC, b"old content"),
        ("rename {f}", "eacces", "write_atomic('f', NEW)", errno.EACCES, b"old content"),
        ("rename {f} to {f}2", "eacces", "rename('f', 'f2')", errno.EACCES, b"old content"),
        ("chmod {f}", "eacces", "chmod('f', 0)", errno.EACCES, b"old content"),
        ("remove {f}", "eacces", "remove_tree('f')", errno.EACCES, b"old content"),
        ("mkdir {f}2", "enospc", "make_directory('f2')", errno.ENOSPC, b"old content"),
        ("symlink {f}2", "enospc", "make_link('f2', 'f')", errno.ENOSPC, b"old content"),
        ("lock {f}2", "enospc", "lock('f2')", errno.ENOSPC, b"old content"),
        ("resolve {f}", "eacces", "resolve('f')", errno.EACCES, b"old content"),
        ("list {f}", "eacces", "names('f')", errno.EACCES, b"old content"),
        ("stat {f}", "eacces", "stat('f')", errno.EACCES, b"old content"),
    ],
)
def test_a_fault_has_its_effect_and_leaves_what_it_would(tmp_path, label, fault, call, number, left):
    path = tmp_path / "f"
    path.write_bytes(b"old content")
    faults = {label.format(f=path): fault}
    body = f"NEW = b'new content'\nsay(await errno_of(world.files.{call}))\nreturn 0"
    with Controller(tmp_path / "control", striking(faults)) as controller:
        ended = ran(tmp_path, body, env=controller.variables())
        assert ended.said == [number]
        assert label.format(f=path) in controller.labels()
    assert path.read_bytes() == left
    assert sorted(each.name for each in tmp_path.iterdir()) == ["f", "program.py"]


POINTS = """
files = world.files
await files.make_directory("d")
await files.write("d/f", b"x")
await files.append("d/f", b"x")
await files.write_atomic("d/f", b"x")
await files.read("d/f")
await files.stat("d/f")
await files.names("d")
await files.chmod("d/f", 0o600)
await files.make_link("d/l", "f")
await files.resolve("d/l")
await files.rename("d/l", "d/m")
lock = await files.lock("d/f")
await lock.release()
await files.remove_tree("d")
"""


def test_switch_points_have_the_labels_of_the_model(tmp_path):
    with Controller(tmp_path / "control", striking({})) as controller:
        assert ran(tmp_path, f"{POINTS}\nreturn 0", env=controller.variables()).code == 0
        labels = [label.replace(str(tmp_path), "") for label in controller.labels()]
    assert labels == [
        "mkdir /d", "write /d/f", "truncated /d/f", "append /d/f", "write /d/f", "rename /d/f", "renamed /d/f",
        "read /d/f", "stat /d/f", "list /d", "chmod /d/f", "symlink /d/l", "resolve /d/l", "rename /d/l to /d/m",
        "lock /d/f", "unlock /d/f", "stat /d", "list /d", "stat /d/f", "remove /d/f", "stat /d/m", "remove /d/m",
        "remove /d",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("label", "content", "temporary"),
    [("truncated {f}", b"", 0), ("rename {f}", b"old", 1), ("renamed {f}", b"new", 0)],
)
def test_who_is_killed_at_a_point_leaves_what_the_disk_has_then(tmp_path, label, content, temporary):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    label = label.format(f=path)
    call = "write" if label.startswith("truncated") else "write_atomic"
    command = script(tmp_path, f"await world.files.{call}('f', b'new')\nsay('never')\nreturn 0")

    def answer(message):
        return None if message.get("label") == label else {}

    with (
        Controller(tmp_path / "control", answer) as controller,
        started(command, env=controller.variables(), cwd=tmp_path) as process,
    ):
        controller.wait_for(do="point", label=label)
        process.kill()
        assert (process.wait(PATIENCE_SECONDS), process.stdout.read()) == (-9, b"")
        assert path.read_bytes() == content
        left = [each.name for each in tmp_path.glob("f.*.tmp")]
        assert len(left) == temporary
        assert all(name.startswith(f"f.{process.pid}-") for name in left)
