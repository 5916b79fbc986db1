"""Pending flows: what is stored and what is refused, how long, one for each (session, server), and who may take one."""

from __future__ import annotations

import ast
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.reference.oauth import flows
from harness.reference.oauth.flows import (
    LIFETIME_SECONDS,
    REQUIRED,
    TABLE,
    InvalidFlowError,
    SessionGoneError,
    claim,
    delete_of_session,
    find,
    flow_of,
    give_back,
    is_expired,
    missing_fields,
    require_valid,
    start,
    storable_endpoint,
    sweep_expired_session_less,
)
from harness.world import World
from harness.world.model import Fault, Hold, Seeded
from scenarios.units.oauth_house import flow_rows, stored_flow
from scenarios.units.oauth_run import START_SECONDS, Ran, run_world

FLOW = flow_of(next(iter(stored_flow("").values())))
SESSION_7 = {("sessions", "7"): {"status": "failed"}, ("sessions", "8"): {"status": "failed"}}
DAY = 86400.0


def left(ran: Ran) -> set[tuple[str | None, str, str]]:
    """The flows that are left: session, server, state."""
    return {(row["session"], row["server_name"], row["state"]) for row in flow_rows(ran)}


# --- what is stored


@pytest.mark.requirement("flow-pending-flow-required-fields")
def test_exactly_nine_fields_are_required() -> None:
    assert missing_fields({}) == REQUIRED
    assert len(REQUIRED) == 9
    values = next(iter(stored_flow().values()))
    optional = {"session", "client_secret", "registration_endpoint", "scopes", "resource", "issuer"}
    assert missing_fields({**values, **dict.fromkeys(optional)}) == ()
    require_valid({**values, **dict.fromkeys(optional)})
    for name in REQUIRED:
        with pytest.raises(InvalidFlowError) as caught:
            require_valid({**values, name: ""})
        assert caught.value.missing == (name,)
    assert flow_of({name: value for name, value in values.items() if name != "manual"}).manual is False


@pytest.mark.requirement("flow-pending-flow-required-fields")
@pytest.mark.parametrize("config", ["x", None, [], 7])
def test_a_server_config_must_be_an_object(config: Any) -> None:
    values = next(iter(stored_flow().values()))
    with pytest.raises(InvalidFlowError):
        require_valid({**values, "mcp_server_config": config})


@pytest.mark.requirement("https-pending-flow-refuses")
@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("https://as.example.com/token", True),
        ("HTTPS://as.example.com/token", True),
        ("https://id:s3cret@as.example.com/token", True),
        ("http://as.example.com/token", False),
        ("http://127.0.0.1:9000/token", False),
        ("http://localhost/token", False),
        ("https://", False),
        ("https://as.example.com/token ", False),
        ("", False),
    ],
)
def test_a_flow_with_a_cleartext_token_endpoint_is_not_stored(endpoint: str, expected: bool) -> None:
    async def program(world: World) -> str | None:
        try:
            await start(world, replace(FLOW, token_endpoint=endpoint))
        except InvalidFlowError as error:
            return str(error)
        return None

    ran = run_world(program)
    assert (ran.result is None) is expected
    assert endpoint == "" or endpoint not in (ran.result or "")
    assert bool(flow_rows(ran)) is expected
    assert storable_endpoint(endpoint) is expected


@pytest.mark.requirement(
    "flow-pending-flow-lifetime", "authorize-flow-lifetime", "flow-state-unguessable", "flow-pkce-verifier-fresh",
    "authorize-state-random",
)  # fmt: skip
def test_a_flow_lives_a_day_and_its_state_and_verifier_are_its_own() -> None:
    async def program(world: World) -> list[tuple[str, str]]:
        started = [await start(world, replace(FLOW, server_name=f"s{number}")) for number in range(60)]
        return [(flow.state, flow.code_verifier) for flow in started]

    ran = run_world(program)
    states, verifiers = zip(*ran.result, strict=True)
    assert len({*states, *verifiers}) == 120
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", text) for text in (*states, *verifiers))
    assert {row["expires_at"] for row in flow_rows(ran)} == {START_SECONDS + DAY}
    assert LIFETIME_SECONDS == DAY


@pytest.mark.requirement("flow-pending-flow-persists")
def test_another_process_reads_the_whole_flow_back() -> None:
    flow = replace(
        FLOW, client_secret="shh", registration_endpoint="https://as.test/r", session="7", manual=True, scopes="a b"
    )

    async def program(world: World) -> Any:
        return await start(world, flow)

    ran = run_world(program, rows=SESSION_7)

    async def again(world: World) -> Any:
        return await find(world, ran.result.state)

    assert run_world(again, rows={(TABLE, key): value for key, value in ran.rows(TABLE).items()}).result == ran.result
    expected = replace(
        flow, state=ran.result.state, code_verifier=ran.result.code_verifier, expires_at=START_SECONDS + DAY
    )
    assert ran.result == expected


# --- how long, and with whom


@pytest.mark.requirement("authorize-sweep-scope")
@pytest.mark.parametrize("session", [None, "7"])
@pytest.mark.parametrize(
    ("expires_in", "expired"), [(-2 * DAY, True), (-1, True), (0, True), (0.5, False), (DAY, False)]
)
def test_the_sweep_takes_flows_that_are_expired_and_have_no_session(
    session: str | None, expires_in: float, expired: bool
) -> None:
    rows = stored_flow("S1", session=session, expires_at=START_SECONDS + expires_in)
    ran = run_world(sweep_expired_session_less, rows=rows)
    assert ran.result == int(expired and session is None)
    assert bool(flow_rows(ran)) is not bool(ran.result)
    assert is_expired(flow_of(rows[TABLE, "S1"]), START_SECONDS) is expired


@pytest.mark.requirement("authorize-in-session-flows-die-with-session")
def test_the_flows_of_a_destroyed_session_go_with_it() -> None:
    rows = {
        **stored_flow("A", session="7"),
        **stored_flow("B", session="7", server_name="linear", expires_at=START_SECONDS - 1),
        **stored_flow("C", session="8"),
        **stored_flow("D"),
    }
    ran = run_world(lambda world: delete_of_session(world, "7"), rows=rows)
    assert ran.result == 2
    assert {row["state"] for row in flow_rows(ran)} == {"C", "D"}


@pytest.mark.requirement("authorize-in-session-flows-die-with-session")
@pytest.mark.parametrize("seed", range(30))
def test_no_flow_is_left_of_a_session_that_is_destroyed_while_one_starts(seed: int) -> None:
    async def destroy(world: World) -> None:
        transaction = await world.store.begin()
        await transaction.delete("sessions", "7")
        await transaction.commit()
        await delete_of_session(world, "7")

    async def begin(world: World) -> bool:
        try:
            await start(world, replace(FLOW, session="7"))
        except SessionGoneError:
            return False
        return True

    ran = run_world(begin, rows=SESSION_7, others={"destroyer": destroy}, decisions=Seeded(seed, run=0.5, stall=0.3))
    assert left(ran) == set()


# --- one for each (session, server)


@pytest.mark.requirement("authorize-restart-replaces-own-flow", "flow-pending-flow-one-per-server")
@pytest.mark.parametrize(
    ("session", "kept"), [(None, {"7n", "8n", "l"}), ("7", {"n", "8n", "l"}), ("8", {"n", "7n", "l"})]
)
def test_a_new_flow_replaces_that_of_its_own_session_and_server_alone(session: str | None, kept: set[str]) -> None:
    rows = {
        **SESSION_7,
        **stored_flow("n"),
        **stored_flow("7n", session="7"),
        **stored_flow("8n", session="8"),
        **stored_flow("l", server_name="linear"),
    }
    ran = run_world(lambda world: start(world, replace(FLOW, session=session)), rows=rows)
    assert {row["state"] for row in flow_rows(ran)} == {*kept, ran.result.state}


def test_a_session_called_like_no_session_is_another_pair() -> None:
    rows = {("sessions", ""): {}, ("sessions", "connectors"): {}, **stored_flow("n")}
    ran = run_world(lambda world: start(world, replace(FLOW, session="connectors")), rows=rows)
    assert len(flow_rows(ran)) == 2


@pytest.mark.requirement("flow-pending-flow-one-per-server")
@pytest.mark.parametrize("seed", range(30))
def test_two_starts_at_once_leave_one_flow(seed: int) -> None:
    async def begin(world: World) -> None:
        await start(world, FLOW)

    ran = run_world(begin, others={"tab 2": begin, "tab 3": begin}, decisions=Seeded(seed, run=0.5, stall=0.3))
    assert len(flow_rows(ran)) == 1


@pytest.mark.requirement("flow-pending-flow-one-per-server")
def test_a_start_that_overtakes_another_between_its_look_and_its_write_waits_for_it() -> None:
    async def begin(world: World) -> None:
        await start(world, FLOW)

    overtaken = Hold(
        "zimmer", f"put row {TABLE}/*", until=lambda event: event.name == "ended" and event.actor == "tab 2",
        limit_seconds=5,
    )  # fmt: skip
    ran = run_world(begin, others={"tab 2": begin}, holds=[overtaken])
    assert len(flow_rows(ran)) == 1


# --- taking one


def claiming(state: str) -> Callable[[World], Awaitable[None]]:
    """A program that takes the flow and tells."""

    async def program(world: World) -> None:
        taken = await claim(world, state)
        world.events.emit("claimed", was=taken is not None)

    return program


@pytest.mark.requirement("flow-callback-single-use", "authorize-state-single-use")
@pytest.mark.parametrize("seed", range(30))
def test_of_several_that_take_a_flow_one_has_it(seed: int) -> None:
    others = {f"tab {number}": claiming("S1") for number in range(3)}
    decisions = Seeded(seed, run=0.5, stall=0.3)
    ran = run_world(claiming("S1"), rows=stored_flow("S1"), others=others, decisions=decisions)
    assert sorted(told["was"] for told in ran.named("claimed")) == [False, False, False, True]
    assert left(ran) == set()


@pytest.mark.requirement("authorize-sweep-scope")
def test_a_claimed_flow_is_not_swept_and_a_swept_one_not_claimed() -> None:
    async def sweep(world: World) -> None:
        world.events.emit("swept", count=await sweep_expired_session_less(world))

    for seed in range(30):
        rows = stored_flow("S1", expires_at=START_SECONDS)
        ran = run_world(claiming("S1"), rows=rows, others={"s": sweep}, decisions=Seeded(seed, run=0.5, stall=0.3))
        [claimed], [swept] = ran.named("claimed"), ran.named("swept")
        assert claimed["was"] + swept["count"] == 1


@pytest.mark.requirement("flow-callback-single-use")
def test_whoever_dies_while_taking_a_flow_has_taken_it_or_not() -> None:
    async def program(world: World) -> None:
        await claim(world, "S1")

    for label, kept in (("commit", True), ("committed", False), ("delete row *", True), ("lock row *", True)):
        ran = run_world_of_the_dead(program, label)
        assert bool(flow_rows(ran)) is kept
        second = run_world(claiming("S1"), rows={(TABLE, key): value for key, value in ran.rows(TABLE).items()})
        assert second.named("claimed") == [{"was": kept}]


def run_world_of_the_dead(program: Callable[[World], Awaitable[None]], label: str) -> Ran:
    """A run whose actor is killed at a label."""
    return run_world(program, rows=stored_flow("S1"), faults=[Fault("kill", label=label)])


@pytest.mark.requirement("flow-manual-failure-keeps-flow")
@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({}, {"S1"}),
        (stored_flow("newer"), {"newer"}),
        (stored_flow("other", server_name="linear"), {"other", "S1"}),
        ({**SESSION_7, **stored_flow("in session", session="7")}, {"in session", "S1"}),
    ],
)
def test_a_flow_is_given_back_unless_its_server_was_started_anew(rows: Mapping[Any, Any], expected: set[str]) -> None:
    flow = flow_of(stored_flow("S1")[TABLE, "S1"])
    ran = run_world(lambda world: give_back(world, flow), rows=rows)
    assert {row["state"] for row in flow_rows(ran)} == expected


@pytest.mark.parametrize(
    "flow",
    [{"session": "gone"}, {"token_endpoint": "http://as.test/token"}],
)
def test_a_flow_that_could_not_be_stored_today_is_not_given_back(flow: dict[str, Any]) -> None:
    ran = run_world(lambda world: give_back(world, flow_of(stored_flow("S1", **flow)[TABLE, "S1"])))
    assert left(ran) == set()


# --- the loopback predicate


@pytest.mark.requirement("authorize-completion-not-by-loopback")
def test_nothing_in_production_asks_whether_a_redirect_is_a_loopback() -> None:
    package = Path(flows.__file__).parents[1]
    callers = [
        path.name
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Name | ast.Attribute)
        and (node.id if isinstance(node, ast.Name) else node.attr) == "localhost_flow"
    ]
    assert callers == []
