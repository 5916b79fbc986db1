"""A headless run of the fake Pi: what starts when, what the first model request offers, what is said of it."""

from __future__ import annotations

import json

import pytest

from fake_runtimes.plan import Plan, ToolCall
from fake_servers.mcp import Behaviour, HttpServer, Tool
from harness.world.model import Seeded
from scenarios.units.fake_pi_run import (
    BOTH,
    CACHE,
    CLONE,
    GOOD,
    HANGS,
    HOME,
    NEWER,
    NOTHING_CACHED,
    OLDER,
    printing_environment,
    run_pi,
    stdio,
    turn,
)

GATEWAY = ["mcp", "mcpScript"]
LONG = Plan((turn(), turn(seconds=400.0), turn()))
BY_PROFILE = pytest.mark.parametrize("profile", BOTH, ids=lambda profile: profile.version)


def hidden(**fields):
    """Two servers, of which one hangs at its first request."""
    return {"good": stdio("good", **fields), "hangs": stdio("hangs", **fields)}


PROGRAMS = {"good": GOOD, "hangs": HANGS}


@BY_PROFILE
def test_a_good_server_is_offered_in_the_first_request_and_kept_in_the_cache(profile):
    ran = run_pi({"my-server": stdio()}, {"good": GOOD}, profile=profile)
    assert ran.requests() == [(0.0, [*GATEWAY, "mcp__my_server"])]
    assert ran.stderr == []
    cached = json.loads(ran.file(CACHE) or "")["servers"]["my-server"]
    assert [tool["name"] for tool in cached["tools"]] == ["echo"]
    assert len(cached["configHash"]) == 64
    assert ran.stdout[-1] == {"type": "agent_settled"}
    assert {actor.exit_code for actor in ran.simulation.actors} == {0}


@BY_PROFILE
def test_a_run_without_servers_offers_the_gateway_and_writes_no_cache(profile):
    ran = run_pi({}, profile=profile)
    assert ran.requests() == [(0.0, GATEWAY)]
    assert ran.file(CACHE) is None


@BY_PROFILE
def test_a_server_that_hangs_hides_all_others_until_it_is_given_up(profile):
    ran = run_pi(hidden(), PROGRAMS, profile=profile, plan=LONG)
    connected = ran.events("server.connected")
    assert [ran.at(event) for event in connected] == [0.0]
    assert ran.requests() == [(30.0, GATEWAY), (31.0, GATEWAY), (431.0, [*GATEWAY, "mcp__good"])]
    assert [event.details["pending"] for event in ran.events("model.request")] == [["good", "hangs"]] * 2 + [[]]
    assert ran.failures() == [("hangs", 60.0)]
    assert ran.stderr == ["MCP: Failed to connect to hangs: Request timed out"]


def test_without_the_one_that_hangs_the_others_are_there_at_once():
    assert run_pi({"good": stdio()}, PROGRAMS).requests() == [(0.0, [*GATEWAY, "mcp__good"])]


@BY_PROFILE
def test_a_short_run_with_a_server_that_hangs_ends_well_and_tells_nobody(profile):
    entries = {**hidden(requestTimeoutMs=180000), "broken": stdio("missing", requestTimeoutMs=180000)}
    ran = run_pi(entries, PROGRAMS, profile=profile, plan=Plan((turn(seconds=2.0),)))
    assert ran.outcome.seconds == 32.0
    assert ran.stderr == []
    assert ran.failures() == [("broken", 0.0)]


@pytest.mark.requirement("startup-timeout-default-hang-held")
@BY_PROFILE
def test_a_hang_is_held_for_the_default_budget_of_180_seconds(profile):
    patient = Behaviour(initialize_after_seconds=179.0)
    for behaviour, failures in ((HANGS, [("hangs", 180.0)]), (patient, [])):
        programs = {"good": GOOD, "hangs": behaviour}
        ran = run_pi(hidden(requestTimeoutMs=180000), programs, profile=profile, plan=LONG)
        assert ran.failures() == failures


@pytest.mark.requirement("prepare-fake-pi-own-default")
@BY_PROFILE
@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({}, 60.0),
        ({"requestTimeoutMs": 30000}, 30.0),
        ({"requestTimeoutMs": 90000}, 90.0),
        ({"requestTimeoutMs": 180000}, 180.0),
        ({"requestTimeoutMs": 0}, 60.0),
    ],
)
def test_a_silent_eager_server_is_given_up_exactly_at_its_budget(profile, fields, seconds):
    ran = run_pi({"hangs": stdio("hangs", lifecycle="eager", **fields)}, PROGRAMS, profile=profile, plan=LONG)
    assert ran.failures() == [("hangs", seconds)]


def test_the_tool_list_has_the_whole_budget_for_itself():
    behaviour = Behaviour(initialize_after_seconds=4.0, list_tools="never")
    ran = run_pi({"s": stdio("s", requestTimeoutMs=5000)}, {"s": behaviour})
    assert ran.failures() == [("s", 9.0)]
    assert ran.requests() == [(9.0, GATEWAY)]


@pytest.mark.requirement("startup-timeout-pi-covers-tool-calls", "prepare-pi-budget-covers-calls")
@BY_PROFILE
@pytest.mark.parametrize(
    ("fields", "answers_after", "ends_at", "text"),
    [
        ({"requestTimeoutMs": 300000}, 250.0, 251.0, "ok"),
        ({"requestTimeoutMs": 300000}, 310.0, 301.0, "Failed to call tool: Request timed out"),
        ({"requestTimeoutMs": 180000}, 100.0, 101.0, "ok"),
        ({}, 100.0, 61.0, "Failed to call tool: Request timed out"),
        ({"requestTimeoutMs": 15000}, 20.0, 16.0, "Failed to call tool: Request timed out"),
    ],
)
def test_the_budget_covers_every_tool_call_and_the_server_stays_connected(
    profile, fields, answers_after, ends_at, text
):
    behaviour = Behaviour(tools=(Tool("slow", answers_after_seconds=answers_after), Tool("quick", text="quick")))
    plan = Plan((turn(("s", "slow")), turn(("s", "quick"))))
    ran = run_pi({"s": stdio("s", **fields)}, {"s": behaviour}, profile=profile, plan=plan)
    first, second = ran.events("tool.call")
    assert (ran.at(first), first.details["text"].partition("\n")[0]) == (ends_at, text)
    assert second.details["text"] == "quick"
    assert len(ran.spawned()) == 1
    ended = [event for event in ran.stdout if event["type"] == "tool_execution_end"]
    assert [event["isError"] for event in ended] == [text != "ok", False]


@BY_PROFILE
@pytest.mark.parametrize(
    ("milliseconds", "asked", "answered_at", "text"),
    [
        (180000, "good", 61.0, "MCP initialization is still in progress. Try again shortly."),
        (50000, "good", 50.0, "ok"),
    ],
)
def test_the_gateway_waits_thirty_seconds_for_the_launch(profile, milliseconds, asked, answered_at, text):
    entries = hidden(requestTimeoutMs=milliseconds)
    ran = run_pi(entries, PROGRAMS, profile=profile, plan=Plan((turn((asked, "echo")),)))
    (call,) = ran.events("tool.call")
    assert (ran.at(call), call.details["text"], call.details["name"]) == (answered_at, text, "mcp")


@BY_PROFILE
def test_a_direct_tool_is_not_found_before_the_slowest_server_has_settled(profile):
    entries = {"good": stdio(directTools=True, requestTimeoutMs=50000), "hangs": stdio("hangs", requestTimeoutMs=50000)}
    plan = Plan((turn(("good", "echo"), seconds=10.0), turn(("good", "echo"), seconds=15.0), turn()))
    ran = run_pi(entries, PROGRAMS, profile=profile, plan=plan)
    assert ran.calls() == ["Tool good_echo not found", "ok"]
    assert ran.requests() == [(30.0, GATEWAY), (40.0, GATEWAY), (55.0, ["good_echo", *GATEWAY])]


@BY_PROFILE
def test_with_a_cache_lazy_servers_are_offered_unspawned_and_connect_when_called(profile):
    first = run_pi({"s": stdio()}, {"good": GOOD}, profile=profile)
    remembered = {CACHE: first.file(CACHE) or ""}
    entries = {"s": stdio(), "later": stdio()}
    idle = run_pi(entries, {"good": GOOD}, profile=profile, files=remembered)
    assert (idle.spawned(), idle.requests()) == ([], [(0.0, [*GATEWAY, "mcp__s"])])
    plan = Plan((turn(("s", "echo"), ("later", "echo")), turn()))
    used = run_pi(entries, {"good": GOOD}, profile=profile, files=remembered, plan=plan)
    assert [event.details["name"] for event in used.events("tool.call")] == ["mcp__s", "mcp"]
    assert used.calls() == ["ok", "ok"]
    assert used.requests()[1][1] == [*GATEWAY, "mcp__later", "mcp__s"]
    assert sorted(json.loads(used.file(CACHE) or "")["servers"]) == ["later", "s"]


def test_a_cache_without_entries_keeps_lazy_servers_from_starting():
    ran = run_pi({"s": stdio()}, {"good": GOOD}, files={CACHE: NOTHING_CACHED})
    assert (ran.spawned(), ran.requests()) == ([], [(0.0, GATEWAY)])


def test_an_interrupted_first_run_leaves_a_cache_that_starts_nothing():
    first = run_pi(hidden(requestTimeoutMs=180000), PROGRAMS)
    assert first.file(CACHE) == NOTHING_CACHED
    second = run_pi(hidden(), PROGRAMS, files={CACHE: first.file(CACHE) or ""})
    assert (second.spawned(), second.requests()[0]) == ([], (0.0, GATEWAY))


@pytest.mark.parametrize(
    ("changed", "offered"),
    [
        ({"lifecycle": "lazy", "requestTimeoutMs": 7000}, True),
        ({"env": {"A": "other"}}, False),
        ({"args": ["-v"]}, False),
    ],
)
def test_a_cached_entry_counts_as_long_as_the_server_is_the_same(changed, offered):
    entry = stdio(env={"A": "${VALUE}"})
    first = run_pi({"s": entry}, {"good": GOOD}, env={"VALUE": "1"})
    second = run_pi({"s": {**entry, **changed}}, {}, env={"VALUE": "1"}, files={CACHE: first.file(CACHE) or ""})
    assert ("mcp__s" in second.requests()[0][1]) is offered
    rotated = run_pi({"s": entry}, {}, env={"VALUE": "2"}, files={CACHE: first.file(CACHE) or ""})
    assert rotated.requests()[0][1] == GATEWAY


def test_a_cached_entry_lives_for_seven_days():
    first = run_pi({"s": stdio()}, {"good": GOOD})
    for days, offered in ((6.9, True), (7.1, False)):
        start = first.simulation.now + days * 86400
        ran = run_pi({"s": stdio()}, {}, files={CACHE: first.file(CACHE) or ""}, start_seconds=start)
        assert ("mcp__s" in ran.requests()[0][1]) is offered


@BY_PROFILE
def test_an_eager_server_is_spawned_twice_and_the_first_one_is_ended(profile):
    ran = run_pi({"s": stdio(lifecycle="eager")}, {"good": GOOD}, profile=profile, files={CACHE: NOTHING_CACHED})
    assert ran.spawned() == [["good"], ["good"]]
    assert len(ran.events("server.connected")) == 1
    assert {actor.exit_code for actor in ran.simulation.actors} == {0}


def test_direct_tools_that_are_not_cached_start_their_server():
    ran = run_pi({"s": stdio(directTools=["echo"]), "t": stdio()}, {"good": GOOD}, files={CACHE: NOTHING_CACHED})
    assert ran.requests() == [(0.0, [*GATEWAY, "s_echo"])]
    asked = run_pi({"s": stdio()}, {"good": GOOD}, files={CACHE: NOTHING_CACHED}, env={"MCP_DIRECT_TOOLS": "s/echo"})
    assert asked.requests() == [(0.0, [*GATEWAY, "s_echo"])]
    none = run_pi({"s": stdio(directTools=True)}, {"good": GOOD}, env={"MCP_DIRECT_TOOLS": "__none__"})
    assert none.requests() == [(0.0, [*GATEWAY, "mcp__s"])]


def test_ten_servers_are_connected_at_a_time():
    entries = {f"s{number}": stdio("hangs", requestTimeoutMs=5000) for number in range(12)}
    ran = run_pi(entries, PROGRAMS, plan=LONG)
    assert [at for _, at in ran.failures()] == [5.0] * 10 + [10.0] * 2
    assert ran.stderr == [f"MCP: Failed to connect to s{number}: Request timed out" for number in range(12)]


@BY_PROFILE
def test_the_last_three_lines_of_stderr_stand_in_parentheses(profile):
    talks = Behaviour(stderr=("one", " two ", "", "three", "API key is wrong"), exits="at-start")
    silent = Behaviour(exits="at-initialize")
    ran = run_pi({"talks": stdio("talks"), "silent": stdio("silent")}, {"talks": talks, "silent": silent},
                 profile=profile)  # fmt: skip
    assert ran.stderr == [
        "MCP: Failed to connect to talks: Connection closed (two — three — API key is wrong)",
        "MCP: Failed to connect to silent: Connection closed",
    ]


@BY_PROFILE
def test_one_bad_entry_hurts_nobody_else(profile):
    entries = {
        "both": {"command": "good", "url": "https://x.test"},
        "args": {"command": "good", "args": "no list"},
        "number": {"command": "good", "env": {"A": 1}},
        "place": {"command": "good", "cwd": "/nowhere"},
        "missing": {"command": "/opt/missing"},
        "unset": {"url": "https://x.test/${NOT_SET}"},
        "refused": {"url": "https://down.test/mcp"},
        "text": "no entry",
        "off": {"command": "good", "disabled": True},
        "good": {"command": "good"},
    }
    ran = run_pi(entries, PROGRAMS, profile=profile)
    assert ran.stderr == [
        "MCP: Failed to connect to both: Server both must configure exactly one of command, url, or socket",
        "MCP: Failed to connect to args: (definition.args ?? []).map is not a function",
        "MCP: Failed to connect to number: value.startsWith is not a function",
        'MCP: Failed to connect to place: MCP server "place" configured cwd does not exist: "/nowhere"',
        "MCP: Failed to connect to missing: spawn /opt/missing ENOENT",
        "MCP: Failed to connect to unset: Missing environment variable in MCP server URL: NOT_SET",
        "MCP: Failed to connect to refused: fetch failed",
    ]
    assert ran.requests() == [(0.0, [*GATEWAY, "mcp__good"])]
    assert [event.details["text"] for event in ran.events("server.skipped")] == ["", "⊘ off (disabled)"]


def document(**entries):
    return json.dumps({"mcpServers": entries})


def test_the_layers_are_read_from_their_real_places():
    files = {
        f"{HOME}/.config/mcp/mcp.json": document(user=stdio("low"), shared=stdio("low")),
        "/agent/mcp.json": document(agent=stdio("agent"), shared=stdio("agent")),
        f"{CLONE}/.pi/mcp.json": document(top=stdio("top")),
        f"{HOME}/.pi/agent/mcp.json": document(unread=stdio("no")),
        f"{CLONE}/other.json": document(flagged=stdio("flagged")),
    }
    settings = {"files": files, "env": {"PI_CODING_AGENT_DIR": "/agent"}}

    def started(**more):
        return sorted(name for name, _ in run_pi({"own": stdio("own")}, {}, **more).failures())

    assert started(**settings) == ["agent", "own", "shared", "top", "user"]
    flag = ("pi", "-p", "--mcp-config", "other.json", "go")
    assert started(**settings, argv=flag) == ["flagged", "own", "shared", "top", "user"]
    settings["env"] = {"PI_CODING_AGENT_DIR": "/agent", "PI_MCP_CONFIG_MODE": "exclusive"}
    assert started(**settings) == ["agent", "shared"]


def test_a_file_that_is_no_json_is_named_by_its_path_and_the_others_count():
    files = {"/agent/mcp.json": "{", f"{CLONE}/.pi/mcp.json": document(top=stdio())}
    ran = run_pi({}, {"good": GOOD}, files=files, env={"PI_CODING_AGENT_DIR": "/agent"})
    assert ran.stderr[0].startswith("Failed to load MCP config from /agent/mcp.json: SyntaxError: ")
    assert ran.requests() == [(0.0, [*GATEWAY, "mcp__top"])]


def test_a_child_inherits_the_whole_environment_and_a_version_lets_it_opt_out():
    names = ("SECRET", "OWN", "PI_CODING_AGENT", "AI_AGENT", "PI_SKIP_VERSION_CHECK")
    programs = {"show": printing_environment(*names)}
    env = {"SECRET": "token", "PI_OFFLINE": "1"}

    def shown(profile, **fields):
        ran = run_pi({"s": stdio("show", env={"OWN": "${SECRET}!"}, **fields)}, programs, profile=profile, env=env)
        (event,) = [event for event in ran.outcome.events if event.name == "environment"]
        return tuple(event.details[name] for name in names)

    inherited = ("token", "token!", "true", "pi", "1")
    assert shown(OLDER) == shown(NEWER) == shown(OLDER, inheritEnv=False) == inherited
    assert shown(NEWER, inheritEnv=False) == (None, "token!", None, None, None)


@BY_PROFILE
def test_a_failed_server_is_left_alone_for_sixty_seconds_and_connect_asks_at_once(profile):
    plan = Plan(
        (
            turn(("s", "echo"), ToolCall("", "mcp", {"connect": "s"}), seconds=5.0),
            turn(("s", "echo"), seconds=61.0),
        )
    )
    ran = run_pi({"s": stdio("missing")}, {}, profile=profile, plan=plan)
    assert ran.calls() == [
        'Server "s" not available (last failed 5s ago)',
        'Failed to connect to "s": spawn missing ENOENT',
        'Failed to connect to "s": spawn missing ENOENT',
    ]
    assert [ran.at(event) for event in ran.events("server.connecting")] == [0.0, 5.0, 66.0]
    assert ran.requests()[0][1] == GATEWAY


@BY_PROFILE
def test_the_gateway_tells_how_each_server_stands(profile):
    entries = {"up": stdio(lifecycle="eager"), "down": stdio("missing", lifecycle="eager"), "idle": stdio(),
               "never": stdio("other"), "off": stdio(disabled=True)}  # fmt: skip
    cached = run_pi({"idle": stdio()}, {"good": GOOD}, profile=profile).file(CACHE) or ""
    connect = turn(ToolCall("", "mcp", {"connect": "idle"}))
    plan = Plan((turn(ToolCall("", "mcp"), seconds=3.0), connect, turn(("off", "echo"))))
    ran = run_pi(entries, {"good": GOOD}, profile=profile, plan=plan, files={CACHE: cached})
    status, connected, off = ran.calls()
    assert status.split("\n") == [
        "MCP: 1/4 servers, 2 tools (1 disabled)",
        "",
        "✓ up (1 tools, legacy notification path)",
        "✗ down (failed 3s ago)",
        "○ idle (1 tools, cached; not listening)",
        "○ never (not listening; disconnected)",
        "⊘ off (disabled)",
        "",
        'mcp({ server: "name" }) to list tools, mcp({ search: "..." }) to search',
    ]
    assert connected == "idle (1 tools):\n\n- idle_echo"
    assert off == 'Server "off" is disabled. Run /mcp enable off and /reload to enable it.'


def test_the_calls_of_one_turn_run_side_by_side_and_are_told_in_their_order():
    slow, fast = HttpServer(Behaviour(tools=(Tool("t", answers_after_seconds=5.0),))), HttpServer()
    entries = {name: {"url": f"https://{name}.test/mcp"} for name in ("slow", "fast")}
    servers = {"https://slow.test": slow, "https://fast.test": fast}
    plan = Plan((turn(("slow", "t"), ("fast", "echo")),))
    ran = run_pi(entries, servers=servers, plan=plan)
    lines = ran.stdout
    told = [(line["type"], line["toolCallId"]) for line in lines if line["type"].startswith("tool_execution")]
    began, ended = "tool_execution_start", "tool_execution_end"
    assert told == [(began, "call_1_1"), (began, "call_1_2"), (ended, "call_1_2"), (ended, "call_1_1")]
    answered = [line["message"]["toolCallId"] for line in lines
                if line["type"] == "message_end" and line["message"]["role"] == "toolResult"]  # fmt: skip
    assert answered == ["call_1_1", "call_1_2"]
    assert {round(ran.at(event), 3) for event in ran.events("tool.call")} == {1.0, 6.0}


def test_a_server_that_ends_in_a_call_is_started_again_by_the_next():
    fragile = Behaviour(exits="on-call")
    ran = run_pi({"s": stdio("s")}, {"s": fragile}, plan=Plan((turn(("s", "echo"), ("s", "echo")),)))
    assert [text.partition("\n")[0] for text in ran.calls()] == ["Failed to call tool: Connection closed"] * 2
    assert len(ran.spawned()) == 2


def test_two_servers_of_one_proxy_name_are_both_skipped():
    ran = run_pi({"a-b": stdio(), "a_b": stdio()}, {"good": GOOD})
    assert ran.requests() == [(0.0, GATEWAY)]


def test_an_open_attempt_is_left_behind_and_its_child_may_outlive_pi():
    stubborn = HANGS._replace(ignores_stdin_end=True, ignores_signals=True)
    ran = run_pi({"s": stdio("s", requestTimeoutMs=180000)}, {"s": stubborn})
    ended = [event.actor for event in ran.outcome.events if event.name == "ended"]
    assert (ran.outcome.seconds, ran.outcome.verdict, ended) == (31.0, "deadlock", ["pi"])


@pytest.mark.parametrize(("servers", "limit"), [(1, 60), (6, 180), (16, 400)])
def test_a_run_of_good_servers_takes_few_steps(servers, limit):
    ran = run_pi({f"s{number}": stdio() for number in range(servers)}, {"good": GOOD})
    assert len(ran.events("server.connected")) == servers
    assert ran.outcome.steps <= limit


def test_whatever_the_scheduler_decides_all_servers_of_the_launch_are_offered_together_or_none():
    entries = {**hidden(), "eager": stdio(lifecycle="eager"), "broken": stdio("missing")}
    plan = Plan((turn(seconds=5.0),) * 20)
    seen = []
    for seed in range(15):
        ran = run_pi(entries, PROGRAMS, plan=plan, decisions=Seeded(seed))
        offered = [tools for _, tools in ran.requests()]
        assert all(tools in (GATEWAY, [*GATEWAY, "mcp__eager", "mcp__good"]) for tools in offered)
        assert offered == sorted(offered, key=len)
        assert {at >= 60.0 for at, tools in ran.requests() if tools != GATEWAY} <= {True}
        seen += offered
    assert [*GATEWAY, "mcp__eager", "mcp__good"] in seen
