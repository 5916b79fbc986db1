"""Claude's memory of servers that wanted a sign-in: what is struck off, what stays, what it costs to leave it."""

from __future__ import annotations

import json

import pytest

from fake_servers.mcp import Behaviour
from harness.reference.credentials.writers.claude import ClaudeWriter
from harness.reference.credentials.writers.registry import forget_refusal
from harness.world import World
from harness.world.model import Fault, Hold, Seeded
from harness.world.model.simulation import DEFAULT_START_SECONDS
from scenarios.claude_runs import CACHE_FILE as FAKE_CACHE
from scenarios.claude_runs import NEW, OLD, STORE_FILE, ClaudeRun
from scenarios.units.writer_run import (
    CACHE,
    CLAUDE,
    CLAUDE_STORE,
    KEY,
    LOCK,
    clearing,
    full,
    run_writers,
    server,
    writing,
)

WRITER = ClaudeWriter(CLAUDE)
ENTRIES = {"reframe-secrets": {"timestamp": 1}, "github-rufus": {"timestamp": 2, "ttlMs": 90000}, "linear": 7}
FAKE_NOW_MS = int(DEFAULT_START_SECONDS * 1000)
BOTH = pytest.mark.parametrize("profile", [OLD, NEW])


@pytest.mark.requirement("gate-needs-auth-clear-by-name", "store-clear-only-named")
def test_exactly_the_named_entries_go_and_the_others_stay_as_they_are_spelled():
    text = '{"reframe-secrets":{"timestamp":1},"github-rufus":{"timestamp":2.50,"x":1E400},"linear":7}'
    names = ("reframe-secrets", "linear", "not-present", "linear")
    ran = run_writers(clearing(WRITER, *names), files={CACHE: text}, modes={CACHE: 0o644})
    assert ran.result == ("reframe-secrets", "linear")
    left = ran.text(CACHE) or ""
    assert list(json.loads(left)) == ["github-rufus"]
    assert "2.50" in left
    assert "1E400" in left
    assert ran.mode(CACHE) == 0o644


@pytest.mark.requirement("gate-needs-auth-clear-by-name")
def test_an_entry_is_struck_off_by_the_bare_name_not_by_a_key():
    files = {CACHE: json.dumps({"notion": {"timestamp": 1}, KEY: {"timestamp": 1}})}
    ran = run_writers(clearing(WRITER, "notion"), files=files)
    assert (ran.result, list(ran.json(CACHE))) == (("notion",), [KEY])


@pytest.mark.requirement("gate-needs-auth-clear-by-name", "store-clear-tolerant")
@pytest.mark.parametrize("text", [None, "", "{oops", "[]", '"a"', "{}", json.dumps(ENTRIES)])
@pytest.mark.parametrize("names", [(), ("a",)])
def test_where_nothing_is_named_or_there_is_nothing_all_stays(text, names):
    ran = run_writers(clearing(WRITER, *names), files={} if text is None else {CACHE: text})
    assert (ran.result, ran.text(CACHE), ran.warnings) == ((), text, [])
    assert ran.exists(CLAUDE) is (text is not None)


@pytest.mark.requirement("gate-needs-auth-clear-best-effort", "store-clear-failure-harmless")
@pytest.mark.parametrize("how", ["unreadable", "a directory", "a full disk", "a lock that is held"])
def test_a_cache_that_cannot_be_cleared_costs_a_warning(how):
    async def body(world: World) -> object:
        path = await WRITER.write(world, [full()])
        return path, await WRITER.clear_needs_auth(world, ["notion"])

    files = {} if how == "a directory" else {CACHE: '{"notion": {"timestamp": 1}}'}
    if how == "a lock that is held":
        ran = held_for_long(body, files)
    else:
        ran = run_writers(
            body,
            files=files,
            modes={CACHE: 0} if how == "unreadable" else {},
            directories={CLAUDE: 0o700, CACHE: 0o755} if how == "a directory" else {},
            faults=[Fault("enospc", label=f"write {CACHE}")] if how == "a full disk" else [],
            user=1000,
        )
    assert ran.result == (CLAUDE_STORE, ())
    assert list(ran.json(CLAUDE_STORE)["mcpOAuth"]) == [KEY]
    assert len(ran.warnings) == 1
    assert CLAUDE in ran.warnings[0]


def held_for_long(body, files):
    """The lock is taken between the write and the clearing, and not let go."""

    async def holder(world: World) -> None:
        lock = await world.files.lock(f"{CLAUDE}/{LOCK}")
        world.events.emit("held")
        await world.clock.sleep(600)
        assert lock is not None
        await lock.release()

    holds = [
        Hold("zimmer", f"stat {CACHE}", lambda event: event.name == "held"),
        Hold("zimmer2", f"lock {CLAUDE}/{LOCK}", lambda _event: False, limit_seconds=1),
    ]
    return run_writers(body, holder, files=files, holds=holds)


@pytest.mark.requirement("store-clear-under-lock")
@pytest.mark.parametrize("seed", [None, *range(8)])
def test_two_that_clear_at_once_both_get_their_way(seed):
    holds = [Hold("zimmer", f"write {CACHE}", lambda _event: False, limit_seconds=5)] if seed is None else []
    ran = run_writers(
        clearing(WRITER, "reframe-secrets"),
        clearing(WRITER, "linear"),
        files={CACHE: json.dumps(ENTRIES)},
        holds=holds,
        decisions=None if seed is None else Seeded(seed, run=0.5, stall=0.2),
    )
    assert list(ran.json(CACHE)) == ["github-rufus"]
    assert (ran.results["zimmer"], ran.results["zimmer2"]) == (("reframe-secrets",), ("linear",))


@pytest.mark.requirement("store-clear-follows-config-dir")
def test_the_cache_beside_the_sessions_own_store_is_the_one_that_is_cleared():
    own = ClaudeWriter("/s/1")
    files = {CACHE: '{"notion": {"timestamp": 1}}', "/s/1/mcp-needs-auth-cache.json": '{"notion": {"timestamp": 1}}'}
    ran = run_writers(clearing(own, "notion"), files=files)
    assert ran.result == ("notion",)
    assert (ran.json("/s/1/mcp-needs-auth-cache.json"), ran.text(CACHE)) == ({}, files[CACHE])


def test_a_sign_in_is_told_to_whichever_runtime_remembers_a_refusal_of_that_server():
    async def body(world: World) -> object:
        return [await forget_refusal(world, "notion"), await forget_refusal(world, "notion")]

    ran = run_writers(body, files={CACHE: '{"notion": {"timestamp": 1}, "other": {"timestamp": 1}}'})
    assert (ran.result, list(ran.json(CACHE))) == ([("claude",), ()], ["other"])


# --- with the runtime -------------------------------------------------------------------------------------------------

REMOTE = "https://notion.test/mcp"
GUARDED = {"notion": Behaviour(requires_bearer=("notion-access",))}
ENTRY = {"notion": {"type": "http", "url": REMOTE}}


def poisoned(*names: str) -> str:
    """A cache in which these servers were refused just now."""
    return json.dumps({name: {"timestamp": FAKE_NOW_MS - 1000} for name in names})


def staged() -> str:
    """The store with a good token for the server."""
    credential = full(credential_key=server(url=REMOTE).runtime_keys["claude"])
    return run_writers(writing(WRITER, credential)).text(CLAUDE_STORE) or ""


@pytest.mark.requirement("store-needs-auth-global", "gate-fake-needs-auth-memo")
@BOTH
def test_one_sessions_refusal_keeps_every_later_session_out_until_it_is_cleared(profile):
    first = ClaudeRun(profile, {}, {"notion": Behaviour(status=401)}, entries=ENTRY)
    left = first.text(FAKE_CACHE)
    assert list(json.loads(left)) == ["notion"]
    files = {FAKE_CACHE: left, STORE_FILE: staged()}
    second = ClaudeRun(profile, {}, GUARDED, entries=ENTRY, files=files, directory="/clones/c2")
    assert (second.statuses(), second.servers["notion"].requests) == ({"notion": "needs-auth"}, [])
    cleared = run_writers(clearing(WRITER, "notion"), files={CACHE: left})
    files = {FAKE_CACHE: cleared.text(CACHE) or "", STORE_FILE: staged()}
    third = ClaudeRun(profile, {}, GUARDED, entries=ENTRY, files=files, directory="/clones/c3")
    assert third.statuses() == {"notion": "connected"}


@pytest.mark.requirement("gate-needs-auth-clear-whole-spawn", "store-clear-whole-spawn")
@BOTH
def test_a_server_with_a_static_header_that_a_namesake_poisoned_connects_once_its_name_is_cleared(profile):
    entries = {"strad": {"type": "http", "url": "https://strad.test/mcp", "headers": {"Authorization": "Bearer k"}}}
    servers = {"strad": Behaviour(requires_bearer=("k",))}
    skipped = ClaudeRun(profile, {}, servers, entries=entries, files={FAKE_CACHE: poisoned("strad", "other")})
    assert skipped.statuses() == {"strad": "needs-auth"}
    cleared = run_writers(clearing(WRITER, "strad"), files={CACHE: poisoned("strad", "other")}).text(CACHE) or ""
    assert list(json.loads(cleared)) == ["other"]
    ran = ClaudeRun(profile, {}, servers, entries=entries, files={FAKE_CACHE: cleared})
    assert ran.statuses() == {"strad": "connected"}
