"""Holds: a race that is stated in words, the same for every schedule."""

from __future__ import annotations

from typing import Any

import pytest

from harness.world import World, WorldFault
from harness.world.model import Calm, Event, Fault, Hold, Listed, Seeded
from scenarios.worlds import Ran, ran


async def writer(world: World) -> None:
    await world.clock.sleep(1)
    await world.files.write("/f", world.name.encode())
    world.events.emit("wrote")


def both(decisions: Any = None, *holds: Hold, faults: Any = ()) -> Ran:
    return ran(decisions, bodies={"one": writer, "two": writer}, holds=holds, faults=faults)


def wrote(who: str) -> Any:
    return lambda event: event.name == "wrote" and event.actor == who


ONE_WAITS = Hold("one", "write /f", until=wrote("two"))


def test_without_a_hold_the_calm_run_goes_in_order():
    assert both().simulation.tree.read("/f", 0) == b"two"
    assert both().events("wrote") == [("one", "wrote"), ("two", "wrote")]


@pytest.mark.parametrize("decisions", [Calm(), *map(Seeded, range(20))], ids=["calm", *map(str, range(20))])
def test_a_hold_makes_the_same_race_of_any_schedule(decisions):
    finished = both(decisions, ONE_WAITS)
    assert finished.events("wrote") == [("two", "wrote"), ("one", "wrote")]
    assert finished.outcome.seconds < ONE_WAITS.limit_seconds
    assert (finished.outcome.verdict, finished.outcome.unmet_holds) == ("done", ())


def test_a_hold_needs_no_decisions_to_be_the_same_each_time():
    first, second = both(Calm(), ONE_WAITS), both(Listed(()), ONE_WAITS)
    assert first.outcome.events == second.outcome.events
    assert first.events("wrote") == [("two", "wrote"), ("one", "wrote")]
    assert (first.outcome.decisions, first.outcome.unmet_holds, first.outcome.unreached_holds) == ((), (), ())


def test_a_hold_that_only_its_limit_ended_is_told():
    never = Hold("one", "write /f", until=lambda event: False, limit_seconds=7)
    finished = both(Calm(), never)
    assert finished.outcome.unmet_holds == (never,)
    assert finished.outcome.seconds == 8
    assert finished.events("wrote") == [("two", "wrote"), ("one", "wrote")]


def test_a_hold_at_a_point_that_nobody_reaches_is_told():
    nowhere = Hold("three", "write /f", until=wrote("two"))
    assert both(Calm(), nowhere).outcome.unreached_holds == (nowhere,)


@pytest.mark.parametrize("after_arrival", [False, True])
def test_what_happened_before_the_actor_got_there_counts_unless_the_hold_says_otherwise(after_arrival):
    held = Hold("two", "write /f", until=wrote("one"), limit_seconds=3, after_arrival=after_arrival)
    finished = both(Calm(), held)
    assert finished.events("wrote") == [("one", "wrote"), ("two", "wrote")]
    assert finished.outcome.unmet_holds == ((held,) if after_arrival else ())
    assert finished.outcome.seconds == (4 if after_arrival else 1)


def test_each_arrival_waits_for_an_event_of_its_own():
    async def ticks(world: World) -> None:
        for _ in range(2):
            await world.clock.sleep(10)
            world.events.emit("tick")

    async def twice(world: World) -> list[float]:
        seen = []
        for _ in range(2):
            await world.files.stat("/")
            seen.append(world.clock.now())
        return seen

    held = Hold("twice", "stat /", until=lambda event: event.name == "tick", times=2)
    finished = ran(bodies={"ticks": ticks, "twice": twice}, holds=[held], start_seconds=0)
    assert finished.results["twice"] == [10, 20]


def test_an_event_of_a_port_ends_a_hold_too():
    held = Hold("one", "write /f", until=lambda event: event.name == "ended" and event.actor == "two")
    finished = both(Calm(), held)
    assert finished.events("wrote", "ended")[:2] == [("two", "wrote"), ("two", "ended")]


@pytest.mark.parametrize(("times", "seconds"), [(1, 10), (2, 20), (5, 30)])
def test_a_hold_holds_as_often_as_it_says(times, seconds):
    async def three(world: World) -> None:
        for _ in range(3):
            await world.files.stat("/")

    held = Hold("*", "stat *", until=lambda event: False, limit_seconds=10, times=times)
    finished = ran(bodies={"a": three}, holds=[held])
    assert finished.outcome.seconds == seconds
    assert len(finished.outcome.unmet_holds) == min(times, 3)


def test_the_held_can_be_killed_there():
    async def kills(world: World) -> None:
        child = await world.processes.spawn(["one"], env={}, directory="/")
        await world.clock.sleep(5)
        await child.signal("SIGKILL")

    async def one(world: World, argv: Any) -> int:
        await writer(world)
        return 0

    held = Hold("parent/one", "write /f", until=lambda event: False)
    finished = ran(bodies={"parent": kills}, holds=[held], launcher=lambda argv, env, directory: one)
    assert finished.events("wrote", "killed") == [("parent/one", "killed")]
    assert finished.simulation.tree.names("/", 0) == ()
    assert finished.outcome.seconds == 5


def test_a_fault_strikes_after_the_hold_at_the_same_point():
    finished = both(Calm(), ONE_WAITS, faults=[Fault("kill", actor="one", label="write /f")])
    assert finished.events("wrote", "killed") == [("two", "wrote"), ("one", "killed")]


def test_a_condition_that_raises_is_a_fault_of_the_harness():
    def broken(event: Event) -> bool:
        return bool(event.details["who"])

    with pytest.raises(WorldFault, match=r"the condition of the hold at 'write /f' raised KeyError\('who'\)"):
        both(Calm(), Hold("one", "write /f", until=broken))
