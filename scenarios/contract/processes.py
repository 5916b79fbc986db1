"""Children and being one: lines, ends, exit codes, signals, what an environment is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.world import Child, World
from scenarios.contract.cases import case, how, program

LOCALE = {"LC_ALL": "C.UTF-8"}
"""Without one an interpreter adds a variable of its own."""


async def spawned(world: World, at: str, *argv: str, env: Mapping[str, str] = LOCALE) -> Child:
    return await world.processes.spawn(argv, env=env, directory=at)


async def lines(child: Child) -> list[str]:
    """Its stdout to the end."""
    seen = []
    while (line := await child.read_line()) is not None:
        seen.append(line)
    return seen


@program
async def parrot(world: World, argv: Sequence[str]) -> int:
    """Says what it hears, and on stderr when it has heard all."""
    while (line := await world.processes.read_line()) is not None:
        await world.processes.write_line(line)
    await world.processes.write_error("heard all")
    return 7


@program
async def ends(world: World, argv: Sequence[str]) -> int:
    """Ends as it is told."""
    if argv[1] == "raise":
        raise ValueError("as told")
    if argv[1] == "exit":
        raise SystemExit(None if len(argv) < 3 else int(argv[2]) if argv[2].isdigit() else argv[2])
    return int(argv[1])


@program
async def tells(world: World, argv: Sequence[str]) -> int:
    """What it was given."""
    for word in (
        *argv,
        world.env.directory,
        *(f"{name}={value}" for name, value in sorted(world.env.variables.items())),
    ):
        await world.processes.write_line(word)
    world.events.emit("named", name=world.name)
    return 0


@program
async def sleeper(world: World, argv: Sequence[str]) -> int:
    """Does nothing for long."""
    await world.processes.write_line("ready")
    await world.clock.sleep(100_000)
    return 0


@program
async def listener(world: World, argv: Sequence[str]) -> int:
    """Takes so many signals."""
    await world.processes.next_signal(0)
    await world.processes.write_line("ready")
    for _ in range(int(argv[1])):
        await world.processes.write_line(f"got {await world.processes.next_signal()}")
    return 3


@program
async def deaf(world: World, argv: Sequence[str]) -> int:
    """Asks for signals once, and never again."""
    await world.processes.next_signal(0)
    await world.processes.write_line("ready")
    await world.clock.sleep(100_000)
    return 0


@program
async def keeper(world: World, argv: Sequence[str]) -> int:
    """Has a child of its own, which it tells of, and never ends by itself."""
    child = await world.processes.spawn(["survivor", argv[1]], env=LOCALE, directory=argv[1])
    await world.processes.write_line(str(await child.read_line()))
    await world.clock.sleep(100_000)
    return 0


@program
async def survivor(world: World, argv: Sequence[str]) -> int:
    """Lives on when its parent is dead, and writes down what that is like."""
    await world.processes.write_line("alive")
    seen = [str(await world.processes.read_line())]
    seen += [
        str(await how(world.processes.write_line("to nobody"))),
        str(await how(world.processes.write_error("to nobody"))),
    ]
    await world.files.write_atomic(f"{argv[1]}/seen", " ".join(seen).encode())
    return 0


@program
async def deserter(world: World, argv: Sequence[str]) -> int:
    """Ends while a child and a task of it still run."""
    child = await world.processes.spawn(["survivor", argv[1]], env=LOCALE, directory=argv[1])
    await child.read_line()

    async def never() -> None:
        try:
            await world.clock.sleep(100_000)
        finally:
            await world.files.write(f"{argv[1]}/cleanup", b"")

    world.tasks.start(never(), "never")
    await world.clock.sleep(1)
    return 0


@case("processes", [["one", "", "two", "lines", "ü"], None, "heard all", None, 7, 7, True])
async def lines_go_in_and_come_out_and_then_the_end(world: World, at: str) -> Any:
    child = await spawned(world, at, "parrot")
    for line in ("one", "", "two\nlines", "ü"):
        await child.write_line(line)
    await child.close_stdin()
    seen = [await lines(child), await child.read_line(), await child.read_error(), await child.read_error()]
    return [*seen, await child.wait(), await child.wait(0), child.pid > 0]


@case("processes", [300_000, 7], races=True)
async def a_line_may_be_longer_than_a_pipe_holds(world: World, at: str) -> Any:
    child = await spawned(world, at, "parrot")

    async def write() -> None:
        await child.write_line("x" * 300_000)
        await child.close_stdin()

    writing = world.tasks.start(write(), "write")
    line = await child.read_line()
    await world.tasks.wait([writing])
    return [len(line or ""), await child.wait()]


@case("processes", ["ReadTimeout", "ReadTimeout", None, None, "heard", 7])
async def a_silent_child_keeps_nobody_waiting_and_stays_usable(world: World, at: str) -> Any:
    child = await spawned(world, at, "parrot")
    seen = [await how(child.read_line(1)), await how(child.read_error(0)), await child.wait(1), await child.wait(0)]
    await child.write_line("heard")
    seen.append(await child.read_line(600))
    await child.close_stdin()
    return [*seen, await child.wait(600)]


@case("processes", [7, "EPIPE", "EPIPE", "done", "done"])
async def nobody_hears_what_comes_after_the_end(world: World, at: str) -> Any:
    child = await spawned(world, at, "parrot")
    await child.close_stdin()
    answers = [await child.wait(), await how(child.write_line("late"))]
    other = await spawned(world, at, "sleeper")
    await other.read_line()
    await other.close_stdin()
    answers += [await how(other.write_line("closed")), await how(other.close_stdin())]
    await other.signal("SIGKILL")
    await other.wait()
    return [*answers, await how(other.signal("SIGTERM"))]


CODES = {"0": 0, "3": 3, "255": 255, "exit": 0, "exit 4": 4, "exit word": 1, "raise": 1}


@case("processes", CODES)
async def a_program_ends_with_its_code(world: World, at: str) -> Any:
    children = {how_: await spawned(world, at, "ends", *how_.split(" ")) for how_ in CODES}
    return {how_: await child.wait() for how_, child in children.items()}


@case("processes", {"SIGKILL": [-9, None], "SIGTERM": [-15, None], "SIGINT": [-2, None]})
async def who_never_asks_for_signals_dies_of_them(world: World, at: str) -> Any:
    seen = {}
    for name in ("SIGKILL", "SIGTERM", "SIGINT"):
        child = await spawned(world, at, "sleeper")
        await child.read_line()
        await child.signal(name)
        seen[name] = [await child.wait(), await child.read_line()]
    return seen


@case("processes", [["got SIGTERM", "got SIGINT"], 3, None, -9])
async def who_asks_for_signals_gets_them(world: World, at: str) -> Any:
    child = await spawned(world, at, "listener", "2")
    await child.read_line()
    await child.signal("SIGTERM")
    first = await child.read_line()
    await child.signal("SIGINT")
    seen = [first, *await lines(child)]
    other = await spawned(world, at, "deaf")
    await other.read_line()
    await other.signal("SIGTERM")
    seen_anyway = await other.wait(1)
    await other.signal("SIGKILL")
    return [seen, await child.wait(), seen_anyway, await other.wait()]


@case("processes", [None, None])
async def no_signal_comes_in_vain(world: World, at: str) -> Any:
    return [await world.processes.next_signal(0), await world.processes.next_signal(1)]


@case("processes", [["tells", "a b", "", "HERE", "A=b=c", "EMPTY=", "LC_ALL=C.UTF-8"], 0])
async def a_child_has_the_argv_environment_and_directory_that_it_was_given(world: World, at: str) -> Any:
    env = {"A": "b=c", "EMPTY": "", **LOCALE}
    child = await spawned(world, at, "tells", "a b", "", env=env)
    return [["HERE" if line == at else line for line in await lines(child)], await child.wait()]


@case("processes", ["tells", "tells", "linear"])
async def a_child_is_named_by_its_program_or_its_environment(world: World, at: str) -> Any:
    first, second = await spawned(world, at, "tells"), await spawned(world, at, "tells")
    third = await spawned(world, at, "tells", env={"WORLD_ACTOR_NAME": "linear", **LOCALE})
    named = [(await lines(child))[0] for child in (first, second)]
    await lines(third)
    return [*named, "linear" if await third.wait() == 0 else "failed"]


@case("processes", ["TypeError", "TypeError", "TypeError"])
async def only_a_text_is_a_line(world: World, at: str) -> Any:
    child = await spawned(world, at, "parrot")
    line: Any = 5
    own = world.processes
    seen = [await how(write(line)) for write in (child.write_line, own.write_line, own.write_error)]
    await child.close_stdin()
    await child.wait()
    return seen


@case("processes", ["ENOENT", "ENOENT", "ENOENT", "ENOENT", "ENOTDIR"])
async def what_cannot_be_started_says_why(world: World, at: str) -> Any:
    await world.files.write(f"{at}/file", b"")
    starts: list[tuple[list[str], str]] = [
        (["missing"], at), ([], at), ([""], at), (["tells"], f"{at}/missing"), (["tells"], f"{at}/file"),
    ]  # fmt: skip
    return [await how(world.processes.spawn(argv, env={}, directory=place)) for argv, place in starts]


UNFIT: list[tuple[list[str], dict[str, str]]] = [
    (["tells", "a\0b"], {}),
    (["te\0lls"], {}),
    (["tells", "\ud800"], {}),
    (["tells"], {"A": "a\0b"}),
    (["tells"], {"A\0": "b"}),
    (["tells"], {"": "b"}),
    (["tells"], {"A=B": "c"}),
    (["tells"], {"A": "\udfff"}),
]


@case("processes", ["EINVAL"] * len(UNFIT))
async def what_no_process_can_be_given_is_refused(world: World, at: str) -> Any:
    return [await how(world.processes.spawn(argv, env=env, directory=at)) for argv, env in UNFIT]


@case("processes", "ENOENT")
async def a_directory_that_no_path_can_name_is_not_there(world: World, at: str) -> Any:
    return await how(world.processes.spawn(["tells"], env={}, directory=f"{at}/a\0b"))


@case("processes", [-9, "None EPIPE EPIPE"])
async def a_child_of_the_dead_lives_on_with_broken_pipes(world: World, at: str) -> Any:
    child = await spawned(world, at, "keeper", at)
    await child.read_line()
    await child.signal("SIGKILL")
    return [await child.wait(), await written(world, f"{at}/seen")]


@case("processes", [0, "None EPIPE EPIPE", "nothing"])
async def who_ends_takes_tasks_along_and_leaves_children(world: World, at: str) -> Any:
    child = await spawned(world, at, "deserter", at)
    code, seen = await child.wait(), await written(world, f"{at}/seen")
    return [code, seen, "nothing" if await world.files.stat(f"{at}/cleanup") is None else "an effect of the dead"]


async def written(world: World, path: str) -> str:
    """A file that somebody is about to write."""
    for _ in range(2_000):
        try:
            return (await world.files.read(path)).decode()
        except FileNotFoundError:
            await world.clock.sleep(0.5)
    return "never written"


@case("own streams", [["one", "two", "", "last"], None, None])
async def an_actor_reads_what_it_was_given_and_then_the_end(world: World, at: str) -> Any:
    seen = [await world.processes.read_line() for _ in range(4)]
    await world.processes.write_line("to stdout")
    await world.processes.write_error("to stderr")
    return [seen, await world.processes.read_line(), await world.processes.read_line(1)]
