"""Time, tasks, and what an actor is told of itself."""

from __future__ import annotations

from math import inf
from typing import Any

from harness.world import World, WorldFault
from scenarios.contract.cases import case


@case("tasks", [True, True, True])
async def a_sleep_is_never_too_short(world: World, at: str) -> Any:
    seen = []
    for seconds in (0.0, 0.5, 3.0):
        before = world.clock.now()
        await world.clock.sleep(seconds)
        seen.append(world.clock.now() >= before + seconds)
    return seen


@case("tasks", [["never", "soon", "later"], [False], [False, True], 1, [True, True], 2])
async def waiting_for_a_time_for_the_first_and_for_all(world: World, at: str) -> Any:
    async def work(seconds: float, answer: int) -> int:
        await world.clock.sleep(seconds)
        return answer

    never = world.tasks.start(work(100_000, 0), "never")
    soon, later = world.tasks.start(work(2, 1), "soon"), world.tasks.start(work(6, 2), "later")
    seen: list[Any] = [[never.name, soon.name, later.name]]
    await world.tasks.wait([never], timeout_seconds=1)
    seen.append([never.done])
    await world.tasks.wait([never, soon], first=True)
    seen += [[never.done, soon.done], soon.result()]
    await world.tasks.wait([soon, later])
    return [*seen, [soon.done, later.done], later.result()]


@case("tasks", "done")
async def waiting_for_nothing_or_for_what_is_done_takes_no_time(world: World, at: str) -> Any:
    async def nothing() -> None:
        return

    task = world.tasks.start(nothing(), "nothing")
    await world.tasks.wait([])
    await world.tasks.wait([], first=True)
    await world.tasks.wait([task])
    await world.tasks.wait([task], first=True)
    return "done" if task.done and task.result() is None else "not done"


@case("tasks", ["ValueError", "ValueError", "it still runs"])
async def what_a_task_raises_is_for_whoever_asks(world: World, at: str) -> Any:
    async def fails() -> None:
        await world.clock.sleep(1)
        raise ValueError("of a task")

    async def never() -> None:
        await world.clock.sleep(100_000)

    task, other = world.tasks.start(fails(), "fails"), world.tasks.start(never(), "never")
    await world.tasks.wait([task])
    seen = []
    for _ in range(2):
        try:
            task.result()
        except ValueError as error:
            seen.append(type(error).__name__)
    try:
        other.result()
    except WorldFault:
        seen.append("it still runs")
    return seen


@case("tasks", ["SystemExit: 7", "KeyboardInterrupt: stop"])
async def a_task_may_want_to_end_everything_and_ends_itself(world: World, at: str) -> Any:
    async def fails(error: BaseException) -> None:
        raise error

    tasks = [world.tasks.start(fails(error), "fails") for error in (SystemExit(7), KeyboardInterrupt("stop"))]
    await world.tasks.wait(tasks)
    seen = []
    for task in tasks:
        try:
            task.result()
        except (SystemExit, KeyboardInterrupt) as error:
            seen.append(f"{type(error).__name__}: {error}")
    return seen


@case("tasks", [False, True])
async def one_may_wait_for_ever(world: World, at: str) -> Any:
    never = world.tasks.start(world.clock.sleep(inf), "never")
    soon = world.tasks.start(world.clock.sleep(1), "soon")
    await world.tasks.wait([never, soon], timeout_seconds=inf, first=True)
    return [never.done, soon.done]


LOST = (ValueError("lost"), SystemExit("lost"), KeyboardInterrupt("lost"))


@case("tasks", "goes on")
async def what_a_task_raises_stops_nobody(world: World, at: str) -> Any:
    async def fails(error: BaseException) -> None:
        raise error

    for error in LOST:
        world.tasks.start(fails(error), "fails")
    await world.clock.sleep(1)
    return "goes on"


@case("tasks", [[0, 1, 7, 32], True, True])
async def tokens_are_hex_digits_and_never_the_same(world: World, at: str) -> Any:
    tokens = [world.entropy.token(characters) for characters in (0, 1, 7, 32)]
    others = {world.entropy.token(16) for _ in range(50)}
    return [[len(token) for token in tokens], len(others) == 50, not set("".join(tokens)) - set("0123456789abcdef")]


@case("tasks", [{"GIVEN": "yes", "LC_ALL": "C.UTF-8"}, True, "TypeError"])
async def an_actor_sees_its_environment_and_changes_none_of_it(world: World, at: str) -> Any:
    try:
        world.env.variables["X"] = "y"  # type: ignore[index]
        refused = "nothing"
    except TypeError as error:
        refused = type(error).__name__
    return [dict(world.env.variables), at.startswith(world.env.directory), refused]
