"""Codex's writer: two schemas that differ, one entry a server, what the runtime makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fake_runtimes.codex.credentials import find_entry, read_store
from fake_runtimes.loaded import LoadedServer
from fake_servers.mcp import Behaviour, HttpServer
from fake_servers.oauth import AuthorizationServer, Protected, Resource, Site
from harness.reference.credentials.writers import codex
from harness.reference.credentials.writers.codex import CodexWriter
from harness.reference.credentials.writers.keychain import NO_SUCH_ITEM, Item, Keychain, put_command, unverified
from harness.reference.credentials.writers.registry import registered_writers, session_writer
from harness.reference.credentials.writers.staging import stage
from harness.reference.credentials.writers.store_file import LOCK_SECONDS
from harness.world import World
from harness.world.model import Fault, Hold, Seeded
from scenarios.units.test_fake_codex_session import BOTH, HOME, run
from scenarios.units.test_fake_codex_session_failures import started, updates
from scenarios.units.writer_run import (
    CODEX,
    CODEX_STORE,
    HOUR_MS,
    KEY,
    LOCK,
    NOW,
    NOW_MS,
    URL,
    bare,
    clearing,
    deleting,
    full,
    killed_everywhere,
    launched,
    reading,
    row,
    run_writers,
    server,
    writing,
)

WRITER = CodexWriter(CODEX)
ENTRY = {
    "server_name": "notion",
    "server_url": URL,
    "client_id": "client-123",
    "access_token": "notion-access",
    "scopes": ["read", "write"],
    "expires_at": NOW_MS + HOUR_MS,
    "refresh_token": "notion-refresh",
    "issuer": "https://as.test",
}
OTHER = {"other|1": {"server_name": "other", "server_url": "https://o.test", "client_id": "c", "access_token": "o"}}
ITEM = {
    "server_name": "notion",
    "url": URL,
    "client_id": "client-123",
    "token_response": {
        "access_token": "notion-access",
        "token_type": "bearer",
        "refresh_token": "notion-refresh",
        "scope": "read write",
    },
    "expires_at": NOW_MS + HOUR_MS,
}


# --- the file ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("writers-codex-file-schema", "writers-codex-two-schemas", "writers-codex-issuer-field")
def test_an_entry_of_the_file_is_flat_with_a_scope_list_and_its_expiry_in_milliseconds():
    ran = run_writers(writing(WRITER, full()))
    assert ran.result == CODEX_STORE
    assert ran.json(CODEX_STORE) == {KEY: ENTRY}
    assert (ran.mode(CODEX), ran.mode(CODEX_STORE), ran.mode(f"{CODEX}/{LOCK}")) == (0o700, 0o600, 0o600)


@pytest.mark.requirement("writers-codex-file-schema")
def test_what_is_absent_or_blank_is_left_out_of_an_entry_but_its_scopes_are_empty():
    whole = {name: ENTRY[name] for name in ("server_name", "server_url", "client_id", "access_token")}
    for blank in (None, "", " "):
        ran = run_writers(writing(WRITER, bare(refresh_token=blank, scope=blank, issuer=blank)))
        assert ran.json(CODEX_STORE) == {KEY: {**whole, "scopes": []}}


@pytest.mark.requirement("writers-codex-scope-forms")
@pytest.mark.parametrize(
    ("scope", "listed", "text"),
    [
        (None, [], ""),
        ("", [], ""),
        (" a  b ", ["a", "b"], "a b"),
        ("a\tb\nc", ["a", "b", "c"], "a b c"),
        (["a", "b c"], ["a", "b", "c"], "a b c"),
        ([], [], ""),
        ("a,b c", ["a,b", "c"], "a,b c"),
        ("a\xa0b", ["a\xa0b"], "a\xa0b"),
    ],
)
def test_scopes_are_split_at_white_space_and_nowhere_else(scope, listed, text):
    assert (codex.scope_list(scope), codex.scope_text(scope)) == (listed, text)


@pytest.mark.requirement("writers-codex-path")
@pytest.mark.parametrize(
    ("variables", "directory"),
    [
        ({}, CODEX),
        ({"CODEX_HOME": "/c"}, "/c"),
        ({"CODEX_HOME": "  "}, CODEX),
        ({"CODEX_HOME": ""}, CODEX),
        ({"HOME": "/home/b"}, "/home/b/.codex"),
    ],
)
def test_the_store_lies_in_codexs_home(variables, directory):
    async def path(world: World) -> Any:
        return session_writer(world, "codex", variables).path  # type: ignore[attr-defined]

    assert run_writers(path).result == f"{directory}/.credentials.json"


# --- one entry a server -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("writers-codex-one-entry-per-server")
def test_stale_entries_of_the_same_name_and_url_go_and_all_others_stay():
    stale = {**ENTRY, "access_token": "old"}
    moved = {"notion|2": {**stale, "server_url": f"{URL}/"}, "notion|3": {**stale, "server_name": "notion2"}}
    before = {"notion|0000000000000000": stale, "zzz": stale, **OTHER, **moved, "odd": 7}
    ran = run_writers(writing(WRITER, full()), files={CODEX_STORE: json.dumps(before)})
    assert ran.json(CODEX_STORE) == {**OTHER, **moved, "odd": 7, KEY: ENTRY}


@pytest.mark.requirement("writers-codex-one-entry-per-server")
def test_the_runtime_reads_the_new_token_where_a_stale_entry_came_first_in_the_order_of_keys():
    stale = {"notion|0": {**ENTRY, "access_token": "old"}}
    text = run_writers(writing(WRITER, full()), files={CODEX_STORE: json.dumps(stale)}).text(CODEX_STORE) or ""
    found = find_entry(text, LoadedServer("notion", "http", url=URL))
    assert found is not None
    assert found[1]["access_token"] == "notion-access"


@pytest.mark.requirement("writers-codex-overwrites-unconditionally", "reconcile-codex-written-not-trusted")
@pytest.mark.parametrize("expires_at", [NOW_MS + 99_999_000, NOW_MS - 1, None])
def test_zimmers_entry_goes_over_whatever_there_is_without_a_look_at_which_is_fresher(expires_at):
    before = {KEY: {**ENTRY, "access_token": "disk", "expires_at": expires_at}, **OTHER}
    credential = full(expires_at_ms=NOW_MS + 60_000)
    ran = run_writers(writing(WRITER, credential), files={CODEX_STORE: json.dumps(before)})
    assert ran.json(CODEX_STORE) == {KEY: {**ENTRY, "expires_at": NOW_MS + 60_000}, **OTHER}


@pytest.mark.requirement("writers-codex-invalid-entry-kills-file")
@pytest.mark.parametrize("broken", [{"client_id": None}, {"client_id": ""}, {"client_id": " "}, {"server_url": ""}])
def test_a_credential_that_would_spoil_the_file_is_left_out_with_a_warning(broken):
    bad = full("linear", **broken)
    ran = run_writers(writing(WRITER, bad, full()), files={CODEX_STORE: json.dumps(OTHER)})
    assert ran.json(CODEX_STORE) == {**OTHER, KEY: ENTRY}
    assert len(ran.warnings) == 1
    assert "'linear'" in ran.warnings[0]
    assert "linear-access" not in ran.warnings[0]
    assert read_store(ran.text(CODEX_STORE) or "", knows_issuer=True) is not None
    alone = run_writers(writing(WRITER, bad))
    assert (alone.result, alone.exists(CODEX)) == (None, False)


@pytest.mark.requirement("writers-codex-rewrites-every-spawn")
def test_each_write_brings_the_current_token_back_whatever_became_of_the_entry():
    first = run_writers(writing(WRITER, full()), files={CODEX_STORE: json.dumps(OTHER)})
    for became in (OTHER, {**OTHER, KEY: {**ENTRY, "access_token": "older", "expires_at": NOW_MS + 10 * HOUR_MS}}):
        first.simulation.tree.write(CODEX_STORE, json.dumps(became).encode(), 0o600, 0, 0.0)
        assert run_writers(writing(WRITER, full()), before=first).json(CODEX_STORE) == {**OTHER, KEY: ENTRY}


@pytest.mark.requirement("writers-missing-store-not-error")
@pytest.mark.parametrize("text", [None, "", "{ not json", "[1]"])
def test_a_store_that_is_missing_or_no_object_reads_as_empty_and_is_replaced(text):
    files = {} if text is None else {CODEX_STORE: text}
    assert run_writers(reading(WRITER), files=files).result == {}
    removed = run_writers(deleting(WRITER, KEY), files=files)
    assert (removed.result, removed.text(CODEX_STORE)) == ((), text)
    assert run_writers(writing(WRITER, full()), files=files).json(CODEX_STORE) == {KEY: ENTRY}


@pytest.mark.requirement("writers-delete-returns-removed")
def test_deleting_removes_the_named_entries_alone():
    stored = json.dumps({**OTHER, KEY: ENTRY})
    ran = run_writers(deleting(WRITER, "gone|1", KEY), files={CODEX_STORE: stored})
    assert (ran.result, ran.json(CODEX_STORE)) == ((KEY,), OTHER)
    assert run_writers(deleting(WRITER, "gone|1"), files={CODEX_STORE: stored}).text(CODEX_STORE) == stored


@pytest.mark.requirement("reconcile-claude-millis")
def test_what_is_read_has_seconds_and_a_refused_refresh_token_is_none():
    stored = {KEY: ENTRY, "b|1": {**ENTRY, "refresh_token": None, "expires_at": None}, "c|1": {"access_token": ""}}
    found = run_writers(reading(WRITER), files={CODEX_STORE: json.dumps(stored)}).result
    assert list(found) == [KEY, "b|1"]
    assert (found[KEY].expires_at, found[KEY].server_url) == ((NOW_MS + HOUR_MS) / 1000, URL)
    assert (found["b|1"].refresh_token, found["b|1"].expires_at) == (None, None)


@pytest.mark.requirement("writers-codex-no-needs-auth", "store-codex-no-cache")
def test_nothing_is_remembered_that_could_be_cleared():
    ran = run_writers(clearing(WRITER, "a"), files={f"{CODEX}/mcp-needs-auth-cache.json": '{"a": {"timestamp": 1}}'})
    assert ran.result == ()
    assert ran.json(f"{CODEX}/mcp-needs-auth-cache.json") == {"a": {"timestamp": 1}}
    assert run_writers(clearing(WRITER, "a")).exists(CODEX) is False


# --- at once ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("writers-codex-no-lock", "store-codex-store-unlocked-race")
@pytest.mark.parametrize("decisions", [None, *range(8)])
def test_two_spawns_at_once_keep_each_others_entries(decisions):
    source = None if decisions is None else Seeded(decisions, run=0.5, stall=0.2)
    between = [Hold("zimmer", f"write {CODEX_STORE}", lambda _event: False, limit_seconds=5)]
    ran = run_writers(
        writing(WRITER, full()),
        writing(WRITER, full("linear")),
        files={CODEX_STORE: json.dumps(OTHER)},
        decisions=source,
        holds=between if source is None else (),
    )
    assert ran.errors == {}
    assert set(ran.json(CODEX_STORE)) == {*OTHER, KEY, "linear|0123456789abcdef"}


@pytest.mark.requirement("writers-secret-file-mode")
def test_a_write_killed_anywhere_leaves_the_old_file_or_the_new_and_the_next_one_works():
    before = json.dumps(OTHER)
    new = run_writers(writing(WRITER, full()), files={CODEX_STORE: before}).text(CODEX_STORE)
    points = 0
    for ran in killed_everywhere(writing(WRITER, full()), files={CODEX_STORE: before}):
        points += 1
        assert ran.text(CODEX_STORE) in (before, new), f"point {points}"
        again = run_writers(writing(WRITER, full()), before=ran, start_seconds=NOW + 2 * LOCK_SECONDS)
        assert (again.text(CODEX_STORE), again.names(CODEX)) == (new, [".credentials.json"])
    assert points > 8


@pytest.mark.parametrize("action", ["enospc", "torn", "eacces"])
def test_a_full_disk_keeps_the_old_file(action):
    before = json.dumps(OTHER)
    fault = Fault(action, label=f"write {CODEX_STORE}")
    ran = run_writers(writing(WRITER, full()), files={CODEX_STORE: before}, faults=[fault])
    assert isinstance(ran.errors.get("zimmer"), OSError)
    assert (ran.text(CODEX_STORE), ran.names(CODEX)) == (before, [".credentials.json"])


# --- the keychain, on no machine of ours ------------------------------------------------------------------------------


@pytest.mark.requirement("writers-codex-keychain-schema", "writers-codex-two-schemas")
def test_an_item_of_the_keychain_has_another_shape_than_an_entry_of_the_file():
    item = codex.keychain_item(full())
    assert item == Item("Codex MCP Credentials", KEY, ITEM)
    assert codex.keychain_item(bare(scope=" ")).value == {
        **ITEM,
        "token_response": {"access_token": "notion-access", "token_type": "bearer"},
        "expires_at": None,
    }
    assert codex.pair_of(ITEM) is None
    assert read_store(json.dumps({KEY: ITEM})) is None
    assert "token_response" not in ENTRY


def security(items: dict[tuple[str, str], str], seen: list[tuple[str, ...]]):
    """A `security` that keeps generic passwords, and notes its argv and commands."""

    async def program(world: World, argv) -> int:
        seen.append(tuple(argv))
        if argv[1] == "-i":
            line = await world.processes.read_line()
            seen.append(("stdin", line or ""))
            words = [word.strip('"') for word in (line or "").split('" "')]
            service, account = (line or "").split('"')[1], (line or "").split('"')[3]
            items[service, account] = bytes.fromhex(words[-1].split()[-1]).decode()
            return 0
        service, account = argv[3], argv[5]
        if (service, account) not in items:
            return NO_SUCH_ITEM
        if argv[1] == "delete-generic-password":
            del items[service, account]
        else:
            await world.processes.write_line(items[service, account].encode().hex())
        return 0

    return lambda argv: program if argv[0] == "security" else launched(argv)


@pytest.mark.requirement("writers-codex-keychain-schema")
def test_the_keychain_gets_an_item_for_each_credential_its_value_never_in_argv():
    items: dict[tuple[str, str], str] = {}
    seen: list[tuple[str, ...]] = []
    writer = CodexWriter(CODEX, Keychain("u"))
    ran = run_writers(writing(writer, full(), full("linear")), launcher=security(items, seen))
    assert {key: json.loads(text) for key, text in items.items()} == {
        ("Codex MCP Credentials", KEY): ITEM,
        ("Codex MCP Credentials", "linear|0123456789abcdef"): codex.keychain_item(full("linear")).value,
    }
    assert set(ran.json(CODEX_STORE)) == {KEY, "linear|0123456789abcdef"}
    assert {argv for argv in seen if argv[0] == "security"} == {("security", "-i")}
    assert not any("access" in word for argv in seen for word in argv)
    gone = run_writers(deleting(writer, KEY, "none|1"), launcher=security(items, seen))
    assert gone.result == (KEY,)
    assert list(items) == [("Codex MCP Credentials", "linear|0123456789abcdef")]


@pytest.mark.requirement("writers-codex-keychain-schema")
def test_quotes_and_line_ends_in_a_name_do_not_leave_their_word():
    line = put_command(Item("s", 'a" -X 00 "\\|1', {}))
    assert line is not None
    assert '-a "a\\" -X 00 \\"\\\\|1" -X ' in line
    assert put_command(Item("s", "a\nadd", {})) is None


def test_a_keychain_that_cannot_be_used_costs_a_warning():
    ran = run_writers(writing(CodexWriter(CODEX, Keychain("u")), full()))
    assert ran.result == CODEX_STORE
    assert len(ran.warnings) == 1
    assert "keychain" in ran.warnings[0]


@pytest.mark.requirement("writers-codex-keychain-unverified")
def test_the_keychain_is_never_asked_unless_a_deployment_says_so_and_says_of_itself_that_it_is_unverified():
    async def body(world: World) -> None:
        for writer in registered_writers(world):
            await writer.write(world, [full()])
            await writer.read(world, [writer.key_for(row())])
            await writer.delete(world, [writer.key_for(row())])

    ran = run_writers(body)
    assert ran.started
    assert not any("security" in word for argv in ran.started for word in argv)
    assert unverified()["status"] == "unverified"
    assert codex.format_pin()["keychain"] == []


# --- the runtime reads it ---------------------------------------------------------------------------------------------

REMOTE = "https://notion.test/mcp"
CONFIG = f'[mcp_servers.notion]\nurl = "{REMOTE}"\n'
FAKE_START_SECONDS = 1_700_000_000
STORE_OF_FAKE = f"{HOME}/.codex/.credentials.json"


def staged_text(**credential) -> str:
    """The store's text after a write for the fake's server."""
    remote = server(type="sse", url=REMOTE, headers={"X": "1"})
    return run_writers(writing(WRITER, stage(row(**credential), remote, "codex"))).text(CODEX_STORE) or ""


@pytest.mark.requirement("writers-three", "writers-runtime-format", "writers-codex-file-schema")
@pytest.mark.parametrize("profile", BOTH, ids=lambda profile: profile.version)
def test_a_session_of_the_runtime_sends_the_staged_token(profile):
    guarded = HttpServer(Behaviour(requires_bearer=("row-access",)))
    ran = run(CONFIG, profile=profile, files={STORE_OF_FAKE: staged_text()}, http={REMOTE: guarded})
    assert ran.tools() == ["mcp__notion/echo"]


@pytest.mark.requirement("writers-codex-invalid-entry-kills-file")
@pytest.mark.parametrize("profile", BOTH, ids=lambda profile: profile.version)
def test_an_entry_without_a_client_id_keeps_the_runtime_from_every_token(profile):
    store = json.loads(staged_text())
    without = {name: value for name, value in OTHER["other|1"].items() if name != "client_id"}
    guarded = HttpServer(Behaviour(requires_bearer=("row-access",)))
    files = {STORE_OF_FAKE: json.dumps({**store, "other|1": without})}
    ran = run(CONFIG, profile=profile, files=files, http={REMOTE: guarded})
    assert ran.tools() == []


@pytest.mark.requirement("writers-codex-issuer-field")
@pytest.mark.parametrize("profile", BOTH, ids=lambda profile: profile.version)
@pytest.mark.parametrize("issuer", [None, "https://notion.test/as", "https://notion.test/as/"])
def test_the_newer_runtime_renews_only_with_the_issuer_as_it_is_told(profile, issuer):
    authorization = AuthorizationServer("/as")
    access, refresh = authorization.issue("client-123", now=FAKE_START_SECONDS, expires_in=0)
    site = Site(authorization, Protected(HttpServer(), authorization, Resource("/mcp")))
    entry = codex.entry_of(
        full(
            server_url=REMOTE,
            access_token=access,
            refresh_token=refresh,
            expires_at_ms=FAKE_START_SECONDS * 1000,
            scope=None,
            issuer=issuer,
        )
    )
    files = {STORE_OF_FAKE: json.dumps({"notion|1": entry})}
    ran = started(profile, CONFIG, files=files, http={REMOTE: site})
    renews = profile.version != "0.169.0" or issuer == "https://notion.test/as"
    assert (updates(ran)["notion"] == ["starting", "ready"]) is renews
    assert len(authorization.received("token")) == int(renews)


@pytest.mark.requirement("writers-codex-format-pin")
def test_what_the_formats_stand_on_is_told_with_them():
    pin = codex.format_pin()
    assert pin["source"] == "openai/codex codex-rs/rmcp-client/src/oauth.rs at rust-v0.133.0"
    assert pin["file"] == [profile.version for profile in BOTH]
    assert pin["keychain"] == []
