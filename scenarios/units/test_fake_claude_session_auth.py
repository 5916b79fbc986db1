"""Stored tokens and the memory of refusals in a headless Claude."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fake_runtimes.claude.credentials import lookup_key
from fake_runtimes.claude.needs_auth import SKIP_LINE, is_live, updated
from fake_runtimes.claude.stored import seconds_left
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.plan import Plan, ToolCall, Turn
from fake_servers.mcp import Behaviour
from harness.world import World
from harness.world.model.simulation import DEFAULT_START_SECONDS
from scenarios.claude_runs import CACHE_FILE, NEW, OLD, STORE_FILE, ClaudeRun

GOOD = Behaviour()
GUARDED = Behaviour(requires_bearer=("AT",))
NOW_MS = int(DEFAULT_START_SECONDS * 1000)
BOTH = pytest.mark.parametrize("profile", [OLD, NEW])
URL = "https://srv.test/mcp"
KEY = lookup_key(LoadedServer("srv", "http", url=URL))


def remembered(**ages_seconds: float) -> dict[str, str]:
    """A cache whose entries were written so long ago."""
    return {CACHE_FILE: json.dumps({name: {"timestamp": NOW_MS - age * 1000} for name, age in ages_seconds.items()})}


def stored(key: str = KEY, **entry) -> dict[str, str]:
    """A store with one entry."""
    return {STORE_FILE: json.dumps({"claudeAiOauth": {}, "mcpOAuth": {key: {"accessToken": "AT", **entry}}})}


def bearers(run: ClaudeRun) -> list[str | None]:
    return [seen.headers.get("Authorization") for seen in run.servers["srv"].requests if seen.method == "POST"]


@pytest.mark.requirement("gate-fake-needs-auth-memo", "store-needs-auth-skips-network")
@pytest.mark.parametrize(
    ("age_seconds", "ttl_ms", "skipped"),
    [
        (14.8 * 60, None, True),
        (15.2 * 60, None, False),
        (80, 90_000, True),
        (100, 90_000, False),
        (3600, 7_200_000, True),
        (-60, None, False),
    ],
)
@BOTH
def test_a_live_entry_keeps_a_session_from_a_server_without_any_request(profile, age_seconds, ttl_ms, skipped):
    entry = {"timestamp": NOW_MS - age_seconds * 1000} | ({} if ttl_ms is None else {"ttlMs": ttl_ms})
    run = ClaudeRun(profile, {}, {"srv": GOOD}, files={CACHE_FILE: json.dumps({"srv": entry})})
    assert run.statuses() == {"srv": "needs-auth" if skipped else "connected"}
    assert (run.servers["srv"].requests == []) == skipped
    if skipped:
        assert run.log("srv") == [("debug", SKIP_LINE)]
        assert run.events("server.needs_auth")[0]["cached"]
        assert json.loads(run.text(CACHE_FILE)) == {"srv": entry}


@pytest.mark.requirement("gate-fake-needs-auth-memo", "store-needs-auth-skips-network")
@pytest.mark.parametrize("kind", ["token", "header", "sse", "other url"])
@BOTH
def test_neither_a_good_token_nor_another_entry_under_the_name_helps_against_it(profile, kind):
    entry: dict[str, Any] = {"type": "sse" if kind == "sse" else "http", "url": URL}
    if kind == "other url":
        entry["url"] = f"{URL}/new"
    if kind == "header":
        entry["headers"] = {"Authorization": "Bearer AT"}
    run = ClaudeRun(profile, {}, {"srv": GUARDED}, entries={"srv": entry}, files={**remembered(srv=60), **stored()})
    assert run.statuses() == {"srv": "needs-auth"}
    assert run.servers["srv"].requests == []


@pytest.mark.requirement("gate-fake-needs-auth-memo")
@BOTH
def test_a_process_is_not_kept_from_and_strikes_its_own_name_off(profile):
    run = ClaudeRun(profile, {"srv": GOOD}, files=remembered(srv=60, other=60))
    assert run.statuses() == {"srv": "connected"}
    assert list(json.loads(run.text(CACHE_FILE))) == ["other"]


@pytest.mark.requirement("gate-fake-needs-auth-memo")
@pytest.mark.parametrize("status", [401, 403])
@BOTH
def test_a_refusal_is_written_down_and_the_next_session_skips_the_server(profile, status):
    refusing = {"srv": Behaviour(status=status), "again": Behaviour(status=status)}
    run = ClaudeRun(profile, {}, refusing, files=remembered(other=60))
    written = json.loads(run.text(CACHE_FILE))
    assert written == {"other": written["other"], "srv": {"timestamp": NOW_MS}, "again": {"timestamp": NOW_MS}}
    assert run.statuses() == {"srv": "needs-auth", "again": "needs-auth"}
    then = ClaudeRun(profile, {}, {"srv": GOOD}, files={CACHE_FILE: run.text(CACHE_FILE)})
    assert then.servers["srv"].requests == []


@pytest.mark.requirement("gate-fake-needs-auth-memo")
@BOTH
def test_an_expired_entry_is_struck_off_by_a_connection_and_renewed_by_a_refusal(profile):
    old = remembered(srv=1000, other=1000)
    assert list(json.loads(ClaudeRun(profile, {}, {"srv": GOOD}, files=old).text(CACHE_FILE))) == ["other"]
    renewed = json.loads(ClaudeRun(profile, {}, {"srv": GUARDED}, files=old).text(CACHE_FILE))
    assert renewed["srv"] == {"timestamp": NOW_MS}


@BOTH
def test_a_refused_header_of_the_entry_and_other_failures_are_not_written_down(profile):
    entry = {"type": "http", "url": URL, "headers": {"Authorization": "Bearer old"}}
    run = ClaudeRun(profile, {}, {"srv": GUARDED, "b": Behaviour(status=500)}, entries={"srv": entry})
    assert CACHE_FILE not in run.paths("/home")
    assert run.statuses() == {"srv": "failed", "b": "failed"}


@pytest.mark.parametrize(
    ("text", "after_success", "after_refusal"),
    [
        ("{oops", "{oops", {"srv": {"timestamp": NOW_MS}}),
        ("[]", "[]", []),
        ('{"srv":5}', "{}", {"srv": {"timestamp": NOW_MS}}),
    ],
)
@BOTH
def test_a_cache_that_is_damaged_keeps_nobody_out(profile, text, after_success, after_refusal):
    good = ClaudeRun(profile, {}, {"srv": GOOD}, files={CACHE_FILE: text})
    assert (good.statuses(), good.text(CACHE_FILE)) == ({"srv": "connected"}, after_success)
    refused = ClaudeRun(profile, {}, {"srv": GUARDED}, files={CACHE_FILE: text})
    assert json.loads(refused.text(CACHE_FILE)) == after_refusal


@pytest.mark.parametrize(
    ("entry", "live"),
    [
        ({"timestamp": 0}, True),
        ({"timestamp": -900_000}, False),
        ({"timestamp": -899_999}, True),
        ({"timestamp": 1}, False),
        ({"timestamp": "0"}, False),
        ({"timestamp": True}, False),
        ({"timestamp": 0, "ttlMs": None}, False),
        ({}, False),
        ([], False),
    ],
)
def test_an_entry_lives_from_its_time_stamp_to_its_end(entry, live):
    assert is_live(json.dumps({"srv": entry}), "srv", 0) == live
    assert not is_live(json.dumps({"srv": entry}), "SRV", 0)


def test_updating_changes_the_named_entries_alone():
    assert updated('{"a":{"timestamp":1},"b":2}', {"a": None, "c": {"timestamp": 3}}) == '{"b":2,"c":{"timestamp":3}}'
    assert updated(None, {"a": None}) is None
    assert updated("[1]", {"a": {"timestamp": 1}}) is None


@pytest.mark.requirement("writers-claude-fake-reads-by-key")
@pytest.mark.parametrize("expires_at", [None, NOW_MS + 1000, str(NOW_MS + 1000), "2020-01-01T00:00:00Z"])
@BOTH
def test_a_stored_token_that_still_counts_is_sent(profile, expires_at):
    given = {} if expires_at is None else {"expiresAt": expires_at}
    run = ClaudeRun(profile, {}, {"srv": GUARDED}, files=stored(serverUrl="https://wrong.test", **given))
    assert run.statuses() == {"srv": "connected"}
    assert set(bearers(run)) == {"Bearer AT"}
    assert ("debug", "Returning tokens") in run.log("srv")


@pytest.mark.requirement("writers-claude-fake-reads-by-key")
@pytest.mark.parametrize(
    "files",
    [
        stored(expiresAt=NOW_MS - 1),
        stored(expiresAt=NOW_MS // 1000),
        stored(accessToken=""),
        stored("srv|0000000000000000", serverName="srv", serverUrl=URL),
        stored(KEY.replace("srv", "other")),
        {STORE_FILE: "{oops"},
        {},
    ],
    ids=["expired", "in seconds", "emptied", "other digest", "other name", "no json", "no store"],
)
@BOTH
def test_no_bearer_is_sent_without_one_that_counts(profile, files):
    run = ClaudeRun(profile, {}, {"srv": GUARDED}, files=files)
    assert run.statuses() == {"srv": "needs-auth"}
    assert set(bearers(run)) == {None}


@pytest.mark.parametrize("name", ["Authorization", "authorization", "AUTHORIZATION"])
@BOTH
def test_a_configured_authorization_wins_over_a_stored_token(profile, name):
    headers = {name: "Bearer mine"}
    entry = {"type": "http", "url": URL, "headers": headers}
    server = LoadedServer("srv", "http", url=URL, headers=headers)
    run = ClaudeRun(profile, {}, {"srv": GOOD}, entries={"srv": entry}, files=stored(lookup_key(server)))
    assert {seen.headers[name] for seen in run.servers["srv"].requests} == {"Bearer mine"}


@BOTH
def test_another_header_does_not_keep_the_stored_token_back(profile):
    headers = {"X-API-Key": "k"}
    entry = {"type": "http", "url": URL, "headers": headers}
    server = LoadedServer("srv", "http", url=URL, headers=headers)
    run = ClaudeRun(profile, {}, {"srv": GUARDED}, entries={"srv": entry}, files=stored(lookup_key(server)))
    assert run.statuses() == {"srv": "connected"}


@pytest.mark.parametrize("expires_at", [True, [], None])
def test_what_is_no_time_never_passes(expires_at):
    assert seconds_left({"expiresAt": expires_at}, 10.0) is None


@BOTH
def test_a_call_that_is_refused_asks_for_a_sign_in(profile):
    plan = Plan((Turn((ToolCall("srv", "echo"),), seconds=3.0),))
    run = ClaudeRun(profile, {}, {"srv": GUARDED}, files=stored(expiresAt=NOW_MS + 2000), plan=plan)
    texts = {
        OLD: 'MCP server "srv" requires re-authorization (token expired)',
        NEW: 'MCP server "srv" needs you to sign in again (run /mcp to re-authenticate)',
    }
    assert run.events("tool.call")[0]["text"] == texts[profile]
    again = "Tool 'echo' returned 401; stored sign-in rejected, no refresh token — reconnecting and retrying once"
    texts_of_call = [text for _, text in run.log("srv") if "Tool " in text and "Calling" not in text]
    assert texts_of_call == [
        "Tool 'echo' failed after 0s: Unauthorized",
        *([again] if profile == NEW else []),
        "Tool call returned 401 Unauthorized - token may have expired",
    ]
    assert (CACHE_FILE in run.paths("/home")) == (profile == NEW)


def pushing(token: str, at_seconds: float):
    """Another actor that puts a token into the store, and clears the memory of refusals."""

    async def push(world: World) -> None:
        await world.clock.sleep(at_seconds)
        await world.files.write_atomic(STORE_FILE, stored(accessToken=token)[STORE_FILE].encode())
        await world.files.write_atomic(CACHE_FILE, b"{}")

    return push


@pytest.mark.requirement("reconnect-no-live-handover")
@BOTH
def test_a_token_that_comes_too_late_gives_no_connection_in_this_run(profile):
    plan = Plan((Turn(seconds=3.0), Turn((ToolCall("srv", "echo"),)), Turn()))
    run = ClaudeRun(profile, {}, {"srv": GUARDED}, plan=plan, beside=pushing("AT", 1.0))
    assert [tools for _, tools, _ in run.requests()] == [[], [], []]
    assert run.events("tool.call")[0]["text"] == "No such tool available: mcp__srv__echo"
    assert set(bearers(run)) == {None}
    files = {path: run.text(path) for path in (STORE_FILE, CACHE_FILE)}
    assert ClaudeRun(profile, {}, {"srv": GUARDED}, files=files).requests()[0][1] == ["mcp__srv__echo"]


@BOTH
def test_a_connected_server_gets_a_token_that_is_pushed_while_it_runs(profile):
    both = {"srv": Behaviour(requires_bearer=("AT", "NEW"))}
    plan = Plan((Turn((ToolCall("srv", "echo"),), seconds=3.0),))
    run = ClaudeRun(profile, {}, both, plan=plan, files=stored(), beside=pushing("NEW", 1.0))
    assert run.events("tool.call")[0]["ok"]
    assert (bearers(run)[0], bearers(run)[-1]) == ("Bearer AT", "Bearer NEW")
