"""What the orchestrator reads out of a runtime's logs and lines about its servers."""

from __future__ import annotations

import json

import pytest

from harness.reference.session import evidence
from harness.world import World
from scenarios.worlds import alone

SINCE = 1_700_000_000.0004
AT, BEFORE = "2023-11-14T22:13:20.000Z", "2023-11-14T22:13:19.999Z"
NAMES = ("ctx", "a-b", "x.y")


def entry(level: str, text: str, at: str | None = AT) -> str:
    return json.dumps({level: text, **({} if at is None else {"timestamp": at})})


START = entry("debug", "Starting connection with timeout of 180000ms")
FAILED = entry("debug", "Connection failed after 9ms (-32000): MCP error -32000: Connection closed")
CONNECTED = entry("debug", "Successfully connected to stdio server in 9ms")
NPM_LINES = "npm error code ENOTEMPTY\nnpm error path /x"
STDERR = entry("error", f"Server stderr: {NPM_LINES}")


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        ([], None),
        ([START], None),
        ([STDERR], None),
        ([START, CONNECTED], True),
        ([FAILED, CONNECTED], True),
        ([CONNECTED, FAILED], "Connection failed after 9ms (-32000): MCP error -32000: Connection closed"),
        (
            [STDERR, FAILED, FAILED],
            f"Server stderr: {NPM_LINES} | Connection failed after 9ms (-32000): MCP error -32000: Connection closed",
        ),
        ([entry("debug", "Connection failed: old", BEFORE)], None),
        ([entry("debug", "Connection failed: no time", None)], "Connection failed: no time"),
        ([entry("debug", "Connection failed: odd time", "soon")], "Connection failed: odd time"),
        (["", "not json", "[1]", "null", '{"debug": 5}', "[" * 5000], None),
        ([entry("debug", "Skipping connection (cached needs-auth)")], None),
    ],
)
def test_the_last_word_of_a_claude_log_decides_and_lines_of_earlier_runs_do_not_count(lines, verdict):
    assert evidence.claude_verdict(lines, SINCE) == verdict


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("MCP client for `ctx` failed to start: MCP startup failed: handshaking", ["ctx"]),
        ("MCP client for `ctx` timed out after 10 seconds. Add or adjust `startup_timeout_sec`", ["ctx"]),
        ("MCP client for server 'ctx' failed", ["ctx"]),
        ("failed to start MCP server ctx: nope", ["ctx"]),
        ('WARN codex_mcp::rmcp_client: MCP server startup failed server_name="a-b" error=x', ["a-b"]),
        ("MCP startup incomplete (failed: ctx, a-b)", ["ctx", "a-b"]),
        ("MCP client for `unknown` failed", []),
        ("ERROR rmcp::transport::worker: worker quit with fatal", []),
        ("", []),
    ],
)
def test_codex_names_a_server_that_did_not_start_in_several_wordings(line, names):
    seen = evidence.lines_seen("codex", [line], NAMES)
    assert list(seen.failed) == names
    assert all(text == line for text in seen.failed.values())


@pytest.mark.parametrize(("status", "names"), [("starting", []), ("ready", []), ("failed", ["ctx"])])
def test_the_app_servers_notification_counts_only_when_it_says_failed(status, names):
    params = {"threadId": "t", "name": "ctx", "status": status, "error": "MCP client for `ctx` failed"}
    line = json.dumps({"method": "mcpServer/startupStatus/updated", "params": params})
    assert list(evidence.lines_seen("codex", [line], NAMES).failed) == names


def test_pi_prints_a_line_for_each_server_that_did_not_connect():
    lines = [
        "MCP: Failed to connect to ctx: Connection closed\nMCP: Failed to connect to x.y: spawn y ENOENT",
        "MCP: a-b temporarily unavailable (HTTP 503); retry later",
        "something else",
    ]
    seen = evidence.lines_seen("pi", lines, NAMES)
    assert list(seen.failed) == ["ctx", "x.y", "a-b"]
    assert seen.failed["x.y"] == "MCP: Failed to connect to x.y: spawn y ENOENT"
    assert evidence.lines_seen("claude", lines, NAMES).failed == {}


def test_a_log_that_nobody_has_touched_since_the_start_says_nothing():
    async def body(world: World) -> tuple[evidence.Seen, list[str]]:
        directory = evidence.log_directory("/c", "/clone", "ctx")
        await world.files.make_directory(directory)
        for name in ("over.jsonl", "goes-on.jsonl"):
            await world.files.write(f"{directory}/{name}", f"{entry('error', name, None)}\n{FAILED}\n".encode())
        await world.clock.sleep(3600)
        since = world.clock.now()
        before = await evidence.claude_seen(world, "/c", "/clone", ["ctx"], since)
        await world.files.append(f"{directory}/goes-on.jsonl", entry("debug", "Connection failed", None).encode())
        after = await evidence.claude_seen(world, "/c", "/clone", ["ctx"], since)
        return before, after.failed["ctx"].split(evidence.SEPARATOR)

    assert alone(body) == (evidence.Seen(), ["goes-on.jsonl", "Connection failed"])


def test_logs_are_looked_for_under_the_names_that_claude_makes():
    place = evidence.log_directory("/c", "/home/u/.zimmer/clones/one_two", "x.y z")
    assert place == "/c/claude-cli-nodejs/-home-u--zimmer-clones-one-two/mcp-logs-x-y-z"
