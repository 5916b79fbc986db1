"""How a headless Claude ends its servers, and what it leaves behind."""

from __future__ import annotations

import pytest

from fake_runtimes.plan import Plan, Turn
from fake_servers.mcp import Behaviour
from scenarios.claude_runs import NEW, OLD, ClaudeRun

GOOD = Behaviour()
D = "debug"
BOTH = pytest.mark.parametrize("profile", [OLD, NEW])
HANGS_ON = Behaviour(initialize="never", ignores_stdin_end=True)
STILL_THERE = {OLD: None, NEW: -2}


@BOTH
def test_a_good_process_takes_one_signal(profile):
    run = ClaudeRun(profile, {"good": GOOD})
    assert run.ending("good") == -2
    assert run.events("run.ended")[0]["at"] == 1.0


@BOTH
def test_deaf_processes_are_killed_side_by_side_half_a_second_later(profile):
    run = ClaudeRun(profile, {"a": Behaviour(ignores_signals=True), "good": GOOD, "b": Behaviour(ignores_signals=True)})
    assert [run.ending(name) for name in ("a", "good", "b")] == [-9, -2, -9]
    assert run.events("run.ended")[0]["at"] == 1.5
    assert run.log("a")[3:] == [
        (D, "Sending SIGINT to MCP server process"),
        (D, "SIGINT failed, sending SIGTERM to MCP server process"),
        (D, "SIGTERM failed, sending SIGKILL to MCP server process"),
        (D, "UNKNOWN connection closed after 1s (cleanly)"),
        (D, "Cleared connection cache for reconnection"),
    ]


@BOTH
def test_the_older_version_leaves_a_process_that_timed_out_behind(profile):
    run = ClaudeRun(profile, {"hangs": HANGS_ON}, env={"MCP_TIMEOUT": "1000"})
    assert run.ending("hangs") == STILL_THERE[profile]
    assert run.exit_code == 0
    assert run.outcome.verdict == ("deadlock" if profile == OLD else "done")


@BOTH
def test_the_older_version_leaves_a_process_that_is_still_pending_behind(profile):
    run = ClaudeRun(profile, {"hangs": HANGS_ON}, plan=Plan((Turn(seconds=0.25),)))
    assert run.ending("hangs") == STILL_THERE[profile]
    abandoned = "Connection abandoned after 2250ms (Claude Code is shutting down)"
    last = {OLD: "Starting connection with timeout of 30000ms", NEW: abandoned}
    assert run.log("hangs")[-1] == (D, last[profile])
    assert run.exit_code == 0


@BOTH
def test_a_process_that_never_connected_may_still_end_with_its_stdin(profile):
    run = ClaudeRun(profile, {"hangs": Behaviour(initialize="never")}, env={"MCP_TIMEOUT": "1000"})
    assert run.ending("hangs") == (0 if profile == OLD else -2)
    assert run.outcome.verdict == "done"


@BOTH
def test_servers_that_wait_for_their_turn_at_the_end_are_never_started(profile):
    run = ClaudeRun(profile, {**{f"s{n}": Behaviour(initialize="never") for n in range(3)}, "late": GOOD})
    assert len(run.spawned) == 3
    assert [path for path in run.log_files() if "mcp-logs-late/" in path] == []
    assert run.statuses()["late"] == "pending"


@BOTH
def test_every_server_failing_is_no_failure_of_the_run(profile):
    run = ClaudeRun(profile, {"bad": Behaviour(exits="at-start")}, {"far": Behaviour(status=401)})
    assert run.exit_code == 0
    assert run.lines()[-1]["is_error"] is False
