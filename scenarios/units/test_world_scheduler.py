"""The scheduler: who goes on, when time moves, what ends a run."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Generator
from typing import Any

import pytest

from harness.world import World, WorldFault
from harness.world.model import Calm, Decision, Fault, Listed, Outcome, Recording, Seeded, Simulation
from harness.world.model.decisions import RUN, STALL
from harness.world.model.scheduler import Condition, Point, Scheduler, StepLimit, Wait
from scenarios.worlds import alone, program, ran


class Owner:
    """Whoever owns tasks of a bare scheduler."""

    name = "owner"
    alive = True


def counted(kind: str, at: int, value: int) -> Listed:
    """Decisions that are 0 but for one: the `at`-th of a kind."""

    class Once(Listed):
        met = 0

        def choose(self, asked: str, arity: int) -> int:
            if asked != kind:
                return 0
            self.met += 1
            return value if self.met == at else 0

    return Once(())


def stepping(seen: list[str], name: str, steps: int) -> Any:
    async def work() -> None:
        for number in range(steps):
            seen.append(f"{name}{number}")
            await Point(f"{name}{number}")

    return work()


def test_decision_0_lets_the_one_that_just_ran_go_on():
    seen: list[str] = []
    scheduler = Scheduler(Listed(()))
    for name in "ab":
        scheduler.start(stepping(seen, name, 3), Owner, name)
    scheduler.run()
    assert seen == ["a0", "a1", "a2", "b0", "b1", "b2"]


def test_decision_1_lets_the_next_one_run():
    seen: list[str] = []
    scheduler = Scheduler(counted(RUN, 2, 1))
    for name in "ab":
        scheduler.start(stepping(seen, name, 2), Owner, name)
    scheduler.run()
    assert seen == ["a0", "b0", "b1", "a1"]


async def busy(world: World) -> None:
    """Files, time, rows and tasks: something at every port that does not need another actor."""

    async def side(number: int) -> None:
        await world.clock.sleep(number % 3)
        await world.files.append("/log", f"{world.name}{number}".encode())
        world.events.emit("appended", number=number, log=(await world.files.read("/log")).decode())

    tasks = [world.tasks.start(side(number), f"side-{number}") for number in range(4)]
    await world.tasks.wait(tasks, timeout_seconds=1.5)
    world.events.emit("waited", done=[task.done for task in tasks])
    await world.tasks.wait(tasks)


def outcome_of(decisions: Any) -> Outcome:
    return ran(decisions, bodies={"one": busy, "two": busy}).outcome


def test_a_list_of_zeros_is_the_calm_run():
    calm = outcome_of(Calm())
    assert outcome_of(Listed([0] * 10_000)).events == calm.events
    assert outcome_of(Listed(())).trace_digest == calm.trace_digest
    assert outcome_of(Recording(Calm())).events == calm.events
    assert outcome_of(Seeded(1)).events != calm.events


def test_equal_timers_become_ready_together_in_the_order_in_which_they_were_set():
    recording = Recording(counted(RUN, 4, 1))
    seen: list[str] = []

    async def sleeper(world: World) -> None:
        await world.clock.sleep(6 if world.name == "late" else 5)
        seen.append(world.name)
        await world.files.stat("/")
        seen.append(f"{world.name} again")

    ran(recording, bodies=dict.fromkeys(("late", "a", "b", "c"), sleeper), start_seconds=0)
    # Three choices at the start (of 4, 3, 2); then all three of second 5 are ready, and the one choice lets b go first.
    assert [decision.arity for decision in recording.taken if decision.kind == RUN][:4] == [4, 3, 2, 3]
    assert seen == ["b", "b again", "a", "a again", "c", "c again", "late", "late again"]


def test_a_stalled_task_stays_away_until_the_next_timer_and_keeps_its_answer():
    log: list[tuple[str, float, Any]] = []
    scheduler = Scheduler(counted(STALL, 2, 1))
    condition = Condition()

    async def waits() -> None:
        answer = await condition.wait(50.0)
        log.append(("notified", scheduler.now, answer))

    async def notifies() -> None:
        scheduler.notify(condition)

    async def ticks() -> None:
        await Condition().wait(10.0)
        log.append(("tick", scheduler.now, None))

    for name, work in (("ticks", ticks()), ("waits", waits()), ("notifies", notifies())):
        scheduler.start(work, Owner, name)
    scheduler.run()
    # The second question about a stall is asked for `notifies` (a timer is set by then): it comes back with the tick.
    assert log == [("tick", 10.0, None), ("notified", 10.0, True)]

    log.clear()
    scheduler = Scheduler(counted(STALL, 3, 1))
    condition = Condition()
    for name, work in (("ticks", ticks()), ("waits", waits()), ("notifies", notifies())):
        scheduler.start(work, Owner, name)
    scheduler.run()
    # Now `waits` stalls after it was notified: the time that came is the stall's, the answer is still True.
    assert log == [("tick", 10.0, None), ("notified", 10.0, True)]


def test_without_a_timer_nobody_is_asked_to_stall():
    recording = Recording(Seeded(3, stall=1.0))
    seen: list[str] = []
    scheduler = Scheduler(recording)
    for name in "ab":
        scheduler.start(stepping(seen, name, 3), Owner, name)
    scheduler.run()
    assert {decision.kind for decision in recording.taken} == {RUN}


def test_a_timer_whose_task_was_notified_is_no_time_to_stall_for():
    recording = Recording(Seeded(3, run=0.0, stall=0.0))
    scheduler, condition = Scheduler(recording), Condition()

    async def waits() -> None:
        assert await condition.wait(1_000.0)
        for number in range(3):
            await Point(f"after {number}")

    async def notifies() -> None:
        scheduler.notify(condition)

    scheduler.start(waits(), Owner, "waits")
    scheduler.start(notifies(), Owner, "notifies")
    scheduler.run()
    # Asked once, for `notifies`; then the only timer is void.
    assert [decision.kind for decision in recording.taken].count(STALL) == 1
    assert scheduler.now == 0.0


def test_an_endless_stalling_source_still_ends():
    outcome = ran(Seeded(5, stall=1.0), bodies={"one": busy, "two": busy}).outcome
    assert outcome.verdict == "done"


def test_waiting_for_each_other_without_a_timer_is_a_deadlock_that_names_who_waits():
    async def reads(world: World) -> None:
        lock = await world.files.lock(f"/{world.name}")
        assert lock
        await world.clock.sleep(1)
        await world.files.lock("/right" if world.name == "left" else "/left")

    finished = ran(bodies={"left": reads, "right": reads})
    assert finished.outcome.verdict == "deadlock"
    assert "left of left" in finished.outcome.detail
    assert "right of right" in finished.outcome.detail
    assert finished.ended("left") == (None, None, ())


@pytest.mark.parametrize("limit", [1, 2, 100, 4_095, 4_096, 4_097, 10_000])
def test_a_run_takes_no_more_steps_than_its_limit(limit):
    async def forever(world: World) -> None:
        while True:
            await world.files.stat("/")

    outcome = ran(bodies={"a": forever}, step_limit=limit).outcome
    assert (outcome.verdict, outcome.steps) == ("limit", limit)
    assert f"{limit:,} steps" in outcome.detail


def test_a_run_that_needs_exactly_its_limit_is_done():
    async def three(world: World) -> None:
        await world.files.stat("/")
        await world.files.stat("/")

    assert ran(bodies={"a": three}, step_limit=3).outcome.verdict == "done"
    assert ran(bodies={"a": three}, step_limit=2).outcome.verdict == "limit"


def test_a_run_that_takes_too_long_in_real_time_is_ended():
    async def forever(world: World) -> None:
        while True:
            await world.clock.sleep(1)

    outcome = ran(bodies={"a": forever}, watchdog_seconds=0.0).outcome
    assert outcome.verdict == "limit"
    assert "real time" in outcome.detail


def test_errors_of_tasks_that_nobody_asked_for_are_collected():
    async def fails(text: str) -> None:
        raise ValueError(text)

    async def body(world: World) -> None:
        asked = world.tasks.start(fails("asked"), "asked")
        world.tasks.start(fails("lost"), "lost")
        await world.tasks.wait([asked])
        with pytest.raises(ValueError, match="asked"):
            asked.result()
        await world.clock.sleep(1)

    ended = ran(bodies={"a": body}).ended("a")
    assert ended.exit_code == 0
    assert [str(error) for error in ended.lost] == ["lost"]


def test_who_was_killed_before_it_could_ask_has_lost_no_error():
    async def fails() -> None:
        raise ValueError("nobody could ask")

    async def body(world: World) -> None:
        failing = world.tasks.start(fails(), "failing")
        await world.clock.sleep(1)
        await world.files.write("/x", b"")
        failing.result()

    run = ran(bodies={"a": body}, faults=[Fault("kill", label="write /x")])
    assert run.ended("a").exit_code == -9
    assert run.ended("a").lost == ()


def test_a_program_that_raises_ends_with_1_and_tells_its_error():
    async def body(world: World) -> None:
        raise KeyError("x")

    ended = ran(bodies={"a": body}).ended("a")
    assert ended.exit_code == 1
    assert isinstance(ended.error, KeyError)


@types.coroutine
def foreign_generator() -> Generator[str, None, None]:
    yield "something"


async def foreign_sleep(world: World) -> None:
    await asyncio.sleep(0)


async def foreign_coroutine(world: World) -> None:
    await foreign_generator()


@pytest.mark.parametrize(
    ("body", "named"),
    [(foreign_sleep, "asyncio.tasks.__sleep0"), (foreign_coroutine, f"{__name__}.foreign_generator")],
)
def test_awaiting_what_is_no_ports_is_a_fault_of_the_harness_that_names_it(body, named):
    with pytest.raises(WorldFault, match=f"a awaits {named}, which is no port's"):
        ran(bodies={"a": body})


def test_a_fault_of_the_harness_cannot_be_caught_by_the_subject():
    async def swallows(world: World) -> None:
        transaction = await world.store.begin()
        await transaction.commit()
        try:
            await transaction.put("rows", "a", {})
        except BaseException:  # noqa: BLE001 - the worst that a subject can do
            return

    with pytest.raises(WorldFault, match="a: the transaction has ended"):
        ran(bodies={"a": swallows})


def test_only_coroutines_can_be_tasks():
    def numbers() -> Generator[int, None, None]:
        yield 1

    async def body(world: World) -> None:
        world.tasks.start(numbers(), "numbers")  # type: ignore[arg-type]

    with pytest.raises(WorldFault, match=r"numbers is no coroutine: .*test_world_scheduler\..*numbers"):
        ran(bodies={"a": body})


def test_a_program_must_return_an_exit_code():
    async def nothing(world: World, argv: Any) -> None: ...

    simulation = Simulation()
    simulation.start("a", nothing)  # type: ignore[arg-type]
    with pytest.raises(WorldFault, match="a returned None, which is no exit code"):
        simulation.run()


def test_a_result_is_there_when_the_task_is_done():
    async def body(world: World) -> None:
        async def work() -> None:
            await world.clock.sleep(1)

        world.tasks.start(work(), "work").result()

    with pytest.raises(WorldFault, match="work still runs"):
        ran(bodies={"a": body})


def test_waiting_with_a_timeout_leaves_the_rest_running():
    async def body(world: World) -> Any:
        async def work(seconds: float) -> float:
            await world.clock.sleep(seconds)
            return seconds

        tasks = [world.tasks.start(work(seconds), f"{seconds}") for seconds in (1.0, 5.0)]
        seen = []
        await world.tasks.wait(tasks, first=True)
        seen.append([task.done for task in tasks])
        await world.tasks.wait(tasks, timeout_seconds=2.0)
        seen.append([task.done for task in tasks])
        await world.tasks.wait(tasks)
        return seen, [task.result() for task in tasks], world.clock.now()

    assert alone(body, start_seconds=0) == ([[True, False], [True, False]], [1.0, 5.0], 5.0)


@pytest.mark.parametrize("first", [False, True])
def test_waiting_for_nothing_does_not_wait(first):
    async def body(world: World) -> float:
        await world.tasks.wait([], first=first)
        return world.clock.now()

    assert alone(body, start_seconds=7) == 7


def test_a_time_that_never_comes_is_no_time():
    async def body(world: World) -> None:
        await world.clock.sleep(float("inf"))

    assert ran(bodies={"a": body}).outcome.verdict == "deadlock"


def test_a_time_that_is_no_number_is_a_fault_of_the_harness():
    async def body(world: World) -> None:
        await world.clock.sleep(float("nan"))

    with pytest.raises(WorldFault, match="no number"):
        ran(bodies={"a": body})


def test_the_tasks_of_an_actor_end_with_its_program():
    async def body(world: World) -> None:
        async def forever() -> None:
            while True:
                await world.clock.sleep(1)

        world.tasks.start(forever(), "forever")
        await world.clock.sleep(3)

    outcome = ran(bodies={"a": body}).outcome
    assert (outcome.verdict, outcome.seconds) == ("done", 3.0)


def test_a_simulation_runs_once():
    simulation = Simulation()
    simulation.start("a", program(busy))
    simulation.run()
    with pytest.raises(WorldFault, match="runs once"):
        simulation.run()


@pytest.mark.parametrize("seed", range(20))
def test_a_switch_asks_and_orders_as_a_suspended_task_would(seed):
    """Three tasks with timers between their points: at bare points everybody is suspended, at a switch few are."""

    def traced(*, with_switch: bool) -> tuple[list[tuple[str, float]], list[Decision], int]:
        recording = Recording(Seeded(seed, run=0.4, stall=0.3))
        scheduler = Scheduler(recording, longest_stall_seconds=3.0)
        seen: list[tuple[str, float]] = []

        async def work(name: str, pause: float) -> None:
            for number in range(12):
                seen.append((f"{name}{number}", scheduler.now))
                await (scheduler.switch if with_switch else Point(name))
                if number % 4 == 3:
                    await Wait((), scheduler.now + pause)

        for name, pause in (("a", 1.0), ("b", 2.0), ("c", 5.0)):
            scheduler.start(work(name, pause), Owner, name)
        scheduler.run()
        return seen, recording.taken, scheduler.steps

    assert traced(with_switch=True) == traced(with_switch=False)


@pytest.mark.parametrize("decisions", [Calm(), Listed(())], ids=["calm", "asked"])
def test_a_task_that_never_leaves_its_switch_points_meets_the_step_limit(decisions):
    scheduler = Scheduler(decisions, step_limit=50)

    async def endless() -> None:
        while True:
            await scheduler.switch

    scheduler.start(endless(), Owner, "endless")
    with pytest.raises(StepLimit):
        scheduler.run()
    assert scheduler.steps == 50


def test_what_a_source_raises_at_a_switch_no_task_can_catch():
    class EndingAtTheSecond(Listed):
        asked = 0

        def choose(self, kind: str, arity: int) -> int:
            self.asked += 1
            if self.asked == 2:
                raise LookupError("no more")
            return 0

    caught: list[str] = []

    async def catches(world: World) -> None:
        try:
            await world.files.stat("/f")
        except LookupError:
            caught.append(world.name)

    with pytest.raises(LookupError):
        ran(EndingAtTheSecond(()), bodies={"one": catches, "two": catches})
    assert caught == []
