"""The fault plan: where a fault strikes, how often, and that one which does not match changes nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from harness.world import NotSent, Request, Response, World, WorldFault
from harness.world.model import Calm, Fault, FaultPlan, Recording, Seeded
from harness.world.model.decisions import FAULT
from harness.world.sites import (
    ACTIONS,
    ANY_ACTIONS,
    CHANGE_ACTIONS,
    HTTP_ACTIONS,
    PROCESS_ACTIONS,
    READ_ACTIONS,
    STREAM_ACTIONS,
    WRITE_ACTIONS,
)
from scenarios.worlds import alone, ran

README = Path(__file__).parents[2] / "harness" / "world" / "README.md"


class Server:
    """Answers at once."""

    def handle(self, request: Request, now: float, who: str) -> Response:
        return Response(200)


async def requests(world: World) -> list[str]:
    """Eight requests, one a second, to two places in turn: 1 where it came through, 0 where it was refused."""
    seen = ""
    for number in range(8):
        try:
            place = "token" if number % 2 else "register"
            await world.http.send(
                Request("POST", f"https://as.test/{place}"), open_timeout_seconds=1, read_timeout_seconds=1
            )
            seen += "1"
        except NotSent:
            seen += "0"
        await world.clock.sleep(1)
    return [seen]


def came(fault: Fault) -> str:
    result: str = alone(requests, servers={"https://as.test": Server()}, faults=[fault])[0]
    return result


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault("refused"), "00000000"),
        (Fault("refused", port="files"), "11111111"),
        (Fault("refused", port="h*"), "00000000"),
        (Fault("refused", actor="al*"), "00000000"),
        (Fault("refused", actor="other"), "11111111"),
        (Fault("refused", label="POST https://as.test/token"), "10101010"),
        (Fault("refused", label="*/register"), "01010101"),
        (Fault("refused", label="POST https://as.test/token", nth=2), "11101111"),
        (Fault("refused", nth=2), "11001111"),
        (Fault("refused", times=3), "00011111"),
        (Fault("refused", after_seconds=2, before_seconds=4), "11000111"),
        (Fault("refused", nth=1, times=1), "01111111"),
        (Fault("torn"), "11111111"),
    ],
)
def test_a_fault_strikes_where_all_of_its_conditions_hold(fault, expected):
    assert came(fault) == expected


def test_a_fault_is_told_where_it_strikes_and_only_there():
    finished = ran(
        bodies={"a": requests},
        servers={"https://as.test": Server()},
        faults=[Fault("torn"), Fault("refused", label="*/token", nth=2)],
    )
    assert [event.details for event in finished.outcome.events if event.name == "fault"] == [
        {"action": "refused", "at": "POST https://as.test/token"}
    ]


def test_the_first_fault_of_the_plan_that_matches_strikes():
    finished = ran(
        bodies={"a": requests},
        servers={"https://as.test": Server()},
        faults=[Fault("dns", times=1), Fault("tls", times=1)],
    )
    told = [event.details["action"] for event in finished.outcome.events if event.name == "fault"]
    assert told == ["dns", "tls"]


def test_a_drawn_fault_is_left_to_the_decisions():
    fault = Fault("refused", drawn=True)
    assert came(fault) == "11111111"
    seen = {
        ran(
            Seeded(seed, fault=0.5), bodies={"a": requests}, servers={"https://as.test": Server()}, faults=[fault]
        ).results["a"][0]
        for seed in range(10)
    }
    assert len(seen) > 5


def test_a_drawn_fault_is_asked_for_only_where_it_matches_and_may_still_strike():
    recording = Recording(Calm())
    fault = Fault("refused", label="*/token", drawn=True)
    ran(recording, bodies={"a": requests}, servers={"https://as.test": Server()}, faults=[fault])
    assert [decision.kind for decision in recording.taken].count(FAULT) == 4
    recording = Recording(Calm())
    ran(recording, bodies={"a": requests}, servers={"https://as.test": Server()}, faults=[Fault("refused")])
    assert FAULT not in {decision.kind for decision in recording.taken}
    recording = Recording(Seeded(1, fault=1.0))
    used_up = fault._replace(times=1)
    ran(recording, bodies={"a": requests}, servers={"https://as.test": Server()}, faults=[used_up])
    assert [decision.kind for decision in recording.taken].count(FAULT) == 1


@pytest.mark.parametrize("seed", range(5))
def test_a_plan_without_faults_and_one_that_never_matches_equal_no_plan(seed):
    def outcome(**options: Any) -> Any:
        return ran(
            Seeded(seed), bodies=dict.fromkeys("abc", requests), servers={"https://as.test": Server()}, **options
        ).outcome

    never = [Fault(action, actor="d", drawn=True, answer=Response(200)) for action in sorted(ACTIONS)]
    never += [Fault("torn", port="http", drawn=True), Fault("enoent", drawn=True), Fault("refused", nth=99, drawn=True)]
    assert outcome() == outcome(faults=()) == outcome(faults=never)


@pytest.mark.parametrize(
    ("fault", "place", "concerned"),
    [
        (Fault("kill"), ("files", "a", "read /x"), True),
        (Fault("kill", port="files", label="read *", nth=3, after_seconds=9), ("files", "a", "read /x"), True),
        (Fault("kill", port="http"), ("files", "a", "read /x"), False),
        (Fault("kill", actor="b*"), ("files", "a", "read /x"), False),
        (Fault("kill", label="write *"), ("files", "a", "read /x"), False),
    ],
)
def test_a_plan_is_concerned_with_the_places_at_which_a_fault_may_strike_at_any_time(fault, place, concerned):
    plan = FaultPlan([Fault("kill", actor="nobody"), fault])
    assert [plan.concerns(*place), plan.concerns(*place)] == [concerned, concerned]


def test_an_unknown_action_and_an_answer_without_its_answer_are_refused_at_once():
    with pytest.raises(WorldFault, match="no fault has the action 'reset'; there are answer, "):
        FaultPlan([Fault("reset")])
    for action in ("answer", "answer-after"):
        with pytest.raises(WorldFault, match="needs its answer"):
            FaultPlan([Fault(action)])


ENTERED = [
    ("stat /x", lambda world: world.files.stat("/x")),
    ("list /", lambda world: world.files.names("/")),
    ("mkdir /x", lambda world: world.files.make_directory("/x")),
    ("append /x", lambda world: world.files.append("/x", b"")),
    ("rename /x to /y", lambda world: world.files.rename("/x", "/y")),
    ("remove /x", lambda world: world.files.remove("/x")),
    ("chmod /x", lambda world: world.files.chmod("/x", 0o600)),
    ("symlink /x", lambda world: world.files.make_link("/x", "y")),
    ("resolve /x", lambda world: world.files.resolve("/x")),
    ("lock /x", lambda world: world.files.lock("/x")),
    ("begin", lambda world: world.store.begin()),
    ("rows of rows", lambda world: world.store.rows("rows")),
    ("wait", lambda world: world.tasks.wait([])),
    ("spawn x", lambda world: world.processes.spawn(["x"], env={}, directory="/")),
    ("stdin", lambda world: world.processes.read_line()),
    ("stdout", lambda world: world.processes.write_line("x")),
    ("stderr", lambda world: world.processes.write_error("x")),
    ("signal", lambda world: world.processes.next_signal()),
]


@pytest.mark.parametrize(("label", "call"), ENTERED, ids=[label for label, _ in ENTERED])
def test_a_kill_strikes_at_every_switch_point(label, call):
    finished = ran(bodies={"a": call}, faults=[Fault("kill", label=label)])
    assert finished.ended("a").exit_code == -9
    assert finished.events() == [("a", "fault"), ("a", "killed"), ("a", "ended")]
    assert finished.simulation.tree.names("/", 0) == ()


def test_the_page_tells_every_action_and_every_place_where_it_strikes():
    """The table of the page against the sets that the ports use."""
    rows = re.findall(r"^\| `([a-z -]+)` \| (.+?) \| ", README.read_text(encoding="utf-8"), re.MULTILINE)
    told = {action: places for action, places in rows if action in ACTIONS}
    assert set(told) == ACTIONS
    kinds = {
        "every point": ANY_ACTIONS,
        "request": HTTP_ACTIONS,
        "stream event": STREAM_ACTIONS,
        "read": READ_ACTIONS,
        "make": CHANGE_ACTIONS,
        "write": WRITE_ACTIONS,
        "spawn": PROCESS_ACTIONS,
    }
    for action, places in told.items():
        expected = {kind for kind, actions in kinds.items() if action in actions}
        assert set(places.split(", ")) == ({"every point"} if action == "kill" else expected), action
