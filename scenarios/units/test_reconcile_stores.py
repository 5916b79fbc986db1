"""Adoption from the runtimes' real stores: under which key, read how, within which time, and whose directory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fake_runtimes.claude.credentials import find_entry
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.pi.keyring_helper import program as helper_program
from fake_runtimes.pi.tokens import token_for
from harness.reference.catalog.entry import read_entry
from harness.reference.credentials import table
from harness.reference.credentials.key import Runtime, credential_key, pi_account, runtime_key
from harness.reference.credentials.reconcile import Reconciler
from harness.reference.credentials.retire import retire
from harness.reference.credentials.row import Credential
from harness.reference.credentials.writers.claude import fresher_on_disk
from harness.reference.credentials.writers.pi import PiWriter
from harness.reference.credentials.writers.pi_store import PiStore
from harness.reference.credentials.writers.registry import registered_writers, session_writer
from harness.reference.credentials.writers.staging import stage
from harness.reference.oauth.server import remote_server
from harness.world import World
from harness.world.model import Fault
from scenarios.units.writer_run import (
    CLAUDE_STORE,
    CODEX_STORE,
    HOME,
    KEY,
    KEYRING,
    NOW,
    NOW_MS,
    PI,
    RUNNER,
    STORES,
    URL,
    WRITERS,
    WriterRun,
    full,
    keyring_account,
    row,
    run_writers,
)

HOUR_MS = 3_600_000
KEYS: Mapping[Runtime, str] = {"claude": KEY, "codex": KEY, "pi": "notion"}
ROW = row(runtime_keys=dict(KEYS))
RUNTIMES: tuple[Runtime, ...] = ("claude", "codex", "pi")


def claude_entry(milliseconds: int = NOW_MS + 2 * HOUR_MS, **members: Any) -> dict[str, Any]:
    """What Claude has refreshed."""
    tokens = {"accessToken": "new-access", "refreshToken": "new-refresh", "expiresAt": milliseconds}
    return {"serverName": "notion", "serverUrl": URL, "clientId": "client-123", "scope": "", **tokens, **members}


def codex_entry(milliseconds: int = NOW_MS + 2 * HOUR_MS, **members: Any) -> dict[str, Any]:
    """What Codex has refreshed."""
    tokens = {"access_token": "new-access", "refresh_token": "new-refresh", "expires_at": milliseconds}
    return {"server_name": "notion", "server_url": URL, "client_id": "client-123", "scopes": [], **tokens, **members}


def pi_entry(seconds: float = NOW + 7200, **members: Any) -> dict[str, Any]:
    """What Pi has refreshed."""
    tokens = {"accessToken": "new-access", "refreshToken": "new-refresh", "expiresAt": seconds}
    return {"serverUrl": URL, "tokens": tokens, **members}


def file_of(runtime: Runtime, entry: Any, key: str | None = None) -> dict[str, str]:
    """A runtime's store that holds an entry."""
    if runtime == "claude":
        return {CLAUDE_STORE: json.dumps({"mcpOAuth": {key or KEY: entry}})}
    if runtime == "codex":
        return {CODEX_STORE: json.dumps({key or KEY: entry})}
    return {keyring_account(key or "notion"): json.dumps(entry)}


def refreshed(runtime: Runtime) -> dict[str, str]:
    """A runtime's store after it refreshed the row's pair."""
    return file_of(runtime, {"claude": claude_entry, "codex": codex_entry, "pi": pi_entry}[runtime]())


def adopting(*writers: Any, before: Credential = ROW) -> Any:
    """Reconcile a row with these writers; what was adopted, the row afterwards and how long it took."""

    async def body(world: World) -> tuple[Credential | None, Credential | None, float]:
        await table.insert_unchecked(world, before)
        started = world.clock.now()
        adopted = await Reconciler(world, writers or registered_writers(world)).adopt(before.credential_key)
        return adopted, await table.find(world, before.credential_key), world.clock.now() - started

    return body


# --- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "reconcile-key-claude", "reconcile-key-codex", "reconcile-key-codex-coincidence", "reconcile-key-from-config-or-row"
)
@pytest.mark.parametrize(
    ("name", "config", "claude", "codex"),
    [
        ("notion", {"type": "streamable-http", "url": URL}, "notion|3fad03f7abd02b9c", "notion|3fad03f7abd02b9c"),
        ("notion", {"type": "sse", "url": "https://mcp.notion.com/sse", "headers": {"X-Trace": "1"}},
         "notion|f23108a61e497be4", "notion|bab21fabb59b2ee5"),
        ("notion", {"type": "sse", "url": "https://mcp.notion.com/sse"},
         "notion|414bd617b9ad5ae9", "notion|bab21fabb59b2ee5"),
        ("notion", {"type": "sse", "url": "https://mcp.notion.com/sse", "headers": {"X-Token": "secret"}},
         None, "notion|bab21fabb59b2ee5"),
        ("example", {"type": "http", "url": "https://mcp.example.com/v1/mcp", "headers": {"X-Team": "acme"}},
         None, "example|510e6869752dca52"),
        ("linear", {"type": "sse", "url": "https://mcp.linear.app/sse"},
         "linear|56dfdedec9c25030", "linear|47ba737bac765ed4"),
    ],
)  # fmt: skip
def test_each_runtime_has_a_key_of_its_own_by_the_config_and_by_the_row(name, config, claude, codex):
    server = remote_server(read_entry(name, config), lambda _name: None)
    stored = row(name, credential_key=server.credential_key, server_url=server.url)
    assert runtime_key("codex", name, config, {}) == codex
    assert runtime_key("pi", name, config, {}) == name
    if claude is not None:
        assert credential_key(name, config) == runtime_key("claude", name, config, {}) == claude
    for runtime in RUNTIMES:
        expected = server.runtime_keys[runtime]
        assert WRITERS[runtime].key_for(stored) == expected == runtime_key(runtime, name, config, {})
        assert WRITERS[runtime].key_for(replace(stored, runtime_keys=server.runtime_keys)) == expected


@pytest.mark.requirement("reconcile-key-pi", "reconcile-pi-account-isolation")
@pytest.mark.parametrize("variables", [{}, {"MCP_OAUTH_DIR": "/one"}, {"PI_CODING_AGENT_DIR": "/two"}, {"HOME": "/x"}])
def test_pis_store_is_asked_by_the_name_wherever_the_session_has_its_directories(variables):
    async def body(world: World) -> Any:
        writer = session_writer(world, "pi", {"HOME": HOME, **variables})
        return (await adopting(writer)(world))[0] is not None

    run = run_writers(body, files=refreshed("pi"))
    assert run.result is True
    assert run.asked == ["read sha256-31f61ed3e6e210c5f3f729345968bdbcf267cf0fbfec31eac02ed9966ba1d067"]


@pytest.mark.requirement("reconcile-enumerable-flag")
def test_two_stores_can_be_listed_and_pis_cannot():
    async def body(world: World) -> list[bool]:
        return [writer.enumerable for writer in registered_writers(world)]

    assert run_writers(body).result == [True, True, False]


@pytest.mark.requirement("reconcile-registry-list-clean", "reconcile-codex-no-carve-out")
def test_every_runtime_with_a_store_is_registered_once():
    async def body(world: World) -> list[str]:
        return [writer.runtime for writer in registered_writers(world)]

    assert run_writers(body).result == ["claude", "codex", "pi"]


@pytest.mark.requirement("reconcile-key-miss-is-silent-guarded", "reconcile-key-agreement-contract")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_a_writer_writes_it_finds_again_by_the_rows_key(runtime):
    config = {"type": "sse", "url": "https://mcp.notion.com/sse", "headers": {"X-Trace": "1"}}
    server = remote_server(read_entry("notion", config), lambda _name: None)
    stored = row(
        credential_key=server.credential_key,
        server_url=server.url,
        runtime_keys=server.runtime_keys,
        expires_at=NOW + 60,
    )
    writer = WRITERS[runtime]

    async def body(world: World) -> Any:
        await writer.write(world, [stage(stored, server, runtime)])
        if runtime == "pi":
            await imported(world)
        key = writer.key_for(stored)
        return (await writer.read(world, None if writer.enumerable else [key])).get(key)

    pair = run_writers(body).result
    assert pair is not None
    assert (pair.access_token, pair.refresh_token, pair.expires_at) == ("row-access", "row-refresh", NOW + 60)
    assert pair.server_url == server.url


async def imported(world: World) -> None:
    """What Pi's adapter does with a staged file: its text becomes the account's, the file goes away."""
    path = STORES["pi"]
    await world.files.make_directory(KEYRING)
    await world.files.write(keyring_account("notion"), await world.files.read(path))
    await world.files.remove(path)


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "reconcile-cron-reads-every-runtime", "reconcile-claude-millis", "reconcile-codex-no-carve-out"
)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_any_one_runtime_refreshed_is_adopted_with_its_own_unit_of_time(runtime):
    run = run_writers(adopting(), files=refreshed(runtime))
    adopted, after, _ = run.result
    assert adopted == after
    assert (after.access_token, after.refresh_token, after.expires_at) == ("new-access", "new-refresh", NOW + 7200)
    assert [line["runtime"] for line in run.events("credential.adopted")] == [runtime]


@pytest.mark.requirement("reconcile-claude-millis")
@pytest.mark.parametrize("runtime", ["claude", "codex"])
def test_milliseconds_are_kept_to_the_last_one(runtime):
    entry = {"claude": claude_entry, "codex": codex_entry}[runtime](1_768_098_636_150)
    before = replace(ROW, expires_at=1_768_098_636.149)
    after = run_writers(adopting(before=before), files=file_of(runtime, entry)).result[1]
    assert after.expires_at == 1_768_098_636.150


@pytest.mark.requirement("reconcile-refuse-incomplete-pair", "reconcile-refuse-other-server-url")
@pytest.mark.parametrize(
    ("runtime", "entry"),
    [
        ("claude", claude_entry(0, accessToken="", refreshToken="")),
        ("claude", {"serverName": "notion", "accessToken": "", "expiresAt": 0, "clientId": "c"}),
        ("claude", claude_entry(refreshToken=None)),
        ("codex", codex_entry(refresh_token=None)),
        ("codex", codex_entry(server_url="https://mcp.notion.com/other")),
        ("pi", {"serverUrl": URL, "clientInfo": {"clientId": "c"}}),
        ("pi", pi_entry(serverUrl=f"{URL}/")),
        ("claude", claude_entry(serverUrl="https://mcp.notion.com/other")),
    ],
)
def test_what_a_dead_grant_or_another_server_left_in_a_store_is_not_adopted(runtime, entry):
    adopted, after, _ = run_writers(adopting(), files=file_of(runtime, entry)).result
    assert adopted is None
    assert after == ROW


@pytest.mark.requirement("reconcile-claude-account-tokens-separate")
def test_the_accounts_own_tokens_are_neither_adopted_nor_changed():
    account = {"accessToken": "account-access", "refreshToken": "account-refresh", "expiresAt": NOW_MS + 9 * HOUR_MS}
    text = json.dumps({"claudeAiOauth": account, "mcpOAuth": {KEY: claude_entry()}}, indent=3)
    run = run_writers(adopting(), files={CLAUDE_STORE: text})
    assert run.result[1].access_token == "new-access"
    assert run.text(CLAUDE_STORE) == text
    alone = run_writers(adopting(), files={CLAUDE_STORE: json.dumps({"claudeAiOauth": account})})
    assert alone.result[0] is None


@pytest.mark.requirement("reconcile-unreachable-store-is-nothing")
@pytest.mark.parametrize("path", [CLAUDE_STORE, CODEX_STORE])
def test_a_store_that_may_not_be_read_is_nothing_to_adopt_and_the_next_one_is_read(path):
    other: Runtime = "codex" if path == CLAUDE_STORE else "claude"
    files = {path: "{}", **refreshed(other)}
    run = run_writers(adopting(), files=files, faults=[Fault("eacces", port="files", label=f"read {path}")])
    assert run.result[1].access_token == "new-access"
    assert [line for line in run.events("log") if line["level"] == "error"] == []


@pytest.mark.requirement("reconcile-merge-protects-valid-entry")
@pytest.mark.parametrize(
    ("disk", "zimmer", "stays"),
    [
        (7200, 3600, True),
        (3600, 10800, False),
        (-3600, 3600, False),
        (None, 3600, False),
        (7200, None, True),
        (3600, 3600, True),
        (-60, -3600, False),
    ],
)
def test_an_entry_on_disk_stays_only_while_its_own_token_is_unexpired_and_at_least_as_late(disk, zimmer, stays):
    disk_ms, zimmer_ms = (None if each is None else NOW_MS + each * 1000 for each in (disk, zimmer))
    assert fresher_on_disk(disk_ms, zimmer_ms, NOW_MS) is stays


# --- Pi's keyring -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "reconcile-pi-probe-through-helper", "reconcile-probe-only-asked-keys", "reconcile-probe-memoized"
)
def test_pis_keyring_is_asked_through_the_adapters_helper_for_the_accounts_that_are_wanted():
    asked: list[dict[str, Any]] = []

    async def overheard(world: World, argv: Sequence[str]) -> int:
        class Listening:
            """A world whose first line of stdin is kept."""

            def __getattr__(self, name: str) -> Any:
                return self if name == "processes" else getattr(world, name)

            async def read_line(self) -> str | None:
                line = await world.processes.read_line()
                if line is not None:
                    asked.append(json.loads(line))
                return line

            async def write_line(self, line: str) -> None:
                await world.processes.write_line(line)

        listening: Any = Listening()
        return await helper_program(listening, argv)

    async def body(world: World) -> None:
        rows = [ROW, row("linear", credential_key="linear|0000000000000000"), ROW]
        reconciler = Reconciler(world, [WRITERS["pi"]])
        for each in rows:
            await table.insert_unchecked(world, each)
            await reconciler.adopt(each.credential_key)

    run = run_writers(body, files=file_of("pi", {"clientInfo": {"clientId": "c"}}), launcher=lambda _argv: overheard)
    assert asked == [
        {"operation": "read", "service": "pi-mcp-adapter.oauth", "account": pi_account(name)}
        for name in ("notion", "linear")
    ]
    assert {command[-1].rpartition("/")[2] for command in run.started} == {"mcp-keyring-helper.cjs"}


def answering(*lines: str, exit_code: int = 0, seconds: float = 0.0) -> Any:
    """A helper that answers so."""

    async def program(world: World, _argv: Sequence[str]) -> int:
        await world.clock.sleep(seconds)
        for line in lines:
            await world.processes.write_line(line)
        return exit_code

    return lambda _argv: program


FOUND = json.dumps({"ok": True, "found": True, "value": json.dumps(pi_entry())})


@pytest.mark.requirement("reconcile-unreachable-store-is-nothing", "reconcile-pi-probe-through-helper")
@pytest.mark.parametrize(
    ("launcher", "adopts"),
    [
        (answering(FOUND), True),
        (answering('{"ok": true, "found": false}'), False),
        (answering('{"ok": false, "error": "KeyRevoked"}', exit_code=1), False),
        (answering(exit_code=1), False),
        (answering(), False),
        (answering("garbage"), False),
        (answering("[]"), False),
        (answering('{"ok": true, "found": true, "value": 7}'), False),
        (answering('{"ok": true, "found": true, "value": "{ not json"}'), False),
        (answering('{"ok": true, "found": true}'), False),
        (lambda _argv: None, False),
    ],
)
def test_whatever_the_helper_answers_is_a_pair_or_nothing_and_never_an_error(launcher, adopts):
    run = run_writers(adopting(WRITERS["pi"]), launcher=launcher)
    adopted, after, _ = run.result
    assert (adopted is not None) is adopts
    assert after.access_token == ("new-access" if adopts else "row-access")
    assert [line for line in run.events("log") if line["level"] == "error"] == []
    assert "new-access" not in repr(run.events("log"))


@pytest.mark.requirement("reconcile-pi-probe-two-second-bound", "reconcile-unreachable-store-is-nothing")
def test_a_keyring_that_does_not_answer_holds_a_reconciliation_for_two_seconds_and_a_change_for_five():
    slow = answering(FOUND, seconds=30.0)
    adopted, after, seconds = run_writers(adopting(WRITERS["pi"]), launcher=slow).result
    assert (adopted, after, seconds) == (None, ROW, 2.0)

    async def changed(world: World) -> tuple[float, float]:
        started = world.clock.now()
        await WRITERS["pi"].delete(world, ["notion"])
        deleted = world.clock.now()
        await WRITERS["pi"].write(world, [full()])
        return deleted - started, world.clock.now() - deleted

    assert run_writers(changed, launcher=slow).result == (5.0, 5.0)


@pytest.mark.requirement("reconcile-pi-probe-two-second-bound", "reconcile-probe-memoized")
def test_a_dead_keyring_is_waited_for_once_for_a_key():
    async def body(world: World) -> float:
        await table.insert_unchecked(world, ROW)
        started, reconciler = world.clock.now(), Reconciler(world, [WRITERS["pi"]])
        for _ in range(3):
            await reconciler.adopt(KEY)
        return world.clock.now() - started

    assert run_writers(body, launcher=answering(seconds=30.0)).result == 2.0


@pytest.mark.requirement("reconcile-pi-staged-file-not-read")
def test_what_zimmer_staged_for_pi_is_not_adopted_back():
    run = run_writers(adopting(WRITERS["pi"]), files={STORES["pi"]: json.dumps(pi_entry())})
    assert run.result[:2] == (None, ROW)
    assert run.exists(STORES["pi"])


@pytest.mark.requirement("reconcile-pi-keyring-session-seam")
@pytest.mark.parametrize(("runner", "finds"), [(RUNNER, True), (("node", "/adapter/mcp-keyring-helper.cjs"), False)])
def test_under_a_joined_session_the_helper_sees_what_pi_has_and_alone_it_says_nothing_is_there(runner, finds):
    run = run_writers(adopting(PiWriter(PI, PiStore(runner))), files=refreshed("pi"))
    assert (run.result[0] is not None) is finds
    assert run.started == [runner]


@pytest.mark.requirement("reconcile-pi-fake-url-guard", "reconcile-url-compare-byte-exact")
@pytest.mark.parametrize(
    ("configured", "recorded", "sent"),
    [
        ("https://s/mcp", "https://s/mcp", True),
        ("https://s/mcp/", "https://s/mcp", False),
        ("https://s2/mcp", "https://s/mcp", False),
        ("https://S/mcp", "https://s/mcp", False),
    ],
)
def test_pi_sends_no_token_of_another_url_and_zimmer_adopts_none(configured, recorded, sent):
    entry = json.dumps(pi_entry(serverUrl=recorded))
    assert (token_for(configured, entry) == "new-access") is sent
    before = replace(ROW, server_url=configured)
    files = {keyring_account("notion"): entry}
    assert (run_writers(adopting(WRITERS["pi"], before=before), files=files).result[0] is not None) is sent


# --- whose directory --------------------------------------------------------------------------------------------------

OWN = {"CLAUDE_CONFIG_DIR": "/sessions/a/claude"}
OWN_STORE = "/sessions/a/claude/.credentials.json"


@pytest.mark.requirement("reconcile-scoped-off-global-file", "reconcile-scoped-on-own-dir")
def test_without_a_directory_of_its_own_two_sessions_share_one_file_and_with_one_each_has_its_own():
    async def body(world: World) -> list[Any]:
        shared = [session_writer(world, "claude", {"HOME": HOME}) for _ in range(2)]
        own = [
            session_writer(world, "claude", {"HOME": HOME, "CLAUDE_CONFIG_DIR": f"/sessions/{name}/claude"})
            for name in "ab"
        ]
        return [
            await writer.write(world, [full(name)])
            for writer, name in zip((*shared, *own), ("notion", "linear", "notion", "linear"), strict=True)
        ]

    run = run_writers(body)
    assert run.result == [
        CLAUDE_STORE,
        CLAUDE_STORE,
        "/sessions/a/claude/.credentials.json",
        "/sessions/b/claude/.credentials.json",
    ]
    keys = [set(run.json(path)["mcpOAuth"]) for path in run.result[1:]]
    assert keys == [{KEY, "linear|0123456789abcdef"}, {KEY}, {"linear|0123456789abcdef"}]


@pytest.mark.requirement("reconcile-scoped-off-global-file")
def test_two_sessions_that_write_the_shared_file_at_once_lose_no_entry():
    def writing(name: str) -> Any:
        async def body(world: World) -> None:
            await session_writer(world, "claude", {"HOME": HOME}).write(world, [full(name)])

        return body

    run = run_writers(writing("notion"), writing("linear"))
    assert set(run.json(CLAUDE_STORE)["mcpOAuth"]) == {KEY, "linear|0123456789abcdef"}


@pytest.mark.requirement("reconcile-scoped-single-writer")
def test_sessions_with_directories_of_their_own_open_no_file_of_each_other_or_of_the_host():
    """Each is run with all others' directories forbidden to it; whatever it opened there would fail it."""
    for name, other in (("a", "b"), ("b", "a")):

        async def body(world: World, name: str = name) -> bool:
            writer = session_writer(world, "claude", {"HOME": HOME, "CLAUDE_CONFIG_DIR": f"/sessions/{name}/claude"})
            await table.insert_unchecked(world, ROW)
            await Reconciler(world, [writer]).adopt(KEY)
            await writer.write(world, [full()])
            await writer.clear_needs_auth(world, ["notion"])
            await writer.delete(world, [KEY])
            return True

        foreign = [
            Fault("kill", port="files", label=f"*{place}*") for place in (f"/sessions/{other}/", f"{HOME}/.claude")
        ]
        assert run_writers(body, faults=foreign).results == {"zimmer": True}


@pytest.mark.requirement("reconcile-scoped-reads-own-dir")
def test_a_session_with_a_directory_of_its_own_adopts_what_its_own_last_process_rotated_there():
    async def body(world: World) -> Any:
        return await adopting(session_writer(world, "claude", {"HOME": HOME, **OWN}))(world)

    files = {
        OWN_STORE: json.dumps({"mcpOAuth": {KEY: claude_entry()}}),
        CLAUDE_STORE: json.dumps({"mcpOAuth": {KEY: claude_entry(NOW_MS + 3 * HOUR_MS, accessToken="of-the-host")}}),
    }
    assert run_writers(body, files=files).result[1].access_token == "new-access"


@pytest.mark.requirement("reconcile-scoped-cron-global", "reconcile-scoped-cron-gap")
def test_the_job_and_a_retirement_have_no_session_and_see_the_hosts_file_alone():
    """Known gap: a rotation that lies in a session's directory alone is invisible to the job."""
    files = {
        OWN_STORE: json.dumps({"mcpOAuth": {KEY: claude_entry()}}),
        CLAUDE_STORE: json.dumps({"mcpOAuth": {KEY: claude_entry(NOW_MS)}}),
    }

    async def body(world: World) -> Any:
        adopted, _, _ = await adopting()(world)
        await retire(world, KEY, registered_writers(world), "notion")
        return adopted

    run = run_writers(body, files=files)
    assert run.result is None
    assert run.json(CLAUDE_STORE)["mcpOAuth"] == {}
    assert set(run.json(OWN_STORE)["mcpOAuth"]) == {KEY}


@pytest.mark.requirement("reconcile-scoped-revocation-limit", "reconcile-retired-credential-stays-dead")
def test_a_retired_pair_in_a_running_sessions_directory_stays_there_and_is_not_adopted_by_its_next_spawn():
    copy = claude_entry(NOW_MS + HOUR_MS, accessToken="row-access", refreshToken="row-refresh")
    older = claude_entry(NOW_MS + HOUR_MS // 2, accessToken="older-access", refreshToken="older-refresh")
    for entry in (copy, older):

        async def body(world: World) -> Any:
            await table.insert_unchecked(world, ROW)
            await retire(world, KEY, registered_writers(world), "notion")
            writer = session_writer(world, "claude", {"HOME": HOME, **OWN})
            adopted = await Reconciler(world, [writer]).adopt(KEY)
            return adopted, await table.find(world, KEY)

        run = run_writers(body, files={OWN_STORE: json.dumps({"mcpOAuth": {KEY: entry}})})
        adopted, after = run.result
        assert adopted is None
        assert after.refresh_token is None
        assert after.expires_at < NOW
        assert set(run.json(OWN_STORE)["mcpOAuth"]) == {KEY}


# --- Codex ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("reconcile-codex-written-not-trusted")
@pytest.mark.parametrize("milliseconds", [NOW_MS - HOUR_MS, NOW_MS + HOUR_MS, NOW_MS + 5 * HOUR_MS])
def test_zimmers_entry_replaces_whatever_codexs_store_had_under_the_key(milliseconds):
    writer = WRITERS["codex"]

    async def body(world: World) -> list[Any]:
        seen = []
        for access in ("first-access", "second-access"):
            await world.files.write(CODEX_STORE, json.dumps({KEY: codex_entry(milliseconds)}).encode())
            await writer.write(world, [full(access_token=access)])
            seen.append((await writer.read(world))[KEY].access_token)
        return seen

    run = run_writers(body, directories={CODEX_STORE.rpartition("/")[0]: 0o700})
    assert run.result == ["first-access", "second-access"]


# --- placeholders -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("reconcile-uses-resolved-identity")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_server_with_placeholders_is_found_again_under_the_key_that_its_runtime_computed(runtime):
    entry = read_entry("notion", {"type": "http", "url": "https://${TENANT}.example.com/mcp"})
    server = remote_server(entry, {"TENANT": "acme"}.get)
    stored = row(credential_key=server.credential_key, server_url=server.url, runtime_keys=server.runtime_keys)
    key, url = server.runtime_keys[runtime], "https://acme.example.com/mcp"
    made: Mapping[str, Any] = {
        "claude": claude_entry(serverUrl=url),
        "codex": codex_entry(server_url=url),
        "pi": pi_entry(serverUrl=url),
    }
    files = file_of(runtime, made[runtime], key)
    if runtime == "claude":
        looked_up = LoadedServer("notion", "http", url=url, raw={"type": "http", "url": url})
        assert find_entry(files[CLAUDE_STORE], looked_up) is not None

    async def body(world: World) -> Any:
        adopted = await adopting(before=stored)(world)
        await retire(world, stored.credential_key, registered_writers(world), "notion")
        return adopted

    run: WriterRun = run_writers(body, files=files)
    assert run.result[1].access_token == "new-access"
    assert (runtime == "pi") is (key == "notion")
    left = run.json(next(iter(files))) if runtime != "pi" else {}
    assert left in ({}, {"mcpOAuth": {}})
    assert not run.exists(keyring_account("notion"))
