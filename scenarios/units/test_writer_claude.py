"""Claude's writer: the shape of its entries, what of the file stays, which entry is fresher, who may read it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fake_servers.mcp import Behaviour
from harness.reference.credentials.writers.claude import ClaudeWriter, fresher_on_disk, write_account
from harness.reference.credentials.writers.registry import session_writer
from harness.reference.credentials.writers.staging import stage
from harness.reference.credentials.writers.store_file import LOCK_SECONDS
from harness.world import World
from harness.world.model import Fault, Hold, Seeded
from scenarios.claude_runs import HOME as FAKE_HOME
from scenarios.claude_runs import NEW, OLD, ClaudeRun
from scenarios.units.writer_run import (
    CLAUDE,
    CLAUDE_STORE,
    HOUR_MS,
    KEY,
    LOCK,
    NOW,
    NOW_MS,
    URL,
    bare,
    deleting,
    full,
    killed_everywhere,
    reading,
    row,
    run_writers,
    server,
    writing,
)

WRITER = ClaudeWriter(CLAUDE)
ENTRY = {
    "serverName": "notion",
    "serverUrl": URL,
    "clientId": "client-123",
    "accessToken": "notion-access",
    "scope": "",
    "expiresAt": NOW_MS + HOUR_MS,
    "refreshToken": "notion-refresh",
}
OTHERS: dict[str, Any] = {
    "claudeAiOauth": {"accessToken": "account"},
    "x": [1.50, "é"],
    "mcpOAuth": {"other|k": {"accessToken": "o"}},
}
UNREADABLE = [None, "", "  \n", "{ not json", "[1]", "null", '"text"', "[" * 5000, '{"a": NaN}']


# --- shape ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("writers-claude-path", "writers-claude-entry")
def test_an_entry_stands_under_mcp_oauth_by_its_key_with_its_expiry_in_milliseconds():
    ran = run_writers(writing(WRITER, full()))
    assert ran.result == CLAUDE_STORE
    assert ran.json(CLAUDE_STORE) == {"mcpOAuth": {KEY: ENTRY}}


@pytest.mark.requirement("writers-claude-entry")
@pytest.mark.parametrize("refresh", [None, "", "  "])
def test_what_is_absent_or_blank_is_left_out_of_an_entry(refresh):
    ran = run_writers(writing(WRITER, bare(refresh_token=refresh)))
    whole = {name: ENTRY[name] for name in ENTRY if name not in ("expiresAt", "refreshToken")}
    assert ran.json(CLAUDE_STORE)["mcpOAuth"] == {KEY: whole}


@pytest.mark.requirement("writers-claude-key-is-protocol-key")
@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ({"type": "http", "url": URL}, KEY),
        ({"type": "streamable-http", "url": URL}, KEY),
        (
            {"type": "sse", "url": "https://mcp.notion.com/sse", "headers": {"X-Token": "secret"}},
            "notion|007a1ae0cafeafe9",
        ),
        (
            {"type": "sse", "url": "https://${HOST}/sse", "headers": {"X-Token": "${TOKEN}"}},
            "notion|007a1ae0cafeafe9",
        ),
    ],
)
def test_the_key_is_the_one_that_the_runtime_computes_for_the_entry_it_reads(entry, key):
    staged = stage(row(), server(**entry), "claude")
    assert staged.credential_key == key
    ran = run_writers(writing(WRITER, staged))
    assert list(ran.json(CLAUDE_STORE)["mcpOAuth"]) == [key]
    assert WRITER.key_for(row(runtime_keys={"claude": key})) == key
    assert WRITER.key_for(row()) == KEY


# --- what stays -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("writers-claude-keeps-other-blocks", "store-other-blocks-kept")
def test_other_blocks_and_other_servers_stay_as_they_were_spelled():
    text = '{"claudeAiOauth":{"accessToken":"account","n":1.50},"x":-0,"mcpOAuth":{"other|k":{"odd":[1E400]}}}'
    ran = run_writers(writing(WRITER, full()), files={CLAUDE_STORE: text})
    written = ran.text(CLAUDE_STORE) or ""
    assert ran.json(CLAUDE_STORE)["mcpOAuth"][KEY] == ENTRY
    for kept in ('"n": 1.50', '"x": -0', "1E400", '"account"', '"other|k"'):
        assert kept in written


@pytest.mark.requirement("writers-missing-store-not-error", "store-corrupt-store")
@pytest.mark.parametrize("text", UNREADABLE)
def test_a_store_that_is_missing_or_no_object_reads_as_empty_and_is_replaced(text):
    files = {} if text is None else {CLAUDE_STORE: text}
    assert run_writers(reading(WRITER), files=files).result == {}
    removed = run_writers(deleting(WRITER, KEY), files=files)
    assert (removed.result, removed.text(CLAUDE_STORE)) == ((), text)
    ran = run_writers(writing(WRITER, full()), files=files)
    assert ran.json(CLAUDE_STORE) == {"mcpOAuth": {KEY: ENTRY}}
    assert ran.text(f"{CLAUDE_STORE}.unreadable") == (text if text and text.strip() else None)


@pytest.mark.requirement("writers-claude-keeps-other-blocks", "store-other-blocks-kept")
def test_a_byte_order_mark_costs_no_block_of_the_file():
    ran = run_writers(writing(WRITER, full()), files={CLAUDE_STORE: "\ufeff" + json.dumps(OTHERS)})
    assert ran.json(CLAUDE_STORE) == {**OTHERS, "mcpOAuth": {**OTHERS["mcpOAuth"], KEY: ENTRY}}
    assert not ran.exists(f"{CLAUDE_STORE}.unreadable")


@pytest.mark.requirement("writers-missing-store-not-error")
@pytest.mark.parametrize("block", [None, [], "x", 7])
def test_a_block_that_is_no_object_is_replaced_and_nothing_beside_it(block):
    files = {CLAUDE_STORE: json.dumps({"claudeAiOauth": {"a": 1}, "mcpOAuth": block})}
    ran = run_writers(writing(WRITER, full()), files=files)
    assert ran.json(CLAUDE_STORE) == {"claudeAiOauth": {"a": 1}, "mcpOAuth": {KEY: ENTRY}}


@pytest.mark.requirement("writers-delete-returns-removed")
def test_deleting_removes_the_named_entries_alone_and_tells_which_were_there():
    stored = {**OTHERS, "mcpOAuth": {**OTHERS["mcpOAuth"], KEY: ENTRY}}
    ran = run_writers(deleting(WRITER, "gone|1", KEY, KEY), files={CLAUDE_STORE: json.dumps(stored)})
    assert (ran.result, ran.json(CLAUDE_STORE)) == ((KEY,), OTHERS)
    for keys in (("gone|1",), ()):
        text = json.dumps(stored)
        ran = run_writers(deleting(WRITER, *keys), files={CLAUDE_STORE: text})
        assert (ran.result, ran.text(CLAUDE_STORE)) == ((), text)
    nothing = run_writers(deleting(WRITER, KEY))
    assert (nothing.result, nothing.exists(CLAUDE)) == ((), False)


# --- which entry ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("writers-claude-merge-fresher", "reconcile-merge-protects-valid-entry")
@pytest.mark.parametrize(
    ("disk", "ours", "kept"),
    [
        (7200, 3600, True),
        (3600, 10800, False),
        (-3600, 3600, False),
        (None, 3600, False),
        (7200, None, True),
        (3600, 3600, True),
        (3600, 3601, False),
        (1, 1, True),
        (None, None, False),
    ],
)
def test_an_entry_on_disk_stays_while_it_counts_and_is_at_least_as_late(disk, ours, kept):
    on_disk = {**ENTRY, "accessToken": "disk"} | ({} if disk is None else {"expiresAt": NOW_MS + disk * 1000})
    if disk is None:
        del on_disk["expiresAt"]
    credential = full(expires_at_ms=None if ours is None else NOW_MS + ours * 1000)
    ran = run_writers(writing(WRITER, credential), files={CLAUDE_STORE: json.dumps({"mcpOAuth": {KEY: on_disk}})})
    assert ran.json(CLAUDE_STORE)["mcpOAuth"][KEY]["accessToken"] == ("disk" if kept else "notion-access")


@pytest.mark.requirement("writers-claude-merge-fresher")
@pytest.mark.parametrize(("disk", "ours", "kept"), [(-60, -3600, False), (0, -1, False), ("soon", 3600, False)])
def test_an_entry_on_disk_that_has_expired_or_tells_no_time_loses(disk, ours, kept):
    disk_ms = disk if isinstance(disk, str) else NOW_MS + disk * 1000
    assert fresher_on_disk(disk_ms, NOW_MS + ours * 1000, NOW_MS) is kept


@pytest.mark.requirement("writers-claude-emptied-entry")
@pytest.mark.parametrize("entry", [{**ENTRY, "accessToken": ""}, {"expiresAt": NOW_MS * 2}, "text", None])
def test_an_entry_without_a_token_is_no_pair_and_beats_none(entry):
    files = {CLAUDE_STORE: json.dumps({"mcpOAuth": {KEY: entry, "m|2": {"accessToken": "a"}}})}
    found = run_writers(reading(WRITER), files=files).result
    assert list(found) == ["m|2"]
    assert (found["m|2"].access_token, found["m|2"].refresh_token) == ("a", None)
    ran = run_writers(writing(WRITER, full(expires_at_ms=NOW_MS + 1)), files=files)
    assert ran.json(CLAUDE_STORE)["mcpOAuth"][KEY]["accessToken"] == "notion-access"


@pytest.mark.requirement("reconcile-claude-millis")
def test_what_is_read_has_its_expiry_in_seconds_and_the_url_that_it_was_for():
    files = {CLAUDE_STORE: json.dumps({"mcpOAuth": {KEY: ENTRY, "b|1": {"accessToken": "b", "expiresAt": "x"}}})}
    found = run_writers(reading(WRITER), files=files).result
    assert (found[KEY].expires_at, found[KEY].server_url) == (NOW + 3600, URL)
    assert (found["b|1"].expires_at, found["b|1"].server_url) == (None, None)
    assert list(run_writers(reading(WRITER, ["b|1", "c|1"]), files=files).result) == ["b|1"]


# --- under the lock ---------------------------------------------------------------------------------------------------


def naming(number: int):
    return full(f"s{number}", access_token=f"token-{number}")


async def rotating_the_account(world: World) -> None:
    await write_account(world, CLAUDE, {"accessToken": "rotated"})


@pytest.mark.requirement(
    "writers-claude-lock",
    "store-lock-read-and-write",
    "store-lock-cross-process",
    "store-lock-shared-with-account-writer",
    "store-three-writers-one-file",
)
@pytest.mark.parametrize("point", ["write", "rename", "renamed"])
def test_writers_that_are_forced_between_one_anothers_read_and_write_lose_nothing(point):
    waiting = Hold("zimmer", f"{point} {CLAUDE_STORE}", lambda event: event.name == "nobody", limit_seconds=5)
    ran = run_writers(
        writing(WRITER, naming(1)),
        writing(WRITER, naming(2)),
        rotating_the_account,
        files={CLAUDE_STORE: json.dumps(OTHERS)},
        holds=[waiting],
    )
    written = ran.json(CLAUDE_STORE)
    assert ran.errors == {}
    assert set(written["mcpOAuth"]) == {"other|k", "s1|0123456789abcdef", "s2|0123456789abcdef"}
    assert written["claudeAiOauth"] == {"accessToken": "rotated"}
    assert written["x"] == OTHERS["x"]


def test_a_lock_that_is_somebody_elses_locks_all_the_same():
    made = run_writers(
        reading(WRITER), files={f"{CLAUDE}/{LOCK}": ""}, modes={f"{CLAUDE}/{LOCK}": 0o666}, directories={CLAUDE: 0o777}
    )
    ran = run_writers(writing(WRITER, full()), before=made, user=1000)
    assert ran.result == CLAUDE_STORE
    assert ran.mode(f"{CLAUDE}/{LOCK}") == 0o666


@pytest.mark.requirement("writers-claude-lock", "store-three-writers-one-file", "store-lock-shared-with-account-writer")
@pytest.mark.parametrize("seed", range(12))
def test_twenty_spawns_and_a_rotation_of_the_account_in_any_order_lose_nothing(seed):
    spawns = [writing(WRITER, naming(number)) for number in range(20)]
    ran = run_writers(*spawns, rotating_the_account, decisions=Seeded(seed, run=0.5, stall=0.1))
    written = ran.json(CLAUDE_STORE)
    assert ran.errors == {}
    assert len(written["mcpOAuth"]) == 20
    assert written["claudeAiOauth"] == {"accessToken": "rotated"}


@pytest.mark.requirement("store-lock-sibling-file")
def test_the_lock_is_a_private_file_beside_the_store_that_outlives_the_write():
    ran = run_writers(writing(WRITER, full()))
    assert ran.mode(f"{CLAUDE}/{LOCK}") == 0o600
    assert ran.text(f"{CLAUDE}/{LOCK}") == ""
    wide = run_writers(
        writing(WRITER, full()), files={f"{CLAUDE}/{LOCK}": "", CLAUDE_STORE: "{}"}, modes={f"{CLAUDE}/{LOCK}": 0o644}
    )
    assert wide.mode(f"{CLAUDE}/{LOCK}") == 0o600


@pytest.mark.requirement("store-lock-released-on-error")
def test_the_lock_is_free_when_a_writer_fails_or_dies():
    holds = [Hold("zimmer2", f"lock {CLAUDE}/{LOCK}", lambda event: event.name == "fault")]
    for action in ("enospc", "kill"):
        fault = Fault(action, actor="zimmer", label=f"write {CLAUDE_STORE}")
        ran = run_writers(writing(WRITER, naming(1)), writing(WRITER, naming(2)), faults=[fault], holds=holds)
        assert ran.results["zimmer2"] == CLAUDE_STORE
        assert list(ran.json(CLAUDE_STORE)["mcpOAuth"]) == ["s2|0123456789abcdef"]
        assert ran.outcome.seconds < 1


def test_a_holder_that_stands_still_costs_a_minute_and_an_error_not_for_ever():
    stuck = Hold("zimmer", f"write {CLAUDE_STORE}", lambda event: event.name == "never", limit_seconds=600)
    after = Hold("zimmer2", f"lock {CLAUDE}/{LOCK}", lambda event: False, limit_seconds=1)
    ran = run_writers(writing(WRITER, naming(1)), writing(WRITER, naming(2)), holds=[stuck, after])
    assert isinstance(ran.errors.get("zimmer2"), TimeoutError)
    assert list(ran.json(CLAUDE_STORE)["mcpOAuth"]) == ["s1|0123456789abcdef"]


@pytest.mark.requirement("store-cli-does-not-lock", "store-atomic-replace")
def test_a_file_that_the_runtime_is_about_to_rename_is_not_swept_away_as_a_left_over():
    rotated = json.dumps({"mcpOAuth": {"theirs|1": {"accessToken": "rotated"}}})

    async def runtime(world: World) -> None:
        await world.files.write_atomic(CLAUDE_STORE, rotated.encode(), mode=0o600)

    hold = Hold("zimmer2", f"rename {CLAUDE_STORE}", lambda event: event.actor == "zimmer" and event.name == "ended")
    after = Hold("zimmer", f"lock {CLAUDE}/{LOCK}", lambda event: False, limit_seconds=1)
    ran = run_writers(writing(WRITER, full()), runtime, files={CLAUDE_STORE: "{}"}, holds=[hold, after])
    assert ran.errors == {}
    assert ran.result == CLAUDE_STORE
    assert ran.text(CLAUDE_STORE) == rotated


@pytest.mark.requirement("store-lock-per-directory")
def test_two_config_directories_do_not_wait_for_each_other():
    other = ClaudeWriter("/sessions/1")
    held = Hold("zimmer", f"write {CLAUDE_STORE}", lambda event: event.actor == "zimmer2" and event.name == "ended")
    ran = run_writers(writing(WRITER, full()), writing(other, full()), holds=[held])
    assert ran.outcome.unmet_holds == ()
    assert list(ran.json("/sessions/1/.credentials.json")["mcpOAuth"]) == [KEY]
    assert ran.exists(f"/sessions/1/{LOCK}")


# --- the runtime reads it ---------------------------------------------------------------------------------------------

STORE_OF_FAKE = f"{FAKE_HOME}/.claude/.credentials.json"
GUARDED = Behaviour(requires_bearer=("notion-access",))
SRV = "https://notion.test/mcp"


def written_for_fake(entry, **credential):
    """The store's text after a write for an entry of the fake's config."""
    staged = stage(row(access_token="notion-access", **credential), server("notion", **entry), "claude")
    return run_writers(writing(WRITER, staged)).text(CLAUDE_STORE)


@pytest.mark.requirement("writers-three", "writers-runtime-format", "writers-claude-key-is-protocol-key")
@pytest.mark.parametrize("profile", [OLD, NEW])
@pytest.mark.parametrize(
    "entry",
    [
        {"type": "http", "url": SRV},
        {"type": "streamable-http", "url": SRV, "headers": {"X-B": "2", "X-A": "1"}},
        {"type": "sse", "url": SRV},
    ],
)
def test_a_session_of_the_runtime_sends_the_staged_token(profile, entry):
    behaviour = Behaviour(requires_bearer=("notion-access",), answers_as="sse" if entry["type"] == "sse" else "json")
    files = {STORE_OF_FAKE: written_for_fake(entry) or ""}
    ran = ClaudeRun(profile, {}, {"notion": behaviour}, entries={"notion": entry}, files=files)
    sent = {seen.headers.get("Authorization") for seen in ran.servers["notion"].requests}
    assert sent == {"Bearer notion-access"}


def test_a_session_whose_store_has_another_key_sends_none():
    files = {STORE_OF_FAKE: written_for_fake({"type": "sse", "url": SRV}) or ""}
    ran = ClaudeRun(OLD, {}, {"notion": GUARDED}, entries={"notion": {"type": "http", "url": SRV}}, files=files)
    assert {seen.headers.get("Authorization") for seen in ran.servers["notion"].requests} == {None}
    assert ran.statuses() != {"notion": "connected"}


@pytest.mark.requirement("store-keyed-by-home", "reconcile-scoped-on-own-dir")
def test_the_store_lies_by_home_or_in_the_sessions_own_directory():
    async def paths(world: World) -> list[str]:
        return [
            session_writer(world, "claude", variables).path  # type: ignore[attr-defined]
            for variables in (
                {},
                {"HOME": "/home/b"},
                {"HOME": "/home/b", "CLAUDE_CONFIG_DIR": "/s/1"},
                {"HOME": "/home/b", "CLAUDE_CONFIG_DIR": " "},
            )
        ]

    expected = [CLAUDE, "/home/b/.claude", "/s/1", "/home/b/.claude"]
    assert run_writers(paths).result == [f"{directory}/.credentials.json" for directory in expected]


# --- killed, full, forbidden ------------------------------------------------------------------------------------------


@pytest.mark.requirement("writers-secret-file-mode", "store-atomic-replace")
@pytest.mark.parametrize("before", [None, json.dumps(OTHERS), "{ not json"])
def test_a_write_killed_anywhere_leaves_the_old_file_or_the_new_and_the_next_one_works(before):
    files = {} if before is None else {CLAUDE_STORE: before}
    new = run_writers(writing(WRITER, full()), files=files).text(CLAUDE_STORE)
    points = 0
    for ran in killed_everywhere(writing(WRITER, full()), files=files):
        points += 1
        assert ran.text(CLAUDE_STORE) in (before, new), f"point {points}"
        for name in ran.names(CLAUDE):
            assert ran.mode(f"{CLAUDE}/{name}") == 0o600
        again = run_writers(writing(WRITER, full()), before=ran, start_seconds=NOW + 2 * LOCK_SECONDS)
        assert again.text(CLAUDE_STORE) == new
        assert [name for name in again.names(CLAUDE) if name.endswith(".tmp")] == []
    assert points > 8


@pytest.mark.requirement("writers-secret-file-mode", "store-atomic-replace")
@pytest.mark.parametrize("action", ["enospc", "torn", "eacces"])
@pytest.mark.parametrize("label", [f"write {CLAUDE_STORE}", f"rename {CLAUDE_STORE}", f"lock {CLAUDE}/{LOCK}"])
def test_a_disk_that_is_full_or_forbidden_loses_nothing(action, label):
    text = json.dumps(OTHERS)
    fault = Fault(action, actor="zimmer", label=label)
    ran = run_writers(writing(WRITER, full()), files={CLAUDE_STORE: text}, faults=[fault])
    if ran.events("fault"):
        assert isinstance(ran.errors.get("zimmer"), OSError)
        assert ran.text(CLAUDE_STORE) == text
        assert [name for name in ran.names(CLAUDE) if name != ".credentials.json"] == []
    assert (run_writers(writing(WRITER, full()), before=ran).result) == CLAUDE_STORE


@pytest.mark.requirement("writers-secret-file-mode")
def test_a_store_that_cannot_be_read_is_not_taken_for_an_empty_one():
    text = json.dumps(OTHERS)
    ran = run_writers(writing(WRITER, full()), files={CLAUDE_STORE: text}, modes={CLAUDE_STORE: 0}, user=1000)
    assert isinstance(ran.errors.get("zimmer"), PermissionError)
    assert ran.text(CLAUDE_STORE) == text


@pytest.mark.requirement("writers-secret-file-mode")
def test_a_wider_mode_is_narrowed_and_a_link_is_replaced_where_it_points_is_left_alone():
    ran = run_writers(writing(WRITER, full()), files={CLAUDE_STORE: "{}"}, modes={CLAUDE_STORE: 0o644}, user=1000)
    assert ran.mode(CLAUDE_STORE) == 0o600
    linked = run_writers(
        writing(WRITER, full()),
        files={"/shared/open.json": "{}", f"{CLAUDE}/x": ""},
        modes={"/shared/open.json": 0o666},
        links={CLAUDE_STORE: "/shared/open.json"},
    )
    assert linked.text("/shared/open.json") == "{}"
    assert linked.mode(CLAUDE_STORE) == 0o600
    there = linked.simulation.tree.stat(CLAUDE_STORE, 0)
    assert there is not None
    assert there.kind == "file"
    made = run_writers(writing(WRITER, full()))
    assert (made.mode(CLAUDE), made.mode(CLAUDE_STORE)) == (0o700, 0o600)
