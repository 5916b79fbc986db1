"""The retry ladder and the record of servers left out, as pure rules and over whole sessions."""

from __future__ import annotations

from typing import Any

import pytest

from fake_runtimes.plan import Plan, Turn
from fake_servers.npm import Package
from harness.reference.session import ladder
from scenarios.session_runs import SessionRun, npx

NOW = 1_700_000_000.0
ERROR = "Connection failed after 9ms: Connection closed"


@pytest.mark.parametrize(
    ("count", "route", "after_seconds", "then"),
    [(0, "retry", 30, 1), (1, "retry", 60, 2), (2, "retry", 120, 3), (3, "degrade", 0, 3), ("x", "retry", 30, 1)],
)
def test_three_retries_come_after_30_60_and_120_seconds_and_then_the_server_is_left_out(
    count, route, after_seconds, then
):
    decision = ladder.decide({"mcp_retry_count": count, "kept": 1}, {"a": ERROR}, NOW)
    assert (decision.route, decision.after_seconds, decision.servers) == (route, after_seconds, ("a",))
    assert decision.metadata["mcp_retry_count"] == then
    assert decision.metadata["kept"] == 1


def test_a_record_names_the_server_its_error_and_why_and_is_made_once_a_name():
    first = ladder.left_out({}, {"a": ERROR, "b": ""}, NOW)
    again = ladder.left_out(first, {"a": "later"}, NOW + 1)
    stamp, later = "2023-11-14T22:13:20.000Z", "2023-11-14T22:13:21.000Z"
    assert first["mcp_degraded_servers"] == [
        {"name": "a", "error": ERROR, "reason": "they did not connect after 3 retries", "degraded_at": stamp},
        {"name": "b", "reason": "they did not connect after 3 retries", "degraded_at": stamp},
    ]
    assert [(entry["name"], entry["degraded_at"]) for entry in again["mcp_degraded_servers"]] == [
        ("a", later),
        ("b", stamp),
    ]


def test_what_is_left_out_already_decides_nothing_and_is_not_stamped_again():
    recorded = ladder.left_out({}, {"a": ERROR}, NOW)
    assert ladder.decide(recorded, {"a": ERROR}, NOW + 60).route == "nothing"
    assert ladder.decide({}, {}, NOW).route == "nothing"
    decision = ladder.decide(recorded, {"a": ERROR, "b": ERROR}, NOW + 60)
    assert (decision.route, decision.servers) == ("retry", ("b",))
    assert decision.metadata["mcp_degraded_servers"] == recorded["mcp_degraded_servers"]
    assert [entry["name"] for entry in decision.metadata["mcp_failed_servers"]] == ["b"]


def test_only_a_connection_retires_a_record_and_the_last_one_takes_the_key_along():
    recorded = ladder.left_out({"other": 1}, {"a": ERROR, "b": ERROR}, NOW)
    one = ladder.retired(recorded, {"a", "c"})
    assert ladder.recorded_names(one) == {"b"}
    assert ladder.retired(one, {"b"}) == {"other": 1, "paused_by": "recovery"}
    assert ladder.retired(recorded, ()) == recorded


def test_a_ladder_that_is_handed_back_starts_again_and_keeps_the_rest():
    spent = {"mcp_retry_count": 3, "mcp_last_retry_at": "x", "mcp_failed_servers": [], "mcp_degraded_servers": []}
    assert ladder.handed_back(spent) == {"mcp_failed_servers": [], "mcp_degraded_servers": []}
    assert ladder.is_settled(("a", "b"), {"a"}, {"b"})
    assert not ladder.is_settled(("a", "b"), {"a"}, ())


# --- over sessions ----------------------------------------------------------------------------------------------------


def session(*packages: Package, **options: Any) -> SessionRun:
    catalog = {package.name: npx(f"{package.name}@latest") for package in packages}
    return SessionRun("claude-2.1.268", catalog, packages, **options).finished()


def test_a_server_beside_the_broken_one_stays_connected_to_the_end():
    run = session(Package("good"), Package("bad", broken=True))
    assert run.degraded == ["bad"]
    assert run.connected().count("good") == len(run.spawned)
    assert run.actor.exit_code == 0


def test_a_run_that_was_stable_for_a_minute_has_its_ladder_anew():
    stable = session(Package("ctx", bin_mode=0o644))
    assert "mcp_retry_count" not in stable.row["metadata"]
    short = session(Package("ctx", bin_mode=0o644), plan=Plan((Turn(seconds=50.0),)))
    assert short.row["metadata"]["mcp_retry_count"] == 1


def test_a_recorded_server_costs_the_next_session_no_retry_and_is_still_configured():
    first = session(Package("bad", broken=True))
    following = SessionRun(
        "claude-2.1.268", {"bad": npx("bad@latest")}, [Package("bad", broken=True)], before=first
    ).finished()
    assert len(following.spawned) == 1
    assert following.degraded == ["bad"]
    assert "bad" in following.servers()


def test_a_recorded_server_that_works_again_is_recorded_no_more():
    first = session(Package("bad", broken=True))
    first.tree.make_directory("/nowhere", 0o755, 0, 0.0)
    mended = SessionRun("claude-2.1.268", {"bad": npx("bad@latest")}, [Package("bad")], before=first).finished()
    assert mended.degraded == []
    assert "mcp_degraded_servers" not in mended.row["metadata"]


@pytest.mark.parametrize("profile", ["claude-2.1.268", "claude-2.1.328", "codex-0.169.0", "pi-0.84.1+2.32.1"])
def test_a_session_with_one_good_server_stays_small(profile):
    run = SessionRun(profile, {"ctx": npx("ctx@latest")}, [Package("ctx")]).finished()
    assert run.connected() == ["ctx"]
    assert len(run.spawned) == 1
    assert run.outcome.steps < 260
