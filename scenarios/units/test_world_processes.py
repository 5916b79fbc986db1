"""Processes: children and their pipes, signals, and what is left when one dies."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from harness.world import ReadTimeout, World, WorldFault
from harness.world.model import Fault, Outcome, Seeded, Simulation
from scenarios.worlds import program, ran

SIGNALS = {"SIGINT": -2, "SIGTERM": -15, "SIGKILL": -9}


def launching(**programs: Any) -> Any:
    """A launcher that knows these commands."""

    def launch(argv: Sequence[str], env: Mapping[str, str], directory: str) -> Any:
        body = programs.get(argv[0])
        return None if body is None else body

    return launch


async def echo(world: World, argv: Sequence[str]) -> int:
    """Answers each line, and ends with its input."""
    while (line := await world.processes.read_line()) is not None:
        await world.processes.write_line(f"echo {line}")
    await world.processes.write_error("bye")
    return 7


async def sleeper(world: World, argv: Sequence[str]) -> int:
    """Sleeps for an hour; nothing after that is reached when it is killed."""
    await world.files.write_atomic("/temporary", b"x")
    await world.files.lock("/lock")
    transaction = await world.store.begin()
    await transaction.put("rows", "a", {"by": "sleeper"})
    try:
        await world.clock.sleep(3_600)
        world.events.emit("woke")
    finally:
        world.events.emit("finally")
        await world.files.write("/finally", b"")
    return 0


async def spawned(world: World, command: str, **env: str) -> Any:
    return await world.processes.spawn([command], env=env, directory="/")


def run_parent(body: Any, **options: Any) -> Any:
    """A parent's result; it must not raise."""
    finished = ran(bodies={"parent": body}, launcher=launching(echo=echo, sleeper=sleeper, handler=handler), **options)
    error = finished.ended("parent").error
    if error is not None:
        raise error
    return finished


def test_lines_go_in_and_out_and_the_end_of_the_input_ends_it():
    async def body(world: World) -> Any:
        child = await spawned(world, "echo")
        await child.write_line("one")
        await child.write_line("two\nthree")
        seen = [await child.read_line() for _ in range(3)]
        still = await child.wait(0)
        await child.close_stdin()
        return (
            seen,
            still,
            await child.wait(),
            await child.read_line(),
            await child.read_error(),
            await child.read_error(),
        )

    assert run_parent(body).results["parent"] == (["echo one", "echo two", "echo three"], None, 7, None, "bye", None)


def test_what_was_written_before_the_end_can_still_be_read():
    async def body(world: World) -> Any:
        child = await spawned(world, "echo")
        await child.write_line("one")
        await child.close_stdin()
        await child.wait()
        return await child.read_line(), await child.read_line()

    assert run_parent(body).results["parent"] == ("echo one", None)


def test_nobody_reads_what_is_written_to_the_dead_or_after_closing():
    async def body(world: World) -> Any:
        child = await spawned(world, "echo")
        await child.close_stdin()
        with pytest.raises(BrokenPipeError):
            await child.write_line("closed")
        child = await spawned(world, "sleeper")
        await child.signal("SIGKILL")
        with pytest.raises(BrokenPipeError):
            await child.write_line("dead")
        return await child.read_line(), await child.read_error()

    assert run_parent(body).results["parent"] == (None, None)


@pytest.mark.parametrize("read", ["read_line", "read_error"])
def test_a_read_timeout_leaves_a_pipe_usable(read):
    async def late(world: World, argv: Sequence[str]) -> int:
        await world.clock.sleep(10)
        await world.processes.write_line("late")
        await world.processes.write_error("late")
        return 0

    async def body(world: World) -> Any:
        child = await spawned(world, "late")
        with pytest.raises(ReadTimeout):
            await getattr(child, read)(3)
        return await getattr(child, read)(), world.clock.now()

    finished = ran(bodies={"parent": body}, launcher=launching(late=late), start_seconds=0)
    assert finished.results["parent"] == ("late", 10)


def test_waiting_for_a_child_with_a_timeout_leaves_it_running():
    async def body(world: World) -> Any:
        child = await spawned(world, "sleeper")
        return await child.wait(10), await child.wait(), await child.wait(), world.clock.now()

    assert run_parent(body, start_seconds=0).results["parent"] == (None, 0, 0, 3_600)


async def handler(world: World, argv: Sequence[str]) -> int:
    """Asks for signals: the first is told, the second ends it."""
    await world.processes.write_line(f"first {await world.processes.next_signal()}")
    await world.processes.write_line(f"second {await world.processes.next_signal(60)}")
    return 3


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_ends_who_never_asks_for_signals(name):
    async def body(world: World) -> Any:
        child = await spawned(world, "sleeper")
        await world.clock.sleep(1)
        await child.signal(name)
        code = await child.wait()
        await child.signal(name)  # nothing happens to the dead
        return code

    finished = run_parent(body)
    assert finished.results["parent"] == SIGNALS[name]
    assert [event.details for event in finished.outcome.events if event.name == "killed"] == [{"signal": name}]
    assert finished.outcome.seconds == 1  # what the dead waited for is no time any more


def test_who_asks_for_signals_is_told_and_decides_what_to_do():
    async def body(world: World) -> Any:
        child = await spawned(world, "handler")
        await world.clock.sleep(1)
        await child.signal("SIGTERM")
        await child.signal("SIGINT")
        return await child.read_line(), await child.read_line(), await child.wait()

    assert run_parent(body).results["parent"] == ("first SIGTERM", "second SIGINT", 3)


def test_no_signal_in_time_is_none():
    async def body(world: World) -> Any:
        child = await spawned(world, "handler")
        await world.clock.sleep(1)
        await child.signal("SIGTERM")
        return await child.read_line(), await child.read_line(), world.clock.now()

    assert run_parent(body, start_seconds=0).results["parent"] == ("first SIGTERM", "second None", 61)


def test_sigkill_cannot_be_handled():
    async def body(world: World) -> Any:
        child = await spawned(world, "handler")
        await world.clock.sleep(1)
        await child.signal("SIGKILL")
        return await child.wait()

    assert run_parent(body).results["parent"] == -9


def test_a_signal_of_another_name_is_a_fault_of_the_harness():
    async def body(world: World) -> None:
        await (await spawned(world, "sleeper")).signal("SIGNOTHING")

    with pytest.raises(WorldFault, match="no signal is called 'SIGNOTHING'"):
        run_parent(body)


def test_the_killed_are_never_resumed_and_what_they_held_is_free():
    async def body(world: World) -> Any:
        child = await spawned(world, "sleeper")
        await world.clock.sleep(1)
        await child.signal("SIGKILL")
        assert await world.files.lock("/lock", timeout_seconds=0)
        transaction = await world.store.begin()
        row = await transaction.get("rows", "a", lock=True)
        await transaction.rollback()
        await world.clock.sleep(10_000)
        return row, await world.files.names("/")

    finished = run_parent(body)
    # The lock's file and what was written stay; the transaction is rolled back; `finally` had no effect.
    assert finished.results["parent"] == (None, ("lock", "temporary"))
    assert finished.events("woke", "finally") == []


@pytest.mark.parametrize("seed", range(10))
def test_tasks_that_are_ready_when_their_program_ends_do_nothing_any_more(seed):
    async def body(world: World) -> None:
        async def appends() -> None:
            while True:
                await world.files.append("/f", b"x")
                world.events.emit("appended")

        await world.files.append("/f", b"")
        world.tasks.start(appends(), "appends")
        for _ in range(3):
            await world.files.stat("/")

    finished = ran(Seeded(seed, run=0.5), bodies={"a": body})
    assert len(finished.simulation.tree.read("/f", 0)) == len(finished.events("appended"))


def test_who_is_killed_while_running_has_no_effect_after_that():
    simulation = Simulation()
    reached: list[str] = []

    async def body(world: World, argv: Sequence[str]) -> int:
        simulation.kill(actor)
        world.events.emit("after")
        reached.append("after")
        await world.files.write("/f", b"")
        reached.append("later")
        return 0

    actor = simulation.start("a", body)
    outcome = simulation.run()
    assert (outcome.verdict, actor.exit_code, reached) == ("done", -9, ["after"])
    assert [event.name for event in outcome.events] == ["killed", "ended"]
    assert simulation.tree.names("/", 0) == ()
    assert simulation.ended(actor).error is None


def test_what_is_left_of_a_run_that_ends_has_no_effect_either():
    async def stuck(world: World) -> None:
        async def stubborn() -> None:
            while True:
                try:
                    await world.clock.sleep(1)
                except (ValueError, WorldFault):
                    continue

        try:
            await world.files.lock("/lock")
            await world.files.lock("/lock")
        finally:
            world.events.emit("finally")
            world.tasks.start(stubborn(), "stubborn")
            await world.files.write("/finally", b"")

    finished = ran(bodies={"a": stuck})
    assert finished.outcome.verdict == "deadlock"
    assert finished.events("finally") == []
    assert finished.simulation.tree.names("/", 0) == ("lock",)


def test_what_a_finally_block_raises_at_the_end_of_a_run_is_nobodys_outcome():
    async def stuck(world: World) -> None:
        try:
            await world.files.lock("/lock")
            await world.files.lock("/lock")
        finally:
            raise ValueError("too late")

    assert ran(bodies={"a": stuck}).outcome.verdict == "deadlock"


def test_the_death_of_a_parent_ends_the_input_of_its_children_and_breaks_their_output():
    async def orphan(world: World, argv: Sequence[str]) -> int:
        assert await world.processes.read_line() == "hello"
        world.events.emit("read", line=await world.processes.read_line())
        for write in (world.processes.write_line, world.processes.write_error):
            with pytest.raises(BrokenPipeError):
                await write("to nobody")
        world.events.emit("lives on")
        return 0

    async def parent(world: World) -> None:
        child = await spawned(world, "orphan")
        await child.write_line("hello")
        await world.clock.sleep(5)
        await world.files.stat("/")

    finished = ran(bodies={"parent": parent}, launcher=launching(orphan=orphan), faults=[Fault("kill", label="stat /")])
    assert finished.events("read", "lives on", "ended") == [
        ("parent", "ended"), ("parent/orphan", "read"), ("parent/orphan", "lives on"), ("parent/orphan", "ended"),
    ]  # fmt: skip
    assert finished.ended("parent").exit_code == -9


def test_an_actor_without_a_parent_reads_what_it_was_given_and_then_the_end():
    async def body(world: World, argv: Sequence[str]) -> int:
        seen = [await world.processes.read_line() for _ in range(3)]
        world.events.emit("read", lines=seen)
        await world.processes.write_line("out")
        return 0

    simulation = Simulation()
    actor = simulation.start("a", body, stdin=["one", "two"])
    outcome = simulation.run()
    assert outcome.events[0].details == {"lines": ["one", "two", None]}
    assert list(actor.stdout.lines) == ["out"]


def spawn_error(argv: Sequence[str], directory: str = "/", **options: Any) -> int:
    """The errno of a spawn; 0 when it succeeds."""

    async def body(world: World) -> int:
        try:
            await world.processes.spawn(argv, env={}, directory=directory)
        except OSError as error:
            return error.errno or -1
        return 0

    options.setdefault("launcher", launching(echo=echo))
    result: int = ran(bodies={"parent": body}, **options).results["parent"]
    return result


def not_executable(argv: Sequence[str], env: Mapping[str, str], directory: str) -> Any:
    raise PermissionError(errno.EACCES, "Permission denied", argv[0])


@pytest.mark.parametrize(
    ("argv", "options", "error"),
    [
        (["echo"], {}, 0),
        (["missing"], {}, errno.ENOENT),
        ([], {}, errno.ENOENT),
        (["echo"], {"launcher": None}, errno.ENOENT),
        (["echo"], {"launcher": not_executable}, errno.EACCES),
        (["echo"], {"faults": [Fault("enoent")]}, errno.ENOENT),
        (["echo"], {"faults": [Fault("eacces-exec")]}, errno.EACCES),
        (["echo"], {"faults": [Fault("enoent", label="spawn other")]}, 0),
        (["echo"], {"directory": "/missing"}, errno.ENOENT),
    ],
)
def test_a_spawn_fails_as_the_operating_system_says(argv, options, error):
    assert spawn_error(argv, **options) == error


@pytest.mark.parametrize(
    "argv",
    [
        ["/bin/sh", "-c", "touch {file}"],
        ["sh", "-c", "touch {file}"],
        ["touch", "{file}"],
        ["$(touch {file})"],
        ["`touch {file}`"],
        ["echo", ";", "touch", "{file}"],
        ["npx", "-y", "x; touch {file}"],
    ],
)
def test_the_launcher_is_the_only_way_to_run_anything(argv, tmp_path):
    file = tmp_path / "touched"
    command = [part.format(file=file) for part in argv]
    assert spawn_error(command) == (0 if argv[0] == "echo" else errno.ENOENT)
    assert not file.exists()


def test_a_launcher_that_raises_anything_else_is_a_fault_of_the_harness():
    def broken(argv: Sequence[str], env: Mapping[str, str], directory: str) -> Any:
        raise KeyError("npx")

    with pytest.raises(WorldFault, match=r"the launcher raised KeyError\('npx'\)"):
        spawn_error(["npx"], launcher=broken)


def test_a_child_has_a_name_of_its_own_its_environment_and_its_argv():
    async def tells(world: World, argv: Sequence[str]) -> int:
        world.events.emit("is", name=world.name, argv=list(argv), env=dict(world.env.variables), at=world.env.directory)
        return 0

    async def body(world: World) -> None:
        for number in range(2):
            await world.processes.spawn(["npx", str(number)], env={"A": "b"}, directory="/")
        await world.processes.spawn(["npx"], env={"WORLD_ACTOR_NAME": "linear"}, directory="/")
        await world.clock.sleep(1)

    outcome: Outcome = ran(bodies={"claude": body}, launcher=launching(npx=tells)).outcome
    told = [event.details for event in outcome.events if event.name == "is"]
    assert [(entry["name"], entry["argv"]) for entry in told] == [
        ("claude/npx", ["npx", "0"]), ("claude/npx#2", ["npx", "1"]), ("claude/linear", ["npx"])
    ]  # fmt: skip
    assert told[0]["env"] == {"A": "b"}


@pytest.mark.parametrize(("given", "code"), [(3, 3), (None, 0), ("usage: x", 1)])
def test_a_program_that_exits_ends_with_its_code(given, code):
    async def body(world: World, argv: Sequence[str]) -> int:
        raise SystemExit(given)

    simulation = Simulation()
    actor = simulation.start("a", body)
    assert simulation.run().verdict == "done"
    assert (actor.exit_code, simulation.ended(actor).error) == (code, None)


def test_an_environment_cannot_be_changed_from_inside():
    async def body(world: World) -> None:
        world.env.variables["X"] = "y"  # type: ignore[index]

    finished = ran(bodies={"a": body})
    assert isinstance(finished.ended("a").error, TypeError)


def test_an_actor_has_an_exit_code_when_it_has_ended():
    simulation = Simulation()
    actor = simulation.start("a", program(lambda world: world.clock.sleep(1)))
    assert (simulation.ended(actor).exit_code, actor.alive) == (None, True)
    simulation.run()
    assert simulation.ended(actor).exit_code == 0
