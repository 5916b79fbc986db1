"""The fake Codex's credential keys, tool names and budgets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fake_runtimes.codex.config import read_config
from fake_runtimes.codex.credentials import find_entry, lookup_key
from fake_runtimes.codex.names import Name, namespace, offered, tool_name_room
from fake_runtimes.codex.startup import attempt_seconds, call, timeout_text
from fake_runtimes.launch import launch, remembered
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.profile import load_profile
from fake_runtimes.runtimes import attempt, in_first_request, start_budget

OLDER: Any = load_profile("codex-0.146.0")
NEWER: Any = load_profile("codex-0.169.0")
BOTH = (OLDER, NEWER)


def servers(text, profile=OLDER):
    found = read_config(text, {}, profile)
    assert not found.run_killed
    return found.servers


def table(name, **keys):
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "\n".join([f"[mcp_servers.{name}]", 'command = "c"', *lines, ""])


def one(name="x", profile=OLDER, **keys):
    return servers(table(name, **keys), profile)[0]


def remote(name, url):
    return LoadedServer(name, "http", url=url, headers={"A": "ignored"})


@pytest.mark.parametrize(
    ("name", "url", "key"),
    [
        ("notion", "https://mcp.notion.com/v1/mcp", "notion|3fad03f7abd02b9c"),
        ("fix-two", "http://127.0.0.1:4999/mcp?x=1", "fix-two|db6e7e7ec84b0ae3"),
        ("linear", "https://mcp.linear.app/mcp", "linear|638130d5ab3558f4"),
    ],
)
def test_the_credential_key_knows_no_headers(name, url, key):
    assert lookup_key(remote(name, url)) == key


def test_a_stored_entry_is_found_by_name_and_url_in_the_order_of_the_keys():
    server = remote("x", "https://x.test")
    entry = {"server_name": "x", "server_url": "https://x.test", "client_id": "", "access_token": "AT"}
    store = {"z": {**entry, "access_token": "later"}, "a": entry, "0": {**entry, "server_url": "https://x.test/"}}
    assert find_entry(json.dumps(store), server) == ("a", entry)
    without_client = {key: value for key, value in entry.items() if key != "client_id"}
    assert find_entry(json.dumps({**store, "other": without_client}), server) is None
    assert find_entry("{", server) is None


def test_names_that_meet_all_get_the_measured_suffix():
    assert namespace("my-srv") == namespace("my_srv") == "mcp__my_srv"
    both = offered({"my-srv": ["a"], "my_srv": ["a"]}, OLDER)
    assert both["my-srv", "a"] == Name("mcp__my_srv_b0fadbc4a6d3", "a")
    assert both["my_srv", "a"] == Name("mcp__my_srv_96cc9a66e3ef", "a")
    tools = offered({"my-srv": ["dup.x", "dup_x", "a.b"]}, OLDER)
    assert [name.tool for name in tools.values()] == ["dup_x_67a5e0d23210", "dup_x_c3d81a53a533", "a_b"]
    assert {name.namespace for name in tools.values()} == {"mcp__my_srv"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("", "mcp___"), ("mcp__x", "mcp__x"), ("Ab", "mcp__Ab"), ("\N{GRINNING FACE}", "mcp___"), ("a.b", "mcp__a_b")],
)
def test_a_namespace_is_the_sanitised_name(name, expected):
    assert namespace(name) == expected


def test_a_long_name_is_cut_to_the_limit_of_the_version():
    room = tool_name_room("srv", OLDER)
    assert room == 64 - 2 - len("mcp__srv")
    names = offered({"srv": ["t" * room, "u" * (room + 1), "v" * 70]}, OLDER)
    kept, cut, longer = names.values()
    assert kept.tool == "t" * room
    assert (len(cut.tool), cut.tool[: room - 13], cut.tool[room - 13]) == (room, "u" * (room - 13), "_")
    assert len(longer.tool) == room
    assert offered({"srv": ["v" * 70]}, NEWER)["srv", "v" * 70].tool == "v" * 70


def test_a_namespace_without_room_is_cut_and_its_tools_become_hashes():
    long_server = "s" * 60
    name = offered({long_server: ["echo"]}, OLDER)[long_server, "echo"]
    assert (name.namespace, len(name.tool), name.tool[0]) == ("mcp__" + "s" * 44, 13, "_")
    assert tool_name_room(long_server, OLDER) == 0
    assert tool_name_room(long_server, NEWER) == 128 - 2 - 65


@pytest.mark.parametrize(
    ("keys", "seconds"),
    [
        ({}, 30.0),
        ({"startup_timeout_sec": 5}, 5.0),
        ({"startup_timeout_sec": 1.5}, 1.5),
        ({"startup_timeout_ms": 9500}, 9.5),
        ({"startup_timeout_sec": 7, "startup_timeout_ms": 9000}, 7.0),
        ({"startup_timeout_sec": 0}, 0.0),
    ],
)
def test_the_budget_is_the_declared_one_or_thirty_seconds(keys, seconds):
    for profile in BOTH:
        server = one(profile=profile, **keys)
        assert start_budget(profile, server, {}) == (seconds, False)
        assert attempt(profile, server, {}, None) == ("timed_out", seconds)


@pytest.mark.requirement("prepare-fake-codex-own-default")
def test_a_silent_server_holds_the_older_version_s_first_request_for_its_budget():
    for keys, seconds in (({}, 30.0), ({"startup_timeout_sec": 5}, 5.0), ({"startup_timeout_sec": 180}, 180.0)):
        run = launch(OLDER, [one(**keys)], {}, {})
        assert run.first_request_at_seconds == seconds
        assert run.attempts["x"] == ("timed_out", seconds)


@pytest.mark.requirement("startup-timeout-codex-fast-beside-slow")
def test_each_server_has_the_budget_of_its_own_table():
    found = servers(table("first", startup_timeout_sec=20) + table("second", startup_timeout_sec=300))
    for profile in BOTH:
        run = launch(profile, found, {"first": None, "second": 250.0}, {})
        assert run.attempts == {"first": ("timed_out", 20.0), "second": ("connected", 250.0)}
    late = launch(OLDER, found, {"first": 19.0, "second": 301.0}, {})
    assert late.attempts == {"first": ("connected", 19.0), "second": ("timed_out", 300.0)}


@pytest.mark.requirement("prepare-hang-costs-whole-budget")
def test_a_hang_costs_the_whole_budget_in_every_run():
    found = servers(table("hangs", startup_timeout_sec=180) + table("good"))
    first = launch(OLDER, found, {"good": 0.2}, {})
    second = launch(OLDER, found, {"good": 0.2}, {}, remembered(first))
    for run in (first, second):
        assert (run.first_request_at_seconds, run.offered) == (180.0, ("good",))
        assert run.attempts.get("hangs") == ("timed_out", 180.0)
    assert first == second


def test_initialize_and_the_tool_list_each_have_the_budget():
    server = one(startup_timeout_sec=2.5)
    assert attempt(OLDER, server, {}, 1.0, lists_tools_after_seconds=2.0) == ("connected", 3.0)
    assert attempt(OLDER, server, {}, 0.2, lists_tools_after_seconds=3.0) == ("timed_out", 2.7)


def test_the_newer_version_waits_a_second_for_servers_that_are_not_required():
    answers = {"x": 2.0}
    optional = launch(NEWER, [one(profile=NEWER, startup_timeout_sec=180)], answers, {})
    assert (optional.first_request_at_seconds, optional.offered) == (1.0, ())
    required = launch(NEWER, [one(profile=NEWER, startup_timeout_sec=20, required=True)], answers, {})
    assert (required.first_request_at_seconds, required.offered) == (2.0, ("x",))
    graces = [in_first_request(NEWER, one(profile=NEWER), {}, seconds) for seconds in (0.9, 1.1, 31.0, None)]
    assert graces == ["yes", "late", "never", "never"]


@pytest.mark.requirement("prepare-codex-grace-zero")
def test_a_grace_of_zero_makes_the_newer_version_wait_and_is_unknown_to_the_older():
    text = table("x", startup_timeout_sec=180)
    grace = "mcp_optional_startup_grace_ms = "
    waits = {
        (profile.version, top): launch(profile, servers(top + text, profile), {"x": 2.0}, {}).offered
        for profile in BOTH
        for top in ("", grace + "0\n", grace + "1500\n", grace + "5000\n")
    }
    assert waits == {
        ("0.146.0", ""): ("x",),
        ("0.146.0", grace + "0\n"): ("x",),
        ("0.146.0", grace + "1500\n"): ("x",),
        ("0.146.0", grace + "5000\n"): ("x",),
        ("0.169.0", ""): (),
        ("0.169.0", grace + "0\n"): ("x",),
        ("0.169.0", grace + "1500\n"): (),
        ("0.169.0", grace + "5000\n"): ("x",),
    }


def test_a_required_server_that_does_not_start_ends_the_run():
    for profile, tail in ((OLDER, ""), (NEWER, ": deadline has elapsed")):
        run = launch(profile, [one("bad", profile, startup_timeout_sec=2, required=True)], {}, {})
        assert run.killed is not None
        assert run.killed.endswith(f"bad: timed out handshaking with MCP server after 2s{tail}")
        assert launch(profile, [one("bad", profile, startup_timeout_sec=2)], {}, {}).killed is None
        misnamed = launch(profile, [one('"bad name!"', profile, required=True)], {}, {})
        assert (misnamed.killed or "").endswith(f"must match pattern {profile.server_name_pattern}")


def test_the_timeout_text_names_the_server_and_its_seconds():
    assert timeout_text(one(startup_timeout_sec=2), OLDER) == (
        "MCP client for `x` timed out after 2 seconds. Add or adjust `startup_timeout_sec` in your config.toml:\n"
        "[mcp_servers.x]\nstartup_timeout_sec = XX"
    )


def test_a_tool_call_has_a_limit_of_its_own():
    server = one(tool_timeout_sec=1, startup_timeout_sec=180)
    assert call(server, "echo", 0.5) == ("answered", 0.5, "")
    late = call(server, "echo", 1.5)
    assert late is not None
    assert (late.outcome, late.at_seconds) == ("timed_out", 1.0)
    assert late.text.endswith("timed out awaiting tools/call after 1000ms")
    assert call(one(), "echo", 0.5) is None


@pytest.mark.requirement("npx-cold-clone-fits-budget")
def test_an_install_of_45_seconds_connects_under_the_written_budget_alone():
    written = one(startup_timeout_sec=180)
    for profile in BOTH:
        assert attempt(profile, written, {}, 45.0) == ("connected", 45.0)
        assert attempt(profile, one(), {}, 45.0) == ("timed_out", 30.0)
    assert attempt_seconds(written, OLDER) == 180.0
