"""Sources of decisions: seeds, lists, strict replay; and that a run is nothing but its decisions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.world import Request, Response, World, WorldFault
from harness.world.model import (
    Calm,
    Decision,
    Decisions,
    Divergence,
    Fault,
    Listed,
    Outcome,
    Recording,
    Replayed,
    Seeded,
    Simulation,
)
from harness.world.model.decisions import FAULT, RUN, STALL, START
from scenarios.worlds import program, ran

REPOSITORY = Path(__file__).parents[2]
FAULTS = (
    Fault("enospc", port="files", label="append *", drawn=True),
    Fault("reset-after", port="http", drawn=True),
    Fault("kill", actor="two", label="committed", drawn=True, times=1),
)


class Counter:
    """A server that counts."""

    def __init__(self) -> None:
        self.count = 0

    def handle(self, request: Request, now: float, who: str) -> Response:
        self.count += 1
        return Response(200, body=str(self.count).encode(), after_seconds=0.5)


async def busy(world: World) -> None:
    for number in range(3):
        try:
            await world.files.append("/log", f"{world.name}{number} ".encode())
            response = await world.http.send(
                Request("GET", "https://counter.test/"), open_timeout_seconds=1, read_timeout_seconds=1
            )
            world.events.emit("counted", body=response.body, log=await world.files.read("/log"))
        except BaseException as error:
            if not isinstance(error, Exception):
                raise
            world.events.emit("failed", how=repr(error))
        transaction = await world.store.begin()
        row = await transaction.get("rows", "shared", lock=True)
        await transaction.put("rows", "shared", {"by": world.name, "before": row.values if row else None})
        await transaction.commit()
        await world.clock.sleep(1)


def run_busy(decisions: Any, body: Any = busy, faults: tuple[Fault, ...] = FAULTS) -> Outcome:
    return ran(
        decisions,
        bodies={"one": body, "two": body, "three": body},
        servers={"https://counter.test": Counter()},
        faults=faults,
    ).outcome


@pytest.mark.parametrize("seed", range(8))
def test_the_decisions_of_a_seeded_run_replay_to_the_same_trace(seed):
    outcome = run_busy(Seeded(seed))
    again = run_busy(Replayed(outcome.decisions, complete=True))
    assert again == outcome
    assert again.trace_digest == outcome.trace_digest


def test_a_recording_may_leave_out_its_trailing_zeros():
    outcome = run_busy(Seeded(1))
    cut = list(outcome.decisions)
    while cut and not cut[-1].value:
        cut.pop()
    assert len(cut) < len(outcome.decisions)
    assert run_busy(Replayed(cut)).events == outcome.events
    with pytest.raises(Divergence, match=f"decision {len(cut)}: recorded the end of the list, met ") as caught:
        run_busy(Replayed(cut, complete=True))
    assert caught.value.recorded is None


@pytest.mark.parametrize("index", [0, 1, 17])
@pytest.mark.parametrize("what", ["kind", "arity"])
def test_another_kind_or_arity_is_a_divergence_at_that_decision(index, what):
    taken = list(run_busy(Seeded(4)).decisions)
    met = taken[index]
    taken[index] = met._replace(kind="other") if what == "kind" else met._replace(arity=met.arity + 1)
    with pytest.raises(Divergence) as caught:
        run_busy(Replayed(taken))
    assert (caught.value.index, caught.value.recorded, caught.value.met) == (index, taken[index], met[:2])


def test_a_divergence_inside_a_port_passes_a_subject_that_catches_everything():
    taken = list(run_busy(Seeded(4)).decisions)
    index = next(number for number, decision in enumerate(taken) if decision.kind == FAULT)
    taken[index] = taken[index]._replace(kind=RUN)

    async def swallows(world: World) -> None:
        try:
            await busy(world)
        except BaseException:  # noqa: BLE001 - the worst that a subject can do
            world.events.emit("swallowed")

    with pytest.raises(Divergence) as caught:
        run_busy(Replayed(taken), swallows)
    assert caught.value.index == index


def test_changed_code_is_a_divergence():
    async def changed(world: World) -> None:
        await world.files.stat("/")
        await busy(world)

    with pytest.raises(Divergence):
        run_busy(Replayed(run_busy(Seeded(2)).decisions, complete=True), changed)


def test_a_run_that_ends_before_its_recording_is_a_divergence():
    taken = (*run_busy(Seeded(2)).decisions, Decision(RUN, 2, 0), Decision(STALL, 2, 1))
    with pytest.raises(Divergence, match="recorded stall of 2, met the end of the run") as caught:
        run_busy(Replayed(taken))
    assert (caught.value.index, caught.value.met) == (len(taken) - 1, None)
    run_busy(Replayed(taken[:-1]))
    with pytest.raises(Divergence, match="recorded run of 2, met the end of the run"):
        run_busy(Replayed(taken[:-1], complete=True))


def test_a_calm_run_has_no_decisions_and_replays_from_none():
    calm = run_busy(Calm())
    assert calm.decisions == ()
    assert run_busy(Replayed(())).events == calm.events


def test_values_of_a_list_are_taken_modulo_and_then_0():
    listed = Listed([5, 1])
    assert [listed.choose(RUN, 3), listed.choose(STALL, 2), listed.choose(RUN, 9)] == [2, 1, 0]


def test_a_seed_answers_0_as_often_as_its_rates_say():
    seeded = Seeded(1, run=0.5, stall=0.0, fault=1.0, start=0.25)
    answers = {kind: [seeded.choose(kind, 4) for _ in range(2_000)] for kind in (RUN, STALL, FAULT, START)}
    zeros = {kind: values.count(0) / 2_000 for kind, values in answers.items()}
    assert zeros[STALL] == 1.0
    assert zeros[FAULT] == 0.0
    assert 0.45 < zeros[RUN] < 0.55
    assert 0.7 < zeros[START] < 0.8
    assert set(answers[FAULT]) == {1, 2, 3}


def test_a_recording_writes_down_what_was_asked_and_answered():
    recording = Recording(Listed([1, 7]))
    recording.choose(RUN, 2)
    recording.choose(STALL, 2)
    assert recording.taken == [Decision(RUN, 2, 1), Decision(STALL, 2, 1)]


def test_start_times_are_decided_and_the_first_is_the_calmest():
    def at(decisions: Decisions) -> float:
        async def body(world: World) -> float:
            return world.clock.now()

        results: dict[str, Any] = {}
        simulation = Simulation(decisions, start_seconds=0)
        simulation.start("cron", program(body, results), after_seconds=(0.0, 60.0, 300.0))
        simulation.run()
        return float(results["cron"])

    assert at(Calm()) == 0
    assert {at(Seeded(seed)) for seed in range(20)} == {0, 60, 300}
    assert at(Replayed([Decision(START, 3, 2)])) == 300


def test_another_kind_of_error_of_the_source_ends_the_run_too():
    class Exhausted(BaseException): ...

    class Draws(Listed):
        def choose(self, kind: str, arity: int) -> int:
            if kind == FAULT:
                raise Exhausted
            return 0

    with pytest.raises(Exhausted):
        run_busy(Draws(()))


def test_two_actors_of_one_name_get_names_and_entropy_of_their_own():
    async def body(world: World) -> str:
        return world.entropy.token(16)

    results: dict[str, Any] = {}
    simulation = Simulation(seed=3)
    for _ in range(3):
        simulation.start("npx", program(body, results))
    simulation.run()
    assert list(results) == ["npx", "npx#2", "npx#3"]
    assert len(set(results.values())) == 3


def test_entropy_is_the_same_for_the_same_seed_and_another_for_another():
    def tokens(seed: int) -> list[str]:
        async def body(world: World) -> list[str]:
            return [world.entropy.token(8) for _ in range(3)]

        return list(ran(bodies={"a": body}, seed=seed).results["a"])

    assert tokens(1) == tokens(1)
    assert len({*tokens(1), *tokens(2)}) == 6
    assert all(len(token) == 8 and set(token) <= set("0123456789abcdef") for token in tokens(1))


SCRIPT = """
import sys
from scenarios.units.test_world_decisions import run_busy
from harness.world.model import Seeded
for seed in range(20):
    outcome = run_busy(Seeded(seed))
    print(outcome.trace_digest, outcome.steps, len(outcome.decisions), hash(("x",)) and "")
"""


def test_fresh_processes_under_ten_hash_seeds_give_the_same_traces():
    printed = set()
    for hash_seed in range(10):
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
        printed.add(
            subprocess.run(
                [sys.executable, "-c", SCRIPT],
                cwd=REPOSITORY,
                env=environment,
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
    assert len(printed) == 1
    assert len({line.split()[0] for line in printed.pop().splitlines()}) > 15


def test_a_stopped_run_keeps_the_events_until_then():
    async def body(world: World) -> None:
        world.events.emit("before")
        await world.store.begin()
        world.tasks.start(3, "three")  # type: ignore[arg-type]

    simulation = Simulation()
    simulation.start("a", program(body))
    with pytest.raises(WorldFault, match="three is no coroutine: int"):
        simulation.run()
    assert [event.name for event in simulation.events][:1] == ["before"]
