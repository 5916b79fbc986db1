"""What holds for all three fake runtimes through their one face."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fake_runtimes import runtimes
from fake_runtimes.launch import launch
from fake_runtimes.profile import known_profiles, load_profile

PROFILES = [load_profile(name) for name in known_profiles()]
BY_NAME = pytest.mark.parametrize("profile", PROFILES, ids=known_profiles())
CONFIGS = {
    "claude": '{"mcpServers": {"good": {"command": "g"}, "hangs": {"command": "h"}, "web": {"type": "http", "url": "https://w.test"}}}',
    "codex": (
        '[mcp_servers.good]\ncommand = "g"\nstartup_timeout_sec = 180\n'
        '[mcp_servers.hangs]\ncommand = "h"\nstartup_timeout_sec = 180\n'
        '[mcp_servers.web]\nurl = "https://w.test"\n'
    ),
    "pi": (
        '{"mcpServers": {"good": {"command": "g", "requestTimeoutMs": 180000},'
        ' "hangs": {"command": "h", "requestTimeoutMs": 180000}, "web": {"url": "https://w.test"}}}'
    ),
}
ENVIRONMENT = {"MCP_TIMEOUT": "180000", "MCP_CONNECTION_NONBLOCKING": "0"}


def servers(profile):
    found = runtimes.read(profile, CONFIGS[profile.runtime], ENVIRONMENT)
    assert found.problems == ()
    return {server.name: server for server in found.servers}


@BY_NAME
def test_an_absent_file_holds_nothing(profile):
    assert runtimes.read(profile, None, {}) == ((), ())
    assert runtimes.config_path(profile) == {"codex": ".codex/config.toml"}.get(profile.runtime, ".mcp.json")


@BY_NAME
@pytest.mark.requirement("startup-timeout-default-hang-held")
def test_a_hang_is_held_to_the_budget_while_others_are_long_connected(profile):
    found = servers(profile)
    run = launch(profile, [found["good"], found["hangs"]], {"good": 0.5, "hangs": None}, ENVIRONMENT)
    assert run.attempts["good"] == ("connected", 0.5)
    assert run.attempts["hangs"] == ("timed_out", 180.0)
    last_moment = runtimes.attempt(profile, found["hangs"], ENVIRONMENT, 179.0)
    assert last_moment == ("connected", 179.0)
    assert runtimes.start_budget(profile, found["hangs"], ENVIRONMENT).attempt_seconds == 180.0


@BY_NAME
@pytest.mark.requirement("prepare-nine-cold-npx-within-budget")
def test_nine_cold_installs_fit_into_the_budget_and_slow_ones_do_not_fit_into_a_short_one(profile):
    one = servers(profile)["good"]
    nine = [one._replace(name=f"n{number}") for number in range(9)]
    seconds = {server.name: 10.0 + number for number, server in enumerate(nine)}
    outcomes = {
        budget: [
            ended.outcome
            for ended in launch(
                profile,
                [server._replace(raw={**server.raw, **budget_keys(budget)}) for server in nine],
                seconds,
                {**ENVIRONMENT, "MCP_TIMEOUT": str(budget * 1000)},
            ).attempts.values()
        ]
        for budget in (180, 15)
    }
    assert outcomes == {180: ["connected"] * 9, 15: ["connected"] * 5 + ["timed_out"] * 4}


def budget_keys(seconds):
    return {"startup_timeout_sec": seconds, "requestTimeoutMs": seconds * 1000}


@BY_NAME
def test_a_credential_belongs_to_a_url(profile):
    found = servers(profile)
    assert runtimes.lookup_key(profile, found["good"]) is None
    key = runtimes.lookup_key(profile, found["web"])
    assert key is not None
    assert key.startswith("sha256-" if profile.runtime == "pi" else "web|")


@BY_NAME
def test_a_tool_name_is_whole_up_to_its_room_and_changed_beyond_it(profile):
    room = runtimes.tool_name_room(profile, "srv")
    fits, over = "t" * (room or 200), "t" * ((room or 200) + 1)
    names = runtimes.offered(profile, {"srv": [fits, over]}).names
    assert (room is None) == (profile.runtime != "codex")
    if profile.runtime == "pi":
        assert set(names.values()) == {"mcp__srv"}
    else:
        assert names["srv", fits].endswith(fits)
        assert names["srv", over].endswith(over) is (room is None)


@BY_NAME
def test_servers_of_one_label_meet(profile):
    tools = {"a-b": ["t"], "a_b": ["t"], "c": ["t"]}
    labels = [runtimes.server_label(profile, name) for name in tools]
    alone = runtimes.offered(profile, {"a-b": ["t"]}).names["a-b", "t"]
    together = runtimes.offered(profile, tools)
    meet = labels[0] == labels[1]
    assert meet is (profile.runtime != "claude")
    assert (together.names.get(("a-b", "t")) != alone) is meet
    assert ("c", "t") in together.names


@BY_NAME
def test_the_call_budget_is_told_where_it_is_known(profile):
    server = servers(profile)["good"]
    ended = runtimes.call(profile, server, "echo", 200.0)
    assert (ended is not None) is (profile.runtime == "pi")
    assert runtimes.start_budget(profile, server, ENVIRONMENT).covers_calls is (profile.runtime == "pi")


@BY_NAME
def test_a_server_that_fails_by_its_configuration_never_answers(profile):
    server = servers(profile)["good"]._replace(starts=False, fault="refused")
    assert runtimes.attempt(profile, server, ENVIRONMENT, 0.1) == ("failed", 0.0)
    assert runtimes.in_first_request(profile, server, ENVIRONMENT, 0.1) == "never"


def test_the_fakes_need_neither_the_harness_nor_an_event_loop():
    heavy = "{'asyncio', 'dataclasses', 'harness', 'pydantic', 'tomlkit'}"
    code = f"import sys, fake_runtimes.runtimes, fake_runtimes.launch; print(sorted({heavy} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "[]"
