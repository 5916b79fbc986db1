"""The live driver where the contract does not reach: in a program of somebody else, unsteered, and at its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness.world import World, WorldFault
from harness.world.live import live_world, run
from harness.world.live.store import committed, put_committed
from harness.world.model import Event, FaultPlan, Hold
from harness.world.outside.controller import Controller
from harness.world.outside.setting import CONTROL_VARIABLE, EVENTS_VARIABLE, NAME_VARIABLE, Pace, Setting
from harness.world.ports import Program

REPOSITORY = Path(__file__).parents[2]
SCALE = 50.0
Body = Callable[[World], Awaitable[Any]]


def program(body: Body) -> Program:
    """A program that runs a body, and ends with what it returns if that is a number."""

    async def runs(world: World, argv: Sequence[str]) -> int:
        result = await body(world)
        return result if isinstance(result, int) else 0

    return runs


async def nothing(world: World) -> None:
    """A body that does nothing."""


def inside(body: Body, *arguments: Any, **options: Any) -> Any:
    """What a body answers in a live world of a program that has an event loop."""

    async def entered() -> Any:
        async with live_world(*arguments, **options) as world:
            return await body(world)

    return anyio.run(entered)


def as_process(script: str, *arguments: str, env: dict[str, str] | None = None, **options: Any) -> Any:
    """Run a script that has `run`, `Setting` and `program` as a process of its own."""
    begin = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\n"
    begin += "from harness.world.live import run\nfrom harness.world.outside.setting import *\n"
    return subprocess.run(
        [sys.executable, "-c", begin + script, *arguments],
        env={"LC_ALL": "C.UTF-8"} | (env or {}),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        **options,
    )


# --- in a program of somebody else


def test_a_world_is_there_for_as_long_as_it_is_entered(tmp_path):
    async def body(world: World) -> Any:
        await world.files.write("f", b"content")
        return world.name, world.env.directory, dict(world.env.variables), await world.files.read(f"{tmp_path}/f")

    setting = Setting("web")
    answer = inside(body, setting, variables={"A": "b"}, directory=str(tmp_path))
    assert answer == ("web", str(tmp_path), {"A": "b"}, b"content")


def test_what_the_body_raises_comes_out_as_it_is():
    async def body(world: World) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        inside(body)


def test_tasks_that_still_run_at_the_exit_never_go_on_and_have_no_effect(tmp_path):
    reached: list[str] = []

    async def never(world: World) -> None:
        try:
            await world.clock.sleep(3_600)
        finally:
            reached.append("finally")
            await world.files.write(f"{tmp_path}/effect", b"")
            reached.append("written")

    async def body(world: World) -> None:
        world.tasks.start(never(world), "never")
        world.tasks.start(never(world), "not even begun")
        await world.clock.sleep(0.01)
        world.tasks.start(never(world), "not begun")

    inside(body)
    assert set(reached) == {"finally"}
    assert list(tmp_path.iterdir()) == []


def test_a_world_that_was_left_has_no_effect(tmp_path):
    kept: list[World] = []

    async def body(world: World) -> None:
        kept.append(world)

    async def after() -> None:
        async with live_world() as world:
            await body(world)
        with pytest.raises(GeneratorExit):
            await kept[0].files.write(f"{tmp_path}/effect", b"")
        kept[0].events.emit("after the end")

    anyio.run(after)
    assert list(tmp_path.iterdir()) == []


def test_what_a_task_raises_is_told_at_the_end_unless_somebody_asked(capsys):
    async def fails(what: str) -> None:
        raise ValueError(what)

    async def body(world: World) -> str:
        tasks = [world.tasks.start(fails(what), what) for what in ("asked for", "lost")]
        await world.tasks.wait(tasks)
        with pytest.raises(ValueError, match="asked for"):
            tasks[0].result()
        return "goes on"

    assert inside(body) == "goes on"
    told = capsys.readouterr().err
    assert "task lost of program" in told
    assert "ValueError: lost" in told
    assert "ValueError: asked for" not in told


def test_only_a_coroutine_is_a_task_and_only_an_own_one_is_waited_for(capsys):
    async def body(world: World) -> None:
        with pytest.raises(WorldFault, match="is no coroutine"):
            world.tasks.start(print, "print")  # type: ignore[arg-type]
        with pytest.raises(WorldFault, match="another driver"):
            await world.tasks.wait([object()])  # type: ignore[list-item]

    inside(body)
    assert capsys.readouterr().err.count("WorldFault") == 2


def test_children_that_still_run_at_the_exit_live_on_with_their_pipes_closed(tmp_path):
    async def body(world: World) -> int:
        argv = ["sh", "-c", "echo ready; read line; echo over > over"]
        child = await world.processes.spawn(argv, env=dict(os.environ), directory=str(tmp_path))
        assert await child.read_line() == "ready"
        return child.pid

    pid = inside(body)
    for thread in threading.enumerate():
        if thread.name == f"child {pid}":
            thread.join(timeout=20)
    assert (tmp_path / "over").read_text() == "over\n"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_signals_are_for_the_main_thread_alone():
    async def body(world: World) -> None:
        with pytest.raises(WorldFault, match="main thread"):
            await world.processes.next_signal(0)

    thread = threading.Thread(target=inside, args=(body,))
    thread.start()
    thread.join()


# --- as this process


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (3, 3), (None, 0), ("word", 1)])
def test_a_program_ends_with_its_code(code, expected):
    async def exits(world: World) -> None:
        raise SystemExit(code)

    assert run(program(exits), []) == expected


def test_what_a_program_raises_is_told_and_ends_it_with_one(capsys):
    async def raises(world: World) -> None:
        raise ValueError("as told")

    async def word(world: World, argv: Sequence[str]) -> Any:
        return "word"

    assert (run(program(raises), []), run(word, [])) == (1, 1)
    told = capsys.readouterr().err
    assert "ValueError: as told" in told
    assert "'word', which is no exit code" in told


def test_who_breaks_the_rules_fails_whatever_it_catches(capsys):
    async def misuses(world: World) -> int:
        try:
            await world.store.begin()
        except WorldFault:
            return 0
        return 0

    assert run(program(misuses), []) == 1
    assert "this world has no store" in capsys.readouterr().err


def test_signal_handlers_are_as_before_afterwards():
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    seen: list[Any] = []

    async def body(world: World) -> None:
        seen.append(signal.getsignal(signal.SIGTERM))
        await world.processes.next_signal(0)

    run(program(body), [])
    run(program(body), [], takes_signals=False)
    assert seen == [signal.SIG_DFL, handlers[signal.SIGTERM]]
    assert {number: signal.getsignal(number) for number in handlers} == handlers


def test_a_program_whose_streams_are_closed_has_silent_ones():
    script = """
import os
async def program(world, argv):
    descriptor = os.open("/dev/null", os.O_RDONLY)
    await world.processes.write_line("to nobody")
    return 5 if await world.processes.read_line() is None and descriptor > 2 else 6
os.close(0); os.close(1)
os._exit(run(program, []))
"""
    assert as_process(script).returncode == 5


# --- unsteered


def test_events_go_to_a_file_where_nobody_steers(tmp_path):
    async def body(world: World) -> int:
        world.events.emit("told", body=b"bytes", number=3)
        await world.processes.spawn(["true"], env=dict(os.environ), directory="/")
        return 4

    pace = Pace(SCALE, 1.0, 1_000.0)
    assert run(program(body), [], Setting("me", events="events.jsonl", pace=pace), directory=str(tmp_path)) == 4
    told = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [(event["actor"], event["event"], event["details"]) for event in told] == [
        ("me", "told", {"body": "b'bytes'", "number": 3}),
        ("me", "spawn", {"argv": ["true"], "child": "me/true"}),
        ("me", "ended", {"exit_code": 4}),
    ]
    assert all(event["at_seconds"] > 1_000 for event in told)


def test_a_child_is_told_nothing_of_ours_where_there_is_nothing_to_tell(tmp_path):
    async def variables(world: World) -> list[str]:
        child = await world.processes.spawn(["env"], env={"PATH": os.defpath, "A": "b"}, directory="/")
        seen = []
        while (line := await child.read_line()) is not None:
            seen.append(line.partition("=")[0])
        return sorted(seen)

    assert inside(variables) == ["A", "PATH"]
    assert inside(variables, Setting("me", events=str(tmp_path / "e"))) == ["A", "PATH", NAME_VARIABLE, EVENTS_VARIABLE]


def test_no_variable_steers_a_program_that_was_not_told_to_be_steered(tmp_path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "control"))
        listening.listen()
        listening.settimeout(0)
        script = """
async def program(world, argv):
    world.events.emit("told")
    child = await world.processes.spawn(["true"], env={}, directory="/")
    return 10 + await child.wait() + sum(name.startswith("WORLD_") for name in world.env.variables)
sys.exit(run(program, []))
"""
        own = {CONTROL_VARIABLE: str(tmp_path / "control"), EVENTS_VARIABLE: str(tmp_path / "events")}
        assert as_process(script, env=own).returncode == 10
        with pytest.raises(BlockingIOError):
            listening.accept()
    assert not (tmp_path / "events").exists()


def test_a_file_that_somebody_holds_keeps_one_task_waiting_and_not_the_others(tmp_path):
    async def body(world: World) -> list[str]:
        order: list[str] = []

        async def waits() -> None:
            await world.files.lock(f"{tmp_path}/lock")
            order.append("locked")

        held = await world.files.lock(f"{tmp_path}/lock")
        assert held is not None
        task = world.tasks.start(waits(), "waits")
        await world.clock.sleep(0.02)
        order.append("another")
        await held.release()
        await world.tasks.wait([task])
        return order

    assert inside(body) == ["another", "locked"]


# --- steered


def steered(tmp_path: Path, body: Body, *holds: Hold) -> tuple[int, list[Event]]:
    """A program that a controller steers, in a process of this test's; its exit code and what happened."""
    path = str(tmp_path / "control")
    pace = Pace(SCALE, 0.0, 0.0)
    with Controller(
        path, launcher=lambda *_: None, endpoints={}, faults=FaultPlan(), holds=holds, pace=pace
    ) as controller:
        code = run(program(body), [], Setting("me", control=path, pace=pace), directory=str(tmp_path))
    return code, controller.events


def test_a_hold_keeps_one_task_at_its_point_and_not_the_others(tmp_path):
    async def body(world: World) -> None:
        async def held() -> None:
            await world.files.write("held", b"")
            world.events.emit("written")

        task = world.tasks.start(held(), "held")
        await world.files.write("other", b"")
        world.events.emit("let go")
        await world.tasks.wait([task])

    code, events = steered(tmp_path, body, Hold("me", "write */held", lambda event: event.name == "let go"))
    assert (code, [event.name for event in events]) == (0, ["let go", "written", "ended"])


def test_what_is_told_has_arrived_before_the_next_port_call_goes_on(tmp_path):
    async def body(world: World) -> None:
        for number in range(200):
            world.events.emit("told", number=number, padding="x" * 5_000)
        await world.files.write("f", b"")

    happened = steered(tmp_path, body, Hold("me", "write *", lambda event: event.details.get("number") == 199))
    assert [event.details.get("number") for event in happened[1]] == [*range(200), None]


def test_who_is_not_steered_any_more_ends_with_one(tmp_path, capsys):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "control"))
        listening.listen()

        def leave() -> None:
            accepted, _ = listening.accept()
            accepted.recv(1)
            accepted.close()

        thread = threading.Thread(target=leave)
        thread.start()

        async def body(world: World) -> None:
            thread.join()
            listening.close()
            await world.files.stat("/")

        assert run(program(body), [], Setting("me", control=str(tmp_path / "control"))) == 1
    assert capsys.readouterr().err == "me: whoever steers has gone\n"


def test_nobody_at_the_control_is_told_at_once(tmp_path, capsys):
    with pytest.raises(WorldFault, match="nobody steers at"):
        inside(nothing, Setting("me", control=str(tmp_path / "nothing")))
    assert run(program(nothing), [], Setting("me", control="nothing"), directory=str(tmp_path)) == 2
    assert "nobody steers at" in capsys.readouterr().err


# --- rows, for whoever prepares or judges


def test_rows_are_put_and_read_without_a_world(tmp_path):
    path = str(tmp_path / "rows.db")
    assert committed(path, "table", "key") is None
    put_committed(path, {("table", "key"): {"n": 1}, ("table", "other"): {}})

    async def body(world: World) -> Any:
        transaction = await world.store.begin()
        await transaction.put("table", "key", {"n": 2})
        await transaction.delete("table", "other")
        before = committed(path, "table", "key")
        await transaction.commit()
        return before, committed(path, "table", "key"), committed(path, "table", "other")

    assert inside(body, store=path) == ({"n": 1}, {"n": 2}, None)


def test_values_that_are_no_json_are_refused(tmp_path):
    async def body(world: World) -> None:
        transaction = await world.store.begin()
        with pytest.raises(TypeError):
            await transaction.put("table", "key", {"x": {1, 2}})
        await transaction.commit()

    inside(body, store=str(tmp_path / "rows.db"))
    assert committed(str(tmp_path / "rows.db"), "table", "key") is None


def test_two_tasks_of_one_actor_exclude_each_other_from_a_row(tmp_path):
    async def count(world: World) -> None:
        for _ in range(10):
            transaction = await world.store.begin()
            row = await transaction.get("table", "n", lock=True)
            await world.clock.sleep(0)
            await transaction.put("table", "n", {"n": row.values["n"] + 1 if row else 1})
            await transaction.commit()

    async def body(world: World) -> None:
        await world.tasks.wait([world.tasks.start(count(world), str(number)) for number in range(4)])

    inside(body, store=str(tmp_path / "rows.db"))
    assert committed(str(tmp_path / "rows.db"), "table", "n") == {"n": 40}
