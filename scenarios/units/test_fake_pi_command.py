"""`pi` by its command line: the three modes of a headless run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from fake_runtimes.pi.command import program
from fake_runtimes.pi.rpc import HEAD, status_line
from fake_runtimes.pi.texts import Status
from fake_runtimes.plan import Plan, ToolCall, Turn
from fake_servers.mcp import Behaviour
from fake_servers.mcp import program as server_program
from harness.world.model import Actor, Simulation
from scenarios.units.fake_pi_run import BOTH, CLONE, GOOD, HANGS, HOME, OLDER, stdio

PROFILES = pytest.mark.parametrize("profile", BOTH, ids=["2.32.1", "2.36.0"])
TALK = Plan((Turn((ToolCall("srv", "echo", {"a": 1}),), 2.0, "I look"), Turn(seconds=1.0, text="Found it.")))
STATUS = {"type": "prompt", "message": "/mcp status"}


class Ran(NamedTuple):
    """A finished run."""

    simulation: Simulation
    actor: Actor

    @property
    def printed(self) -> list[str]:
        return "\n".join(self.actor.stdout.lines).split("\n")

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.printed]

    @property
    def errors(self) -> list[str]:
        return list(self.actor.stderr.lines)


def pi(
    *words: str,
    servers: dict[str, Behaviour] | None = None,
    plan: Plan = TALK,
    profile=OLDER,
    stdin: Sequence[Any] = (),
    settings: dict[str, Any] | None = None,
) -> Ran:
    behaviours = {"srv": GOOD} if servers is None else servers
    simulation = Simulation(
        launcher=lambda argv, env, directory: server_program(behaviours[argv[0]]) if argv[0] in behaviours else None
    )
    simulation.tree.make_directory(CLONE, 0o755, 0, 0.0)
    entries = {name: stdio(name) for name in behaviours}
    config = json.dumps({"mcpServers": entries, "settings": settings or {}})
    simulation.tree.write(f"{CLONE}/.mcp.json", config.encode(), 0o644, 0, 0.0)
    lines = [line if isinstance(line, str) else json.dumps(line) for line in stdin]
    argv = ("pi", *words)
    actor = simulation.start("pi", program(profile, plan), argv, env={"HOME": HOME}, directory=CLONE, stdin=lines)
    assert simulation.run().verdict == "done"
    ended = simulation.ended(actor)
    assert (ended.error, ended.lost) == (None, ())
    return Ran(simulation, actor)


def requests(found: Ran) -> list[tuple[str, str]]:
    """What the adapter asked the host to show."""
    asked = [line for line in found.lines if line["type"] == "extension_ui_request"]
    return [(line["method"], line.get("message") or line["statusText"]) for line in asked]


@pytest.mark.parametrize("flag", ["--version", "-v"])
def test_the_version_is_the_programs_without_its_adapters(flag):
    assert [pi(flag, profile=profile).printed for profile in BOTH] == [["0.84.1"], ["0.86.1"]]


@PROFILES
@pytest.mark.parametrize("words", [("-p", "x"), ("-p", "--mode", "text", "x"), ("x",)])
def test_text_is_the_last_words_alone(profile, words):
    found = pi(*words, profile=profile)
    assert (found.actor.exit_code, found.printed, found.errors) == (0, ["Found it."], [])


@PROFILES
def test_json_is_the_events_of_the_run_and_none_about_servers(profile):
    found = pi("-p", "--mode", "json", "go", "on", profile=profile)
    kinds = [line["type"] for line in found.lines]
    message = ["message_start", "message_end"]
    assert kinds == [
        *("session", "agent_start", *message),
        *("turn_start", *message, "tool_execution_start", "tool_execution_end", *message, "turn_end"),
        *("turn_start", *message, "turn_end"),
        *("agent_end", "agent_settled"),
    ]
    said = [line["message"] for line in found.lines if line["type"] == "message_end"]
    assert [one["role"] for one in said] == ["user", "assistant", "toolResult", "assistant"]
    assert said[0]["content"] == [{"type": "text", "text": "go on"}]
    call = said[1]["content"][1]
    assert (call["type"], call["name"]) == ("toolCall", "mcp__srv")
    assert said[2]["toolCallId"] == call["id"]
    assert said[3]["content"] == [{"type": "text", "text": "Found it."}]
    assert (said[1]["stopReason"], said[3]["stopReason"]) == ("toolUse", "stop")
    assert found.lines[-2]["messages"] == said


def test_a_prompt_comes_from_stdin_where_the_command_line_has_none():
    assert pi("-p", stdin=("go on",)).printed == ["Found it."]
    empty = pi("-p")
    assert (empty.actor.exit_code, empty.printed, len(empty.errors)) == (1, [""], 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-p", "--bogus", "x"), "Error: Unknown option: --bogus"),
        (("-p", "--mode", "xml", "x"), "Error: Invalid mode: xml. Valid modes: text, json, rpc"),
        (("-p", "x", "--model"), "Error: Unknown option: --model"),
    ],
)
def test_what_is_not_taken_ends_with_1_and_starts_nothing(words, said):
    found = pi(*words)
    assert (found.actor.exit_code, found.errors) == (1, [said])
    assert len(found.simulation.actors) == 1


# --- rpc


@PROFILES
def test_over_rpc_the_adapter_tells_of_its_servers_before_any_prompt(profile):
    servers = {"good": GOOD, "ex": Behaviour(exits="at-start", stderr=("boom",))}
    found = pi("--mode", "rpc", servers=servers, profile=profile, stdin=(STATUS,))
    assert requests(found) == [
        ("setStatus", "🔌 MCP: connecting to 2 servers..."),
        ("notify", "MCP: Failed to connect to ex: Connection closed (boom)"),
        ("notify", "MCP: 1/2 servers connected (1 tools)"),
        ("setStatus", "🔌 MCP: 2 servers enabled (1 connected)"),
        (
            "notify",
            "\n".join(HEAD)
            + "\n✓ good: connected; legacy notification path (1 tools)\n✗ ex: failed 0s ago — Connection closed (boom)",
        ),
    ]
    kinds = [line["notifyType"] for line in found.lines if line.get("method") == "notify"]
    assert kinds == ["error", "info", "info"]
    assert (found.actor.exit_code, found.errors) == (0, [])
    assert not [event for event in found.simulation.events if event.name == "model.request"]


def test_over_rpc_every_prompt_plays_the_plan_and_is_answered_by_its_id():
    prompt = {"id": "p1", "type": "prompt", "message": "go on"}
    found = pi("--mode", "rpc", stdin=(prompt, {**prompt, "id": "p2"}, {"type": "get_state"}))
    responses = [line for line in found.lines if line["type"] == "response"]
    assert [line.get("id") for line in responses] == ["p1", "p2", None]
    assert all(line["success"] for line in responses)
    assert responses[2]["data"]["messageCount"] == 4
    assert [line["type"] for line in found.lines].count("agent_settled") == 2
    numbers = [event.details["number"] for event in found.simulation.events if event.name == "model.request"]
    assert numbers == [1, 2, 3, 4]


def test_over_rpc_what_is_no_command_is_answered_and_the_session_goes_on():
    found = pi("--mode", "rpc", stdin=("{oops", "[1]", "", {"id": 7, "type": "fly"}, {"type": "abort"}))
    responses = [line for line in found.lines if line["type"] == "response"]
    assert [line["success"] for line in responses] == [False, False, False, True]
    assert responses[2] == {
        "id": 7,
        "type": "response",
        "command": "fly",
        "success": False,
        "error": "Unknown command: fly",
    }
    assert found.actor.exit_code == 0


def test_over_rpc_without_servers_nothing_is_told_of_them():
    assert requests(pi("--mode", "rpc", servers={}, stdin=({"type": "get_state"},))) == []


def test_over_rpc_a_server_that_hangs_holds_the_first_request_of_a_prompt_for_thirty_seconds():
    found = pi("--mode", "rpc", servers={"srv": HANGS}, stdin=({"type": "prompt", "message": "x"},))
    times = [event.at_seconds for event in found.simulation.events if event.name == "model.request"]
    assert times[0] - found.simulation.started_seconds == 30.0


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (Status("a", "needs-auth"), "⚠ a: needs auth (0 tools)"),
        (Status("a", "disabled"), "⊘ a: disabled (run /mcp enable a, then /reload)"),
        (Status("a", "cached"), "○ a: cached"),
        (Status("a", "failed", failed_seconds_ago=9.4), "✗ a: failed 9s ago"),
    ],
)
def test_a_servers_line_in_the_status_tells_its_state(status, line):
    assert status_line(status) == line
