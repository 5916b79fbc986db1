"""The fake Claude Code's credential keys, tool names and budgets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fake_runtimes import launch as launches
from fake_runtimes.claude.config import read_config
from fake_runtimes.claude.credentials import find_entry, lookup_key, stored_entry
from fake_runtimes.claude.names import offered, tool_name
from fake_runtimes.claude.startup import attempt, attempts, timeout_ms
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.profile import load_profile
from fake_runtimes.runtimes import in_first_request, start_budget

OLDER: Any = load_profile("claude-2.1.268")
NEWER: Any = load_profile("claude-2.1.328")
BOTH = (OLDER, NEWER)
WAITING = {"MCP_CONNECTION_NONBLOCKING": "0"}
HTTP = {"type": "http", "url": "https://x.test/mcp"}


def server(entry, name="x", environment=None):
    found = read_config(json.dumps({"mcpServers": {name: entry}}), environment or {}, OLDER)
    return found.servers[0]


def stdio(name):
    return LoadedServer(name, "stdio", "c")


def test_the_credential_key_is_the_measured_one():
    assert lookup_key(server({"type": "http", "url": "https://mcp.notion.com/v1/mcp"}, "notion")) == (
        "notion|3fad03f7abd02b9c"
    )
    zimmer = {"type": "http", "url": "https://zimmer.example.com/mcp", "headers": {"X-API-Key": "${K}"}}
    assert lookup_key(server(zimmer, "zim", {"K": "k-123"})) == "zim|a3803c19e6aaf006"


def test_the_credential_key_hashes_what_was_measured_and_nothing_else():
    plain = lookup_key(server(HTTP))
    same = [
        {**HTTP, "type": "streamable-http"},
        {**HTTP, "headers": {}},
        {**HTTP, "oauth": {"clientId": "c"}, "timeout": 1, "startupTimeoutSec": 2},
    ]
    other = [
        {**HTTP, "type": "sse"},
        {**HTTP, "url": HTTP["url"] + "/"},
        {**HTTP, "headers": {"A": "1", "B": "2"}},
        {**HTTP, "headers": {"B": "2", "A": "1"}},
        {**HTTP, "headers": {"A": "k: v, w: x"}},
        {**HTTP, "headers": {"A": "k:v,w:x"}},
    ]
    assert {lookup_key(server(entry)) for entry in same} == {plain}
    assert len({plain, *(lookup_key(server(entry)) for entry in other)}) == len(other) + 1


def test_integer_like_header_names_come_first_and_ascending():
    written = {"X": "x", "10": "b", "2": "a"}
    listed = {"2": "a", "10": "b", "X": "x"}
    assert lookup_key(server({**HTTP, "headers": written})) == lookup_key(server({**HTTP, "headers": listed}))


def test_a_stored_entry_is_found_by_its_key_alone_and_only_with_a_token():
    one = server(HTTP)
    entry = {"accessToken": "AT", "serverUrl": "https://other.test"}
    assert find_entry(json.dumps({"mcpOAuth": {lookup_key(one): entry}}), one) == entry
    assert find_entry(json.dumps({"mcpOAuth": {lookup_key(one): {"accessToken": ""}}}), one) is None
    assert find_entry(json.dumps({"mcpOAuth": {"x|0000000000000000": entry}}), one) is None
    assert find_entry("{oops", one) is None


def test_whoever_changes_an_entry_that_it_has_read_changes_nobody_elses():
    one = server(HTTP)
    text = json.dumps({"mcpOAuth": {lookup_key(one): {"accessToken": "AT", "scopes": ["read"], "state": {"x": 1}}}})
    first = stored_entry(text, one)
    assert first is not None
    first["scopes"].append("write")
    first["state"]["x"] = 2
    assert stored_entry(text, one) == {"accessToken": "AT", "scopes": ["read"], "state": {"x": 1}}


@pytest.mark.parametrize(
    ("name", "tool", "expected"),
    [
        ("s", "with.dot", "mcp__s__with_dot"),
        ("unï", "a__b", "mcp__un___a__b"),
        ("@org/x", "-lead", "mcp___org_x__-lead"),
        ("s", "\N{GRINNING FACE}", "mcp__s____"),
        ("s", "", "mcp__s__"),
        ("s" * 60, "t" * 70, f"mcp__{'s' * 60}__{'t' * 70}"),
    ],
)
def test_a_tool_name_is_sanitised_by_the_unit_and_never_cut(name, tool, expected):
    assert tool_name(name, tool) == expected


def test_one_of_two_colliding_tools_is_dropped():
    names, dropped = offered({"dup.s": ["a"], "dup_s": ["a", "b"], "t": ["x.y", "x_y"]})
    assert dropped == (("dup_s", "a"), ("t", "x_y"))
    assert names == {
        ("dup.s", "a"): "mcp__dup_s__a",
        ("dup_s", "b"): "mcp__dup_s__b",
        ("t", "x.y"): "mcp__t__x_y",
    }


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        *[(ignored, 30000) for ignored in (None, "", "abc", "0", "-5", "0x1000", "Infinity", "0.9")],
        *[("100", 100), ("20000", 20000), ("3s", 3), ("5000.7", 5000), ("1e4", 10000), (" 7000", 7000)],
        *[("5_000", 5000), ("2147483648", 2147483647), ("1e400", 2147483647), ("180000", 180000)],
    ],
)
def test_the_timeout_variable_is_read_leniently(text, milliseconds):
    assert timeout_ms(text, 30000) == milliseconds


@pytest.mark.requirement("startup-timeout-claude-key-not-written")
def test_no_key_of_an_entry_changes_its_start_budget():
    keys = {"startupTimeoutSec": 6, "startup_timeout_sec": 6, "timeout": 6000}
    for profile in BOTH:
        for environment, seconds in (({}, 30.0), ({"MCP_TIMEOUT": "180000"}, 180.0), ({"MCP_TIMEOUT": "2000"}, 2.0)):
            for entry in ({"command": "c", **keys}, {**HTTP, **keys}):
                one = server(entry)
                assert start_budget(profile, one, environment) == (seconds, False)
                assert attempt(one, environment, profile, None) == ("timed_out", seconds)


def test_the_first_request_waits_two_seconds_unless_told_to_wait():
    for profile in BOTH:
        answers = [in_first_request(profile, stdio("s"), {}, seconds) for seconds in (1.5, 3.0, None, 40.0)]
        assert answers == ["yes", "late", "never", "never"]
        for value in ("0", "false"):
            waiting = {"MCP_CONNECTION_NONBLOCKING": value, "MCP_TIMEOUT": "180000"}
            assert in_first_request(profile, stdio("s"), waiting, 179.0) == "yes"
        assert in_first_request(profile, stdio("s"), {"MCP_CONNECTION_NONBLOCKING": "1"}, 3.0) == "late"


def test_hanging_stdio_servers_stack_three_at_a_time():
    hanging = [stdio(f"s{number}") for number in range(7)]
    ends = attempts(hanging, {}, {"MCP_TIMEOUT": "2000"}, OLDER)
    assert [ended.at_seconds for ended in ends.values()] == [2.0] * 3 + [4.0] * 3 + [6.0]
    wide = {"MCP_TIMEOUT": "2000", "MCP_SERVER_CONNECTION_BATCH_SIZE": "7"}
    assert {ended.at_seconds for ended in attempts(hanging, {}, wide, OLDER).values()} == {2.0}


def test_remote_servers_start_twenty_at_a_time_beside_the_stdio_ones():
    remote = [LoadedServer(f"r{number}", "http", url="https://x.test") for number in range(21)]
    ends = attempts([*remote, stdio("s")], {}, {"MCP_TIMEOUT": "4000"}, OLDER)
    assert [ends[name].at_seconds for name in ("r0", "r19", "r20", "s")] == [4.0, 4.0, 8.0, 4.0]


def test_the_newer_version_loses_its_probe_out_of_the_same_budget():
    remote = LoadedServer("r", "http", url="https://x.test")
    environment = {"MCP_TIMEOUT": "6000"}
    assert attempt(stdio("s"), environment, OLDER, 1.0, ignores_probe=True) == ("connected", 1.0)
    assert attempt(stdio("s"), environment, NEWER, 1.0, ignores_probe=True) == ("connected", 4.0)
    assert attempt(remote, environment, NEWER, 1.0, ignores_probe=True) == ("timed_out", 6.0)


def test_a_launch_leaves_after_two_seconds_with_what_is_there():
    servers = [stdio("fast"), stdio("slow")]
    answers = {"fast": 0.5, "slow": None}
    early = launches.launch(OLDER, servers, answers, {"MCP_TIMEOUT": "180000"})
    assert (early.first_request_at_seconds, early.offered) == (2.0, ("fast",))
    waiting = launches.launch(OLDER, servers, answers, {"MCP_TIMEOUT": "180000", **WAITING})
    assert (waiting.first_request_at_seconds, waiting.offered) == (180.0, ("fast",))
    assert launches.launch(OLDER, servers[:1], answers, {}).first_request_at_seconds == 0.5
