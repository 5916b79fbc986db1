"""The pass over failed servers beside all else: its process, other writers of the row, the spawns that follow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.reference.session import rows as sessions
from harness.reference.session.job import run_session
from harness.world import World
from harness.world.model import Seeded
from scenarios.units.failed_handshakes_run import (
    CLOSED,
    CONNECTED,
    FILES,
    INVALID_TOKEN,
    NOTION,
    SECONDS,
    STATIC,
    UNAUTHORIZED,
    Handshakes,
)
from scenarios.units.oauth_run import START_SECONDS
from scenarios.units.spawn_gate_run import CLONE, SESSION, STORE, Session, credential, refuses, remote, stdio

REJECTED = "their credentials were rejected"
EXHAUSTED = "they did not connect after 3 retries"


def changed_at(seconds: float, **noted: Any) -> Any:
    """Somebody who changes the session's notes."""

    async def changes(world: World) -> None:
        await world.clock.sleep(seconds)
        await sessions.change(
            world,
            SESSION,
            lambda values: sessions.with_metadata(values, {**sessions.metadata(values), **noted}),
        )

    return {"somebody": changes}


@pytest.mark.requirement("failure-kill-before-routing")
@pytest.mark.parametrize(
    ("catalog", "error", "then"),
    [
        (FILES, CLOSED, "session.retry"),
        (STATIC, INVALID_TOKEN, "session.degraded"),
        (NOTION, UNAUTHORIZED, "session.blocked"),
    ],
)
def test_the_process_has_ended_before_anything_is_decided(catalog, error, then):
    (name,) = catalog
    run = Handshakes(catalog, [{name: error}, {name: CONNECTED}])
    events = [event.name for event in run.ran.events if event.name in ("killed", "spawn", then)]
    assert events[:3] == ["spawn", "killed", then]


@pytest.mark.requirement("failure-kill-before-routing", "failure-record-repeat-is-noop")
def test_a_process_whose_failed_server_is_left_out_already_runs_on():
    known = {"mcp_degraded_servers": [{"name": "files", "reason": EXHAUSTED}]}
    run = Handshakes(FILES, [{"files": CLOSED}], metadata=known)
    assert run.ran.named("killed") == []
    assert run.ran.simulation.now >= START_SECONDS + SECONDS


@pytest.mark.requirement("failure-reloads-before-deciding", "failure-record-repeat-is-noop")
def test_the_pass_goes_by_the_row_as_it_is_now_and_not_as_the_job_began_with_it():
    said = {"files": CLOSED}
    record = [{"name": "files", "reason": EXHAUSTED}]
    run = Handshakes(FILES, [said], others=changed_at(1.0, mcp_degraded_servers=record))
    assert (len(run.spawned), run.retried, run.ran.named("killed")) == (1, [], [])
    assert run.metadata["mcp_degraded_servers"] == record
    spent = Handshakes(FILES, [said], others=changed_at(1.0, mcp_retry_count=3))
    assert spent.record == {"files": EXHAUSTED}


@pytest.mark.requirement("failure-handler-never-raises")
@pytest.mark.parametrize("step", ["failures_of", "classes_of", "decided", "heal_failed"])
def test_what_goes_wrong_in_a_pass_fails_no_session(step, monkeypatch):
    async def raises(*_: Any) -> Any:
        raise RuntimeError("the-text-of-it")

    monkeypatch.setattr(f"harness.reference.session.job.{step}", raises)
    run = Handshakes({**NOTION, **FILES}, [{"files": CLOSED, "notion": CONNECTED}])
    assert run.row["status"] == "needs_input"
    assert "failure_reason" not in run.metadata
    assert len(run.spawned) == 1
    assert ("error", "the pass over failed MCP servers failed: RuntimeError") in run.log
    assert "the-text-of-it" not in run.ran.told


@pytest.mark.requirement("failure-race-metadata-lost-update")
@pytest.mark.parametrize("seed", range(5))
def test_what_others_note_during_a_pass_is_kept(seed):
    noted = {"pending_follow_up_prompt": "do X", "mcp_oauth_reconnect": {"servers": ["n"]}}
    for seconds in (2.3, 2.5, 2.6):
        run = Handshakes(
            {**STATIC, **FILES}, [{"zimmer-sessions": INVALID_TOKEN, "files": CLOSED}, {"files": CONNECTED}],
            others=changed_at(seconds, **noted), decisions=Seeded(seed),
        )  # fmt: skip
        assert run.metadata["pending_follow_up_prompt"] == "do X"
        assert run.metadata["mcp_oauth_reconnect"] == {"servers": ["n"]}
        assert run.record == {"zimmer-sessions": REJECTED}


# --- the spawns that follow


@pytest.mark.requirement("failure-ladder-first-success-ends")
@pytest.mark.parametrize("failures", [1, 2, 3])
def test_a_server_that_connects_at_a_later_try_was_never_left_out(failures):
    run = Handshakes(FILES, [*[{"files": CLOSED}] * failures, {"files": CONNECTED}])
    assert len(run.spawned) == failures + 1
    assert "mcp_degraded_servers" not in run.metadata
    assert run.ran.named("session.degraded") == []


@pytest.mark.requirement("failure-ladder-hang-is-not-stable")
@pytest.mark.parametrize("budget_seconds", [180.0, 600.0])
def test_waiting_for_a_server_that_hangs_hands_no_retry_back(budget_seconds):
    starts = [*[{"files": CLOSED}] * 7, {"files": CONNECTED}]
    run = Handshakes(FILES, starts, hangs_seconds=budget_seconds)
    assert [each["after_seconds"] for each in run.ran.named("session.retry")] == [30, 60, 120]
    assert run.record == {"files": EXHAUSTED}
    assert len(run.spawned) == 5


@pytest.mark.requirement("failure-record-free-reconnect", "failure-retire-rearms-ladder")
def test_a_server_that_is_mended_connects_with_the_next_spawn_and_has_its_ladder_anew():
    async def twice(world: World, order: Any) -> Any:
        await run_session(world, order)
        return await run_session(world, order)

    starts = [*[{"files": CLOSED}] * 4, {"files": CONNECTED}, {"files": CLOSED}, {"files": CONNECTED}]
    run = Handshakes(FILES, starts, program=twice)
    assert [each["servers"] for each in run.ran.named("session.degraded")] == [["files"]]
    assert "mcp_degraded_servers" not in run.metadata
    assert [each["after_seconds"] for each in run.ran.named("session.retry")] == [30, 60, 120, 30]
    assert json.loads(run.text(f"{CLONE}/.mcp.json") or "{}")["mcpServers"].keys() >= {"files"}


@pytest.mark.requirement("failure-record-credentials-still-injected")
def test_a_server_that_is_left_out_is_prepared_like_any_other():
    known = {"mcp_degraded_servers": [{"name": "notion", "reason": EXHAUSTED}]}
    session = Session(NOTION, credentials=[credential("notion")], row={"metadata": known})
    assert session.tokens() == {"notion": "access-of-notion"}


@pytest.mark.requirement("failure-replay-uncalled-fallback")
def test_a_fallback_that_nobody_calls_costs_a_session_nothing_but_itself():
    catalog = {**FILES, "fallback": remote("fallback", headers={"X-API-Key": "stale"})}
    said = {"fallback": "HTTP Connection failed after 9ms: no (code: 503, errno: none)", "files": CONNECTED}
    run = Handshakes(catalog, [said], more_rows=working(catalog), answers=[1, 2, 3, 4, 5])
    assert run.row["transcript"] == "two hours of work"
    assert run.row.get("status") != "failed"
    assert run.record == {"fallback": EXHAUSTED}
    assert [each["exit_code"] for each in run.ran.named("session.ended")] == [0]


def working(catalog: Any) -> Any:
    """The row of a session that has worked for a while."""
    row = {"mcp_servers": list(catalog), "metadata": {}, "transcript": "two hours of work", "session_id": "uuid"}
    return {(sessions.TABLE, SESSION): row}


# --- before the spawn


@pytest.mark.requirement(
    "failure-gate-before-spawn", "failure-gate-parks-session", "failure-gate-nothing-injected-when-blocked",
    "failure-gate-block-not-degrade",
)  # fmt: skip
def test_who_has_to_be_authorized_before_the_spawn_parks_the_session_and_is_not_left_out():
    catalog = {**NOTION, "linear": remote("linear")}
    session = Session(catalog, refuses("notion"), credentials=[credential("linear")])
    assert (session.spawns, session.tokens(), session.text(STORE)) == (0, {}, None)
    assert (session.row["status"], session.metadata.get("failure_reason")) == ("failed", "oauth_required")
    assert session.required == ["notion"]
    assert not {"mcp_degraded_servers", "mcp_retry_count"} & session.metadata.keys()


@pytest.mark.requirement("failure-gate-remote-may-need-oauth")
@pytest.mark.parametrize(
    ("entry", "judged"),
    [
        (remote("x"), ["x"]),
        (remote("x", type="http"), ["x"]),
        (remote("x", type="sse"), ["x"]),
        (remote("x", headers={"Authorization": "Bearer t"}), []),
        (stdio(), []),
    ],
)
def test_every_remote_server_without_a_key_of_its_own_may_need_a_sign_in(entry, judged):
    assert list(Session({"x": entry}).verdicts) == judged
