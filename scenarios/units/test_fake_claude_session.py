"""A headless Claude as it runs: which servers, when, how long it waits, what it offers and calls."""

from __future__ import annotations

import json

import pytest

from fake_runtimes.claude.command import program
from fake_runtimes.plan import Plan, ToolCall, Turn
from fake_runtimes.profile import load_profile
from fake_servers.mcp import Behaviour, Tool
from harness.world.model import Fault, Seeded
from scenarios.claude_runs import CLONE, HOME, NEW, OLD, ClaudeRun

GOOD = Behaviour()
HANGS = Behaviour(initialize="never")
WAITING = {"MCP_CONNECTION_NONBLOCKING": "0"}
BOTH = pytest.mark.parametrize("profile", [OLD, NEW])
USER_CONFIG, SETTINGS = f"{HOME}/.claude.json", f"{HOME}/.claude/settings.json"


def named(count: int, behaviour: Behaviour = GOOD) -> dict[str, Behaviour]:
    return {f"s{number}": behaviour for number in range(count)}


def slow(seconds: float) -> Behaviour:
    return Behaviour(initialize_after_seconds=seconds)


def settings(**members) -> dict[str, str]:
    return {SETTINGS: json.dumps(members)}


@BOTH
def test_a_run_connects_asks_the_model_and_ends_with_0(profile):
    run = ClaudeRun(profile, {"good": GOOD}, {"far": GOOD})
    assert run.outcomes() == {"good": ("connected", 0.0), "far": ("connected", 0.0)}
    assert run.requests() == [(0.0, ["mcp__far__echo", "mcp__good__echo"], [])]
    assert run.events("run.ended") == [{"exit_code": 0, "at": 1.0}]
    assert (run.exit_code, run.outcome.verdict) == (0, "done")
    init, _, result = run.lines()
    assert (init["type"], init["subtype"], init["cwd"]) == ("system", "init", CLONE)
    search = ["ToolSearch"] if profile == NEW else []
    assert init["tools"] == [*search, "mcp__far__echo", "mcp__good__echo"]
    assert (result["type"], result["is_error"], result["session_id"]) == ("result", False, init["session_id"])
    source = {"source": "project"} if profile == NEW else {}
    assert init["mcp_servers"][0] == {"name": "good", "status": "connected", **source}


@BOTH
def test_the_first_request_waits_two_seconds_and_no_longer(profile):
    run = ClaudeRun(profile, {"quick": slow(1.5), "slow": slow(3.0)}, plan=Plan((Turn(seconds=2.0), Turn())))
    assert run.requests() == [
        (2.0, ["mcp__quick__echo"], ["slow"]),
        (4.0, ["mcp__quick__echo", "mcp__slow__echo"], []),
    ]
    assert run.outcomes() == {"quick": ("connected", 1.5), "slow": ("connected", 3.0)}
    assert run.statuses() == {"quick": "connected", "slow": "pending"}
    extra = [one["extra"] for one in run.events("model.request")]
    deferring = ["ToolSearch", "DeferredToolPlaceholder"]
    assert extra == ([["WaitForMcpServers"], []] if profile == OLD else [deferring, deferring])


@pytest.mark.parametrize("value", ["0", "false"])
@pytest.mark.requirement("startup-timeout-default-hang-held")
@BOTH
def test_a_run_in_waiting_mode_holds_a_hang_to_its_budget_and_not_less(profile, value):
    env = {"MCP_CONNECTION_NONBLOCKING": value, "MCP_TIMEOUT": "180000"}
    run = ClaudeRun(profile, {"good": GOOD, "hangs": HANGS, "late": slow(179.9)}, env=env)
    assert run.outcomes() == {"good": ("connected", 0.0), "hangs": ("failed", 180.0), "late": ("connected", 179.9)}
    assert run.requests() == [(180.0, ["mcp__good__echo", "mcp__late__echo"], [])]
    assert run.statuses()["hangs"] == "failed"
    assert run.exit_code == 0


@pytest.mark.requirement("prepare-hang-costs-whole-budget")
@BOTH
def test_a_hang_costs_the_whole_budget_in_every_run_that_waits_for_it(profile):
    env = {**WAITING, "MCP_TIMEOUT": "180000"}
    first = ClaudeRun(profile, {"hangs": HANGS}, env=env)
    left = {path: first.text(path) for path in first.paths("/home") if path.startswith(HOME)}
    again = ClaudeRun(profile, {"hangs": HANGS}, env=env, files=left)
    for run in (first, again):
        assert [name for name, _, _ in run.spawned] == ["hangs"]
        assert run.requests() == [(180.0, [], [])]


@pytest.mark.requirement(
    "prepare-claude-timeout-env", "prepare-claude-no-entry-timeout-key", "startup-timeout-claude-key-not-written"
)
@pytest.mark.parametrize(("value", "seconds"), [("4000", 4.0), ("180000", 180.0), (None, 30.0), ("abc", 30.0)])
@BOTH
def test_the_environment_of_the_process_gives_the_budget_and_an_entrys_own_does_not(profile, value, seconds):
    entry = {"command": "hangs", "env": {"MCP_TIMEOUT": "1000"}, "startupTimeoutSec": 6, "timeout": 7}
    env = WAITING if value is None else {**WAITING, "MCP_TIMEOUT": value}
    run = ClaudeRun(profile, {"hangs": HANGS}, env=env, entries={"hangs": entry})
    assert run.outcomes() == {"hangs": ("failed", seconds)}
    told = f"connection timed out after {int(seconds * 1000)}ms" if profile == OLD else "Request timed out"
    assert run.events("server.failed")[0]["text"].endswith(told)


@BOTH
def test_the_budget_may_stand_in_the_users_settings(profile):
    run = ClaudeRun(profile, {"hangs": HANGS}, env=WAITING, files=settings(env={"MCP_TIMEOUT": "2000"}))
    assert run.outcomes() == {"hangs": ("failed", 2.0)}


@BOTH
def test_hanging_processes_queue_three_at_a_time_and_remote_ones_do_not(profile):
    env = {**WAITING, "MCP_TIMEOUT": "4000"}
    run = ClaudeRun(profile, named(4, HANGS), {"far": HANGS, "farther": HANGS}, env=env)
    assert [ended for _, ended in run.outcomes().values()] == [4.0, 4.0, 4.0, 4.0, 4.0, 8.0]
    wide = ClaudeRun(profile, named(4, HANGS), env={**env, "MCP_SERVER_CONNECTION_BATCH_SIZE": "4"})
    assert {ended for _, ended in wide.outcomes().values()} == {4.0}
    many = {f"far{number}": HANGS for number in range(21)}
    far = ClaudeRun(profile, {}, many, env=env)
    assert [ended for _, ended in far.outcomes().values()] == [4.0] * 20 + [8.0]


@BOTH
def test_a_pending_server_behind_hanging_ones_is_not_even_started_at_the_first_request(profile):
    run = ClaudeRun(
        profile, {**named(3, HANGS), "good": GOOD}, env={"MCP_TIMEOUT": "5000"}, plan=Plan((Turn(seconds=6.0), Turn()))
    )
    assert run.requests() == [(2.0, [], ["s0", "s1", "s2", "good"]), (8.0, ["mcp__good__echo"], [])]
    assert run.outcomes()["good"] == ("connected", 5.0)


@pytest.mark.parametrize(("profile", "stdio", "remote"), [(OLD, 1.0, 1.0), (NEW, 4.0, 6.0)])
def test_a_server_that_ignores_the_newer_probe_is_late_on_the_newer_version(profile, stdio, remote):
    deaf = Behaviour(discover="never", initialize_after_seconds=1.0)
    run = ClaudeRun(profile, {"near": deaf}, {"far": deaf}, env=WAITING)
    assert run.outcomes() == {"near": ("connected", stdio), "far": ("connected", remote)}


@pytest.mark.parametrize(("profile", "spawns"), [(OLD, 1), (NEW, 2)])
def test_a_process_that_exits_early_is_spawned_twice_on_the_newer_version(profile, spawns):
    run = ClaudeRun(profile, {"bad": Behaviour(exits="at-start")})
    assert len(run.spawned) == spawns
    assert run.outcomes() == {"bad": ("failed", 0.0)}


@BOTH
def test_a_500_is_tried_again_in_the_background_three_times(profile):
    run = ClaudeRun(profile, {}, {"far": Behaviour(status=500)}, plan=Plan((Turn(seconds=9.0),)))
    assert run.statuses() == {"far": "failed"}
    assert run.requests()[0][0] == 0.0
    initialized = [seen.at for seen in run.servers["far"].requests if seen.rpc_method == "initialize"]
    assert [round(at - initialized[0], 3) for at in initialized] == [0.0, 0.5, 2.0, 6.0]


@BOTH
def test_what_is_refused_is_not_tried_again(profile):
    run = ClaudeRun(profile, {}, {"far": Behaviour(status=403)}, plan=Plan((Turn(seconds=3.0),)))
    assert len([seen for seen in run.servers["far"].requests if seen.method == "POST"]) == 1


@BOTH
def test_one_bad_entry_is_skipped_and_the_others_start(profile):
    run = ClaudeRun(profile, {"good": GOOD}, entries={"x": {"url": "https://x.test"}, "workspace": {"command": "y"}})
    (skipped, reserved) = run.events("server.skipped")
    assert skipped["server"] == "x"
    assert skipped["text"].startswith('Skipped — MCP server "x" has a "url" but no "type"')
    assert reserved["text"] == '"workspace" is a reserved MCP server name and was not loaded'
    assert run.statuses() == {"good": "connected"}


@BOTH
def test_a_file_that_is_no_json_loses_every_server_and_the_run_goes_on(profile):
    run = ClaudeRun(profile, {"good": GOOD}, mcp_json='{"mcpServers": {},}')
    assert run.statuses() == {}
    assert run.events("config.lost")[0]["text"].startswith("MCP config is not a valid JSON")
    assert (run.requests(), run.exit_code) == ([(0.0, [], [])], 0)


@BOTH
def test_files_of_the_directories_above_are_read_and_the_nearer_wins_by_name(profile):
    above = {"good": {"command": "other"}, "stray": {"command": "stray"}}
    files = {"/clones/.mcp.json": json.dumps({"mcpServers": above}), "/.mcp.json": "not json"}
    run = ClaudeRun(profile, {"good": GOOD}, files=files)
    assert run.outcomes()["good"] == ("connected", 0.0)
    assert [name for name, _, _ in run.spawned] == ["good", "stray"]
    assert run.statuses() == {"good": "connected", "stray": "failed"}


@BOTH
def test_servers_of_the_user_and_of_the_directory_join_in_and_local_beats_project_beats_user(profile):
    user = {
        "mcpServers": {"mine": {"command": "mine"}, "both": {"command": "gone"}},
        "projects": {CLONE: {"mcpServers": {"local": {"command": "mine"}, "all": {"command": "mine"}}}},
    }
    entries = {"both": {"command": "mine"}, "all": {"command": "gone"}}
    run = ClaudeRun(profile, {"mine": GOOD}, entries=entries, files={USER_CONFIG: json.dumps(user)})
    assert run.statuses() == dict.fromkeys(["mine", "both", "all", "local"], "connected")
    if profile == NEW:
        assert {one["name"]: one["source"] for one in run.lines()[0]["mcp_servers"]} == {
            "mine": "project",
            "both": "project",
            "all": "local",
            "local": "local",
        }


@pytest.mark.requirement("prepare-claude-never-settings-json")
@BOTH
def test_settings_forbid_and_switch_off_but_register_nothing(profile):
    files = settings(
        mcpServers={"extra": {"command": "good"}},
        disabledMcpjsonServers=["a"],
        deniedMcpServers=[{"serverName": "b"}],
    )
    files[USER_CONFIG] = json.dumps({"projects": {CLONE: {"disabledMcpServers": ["c"]}}})
    run = ClaudeRun(profile, dict.fromkeys("abcd", GOOD), files=files)
    assert run.statuses() == {"c": "disabled", "d": "connected"}
    assert [name for name, _, _ in run.spawned] == ["d"]


@BOTH
def test_a_config_directory_moves_the_users_files_but_not_the_logs(profile):
    moved = {
        "/conf/.claude.json": json.dumps({"mcpServers": {"mine": {"command": "good"}}}),
        **settings(env={"MCP_TIMEOUT": "1"}),
    }
    moved[USER_CONFIG] = json.dumps({"mcpServers": {"unread": {"command": "good"}}})
    run = ClaudeRun(profile, {"good": slow(1.0)}, files=moved, env={"CLAUDE_CONFIG_DIR": "/conf"})
    assert run.statuses() == {"mine": "connected", "good": "connected"}
    assert {path.partition("/claude-cli-nodejs/")[0] for path in run.log_files()} == {f"{HOME}/.cache"}


@BOTH
def test_a_process_inherits_everything_and_gets_what_the_runtime_adds(profile):
    env = {"ANTHROPIC_API_KEY": "sk", "MCP_TIMEOUT": "9000", "A": "runtime", "B": "runtime"}
    entry = {"command": "good", "args": ["${B}", "${GONE}"], "env": {"A": "${B}-entry", "EMPTY": ""}, "cwd": "/tmp"}
    run = ClaudeRun(profile, {"good": GOOD}, entries={"good": entry}, env=env)
    (_, given, directory) = run.spawned[0]
    assert env.items() - {("A", "runtime")} <= given.items()
    assert (given["A"], given["EMPTY"], given["HOME"]) == ("runtime-entry", "", HOME)
    assert directory == CLONE
    session = run.lines()[0]["session_id"]
    assert (given["CLAUDECODE"], given["CLAUDE_PROJECT_DIR"], given["CLAUDE_CODE_SESSION_ID"]) == ("1", CLONE, session)
    assert given["AI_AGENT"] == f"claude-code_{'2-1-268' if profile == OLD else '2-1-328'}_harness"
    added = set(given) - {*env, "HOME", "PATH", "EMPTY"}
    assert "CLAUDE_CODE_MESSAGING_TOKEN" in added
    assert ("CLAUDE_CODE_CHILD_NOTES_DIR" in added) == (profile == NEW)


@BOTH
def test_arguments_are_expanded_and_an_unset_variable_stays_literal(profile):
    entry = {"command": "good", "args": ["${B}", "${GONE}", "${GONE:-d}"]}
    run = ClaudeRun(profile, {"good": GOOD}, entries={"good": entry}, env={"B": "b"})
    (spawn,) = [event.details["argv"] for event in run.outcome.events if event.name == "spawn"]
    assert spawn == ["good", "b", "${GONE}", "d"]
    assert run.statuses() == {"good": "connected"}


@BOTH
def test_tools_have_their_measured_names_and_colliding_ones_are_offered_once(profile):
    tools = Behaviour(tools=(Tool("with.dot"), Tool("unï"), Tool("x" * 70)))
    run = ClaudeRun(profile, {"@org/x": tools, "dup.s": GOOD, "dup_s": GOOD})
    long = f"mcp___org_x__{'x' * 70}"
    assert run.requests()[0][1] == sorted(["mcp___org_x__with_dot", "mcp___org_x__un_", long, "mcp__dup_s__echo"])
    assert set(run.statuses().values()) == {"connected"}


@pytest.mark.parametrize(
    ("profile", "value", "deferred"), [(OLD, "", False), (OLD, "true", True), (NEW, "", True), (NEW, "false", False)]
)
def test_tools_are_searched_for_by_default_on_the_newer_version(profile, value, deferred):
    run = ClaudeRun(profile, {"good": GOOD}, env={"ENABLE_TOOL_SEARCH": value} if value else {})
    (request,) = run.events("model.request")
    assert (request["deferred"], request["tools"]) == (deferred, ["mcp__good__echo"])


def called(*names: str) -> Plan:
    pairs = [name.partition("/") for name in names]
    return Plan((Turn(tuple(ToolCall(server, tool) for server, _, tool in pairs)),))


@BOTH
def test_calls_run_in_order_and_a_server_that_is_not_there_has_no_tools(profile):
    tools = Behaviour(tools=(Tool("echo", answers_after_seconds=2.0), Tool("bad", is_error=True, text="broken")))
    run = ClaudeRun(
        profile,
        {"good": tools, "gone": Behaviour(exits="at-start")},
        plan=called("good/echo", "good/bad", "good/none", "gone/echo", "who/echo"),
    )
    calls = run.events("tool.call")
    assert [(one["at"], one["ok"], one["text"]) for one in calls] == [
        (3.0, True, "ok"),
        (3.0, False, "broken"),
        (3.0, False, "No such tool available: mcp__good__none"),
        (3.0, False, "No such tool available: mcp__gone__echo"),
        (3.0, False, "No such tool available: mcp__who__echo"),
    ]


@pytest.mark.parametrize(
    ("profile", "text"), [(OLD, "MCP error -32000: Connection closed"), (NEW, "Connection closed")]
)
def test_a_process_that_died_in_a_call_is_started_again_for_the_next(profile, text):
    run = ClaudeRun(profile, {"dies": Behaviour(exits="on-call")}, plan=called("dies/echo", "dies/echo"))
    assert [(one["ok"], one["text"]) for one in run.events("tool.call")] == [(False, text)] * 2
    assert len(run.spawned) == 2
    assert len(run.events("server.connected")) == 2


@pytest.mark.parametrize(("profile", "most"), [(OLD, (45, 175, 430)), (NEW, (50, 210, 520))])
def test_a_run_takes_few_scheduler_steps(profile, most):
    steps = [ClaudeRun(profile, named(count)).outcome.steps for count in (1, 6, 16)]
    assert all(taken <= bound for taken, bound in zip(steps, most, strict=True)), steps


STRIKES = ("refused", "reset-after", "slow", "eacces", "enospc", "torn", "enoent", "eacces-exec")


@pytest.mark.parametrize("seed", range(24))
@BOTH
def test_no_interleaving_and_no_fault_makes_the_run_itself_fail(profile, seed):
    stdio = {"good": GOOD, "bad": Behaviour(exits="on-call"), "slow": slow(3.0), "probe": Behaviour(discover="exits")}
    remote = {"far": Behaviour(supports_get=True, answers_as="sse"), "no": Behaviour(status=401)}
    faults = [Fault(STRIKES[(seed + offset) % len(STRIKES)], drawn=True, times=2, seconds=2.0) for offset in range(3)]
    plan = called("good/echo", "bad/echo", "far/echo", "bad/echo", "slow/echo")
    run = ClaudeRun(profile, stdio, remote, plan=plan, faults=faults, decisions=Seeded(seed))
    assert (run.outcome.verdict, run.exit_code) == ("done", 0)
    assert len(run.events("tool.call")) == 5
    statuses = {one["name"]: one["status"] for line in run.lines()[:1] for one in line["mcp_servers"]}
    assert set(statuses.values()) <= {"connected", "failed", "needs-auth", "pending"}


def test_equal_runs_leave_equal_traces():
    stdio = {"good": GOOD, "slow": slow(1.0), "bad": Behaviour(exits="at-start")}
    first, second = (ClaudeRun(NEW, stdio, {"far": GOOD}) for _ in range(2))
    assert first.outcome.trace_digest == second.outcome.trace_digest


def test_another_runtimes_profile_is_refused():
    with pytest.raises(TypeError, match="codex"):
        program(load_profile("codex-0.146.0"))
