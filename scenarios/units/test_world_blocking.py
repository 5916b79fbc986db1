"""The blocking driver: a program as a process, its tasks, its time, its signals, its end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from scenarios.units.blocking_run import PATIENCE_SECONDS, REPOSITORY, ran, script, started

SCALE = {"WORLD_TIME_SCALE": "50"}


def test_the_driver_loads_isolated_and_without_what_takes_long():
    code = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); import harness.world.blocking"
    code += "; print(*sorted({name.split('.')[0] for name in sys.modules} - sys.stdlib_module_names))"
    code += (
        "; print(*sorted({'asyncio', 'email', 'http', 'json', 'selectors', 'socket', 'ssl', 'subprocess', 'tempfile'}"
    )
    code += " & set(sys.modules)))"
    process = subprocess.run([sys.executable, "-IS", "-c", code], check=True, capture_output=True, text=True)
    own, heavy = process.stdout.split("\n")[:2]
    assert (set(own.split()) - {"__main__"}, heavy, process.stderr) == ({"harness"}, "", "")


@pytest.mark.parametrize(
    ("ending", "code", "told"),
    [
        ("return 0", 0, ""),
        ("return 7", 7, ""),
        ("raise SystemExit", 0, ""),
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('why')", 1, ""),
        ("raise KeyError('lost')", 1, "KeyError: 'lost'"),
        ("raise WorldFault('wrong')", 1, "WorldFault: wrong"),
        ("return 'no code'", 1, "WorldFault: program.py returned 'no code', which is no exit code"),
        ("return -15", -15, ""),
        ("return -2", -2, ""),
        ("return -9", -9, ""),
    ],
)
def test_a_program_ends_as_it_says(tmp_path, ending, code, told):
    ended = ran(tmp_path, ending)
    assert ended.code == code
    assert told in ended.error
    assert bool(ended.error) == bool(told)


def test_a_program_sees_its_environment_and_never_what_belongs_to_the_driver(tmp_path):
    body = "say(dict(world.env.variables), world.env.directory, world.name, argv[1:])\nreturn 0"
    env = {"A": "b", "WORLD_ACTOR_NAME": "claude/x", "WORLD_TIME_SCALE": "2", "WORLD_OTHER": "kept"}
    ended = ran(tmp_path, body, "x y", env=env)
    assert ended.said == [({"A": "b", "WORLD_OTHER": "kept"}, str(tmp_path), "claude/x", ["x y"])]


def test_without_a_name_a_program_is_called_as_it_was_started(tmp_path):
    assert ran(tmp_path, "say(world.name)\nreturn 0").said == ["program.py"]


def test_a_setting_that_says_nothing_ends_with_one_line(tmp_path):
    ended = ran(tmp_path, "say('never')\nreturn 0", env={"WORLD_TIME_SCALE": "fast"})
    assert (ended.code, ended.said) == (2, [])
    assert ended.error == "WORLD_TIME_SCALE must be a number above 0, not 'fast'\n"


def test_awaiting_what_is_no_port_ends_the_run_whatever_the_program_catches(tmp_path):
    body = """
    class Never:
        def __await__(self):
            yield self
    try:
        await Never()
    except BaseException:
        say("caught")
    finally:
        say("cleaned")
    return 0
    """
    ended = ran(tmp_path, body)
    assert (ended.code, ended.said) == (1, [])
    assert "program.py awaits __main__.program.<locals>.Never.__await__, which is no port's" in ended.error


def test_a_store_is_somebody_elses(tmp_path):
    ended = ran(tmp_path, "try:\n    await world.store.rows('t')\nexcept Exception:\n    pass\nreturn 0")
    assert ended.code == 1
    assert "WorldFault: a process of the blocking driver has no store (asked for t)" in ended.error


# --- time and tasks


def test_time_passes_at_the_pace_of_the_world(tmp_path):
    body = """
    import time
    began, real = world.clock.now(), time.monotonic()
    await world.clock.sleep(10)
    say(world.clock.now() - began >= 10, time.monotonic() - real < 9)
    await world.clock.sleep(-1)
    return 0
    """
    assert ran(tmp_path, body, env=SCALE).said == [(True, True)]


def test_all_processes_of_a_world_agree_what_time_it_is(tmp_path):
    body = """
    if argv[1:]:
        say(world.clock.now())
        return 0
    child = await world.processes.spawn([*ME, "child"], env={}, directory="/")
    before = world.clock.now()
    there = float(await child.read_line())
    await child.wait()
    say(before - 20 < there <= world.clock.now())
    say((await world.files.stat(__file__)).modified_seconds <= world.clock.now())
    return 0
    """
    assert ran(tmp_path, body, env=SCALE).said == [True, True]


def test_one_task_runs_at_a_time_and_goes_on_until_it_waits(tmp_path):
    body = """
    order = []
    async def work(name):
        for step in range(3):
            order.append((name, step, "in"))
            sum(range(20000))
            order.append((name, step, "out"))
            await world.clock.sleep(0.001)
        return name
    tasks = [world.tasks.start(work(name), name) for name in "abc"]
    say(order, [task.done for task in tasks])
    await world.tasks.wait(tasks)
    say([task.result() for task in tasks], [(task.name, task.done) for task in tasks])
    say(all(order[at][:2] == order[at + 1][:2] for at in range(0, len(order), 2)), len(order))
    return 0
    """
    assert ran(tmp_path, body).said == [
        ([], [False] * 3), (["a", "b", "c"], [("a", True), ("b", True), ("c", True)]), (True, 18)
    ]  # fmt: skip


def test_waiting_for_tasks_ends_with_the_first_or_with_the_time_and_leaves_the_rest_running(tmp_path):
    body = """
    async def work(seconds):
        await world.clock.sleep(seconds)
        return seconds
    tasks = [world.tasks.start(work(seconds), str(seconds)) for seconds in (1, 1000, 100000)]
    await world.tasks.wait(tasks, first=True)
    say([task.done for task in tasks])
    await world.tasks.wait(tasks, first=True)
    await world.tasks.wait([])
    await world.tasks.wait(tasks, timeout_seconds=0)
    await world.tasks.wait(tasks, timeout_seconds=2)
    say([task.done for task in tasks])
    try:
        tasks[2].result()
    except WorldFault as fault:
        say(str(fault))
    return 0
    """
    assert ran(tmp_path, body, env={"WORLD_TIME_SCALE": "200"}).said == [
        [True, False, False], [True, False, False], "100000 still runs"
    ]  # fmt: skip


def test_who_waits_for_something_that_never_comes_does_not_delay_the_end(tmp_path):
    body = """
    world.tasks.start(world.processes.read_line(), "reader")
    world.tasks.start(world.processes.next_signal(), "listener")
    world.tasks.start(world.clock.sleep(float("inf")), "sleeper")
    await world.files.lock("lock")
    world.tasks.start(world.files.lock("lock"), "locker")
    await world.clock.sleep(0.01)
    return 4
    """
    with started(script(tmp_path, body), env={}, cwd=tmp_path) as process:
        assert process.wait(PATIENCE_SECONDS) == 4


def test_what_a_task_raised_is_for_whoever_asks_and_told_at_the_end_when_nobody_does(tmp_path):
    body = """
    async def breaks(why):
        raise KeyError(why)
    tasks = [world.tasks.start(breaks(why), why) for why in ("asked", "lost")]
    await world.tasks.wait(tasks)
    try:
        tasks[0].result()
    except KeyError as error:
        say(str(error))
    return 5
    """
    ended = ran(tmp_path, body)
    assert (ended.code, ended.said) == (5, ["'asked'"])
    assert "KeyError: 'lost'" in ended.error
    assert "asked" not in ended.error.replace("asked')", "")


@pytest.mark.parametrize("what", ["None", "program", "(lambda: 0)"])
def test_only_a_coroutine_is_a_task(tmp_path, what):
    ended = ran(tmp_path, f"world.tasks.start({what}, 'work')\nreturn 0")
    assert ended.code == 1
    assert "WorldFault: work is no coroutine" in ended.error


def test_a_fault_of_the_harness_in_a_task_ends_the_run(tmp_path):
    body = """
    async def work():
        raise WorldFault("wrong")
    world.tasks.start(work(), "work")
    await world.clock.sleep(1000)
    return 0
    """
    ended = ran(tmp_path, body)
    assert (ended.code, "WorldFault: wrong" in ended.error) == (1, True)


def test_tokens_are_hex_and_never_the_same(tmp_path):
    said = ran(tmp_path, "say([world.entropy.token(n) for n in (0, 1, 7, 32, 32)])\nreturn 0").said[0]
    assert [len(token) for token in said] == [0, 1, 7, 32, 32]
    assert set("".join(said)) <= set("0123456789abcdef")
    assert said[3] != said[4]


# --- signals

ASKS = """
say("there")
say(await world.processes.next_signal(timeout_seconds=0))
say("asks")
say(await world.processes.next_signal())
say(await world.processes.next_signal(timeout_seconds=0.01))
return 6
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_never_asks_dies_of_a_signal(tmp_path, number):
    body = "say('there')\nawait world.processes.read_line()\nreturn 0"
    with started(script(tmp_path, body), env={}) as process:
        assert process.stdout.readline() == b"'there'\n"
        process.send_signal(number)
        assert process.wait(PATIENCE_SECONDS) == -number
        assert process.stderr.read() == b""


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "SIGINT"), (signal.SIGTERM, "SIGTERM")])
def test_a_program_that_asks_is_told_and_lives_on(tmp_path, number, name):
    with started(script(tmp_path, ASKS), env={}) as process:
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines == [b"'there'\n", b"None\n", b"'asks'\n"]
        process.send_signal(number)
        assert process.stdout.read().decode() == f"'{name}'\nNone\n"
        assert process.wait(PATIENCE_SECONDS) == 6


def test_a_signal_that_comes_between_two_questions_is_kept_and_a_task_may_ask(tmp_path):
    body = """
    async def listen():
        return [await world.processes.next_signal(0), await world.processes.next_signal()]
    task = world.tasks.start(listen(), "listener")
    await world.clock.sleep(0.01)
    os.kill(os.getpid(), 15)
    await world.tasks.wait([task])
    say(task.result())
    os.kill(os.getpid(), 2)
    await world.files.stat("/")
    say(await world.processes.next_signal(10))
    return 0
    """
    assert ran(tmp_path, body).said == [[None, "SIGTERM"], "SIGINT"]


def test_a_signal_reaches_a_program_that_is_busy(tmp_path):
    body = """
    await world.processes.next_signal(0)
    say("busy")
    while not os.path.exists("go"):
        pass
    say(await world.processes.next_signal(10))
    return 0
    """
    with started(script(tmp_path, body), env={}, cwd=tmp_path) as process:
        assert process.stdout.readline() == b"'busy'\n"
        process.send_signal(signal.SIGTERM)
        (tmp_path / "go").touch()
        assert process.stdout.read() == b"'SIGTERM'\n"


# --- events


def test_events_go_to_a_file_when_nobody_steers(tmp_path):
    body = "world.events.emit('seen', what=1, event='x', where=('a', b'b'))\nreturn 3"
    env = {"WORLD_EVENTS": "events.jsonl", "WORLD_TIME": "2.0,1.0,5.0"}
    assert ran(tmp_path, body, env=env).code == 3
    told = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [(each["actor"], each["event"], each["details"]) for each in told] == [
        ("program.py", "seen", {"what": 1, "event": "x", "where": ["a", "b'b'"]}),
        ("program.py", "ended", {"exit_code": 3}),
    ]
    assert all(each["at_seconds"] > 1e9 for each in told)


def test_without_a_file_events_go_nowhere(tmp_path):
    assert ran(tmp_path, "world.events.emit('seen')\nreturn 0") == (0, [], "")


def test_closed_standard_streams_are_never_taken_for_files_of_the_program(tmp_path):
    body = """
    await world.files.write("f", b"content")
    await world.processes.write_line("lost")
    await world.files.write("line", repr(await world.processes.read_line()).encode())
    return 0
    """
    shell = 'exec "$@" 0<&- 1>&- 2>&-'
    with started(["/bin/sh", "-c", shell, "sh", *script(tmp_path, body)], env={}, cwd=tmp_path) as process:
        assert process.wait(PATIENCE_SECONDS) == 0
    assert ((tmp_path / "f").read_bytes(), (tmp_path / "line").read_bytes()) == (b"content", b"None")


def test_run_gives_the_exit_code_back_and_leaves_signals_as_they_were():
    code = f"""
import sys, signal
sys.path.insert(0, {str(REPOSITORY)!r})
from harness.world.blocking import run
async def program(world, argv):
    await world.processes.next_signal(0)
    return -15
before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
assert run(program, ["x"]) == -15 and run(program, []) == -15
assert before == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
"""
    process = subprocess.run([sys.executable, "-IS", "-c", code], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")


def test_run_may_be_called_in_any_thread_where_no_signal_can_be_asked_for():
    code = f"""
import sys, threading
sys.path.insert(0, {str(REPOSITORY)!r})
from harness.world.blocking import run
async def program(world, argv):
    return 7 if await world.processes.next_signal(0.01) is None else 1
codes = []
thread = threading.Thread(target=lambda: codes.append(run(program, ["x"])))
thread.start()
thread.join()
assert codes == [7]
"""
    process = subprocess.run([sys.executable, "-IS", "-c", code], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")
