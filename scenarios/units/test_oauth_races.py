"""One flow in several hands: tabs, replays, sweeps, restarts, and whoever dies in the middle of it.

Whatever happens, the code of a flow is posted once at most, a credential is there whole or not at all, and no flow is
good twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import pytest

from fake_servers.oauth.browser import Landed
from fake_servers.oauth.profiles import Stage
from harness.reference.credentials.retire import retire
from harness.reference.credentials.row import COLUMNS
from harness.reference.credentials.row import TABLE as CREDENTIALS
from harness.reference.oauth.flows import TABLE as FLOWS
from harness.reference.oauth.flows import sweep_expired_session_less
from harness.reference.oauth.web import Answer, callback, complete, initiate
from harness.world import World
from harness.world.model import Event, Fault, Hold, Listed, Seeded
from scenarios.units.oauth_house import (
    LOOPBACK,
    NOTION,
    NOTION_KEY,
    WAITING,
    consented,
    credential_rows,
    deployment,
    finish,
    flow_rows,
    only,
    stage_of,
    stored,
)
from scenarios.units.oauth_run import START_SECONDS, Ran, run_world

SEEDS = range(40)
DEPS = deployment()
MANUAL = deployment({"notion": {**NOTION["notion"], "oauth": {"redirectUri": LOOPBACK}}})
UNKNOWN = Answer(400, "error", message="OAuth flow not found. It may have expired.")
MOST_POINTS = 60
Program = Callable[[World], Awaitable[None]]
Rows = Mapping[tuple[str, str], Mapping[str, Any]]


def under_way(
    stage: Stage, *, deps: Any = DEPS, session: str | None = None, flows: int = 1
) -> tuple[Rows, list[Landed]]:
    """Flows that were consented to and have not come back: the rows, and where the browser has landed."""

    async def program(world: World) -> list[Landed]:
        # Each in a session of its own: a second click of the same one would replace the first.
        sessions = [session] if flows == 1 else ["7", "8", None][:flows]
        landed = []
        for each in sessions:
            started = await initiate(world, deps, server_name="notion", session=each)
            landed.append(await consented(world, started, stage))
        return landed

    rows = {**WAITING, ("sessions", "8"): WAITING["sessions", "7"]}
    ran = run_world(program, servers=stage.servers, rows=rows)
    return dict(ran.simulation.table.committed), ran.result


def returning(landed: Landed) -> Program:
    """The hosted callback."""

    async def program(world: World) -> None:
        answer = await callback(world, DEPS, landed.parameters)
        world.events.emit("answered", page=answer.page, status=answer.status, message=answer.message)

    return program


def pasting(landed: Landed) -> Program:
    """The paste page."""

    async def program(world: World) -> None:
        answer = await complete(world, DEPS, state=landed.parameters["state"], pasted=landed.url)
        world.events.emit("answered", page=answer.page, status=answer.status, message=answer.message)

    return program


def is_posted(event: Event) -> bool:
    """Whether a token request was answered."""
    return event.name == "request" and event.details["at"] == "POST https://linear.test/token"


async def restarting(world: World) -> None:
    """A click on the same button."""
    await initiate(world, DEPS, server_name="notion")


async def sweeping(world: World) -> None:
    """The sweep of another click."""
    await sweep_expired_session_less(world)


def posted_codes(stage: Stage) -> list[str]:
    """The codes that the token endpoint has seen."""
    return [each.fields["code"] for each in stage.authorization.received("token")]


def assert_whole(ran: Ran, stage: Stage) -> None:
    """What must hold after anything: no code twice, no half row, no token that the provider does not know as good."""
    codes = posted_codes(stage)
    assert len(codes) == len(set(codes))
    pairs = {(made.access, made.refresh) for made in stage.authorization.tokens if not made.access_revoked}
    for row in credential_rows(ran).values():
        assert set(row) == set(COLUMNS)
        assert (row["access_token"], row["refresh_token"]) in pairs
    assert len(credential_rows(ran)) <= 1


@pytest.mark.requirement("flow-callback-single-use", "authorize-state-single-use")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("second", [returning, pasting])
def test_two_completions_of_one_flow_post_its_code_once(second: Callable[[Landed], Program], seed: int) -> None:
    stage = stage_of("notion")
    rows, [landed] = under_way(stage)
    ran = run_world(
        returning(landed), servers=stage.servers, rows=rows, others={"tab 2": second(landed)},
        decisions=Seeded(seed, run=0.5, stall=0),
    )  # fmt: skip
    assert len(posted_codes(stage)) == 1
    assert sorted(told["page"] for told in ran.named("answered")) == ["error", "redirect"]
    assert [told["message"] for told in ran.named("answered") if told["page"] == "error"] == [UNKNOWN.message]
    assert flow_rows(ran) == []
    assert len(credential_rows(ran)) == 1
    assert_whole(ran, stage)


@pytest.mark.requirement("flow-callback-single-use")
@pytest.mark.parametrize("seed", SEEDS)
def test_two_completions_that_take_long_post_the_code_once_too(seed: int) -> None:
    stage = stage_of("notion")
    rows, [landed] = under_way(stage)
    ran = run_world(
        returning(landed), servers=stage.servers, rows=rows, others={"tab 2": returning(landed)},
        decisions=Seeded(seed, run=0.5, stall=0.4),
    )  # fmt: skip
    assert len(posted_codes(stage)) <= 1
    assert bool(credential_rows(ran)) is ("redirect" in [told["page"] for told in ran.named("answered")])
    assert flow_rows(ran) == []
    assert_whole(ran, stage)


@pytest.mark.requirement("flow-callback-single-use", "authorize-state-single-use")
@pytest.mark.parametrize("second", [returning, pasting])
def test_a_second_completion_while_the_code_is_posted_finds_no_flow(second: Callable[[Landed], Program]) -> None:
    stage = stage_of("notion")
    rows, [landed] = under_way(stage)
    posting = Hold(
        "zimmer", "POST https://notion.test/token", until=lambda event: event.name == "ended" and event.actor == "tab 2"
    )
    ran = run_world(
        returning(landed), servers=stage.servers, rows=rows, others={"tab 2": second(landed)}, holds=[posting]
    )
    assert len(posted_codes(stage)) == 1
    assert [told["page"] for told in ran.named("answered")] == ["error", "redirect"]
    assert_whole(ran, stage)


@pytest.mark.requirement("authorize-state-single-use", "flow-callback-single-use")
def test_a_replayed_callback_finds_no_flow() -> None:
    stage = stage_of("notion")
    rows, [landed] = under_way(stage)

    async def twice(world: World) -> list[Answer]:
        return [await callback(world, DEPS, landed.parameters) for _ in range(2)]

    ran = run_world(twice, servers=stage.servers, rows=rows)
    assert ran.result[0].page == "redirect"
    assert ran.result[1] == UNKNOWN
    assert len(posted_codes(stage)) == 1
    assert not any(made.access_revoked for made in stage.authorization.tokens)


@pytest.mark.requirement("authorize-concurrent-completions", "authorize-replace-in-place")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("silent", [(), ("ok-without-refresh",), ("ok", "ok-without-refresh")])
def test_two_flows_of_one_server_leave_one_whole_row(silent: tuple[str, ...], seed: int) -> None:
    stage = stage_of("linear", token_answers=silent)
    deps = deployment({"notion": {"type": "streamable-http", "url": "https://linear.test/mcp"}})
    rows, [first, second] = under_way(stage, deps=deps, flows=2)
    ran = run_world(
        returning(first), servers=stage.servers, rows=rows, others={"tab 2": returning(second)},
        decisions=Seeded(seed, run=0.5, stall=0),
    )  # fmt: skip
    assert {told["page"] for told in ran.named("answered")} == {"redirect"}
    assert flow_rows(ran) == []
    row = only(credential_rows(ran).values())
    made = {each.access: each for each in stage.authorization.tokens}
    assert len(made) == 2
    refresh_tokens = {each.refresh for each in made.values() if each.refresh is not None}
    assert row["client_id"] == made[row["access_token"]].client_id
    assert row["refresh_token"] == made[row["access_token"]].refresh or (
        made[row["access_token"]].refresh is None and row["refresh_token"] in {*refresh_tokens, None}
    )
    assert row["refresh_token_unsupported"] is (row["refresh_token"] is None)


@pytest.mark.requirement("authorize-concurrent-completions")
def test_a_row_that_another_completion_stores_in_between_is_updated_and_not_lost() -> None:
    stage = stage_of("linear", token_answers=("ok", "ok-without-refresh"))
    deps = deployment({"notion": {"type": "streamable-http", "url": "https://linear.test/mcp"}})
    rows, [first, second] = under_way(stage, deps=deps, flows=2)
    late = Hold(
        "tab 2", f"put row {CREDENTIALS}/*", until=lambda event: event.name == "ended" and event.actor == "zimmer",
        limit_seconds=5,
    )  # fmt: skip
    early = Hold("tab 2", "POST https://linear.test/token", until=is_posted)
    ran = run_world(
        returning(first), servers=stage.servers, rows=rows, others={"tab 2": returning(second)}, holds=[early, late]
    )
    row = only(credential_rows(ran).values())
    one, other = stage.authorization.tokens
    assert (one.refresh is None) is not (other.refresh is None)
    assert row["refresh_token"] in (one.refresh or other.refresh, None)
    assert row["refresh_token_unsupported"] is (row["refresh_token"] is None)


@pytest.mark.requirement("authorize-sweep-scope")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_sweep_during_a_flow_takes_it_or_leaves_it_whole(seed: int) -> None:
    stage = stage_of("notion")
    rows, [landed] = under_way(stage)
    state = landed.parameters["state"]
    expiring = {**rows, (FLOWS, state): {**rows[FLOWS, state], "expires_at": START_SECONDS + 1}}

    async def later(world: World) -> None:
        await world.clock.sleep(1)
        await sweeping(world)

    ran = run_world(
        returning(landed), servers=stage.servers, rows=expiring, others={"sweep": later},
        decisions=Seeded(seed, run=0.5, stall=0.5),
    )  # fmt: skip
    answered = only(ran.named("answered"))
    assert bool(posted_codes(stage)) is (answered["page"] == "redirect") is bool(credential_rows(ran))
    assert flow_rows(ran) == []
    assert_whole(ran, stage)


@pytest.mark.requirement("flow-pending-flow-one-per-server")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("finishing", [returning, pasting])
def test_a_new_click_during_a_completion_leaves_one_flow_and_one_exchange(
    finishing: Callable[[Landed], Program], seed: int
) -> None:
    stage = stage_of("notion", token_answers=("invalid_grant",) if seed % 2 else ())
    rows, [landed] = under_way(stage)
    ran = run_world(
        finishing(landed), servers=stage.servers, rows=rows, others={"tab 2": restarting},
        decisions=Seeded(seed, run=0.5, stall=0.3),
    )  # fmt: skip
    left = flow_rows(ran)
    assert len(left) <= 1
    assert len(posted_codes(stage)) <= 1
    assert_whole(ran, stage)


async def clicking_in_the_session(world: World) -> None:
    """A click on the button of the session's own page."""
    await initiate(world, DEPS, server_name="notion", session="7")


@pytest.mark.requirement("reconnect-parked-release-via-own-initiate")
@pytest.mark.parametrize("finishing", [returning, pasting])
def test_a_click_while_the_code_is_posted_does_not_keep_the_session_parked(
    finishing: Callable[[Landed], Program],
) -> None:
    stage = stage_of("notion")
    rows, [landed] = under_way(stage, session="7")
    posting = Hold(
        "zimmer", "POST https://notion.test/token", until=lambda event: event.name == "ended" and event.actor == "tab 2"
    )
    ran = run_world(
        finishing(landed), servers=stage.servers, rows=rows, others={"tab 2": clicking_in_the_session}, holds=[posting]
    )
    assert len(ran.named("oauth.started")) == 1
    assert ran.named("session.resumed") == [{"servers": ["notion"]}]
    assert flow_rows(ran) == []
    assert_whole(ran, stage)


async def clicking_once_it_is_authorized(world: World) -> None:
    """A click of the same session after the server was authorized on the Connectors page."""
    await world.clock.sleep(1.0)
    [(key, values)] = stored(3600.0).items()
    transaction = await world.store.begin()
    await transaction.put(*key, values)
    await transaction.commit()
    world.events.emit("authorized")
    answer = await initiate(world, DEPS, server_name="notion", session="7")
    world.events.emit("answered", message=answer.message)


@pytest.mark.requirement("gate-initiate-short-circuit-retries", "reconnect-parked-release-via-own-initiate")
def test_a_flow_that_an_earlier_tab_stores_while_the_session_is_retried_does_not_keep_it_parked() -> None:
    """The earlier click was right, nothing was authorized then: its flow comes between the other's look and retry."""
    stage = stage_of("notion")
    late = Hold("tab 2", "lock row sessions/7", until=lambda event: event.name == "credential.injected")
    waiting = Hold(
        "zimmer", "lock row sessions/7", until=lambda event: event.name == "ended" and event.actor == "tab 2"
    )
    ran = run_world(
        clicking_once_it_is_authorized, servers=stage.servers, rows=WAITING, others={"tab 2": clicking_in_the_session},
        holds=[late, waiting],
    )  # fmt: skip
    assert [told["server"] for told in ran.named("oauth.started")] == ["notion"]
    assert len(ran.named("session.resumed")) == 1
    assert ran.named("answered") == [{"message": "notion is already authorized — retrying the session."}]
    assert flow_rows(ran) == []


@pytest.mark.requirement("gate-initiate-short-circuit-retries", "gate-rejected-grant-resolves")
def test_a_flow_that_is_wanted_since_the_credential_was_retired_outlives_a_click_that_saw_it_good() -> None:
    stage = stage_of("notion")

    async def retiring(world: World) -> None:
        await world.clock.sleep(0.5)
        assert await retire(world, NOTION_KEY, (), "notion")
        await initiate(world, DEPS, server_name="notion", session="7")

    deciding = Hold(
        "zimmer", f"lock row {CREDENTIALS}/*", until=lambda event: event.name == "ended" and event.actor == "tab 2"
    )
    ran = run_world(
        clicking_in_the_session, servers=stage.servers, rows={**WAITING, **stored(3600.0)},
        others={"tab 2": retiring}, holds=[deciding],
    )  # fmt: skip
    assert len(ran.named("oauth.started")) == 1
    assert ran.named("session.resumed") == []
    assert [flow["session"] for flow in flow_rows(ran)] == ["7"]


# --- kill -9


def killed(stage_name: str, finishing: Callable[[Landed], Program]) -> Iterator[tuple[Stage, Ran, Landed]]:
    """A completion that is killed at each of its switch points in turn."""
    for point in range(MOST_POINTS):
        stage = stage_of(stage_name)
        rows, [landed] = under_way(stage)
        kill = Fault("kill", actor="zimmer", drawn=True, times=1)
        decisions = Listed([0] * point + [1])
        ran = run_world(finishing(landed), servers=stage.servers, rows=rows, faults=[kill], decisions=decisions)
        if ran.named("fault"):
            assert point < MOST_POINTS - 1
            yield stage, ran, landed


@pytest.mark.requirement("flow-callback-single-use", "authorize-state-single-use")
@pytest.mark.parametrize("finishing", [returning, pasting])
def test_whoever_dies_at_any_point_of_a_completion_leaves_no_half_row_and_no_flow_that_is_good_twice(
    finishing: Callable[[Landed], Program],
) -> None:
    outcomes = set()
    for stage, ran, landed in killed("notion", finishing):
        assert_whole(ran, stage)
        before = len(posted_codes(stage))
        assert not (before and flow_rows(ran))
        rows = dict(ran.simulation.table.committed)
        again = run_world(returning(landed), servers=stage.servers, rows=rows, others={"tab 2": pasting(landed)})
        assert len(posted_codes(stage)) == (1 if flow_rows(ran) else before)
        assert_whole(again, stage)
        assert flow_rows(again) == []
        outcomes.add((bool(flow_rows(ran)), before, bool(credential_rows(ran))))
    assert outcomes == {(True, 0, False), (False, 0, False), (False, 1, False), (False, 1, True)}


@pytest.mark.requirement("reconnect-parked-release-via-own-initiate", "gate-initiate-short-circuit-retries")
@pytest.mark.parametrize("finishing", [returning, pasting])
def test_whenever_a_completion_dies_beside_another_click_the_next_click_gets_the_session_going(
    finishing: Callable[[Landed], Program],
) -> None:
    stuck = []
    for point in range(MOST_POINTS):
        stage = stage_of("notion")
        rows, [landed] = under_way(stage, session="7")
        others = {"tab 2": clicking_in_the_session, "sweep": sweeping}
        kill = Fault("kill", actor="zimmer", drawn=True, times=1)
        ran = run_world(
            finishing(landed), servers=stage.servers, rows=rows, others=others, faults=[kill],
            decisions=Listed([point % 3] * point + [1]),
        )  # fmt: skip
        again = run_world(whole_flow_or_none(stage), servers=stage.servers, rows=dict(ran.simulation.table.committed))
        row = again.row("sessions", "7")
        assert row is not None
        stuck += [] if row["status"] == "waiting" and credential_rows(again) else [point]
        assert_whole(again, stage)
    assert stuck == []


def whole_flow_or_none(stage: Stage) -> Program:
    """A click on the session's own button, and the consent if one is asked for."""

    async def program(world: World) -> None:
        started = await initiate(world, DEPS, server_name="notion", session="7")
        if started.flow_state is not None:
            await finish(world, DEPS, started, stage)

    return program


@pytest.mark.requirement("flow-pending-flow-one-per-server")
def test_whoever_dies_while_starting_a_flow_leaves_the_old_one_or_the_new_one() -> None:
    for point in range(MOST_POINTS):
        stage = stage_of("notion")
        rows, _ = under_way(stage)
        kill = Fault("kill", actor="zimmer", drawn=True, times=1)
        decisions = Listed([0] * point + [1])
        ran = run_world(restarting, servers=stage.servers, rows=rows, faults=[kill], decisions=decisions)
        assert len(flow_rows(ran)) == 1
        assert point < MOST_POINTS - 1 or not ran.named("fault")


@pytest.mark.requirement("flow-manual-failure-keeps-flow")
def test_a_paste_that_fails_while_its_server_is_started_anew_does_not_bring_the_old_flow_back() -> None:
    stage = stage_of("notion", token_answers=("invalid_grant",))
    rows, [landed] = under_way(stage, deps=MANUAL)
    waiting = Hold(
        "zimmer", "processed POST https://notion.test/token",
        until=lambda event: event.name == "ended" and event.actor == "tab 2",
    )  # fmt: skip
    ran = run_world(pasting(landed), servers=stage.servers, rows=rows, others={"tab 2": restarting}, holds=[waiting])
    row = only(flow_rows(ran))
    assert row["state"] != landed.parameters["state"]
    assert list(credential_rows(ran)) == []


@pytest.mark.requirement("authorize-state-single-use")
@pytest.mark.parametrize("seed", range(60))
def test_a_crowd_over_one_flow_posts_once_and_leaves_one_credential_at_most(seed: int) -> None:
    stage = stage_of("notion")
    rows, [landed] = under_way(stage, session="7")
    others = {
        "tab 2": returning(landed),
        "tab 3": pasting(landed),
        "click": restarting,
        "sweep": sweeping,
    }
    faults = [Fault("kill", actor="tab *", drawn=True, times=1)]
    ran = run_world(
        returning(landed), servers=stage.servers, rows=rows, others=others, faults=faults,
        decisions=Seeded(seed, run=0.5, stall=0.2, fault=0.05),
    )  # fmt: skip
    assert len(posted_codes(stage)) <= 1
    assert sum(row["session"] == "7" for row in flow_rows(ran)) <= 1
    assert set(credential_rows(ran)) <= {NOTION_KEY}
    assert_whole(ran, stage)
