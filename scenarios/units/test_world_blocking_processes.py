"""The blocking driver's processes: lines through real pipes, children, their names, signals and ends."""

from __future__ import annotations

import errno
import os

import pytest

from scenarios.units.blocking_run import PATIENCE_SECONDS, Controller, ran, script, started, striking

CHILD = """
if argv[1:]:
    {child}
    return 0
child = await world.processes.spawn([*ME, "child"], env=world.env.variables, directory=".")
{parent}
return 0
"""


def pair(child: str, parent: str) -> str:
    """A program that starts itself."""
    return CHILD.format(child=child.strip().replace("\n", "\n    "), parent=parent.strip())


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        (b"", [None, None]),
        (b"one\ntwo\n", ["one", "two", None, None]),
        (b"\n\nlast", ["", "", "last", None]),
        (b"carriage\r\nreturn", ["carriage\r", "return", None]),
        ("é\u2028ü\n".encode(), ["é\u2028ü", None]),
        (b"\xff\xfe\n", ["\udcff\udcfe", None]),
        (b"x" * 200_000 + b"\ny\n", ["x" * 200_000, "y", None]),
    ],
)
def test_stdin_comes_as_lines(tmp_path, given, lines):
    body = f"say([await world.processes.read_line() for _ in range({len(lines)})])\nreturn 0"
    assert ran(tmp_path, body, stdin=given).said == [lines]


def test_what_is_written_arrives_as_it_is(tmp_path):
    body = r"""
    for line in ("plain", "two\nlines\n", "", "é\udcff", "\ud800", "x" * 100_000):
        await world.processes.write_line(line)
    await world.processes.write_error("error")
    return 0
    """
    with started(script(tmp_path, body), env={}) as process:
        out, error = process.communicate(timeout=PATIENCE_SECONDS)
    assert out == b"plain\ntwo\nlines\n\n\n" + "é".encode() + b"\xff\n?\n" + b"x" * 100_000 + b"\n"
    assert error == b"error\n"


def test_a_read_timeout_leaves_the_line_to_be_read(tmp_path):
    body = """
    async def read(seconds):
        try:
            return await world.processes.read_line(seconds)
        except ReadTimeout:
            return "silence"
    say(await read(0), await read(-1), await read(0.01))
    say(await read(None), await read(0), await read(0.01))
    say(await read(None), await read(None), await read(0))
    return 0
    """
    with started(script(tmp_path, body), env={}) as process:
        assert process.stdout.readline() == b"('silence', 'silence', 'silence')\n"
        process.stdin.write(b"one\nha")
        process.stdin.flush()
        assert process.stdout.readline() == b"('one', 'silence', 'silence')\n"
        process.stdin.write(b"lf\n")
        process.stdin.close()
        assert process.stdout.readline() == b"('half', None, None)\n"


def test_lines_of_several_tasks_never_mix_even_when_the_pipe_is_full(tmp_path):
    child = """
await world.processes.read_line()
async def write(letter):
    for _ in range(3):
        await world.processes.write_line(letter * 100_000)
tasks = [world.tasks.start(write(letter), letter) for letter in "abc"]
await world.tasks.wait(tasks)
"""
    parent = """
await child.write_line("go")
await world.clock.sleep(0.05)
lines = []
while (line := await child.read_line()) is not None:
    lines.append((line[:1], len(line), len(set(line))))
say(len(lines), set(lines), await child.wait())
"""
    said = ran(tmp_path, pair(child, parent)).said
    assert said == [(9, {("a", 100_000, 1), ("b", 100_000, 1), ("c", 100_000, 1)}, 0)]


def test_a_write_that_must_wait_lets_the_other_tasks_run_and_ends_when_the_pipe_is_closed(tmp_path):
    parent = """
async def write():
    try:
        await child.write_line("x" * 1_000_000)
    except BrokenPipeError:
        return "broken"
task = world.tasks.start(write(), "writer")
await world.clock.sleep(0.02)
say(task.done)
await child.close_stdin()
await world.tasks.wait([task])
say(task.result(), await errno_of(child.write_line("x")))
await child.signal("SIGKILL")
say(await child.wait())
"""
    said = ran(tmp_path, pair("await world.clock.sleep(1000)", parent)).said
    assert said == [False, ("broken", errno.EPIPE), -9]


def test_who_writes_to_nobody_has_a_broken_pipe(tmp_path):
    parent = """
say(await child.read_line(), await child.wait(), await child.wait(0))
say(await errno_of(child.write_line("x")), await errno_of(child.write_line("x")))
await child.close_stdin()
await child.close_stdin()
await child.signal("SIGTERM")
say(await child.read_line(), await child.read_error(), await child.read_error(0))
"""
    assert ran(tmp_path, pair("await world.processes.write_line('bye')", parent)).said == [
        ("bye", 0, 0), (errno.EPIPE, errno.EPIPE), (None, None, None)
    ]  # fmt: skip


def test_a_program_whose_reader_has_gone_has_a_broken_pipe(tmp_path):
    body = """
    await world.processes.read_line()
    await world.processes.write_error(str(await errno_of(world.processes.write_line("x"))))
    return 0
    """
    with started(script(tmp_path, body), env={}) as process:
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == b"%d\n" % errno.EPIPE
        assert process.wait(PATIENCE_SECONDS) == 0


def test_a_child_is_waited_for_and_signalled(tmp_path):
    child = """
await world.processes.write_line(repr(await world.processes.next_signal(0)))
await world.processes.write_line(await world.processes.next_signal())
await world.processes.write_error("line of stderr")
await world.processes.read_line()
return 9
"""
    parent = """
say(await child.read_line(), await child.wait(0), await child.wait(0.01), child.pid != os.getpid())
await child.signal("SIGINT")
say(await child.read_line(), await child.read_error())
waiting = [world.tasks.start(child.wait(), "waits") for _ in range(2)]
await child.close_stdin()
await world.tasks.wait(waiting)
say([task.result() for task in waiting], await child.wait())
"""
    assert ran(tmp_path, pair(child, parent)).said == [
        ("None", None, None, True), ("SIGINT", "line of stderr"), ([9, 9], 9)
    ]  # fmt: skip


def test_no_other_signal_can_be_sent(tmp_path):
    parent = "try:\n    await child.signal('SIGHUP')\nexcept BaseException:\n    pass"
    ended = ran(tmp_path, pair("await world.processes.read_line()", parent))
    assert (ended.code, "no signal is called 'SIGHUP'" in ended.error) == (1, True)


def test_a_child_dies_of_a_signal_for_which_its_parent_asks(tmp_path):
    parent = """
await world.processes.next_signal(0)
other = await world.processes.spawn([*ME, "child"], env={}, directory=".")
for each, name in ((child, "SIGTERM"), (other, "SIGINT")):
    await each.read_line()
    await each.signal(name)
    say(await each.wait())
"""
    assert ran(tmp_path, pair("await world.processes.write_line('')\nawait world.clock.sleep(1000)", parent)).said == [
        -15, -2
    ]  # fmt: skip


def test_a_child_has_its_directory_its_environment_and_only_its_streams(tmp_path):
    (tmp_path / "inner").mkdir()
    body = """
    if argv[1:]:
        say(world.env.directory, dict(world.env.variables), world.name, argv[1:])
        return 0
    os.set_inheritable(os.dup(1), True)
    kept = await world.files.lock("lock")
    env = {"A": "b", "WORLD_TIME_SCALE": "3", "LANG": "C.UTF-8"}
    child = await world.processes.spawn([*ME, "a", "", "b c"], env=env, directory="inner")
    while (line := await child.read_line()) is not None:
        os.write(1, line.encode() + b"\\n")
    say(os.getcwd() == world.env.directory, await child.read_error())
    shell = await world.processes.spawn(["sh", "-c", "cd /dev/fd && echo *"], env={"PATH": "/bin"}, directory=".")
    say(await shell.read_line(), await shell.read_error())
    return 0
    """
    ended = ran(tmp_path, body)
    directory, variables, called, argv = ended.said[0]
    assert (directory, called, argv) == (str(tmp_path / "inner"), "program.py", ["a", "", "b c"])
    assert variables == {"A": "b", "LANG": "C.UTF-8"}
    assert ended.said[1] == (True, None)
    assert ended.said[2] == ("0 1 2 3", None)  # the last is the shell's own, of the directory that it lists


def test_a_program_is_found_on_the_path_that_its_environment_has(tmp_path):
    for folder in ("first", "second", "third"):
        (tmp_path / folder).mkdir()
    (tmp_path / "first" / "tool").write_text("no program")
    (tmp_path / "second" / "tool").mkdir()
    (tmp_path / "third" / "tool").write_text('#!/bin/sh\necho "third $0 $1"\n')
    (tmp_path / "third" / "tool").chmod(0o755)
    (tmp_path / "third" / "broken").write_text("#!/nothing/here\n")
    (tmp_path / "third" / "broken").chmod(0o755)
    body = """
    async def starts(command, path, directory="."):
        env = {"PATH": path} if path is not None else {}
        try:
            child = await world.processes.spawn([command, "x"], env=env, directory=directory)
        except OSError as error:
            return error.errno, error.filename
        return await child.read_line(), await child.wait()
    here = world.env.directory
    say(await starts("tool", f"{here}/first:/missing:{here}/second:{here}/third"))
    say(await starts("tool", f"{here}/first:{here}/second"))
    say(await starts("tool", "/missing"), await starts("tool", ""), await starts("", "/bin"))
    say(await starts("third/tool", ""), await starts("./tool", "", "third"), await starts("first/tool", ""))
    say(await starts("broken", f"{here}/third"), (await starts("true", None))[1])
    say(await starts("tool", "", "missing"), await starts("tool", "", "first/tool"))
    say(await starts("nul\\0", "/bin"), await errno_of(world.processes.spawn([], env={}, directory=".")))
    say(len(os.listdir("/dev/fd")))
    return 0
    """
    found, denied, missing, direct, broken, nowhere, impossible, descriptors = ran(tmp_path, body).said
    here = str(tmp_path)
    assert found == (f"third {here}/third/tool x", 0)
    assert denied == (errno.EACCES, "tool")
    assert missing == ((errno.ENOENT, "tool"), (errno.ENOENT, "tool"), (errno.ENOENT, ""))
    assert direct == (("third third/tool x", 0), ("third ./tool x", 0), (errno.EACCES, "first/tool"))
    assert broken == ((errno.ENOENT, "broken"), 0)
    assert nowhere == ((errno.ENOENT, f"{here}/missing"), (errno.ENOTDIR, f"{here}/first/tool"))
    assert impossible == ((errno.EINVAL, "nul\0"), errno.ENOENT)
    assert descriptors < 30


def test_children_of_one_name_are_numbered_and_may_be_named(tmp_path):
    body = """
    if argv[1:]:
        await world.processes.write_line(world.name)
        return 0
    for env in ({"WORLD_ACTOR_NAME": "x"}, {"WORLD_ACTOR_NAME": "x"}, {"WORLD_ACTOR_NAME": "y"}):
        say(await (await world.processes.spawn([*ME, "child"], env=env, directory=".")).read_line())
    return 0
    """
    told = {"WORLD_ACTOR_NAME": "me", "WORLD_EVENTS": "events"}
    assert ran(tmp_path, body, env=told).said == ["me/x", "me/x#2", "me/y"]


def test_a_child_is_told_nothing_of_ours_where_there_is_nothing_to_tell(tmp_path):
    (tmp_path / "inner").mkdir()
    body = """
    child = await world.processes.spawn(["env"], env={"PATH": os.defpath, "A": "b"}, directory="inner")
    while (line := await child.read_line()) is not None:
        os.write(1, repr(line).encode() + b"\\n")
    return 0
    """
    own = f"PATH={os.defpath}"
    assert sorted(ran(tmp_path, body).said) == ["A=b", own]
    told = sorted(ran(tmp_path, body, env={"WORLD_ACTOR_NAME": "me", "WORLD_EVENTS": "events"}).said)
    assert told == ["A=b", own, "WORLD_ACTOR_NAME=me/env", f"WORLD_EVENTS={tmp_path}/events"]


# --- steered


def test_whoever_steers_says_what_is_started_and_what_it_is_called(tmp_path):
    body = """
    child = await world.processes.spawn(["npx", "-y"], env={"A": "b", "WORLD_ACTOR_NAME": "n"}, directory="/")
    say(await child.read_line(), await child.wait())
    return 0
    """
    said = ["/bin/sh", "-c", 'echo "$WORLD_ACTOR_NAME $A $B $(pwd)"']
    launch = {"argv": said, "name": "me/npx", "env": {"B": "c"}}
    with Controller(tmp_path / "control", striking({}, launch=launch)) as controller:
        ended = ran(tmp_path, body, env=controller.variables())
        asked = next(message for message in controller.asked if message["do"] == "launch")
        assert asked == {
            "do": "launch", "actor": "me", "argv": ["npx", "-y"], "directory": "/",
            "env": {"A": "b", "WORLD_ACTOR_NAME": "n"},
        }  # fmt: skip
        assert controller.labels() == ["spawn npx", "stdout of me/npx", "wait for me/npx"]
        assert controller.events() == [("spawn", {"argv": ["npx", "-y"], "child": "me/npx"})]
    assert ended.said == [("me/npx b c /", 0)]


@pytest.mark.parametrize(
    ("faults", "launch", "number"),
    [
        ({"spawn x": "enoent"}, {}, errno.ENOENT),
        ({"spawn x": "eacces-exec"}, {}, errno.EACCES),
        ({}, {"errno": errno.ENOENT}, errno.ENOENT),
        ({}, {"argv": ["/missing"], "name": "n", "env": {}}, errno.ENOENT),
    ],
)
def test_what_cannot_be_started_says_so_and_is_told_to_nobody(tmp_path, faults, launch, number):
    body = """
    try:
        await world.processes.spawn(["x"], env={}, directory="/")
    except OSError as error:
        say(error.errno, error.filename)
    return 0
    """
    with Controller(tmp_path / "control", striking(faults, launch=launch)) as controller:
        assert ran(tmp_path, body, env=controller.variables()).said == [(number, "x")]
        assert controller.events() == []


def test_switch_points_have_the_labels_of_the_model(tmp_path):
    body = """
    child = await world.processes.spawn(["x"], env={}, directory="/")
    await child.write_line("x")
    await child.read_line()
    await child.close_stdin()
    await child.read_error()
    await child.signal("SIGTERM")
    await child.wait()
    await world.processes.read_line()
    await world.processes.write_line("out")
    await world.processes.write_error("err")
    await world.processes.next_signal(0)
    await world.tasks.wait([])
    return 3
    """
    launch = {"argv": ["/bin/cat"], "name": "me/x", "env": {}}
    with Controller(tmp_path / "control", striking({}, launch=launch)) as controller:
        command = script(tmp_path, body)
        with started(command, env=controller.variables()) as process:
            assert process.communicate(timeout=PATIENCE_SECONDS) == (b"out\n", b"err\n")
        assert process.returncode == 3
        points = [(each["port"], each["label"]) for each in controller.asked if each["do"] == "point"]
        printed = [(each["stream"], each["text"]) for each in controller.asked if each["do"] == "printed"]
        assert controller.asked[0] == {"do": "started", "actor": "me"}
        assert controller.asked[-1] == {"do": "ended", "actor": "me", "exit_code": 3}
    assert points == [
        *(("processes", label) for label in (
            "spawn x", "stdin of me/x", "stdout of me/x", "close stdin of me/x", "stderr of me/x", "SIGTERM to me/x",
            "wait for me/x", "stdin", "stdout", "stderr", "signal",
        )),
        ("tasks", "wait"),
    ]  # fmt: skip
    assert printed == [("stdout", "out"), ("stderr", "err")]


def test_a_task_that_is_held_at_a_point_does_not_hold_the_others(tmp_path):
    body = """
    task = world.tasks.start(world.files.stat("held"), "held")
    for _ in range(3):
        await world.files.stat("free")
    say(task.done)
    world.events.emit("go")
    await world.tasks.wait([task])
    say(task.result())
    return 0
    """
    with Controller(tmp_path / "control", lambda message: answer(message)) as controller:

        def answer(message):
            if message.get("label", "").endswith("/held"):
                controller.wait_for(do="event", event="go")
            return {}

        assert ran(tmp_path, body, env=controller.variables()).said == [False, None]


def test_a_process_ends_when_whoever_steers_has_left(tmp_path):
    body = "say('there')\ntry:\n    await world.files.stat('held')\nexcept Exception:\n    say('caught')\nreturn 0"
    with Controller(tmp_path / "control", lambda message: None if message["do"] == "point" else {}) as controller:
        command = script(tmp_path, body)
        with started(command, env=controller.variables(), cwd=tmp_path) as process:
            controller.wait_for(do="point")
            controller.close()
            assert process.wait(PATIENCE_SECONDS) == 1
            assert process.stdout.read() == b"'there'\n"
            assert b"whoever steers has gone" in process.stderr.read()


def test_a_process_whose_controller_was_never_there_says_so(tmp_path):
    ended = ran(tmp_path, "return 0", env={"WORLD_CONTROL": "missing"})
    assert ended.code == 2
    assert ended.error == f"nobody steers the world at {tmp_path}/missing: No such file or directory\n"
