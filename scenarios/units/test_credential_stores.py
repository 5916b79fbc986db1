"""The stores of all runtimes together: which writers there are, whose format is whose, and the loopback predicate."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

import harness.reference
from fake_runtimes.claude.credentials import find_entry as claude_entry
from fake_runtimes.codex.credentials import read_store
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.pi.tokens import token_for
from harness.reference.credentials.writers.registry import registered_writers, session_writer
from harness.reference.credentials.writers.staging import in_milliseconds, in_seconds, stage
from harness.reference.credentials.writers.store_file import parse
from harness.reference.oauth import loopback
from harness.reference.oauth.endpoints import acceptable_endpoint
from harness.reference.oauth.loopback import localhost_flow
from harness.world import World
from scenarios.units.writer_run import (
    CACHE,
    CLAUDE_STORE,
    CODEX_STORE,
    KEY,
    NOW_MS,
    PI,
    STORES,
    URL,
    WRITERS,
    clearing,
    full,
    row,
    run_writers,
    server,
    staged_file,
    writing,
)

RUNTIMES = ("claude", "codex", "pi")


@pytest.mark.requirement("writers-three", "reconcile-enumerable-flag")
def test_every_runtime_has_a_writer_and_two_of_the_three_stores_can_be_listed():
    async def body(world: World) -> Any:
        return [(writer.runtime, writer.enumerable) for writer in registered_writers(world)]

    assert run_writers(body).result == [("claude", True), ("codex", True), ("pi", False)]


@pytest.mark.requirement("store-keyed-by-home", "reconcile-scoped-cron-global")
@pytest.mark.parametrize("home", ["/home/u", "/home/b"])
def test_whoever_has_no_session_writes_to_the_stores_of_the_home(home):
    async def body(world: World) -> None:
        for writer in registered_writers(world):
            await writer.write(world, [full()])

    ran = run_writers(body, env={"HOME": home})
    places = [path.replace("/home/u", home) for path in STORES.values()]
    assert [ran.exists(path) for path in places] == [True, True, True]
    assert not any(ran.exists(path) for path in STORES.values() if path not in places)


@pytest.mark.requirement(
    "reconcile-scoped-on-own-dir", "reconcile-scoped-single-writer", "reconcile-scoped-off-global-file"
)
def test_a_session_with_directories_of_its_own_touches_no_other():
    variables = {"CLAUDE_CONFIG_DIR": "/s/claude", "CODEX_HOME": "/s/codex", "MCP_OAUTH_DIR": "/s/pi"}

    async def own(world: World) -> None:
        for runtime in RUNTIMES:
            await session_writer(world, runtime, variables).write(world, [full()])  # type: ignore[arg-type]

    async def usual(world: World) -> None:
        for runtime in RUNTIMES:
            await session_writer(world, runtime, {}).write(world, [full("linear")])  # type: ignore[arg-type]

    ran = run_writers(own, usual)
    assert list(ran.json("/s/claude/.credentials.json")["mcpOAuth"]) == [KEY]
    assert list(ran.json("/s/codex/.credentials.json")) == [KEY]
    assert ran.exists(staged_file("notion", "/s/pi"))
    assert list(ran.json(CLAUDE_STORE)["mcpOAuth"]) == list(ran.json(CODEX_STORE)) == ["linear|0123456789abcdef"]
    assert not ran.exists(staged_file("notion"))


@pytest.mark.requirement("writers-runtime-format", "writers-claude-fake-reads-by-key")
def test_each_document_is_read_by_its_own_runtime_and_by_neither_other():
    texts = {}
    for runtime, writer in WRITERS.items():
        staged = stage(row(), server(), writer.runtime)
        texts[runtime] = run_writers(writing(writer, staged)).text(STORES[runtime]) or ""
    loaded = LoadedServer("notion", "http", url=URL)
    reads = {
        "claude": [claude_entry(text, loaded) is not None for text in texts.values()],
        "codex": [read_store(text) is not None for text in texts.values()],
        "pi": [token_for(URL, text) is not None for text in texts.values()],
    }
    assert reads == {"claude": [True, False, False], "codex": [False, True, False], "pi": [False, False, True]}
    assert len({json.dumps(json.loads(text), sort_keys=True) for text in texts.values()}) == 3


@pytest.mark.requirement("writers-empty-list")
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("before", [None, '{"mcpOAuth": {"other|k": {}}}', "{ not json"])
def test_with_nothing_to_write_nothing_is_touched(runtime, before):
    files = {} if before is None else {STORES[runtime]: before}
    ran = run_writers(writing(WRITERS[runtime]), files=files)
    assert (ran.result, ran.text(STORES[runtime]), ran.asked) == (None, before, [])
    assert ran.exists(STORES[runtime].rpartition("/")[0]) is (before is not None)


@pytest.mark.requirement("writers-no-credential-not-written")
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    "worthless",
    [
        {"access_token": ""},
        {"access_token": " "},
        {"expires_at_ms": NOW_MS},
        {"expires_at_ms": NOW_MS - 1},
        {"expires_at_ms": 0},
    ],
)
def test_an_expired_credential_and_one_without_a_token_are_not_written(runtime, worthless):
    ran = run_writers(writing(WRITERS[runtime], full(**worthless), full("linear")))
    written = "".join(ran.text(path) or "" for path in (STORES[runtime], staged_file("linear")))
    assert "notion" not in written
    assert "linear-access" in written
    none = run_writers(writing(WRITERS[runtime], full(**worthless)))
    assert (none.result, none.text(STORES[runtime])) == (None, None)


@pytest.mark.requirement("writers-written-at-every-spawn")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_each_write_makes_the_file_anew_even_where_it_was_taken_away(runtime):
    first = run_writers(writing(WRITERS[runtime], full()))
    text = first.text(STORES[runtime])
    second = run_writers(writing(WRITERS[runtime], full()), before=first)
    assert [(second.result is None), second.text(STORES[runtime])] == [False, text]
    second.simulation.tree.remove(STORES[runtime], 0, 0.0)
    third = run_writers(writing(WRITERS[runtime], full(access_token="newer")), before=second)
    assert "newer" in (third.text(STORES[runtime]) or "")


@pytest.mark.requirement("writers-client-secret-not-carried")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_clients_secret_gets_into_no_store(runtime):
    staged = stage(row(), server(), runtime)
    ran = run_writers(writing(WRITERS[runtime], staged))
    assert ran.exists(STORES[runtime])
    told = [event.details for event in ran.outcome.events]
    everything = "".join(ran.text(path) or "" for path in STORES.values()) + repr(told) + repr(staged)
    assert "s3cr3t" not in everything
    assert "row-access" not in repr(told) + repr(staged)
    assert "row-refresh" not in repr(told) + repr(staged)


@pytest.mark.requirement("writers-input-resolved-credential")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_row_is_staged_with_what_it_has_and_nothing_else(runtime):
    staged = stage(row(), server(), runtime)
    key = "notion" if runtime == "pi" else KEY
    assert (staged.credential_key, staged.server_name, staged.server_url) == (key, "notion", URL)
    assert (staged.access_token, staged.refresh_token, staged.client_id) == ("row-access", "row-refresh", "client-123")
    assert (staged.expires_at_ms, staged.scope) == (NOW_MS + 3_600_000, "read write")
    assert (staged.issuer, staged.redirect_uris) == ("https://as.test", ("https://zimmer.test/mcp_oauth/callback",))
    absent = stage(
        row(expires_at=None, scopes=None, issuer=None, redirect_uri=None, refresh_token=None), server(), runtime
    )
    assert (absent.expires_at_ms, absent.scope, absent.issuer) == (None, None, None)
    assert (absent.redirect_uris, absent.refresh_token) == ((), None)


def test_a_time_is_rounded_to_the_millisecond():
    assert stage(row(expires_at=1_768_098_636.15), server(), "claude").expires_at_ms == 1_768_098_636_150


@pytest.mark.requirement("writers-codex-invalid-entry-kills-file", "reconcile-stamp-roundtrip-noop")
@pytest.mark.parametrize("seconds", [8.64e12 + 1, 1e20, 1e300, 1e306, 1.7e308])
def test_a_lifetime_without_end_is_written_as_a_time_that_every_runtime_can_read(seconds):
    written = in_milliseconds(seconds)
    assert stage(row(expires_at=seconds), server(), "codex").expires_at_ms == written
    assert written <= 8_640_000_000_000_000
    assert (in_seconds(written) or 0) <= seconds
    assert in_milliseconds(-seconds) < 0


@pytest.mark.requirement("store-codex-no-cache", "store-pi-no-cache")
@pytest.mark.parametrize("runtime", ["codex", "pi"])
def test_clearing_opens_no_file_of_a_runtime_that_remembers_nothing(runtime):
    ran = run_writers(clearing(WRITERS[runtime], "a"), files={CACHE: '{"a": {"timestamp": 1}}'})
    assert (ran.result, ran.text(CACHE), ran.started) == ((), '{"a": {"timestamp": 1}}', [])
    assert not ran.exists(PI)


# --- loopback ---------------------------------------------------------------------------------------------------------

LOOPBACK = (
    "http://localhost:3000/callback",
    "http://127.0.0.1:3000/callback",
    "http://[::1]:3000/callback",
    "http://[::1]",
    "https://localhost",
    "http://localhost?code=1",
    "http://localhost:/cb",
)
OTHER_CASES = ("http://LOCALHOST:3118/callback", "https://user@localhost/cb", "http://a:b@127.0.0.1/cb")
ELSEWHERE = (
    "https://example.com/callback",
    "http://127.0.0.2/cb",
    "http://127.0.0.10/cb",
    "http://[::ffff:127.0.0.1]/cb",
    "http://[::2]/cb",
    "http://0.0.0.0/cb",
)
INSIDE = (
    "https://localhost.evil.com/callback",
    "https://evil.com/callback?x=127.0.0.1",
    "https://evil.com/localhost",
    "http://notlocalhost/cb",
    "https://evil.com/#http://localhost/",
    "http://localhost./cb",
)
NO_URI = ("http://local host:3000/callback", "localhost:3000/callback", "", None, "urn:ietf:wg:oauth:2.0:oob",
          "//localhost/cb", "http:/localhost/cb", "http://localhost/cb\n", " http://localhost/cb", "http://local%68ost\\@x/",
          "http://localhost:30a/cb", "http://[::1/cb", "http:///cb", "http://local\thost/cb", "http://a@b@localhost/cb",
          "http://localhost/caf\u00e9", "http://localhost:1:2/cb")  # fmt: skip


@pytest.mark.requirement("store-loopback-exact-hosts", "store-loopback-host-not-substring")
def test_exactly_three_hosts_are_loopback():
    assert [uri for uri in LOOPBACK if not localhost_flow(uri)] == []
    assert [uri for uri in (*ELSEWHERE, *INSIDE) if localhost_flow(uri)] == []


@pytest.mark.requirement("store-loopback-case-and-userinfo")
def test_case_userinfo_and_port_do_not_matter():
    assert [uri for uri in OTHER_CASES if not localhost_flow(uri)] == []
    assert not localhost_flow("http://localhost@evil.com/cb")
    assert not localhost_flow("http://127.0.0.1:80@evil.com/cb")


@pytest.mark.requirement("store-loopback-malformed-false")
def test_what_is_no_uri_is_no_loopback():
    assert [uri for uri in NO_URI if localhost_flow(uri)] == []


def importers(module: str) -> list[str]:
    """The files of the reference that import a module or something from it."""
    root = Path(harness.reference.__file__).parent
    found = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            source = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if module in (source, *names, *(f"{source}.{name}" for name in names)):
                found.append(str(path.relative_to(root)))
    return found


@pytest.mark.requirement("store-loopback-gates-nothing")
@pytest.mark.parametrize("answer", [True, False])
def test_no_decision_depends_on_the_predicate(answer, monkeypatch):
    assert importers("harness.reference.oauth.loopback") == []
    monkeypatch.setattr(loopback, "localhost_flow", lambda _uri: answer)
    assert [uri for uri in (*LOOPBACK, *OTHER_CASES) if uri.startswith("http:") and acceptable_endpoint(uri)] == []
    assert acceptable_endpoint("https://localhost/token")


@pytest.mark.parametrize(("depth", "is_read"), [(99, True), (120, True), (600, False), (100_000, False)])
def test_a_store_that_is_nested_too_deeply_to_be_written_again_is_none(depth, is_read):
    text = '{"a":' * depth + "1" + "}" * depth
    assert (parse(text) is not None) == is_read
