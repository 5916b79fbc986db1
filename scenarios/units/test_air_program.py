"""The fake `air` program: resolving, translating, transforming, checking."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from fake_runtimes import air
from fake_runtimes.air.transforms import error_text, interpolate, survivors
from harness.preparation import RUNTIMES
from harness.reference.prepare.argv import prepare_argv
from scenarios.preparing import CLONE, NPX, REMOTE, again, document, prepared, servers

FULL = {
    "type": "stdio",
    "command": "c",
    "args": ["a"],
    "env": {"E": "e"},
    "title": "T",
    "description": "D",
    "default_in_roots": ["r"],
    "unavailable": "broken",
    "startup_timeout_sec": 20,
    "frob": 1,
}
NEVER_TRANSLATED = ("title", "description", "default_in_roots", "unavailable", "startup_timeout_sec", "frob")


def run(
    runtime: Any, names: list[str], tree: dict[str, Any], *, environment: Any = None, existing: Any = None, **more: Any
) -> Any:
    argv = prepare_argv(runtime, CLONE, chosen=names)
    return air.prepare(argv, tree, target=CLONE, existing=existing or {}, environment=environment or {}, **more)


def on_disk(result: Any) -> Any:
    text = next(iter(result.files.values()), "{}")
    content = json.loads(text) if ".codex/config.toml" not in result.files else tomllib.loads(text)
    return content.get("mcpServers", content.get("mcp_servers", {}))


@pytest.mark.requirement("catalog-air-resolve-verbatim")
def test_resolve_returns_entries_verbatim_with_fields_that_no_adapter_knows():
    tree = {
        "$schema": "https://pulsemcp.github.io/air/schemas/mcp.schema.json",
        "a": {**FULL, "unavailable": True, "startup_timeout_sec": "20", "frob": {"x": [None]}},
    }
    assert air.resolve(tree) == {"a": tree["a"]}
    assert air.resolve(["no", "object"]) == {}


@pytest.mark.requirement(
    "catalog-air-adapters-fixed-list",
    "startup-timeout-air-does-not-carry",
    "prepare-air-does-not-carry-budget",
    "unavailable-air-ignores-field",
)
@pytest.mark.parametrize("unavailable", ["broken", True, 5, None, ["x"]])
@pytest.mark.parametrize("entry", [FULL, {**FULL, "type": "sse", "url": "https://a.test/sse"}])
def test_adapters_translate_a_closed_list_of_fields(entry, unavailable):
    tree = {"a": {**entry, "unavailable": unavailable}}
    for runtime in ("claude", "codex"):
        result = run(runtime, ["a"], tree)
        assert result.exit_code == 0
        written = on_disk(result)["a"]
        assert written == result.entries["a"]
        assert not set(NEVER_TRANSLATED) & set(written)
    for runtime in RUNTIMES:
        assert "unavailable" not in servers(prepared(runtime, ["a"], tree))["a"]
    assert servers(prepared("codex", ["a"], tree))["a"].get("startup_timeout_sec") == 20


@pytest.mark.requirement("catalog-air-pi-no-mcp", "prepare-pi-seeds-itself")
def test_air_writes_no_servers_for_pi_and_zimmer_seeds_both():
    tree = {"playwright-custom": NPX, "context7": REMOTE}
    result = run("pi", list(tree), tree)
    assert (result.exit_code, result.files, result.entries, result.manifest) == (0, {}, {}, ())
    assert set(servers(prepared("pi", list(tree), tree))) >= {"playwright-custom", "context7"}


@pytest.mark.requirement("catalog-prepare-skips-schema", "catalog-schema-type-enum")
def test_prepare_translates_entries_that_the_schema_refuses():
    tree = {
        "ws": {"type": "websocket", "url": "wss://x"},
        "untyped": {"command": "x"},
        "h": {"type": "http", "url": "https://h"},
    }
    result = run("claude", list(tree), tree)
    assert result.exit_code == 0
    assert on_disk(result) == {
        "ws": {"type": "websocket", "url": "wss://x"},
        "untyped": {},
        "h": {"type": "http", "url": "https://h"},
    }


@pytest.mark.requirement("secrets-air-survivor-check", "prepare-secrets-joined-at-prepare")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_surviving_placeholder_fails_the_prepare(runtime):
    tree = {"a": {**NPX, "env": {"T": "${T}"}}}
    assert run(runtime, ["a"], tree).exit_code == 1
    assert run(runtime, ["a"], tree, environment={"T": "tok"}).exit_code == 0


SURVIVORS = [
    ("${lower}", ("lower",)),
    ("${1X}", ("1X",)),
    ("${VAR:?err}", ("VAR:?err",)),
    ("${N:-${M}}", ("M",)),
    ("$D", ()),
    ("${F", ()),
    ("${}", ()),
    ("${V:-a\nb}", ("V:-a\nb",)),
    ("${V:-a\rb}", ("V:-a\rb",)),
    ("${V:-a\u2028b}", ("V:-a\u2028b",)),
    ("${V:-a\tb\x85}", ()),
]


@pytest.mark.requirement("secrets-air-survivor-grammar")
@pytest.mark.parametrize(("text", "expected"), SURVIVORS)
def test_the_survivor_check_takes_any_braced_text(text, expected):
    assert survivors(interpolate({"a": {"command": "c", "env": {"V": text}}}, {}, None)) == expected
    result = run("claude", ["a"], {"a": {**NPX, "description": "uses ${NOPE}", "env": {"${K}": "v", "V": text}}})
    assert result.exit_code == (1 if expected else 0)


@pytest.mark.requirement("secrets-air-error-text")
def test_the_failure_text_lists_each_survivor_once():
    assert error_text("/c", ("T",)) == (
        "Error: Unresolved variable in /c: ${T}. "
        "Ensure all variables are provided via environment or a secrets transform."
    )
    assert error_text("/c", ("T", "U", "H")) == (
        "Error: Unresolved variables in /c: ${T}, ${U}, ${H}. "
        "Ensure all variables are provided via environment or a secrets transform."
    )
    assert error_text("/c", ("T", "U", "T")) == error_text("/c", ("T", "U"))
    assert error_text("/c", ("T", "T")) == error_text("/c", ("T",))
    tree = {"a": {**NPX, "env": {"T": "${T}", "T2": "x${T}", "U": "${U}"}}}
    result = run("claude", ["a"], tree)
    assert (result.exit_code, result.stderr) == (1, error_text(CLONE, ("T", "U")))


@pytest.mark.requirement("secrets-air-written-before-fail")
def test_the_file_with_the_placeholder_is_written_before_the_failure_and_repaired_later():
    tree = {"a": {**NPX, "env": {"T": "${T}"}}}
    failed = run("claude", ["a"], tree)
    assert (failed.exit_code, failed.manifest) == (1, ("a",))
    assert on_disk(failed).get("a", {}).get("env") == {"T": "${T}"}
    repaired = prepared("claude", ["a"], tree, {"T": "tok"}, files=failed.files)
    assert servers(repaired)["a"]["env"]["T"] == "tok"


@pytest.mark.requirement("secrets-air-codex-no-check")
def test_the_real_codex_adapter_forwards_names_and_checks_nothing():
    tree = {
        "a": {**NPX, "env": {"T": "${T}", "L": "plain", "U": "x${V}"}},
        "b": {**REMOTE, "headers": {"X": "${X}", "Authorization": "Bearer ${B}", "P": "p"}},
    }
    result = run("codex", ["a", "b"], tree, codex_adapter="real")
    assert result.exit_code == 0
    written = on_disk(result)
    assert written["a"].get("env_vars") == ["T", "V"]
    assert written["a"]["env"] == {"L": "plain"}
    assert (written["a"]["command"], written["a"]["args"][0]) == ("sh", "-c")
    assert written["b"] == {
        "url": "https://a.test/mcp",
        "bearer_token_env_var": "B",
        "http_headers": {"P": "p"},
        "env_http_headers": {"X": "X"},
    }


@pytest.mark.requirement("secrets-local-entries-trap")
def test_a_hand_written_entry_is_transformed_and_checked_like_a_selected_one():
    existing = {".mcp.json": json.dumps({"mcpServers": {"mine": {"command": "m", "env": {"Q": "${Q}"}}}})}
    failed = run("claude", ["a"], {"a": NPX}, existing=existing)
    assert (failed.exit_code, failed.stderr) == (1, error_text(CLONE, ("Q",)))
    passed = run("claude", ["a"], {"a": NPX}, existing=existing, environment={"Q": "qv"})
    assert on_disk(passed)["mine"]["env"] == {"Q": "qv"}
    assert servers(prepared("claude", ["a"], {"a": NPX}, {"Q": "qv"}, files=existing))["mine"]["env"]["Q"] == "qv"


@pytest.mark.requirement("secrets-local-entries-trap")
def test_every_text_of_a_hand_written_entry_is_resolved():
    mine = {"command": "${BIN}", "cwd": "/x", "n": 1.50, "env": {"Q": "${Q}", "E": "${E:-}"}}
    existing = {".mcp.json": json.dumps({"mcpServers": {"mine": mine}})}
    entry = servers(prepared("claude", ["a"], {"a": NPX}, {"BIN": "/bin/b", "Q": "q"}, files=existing))["mine"]
    assert entry == {"command": "/bin/b", "cwd": "/x", "n": 1.5, "env": {"Q": "q"}}


def test_a_redirect_uri_becomes_codexs_one_callback_setting_unless_the_user_has_one():
    tree = {
        "a": {**REMOTE, "oauth": {"clientId": "c", "redirectUri": "http://localhost:3000/cb"}},
        "b": {**REMOTE, "oauth": {"redirectUri": "http://localhost:4000/cb"}},
    }
    first = prepared("codex", ["a", "b"], tree, files={".codex/config.toml": "[tui]\nx = 1\n"})
    assert document(first)["mcp_oauth_callback_url"] == "http://localhost:3000/cb"
    assert servers(first)["a"]["oauth"] == {"client_id": "c"}
    assert again("codex", ["a", "b"], tree, first).text == first.text
    own = prepared("codex", ["a"], tree, files={".codex/config.toml": 'mcp_oauth_callback_url = "http://mine"\n'})
    assert document(own)["mcp_oauth_callback_url"] == "http://mine"


@pytest.mark.requirement("prepare-local-values-merge", "startup-timeout-local-value-wins")
def test_a_local_entry_of_a_selected_name_is_kept_by_newer_air_and_overwritten_by_older():
    existing = {".mcp.json": json.dumps({"mcpServers": {"a": {"command": "mine", "requestTimeoutMs": 9000}}})}
    assert run("claude", ["a"], {"a": NPX}, existing=existing).entries == {}
    kept = prepared("claude", ["a"], {"a": NPX}, files=existing)
    assert servers(kept)["a"] == {"command": "mine", "requestTimeoutMs": 9000}
    replaced = prepared("claude", ["a"], {"a": NPX}, files=existing, keeps_local_entries=False)
    assert servers(replaced)["a"]["command"] == "npx"
    assert "requestTimeoutMs" not in servers(replaced)["a"]
    tree = {"a": {**NPX, "startup_timeout_sec": 30}}
    local = {".codex/config.toml": '[mcp_servers.a]\ncommand = "mine"\nstartup_timeout_sec = 12\n'}
    assert servers(prepared("codex", ["a"], tree, files=local))["a"]["startup_timeout_sec"] == 12
    older = servers(prepared("codex", ["a"], tree, files=local, keeps_local_entries=False))["a"]
    assert (older["command"], older["startup_timeout_sec"]) == ("npx", 30)


def test_an_unknown_id_is_refused_before_anything_is_written():
    result = run("claude", ["zz"], {"a": NPX})
    assert (result.exit_code, result.files) == (1, {})
    assert result.stderr == 'Error: Unknown MCP server ID "zz". Available: @local/a.'


@pytest.mark.requirement("selection-without-defaults", "prepare-without-defaults")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_air_adds_no_root_default_by_itself(runtime):
    roots = {"r": {"default_mcp_servers": ["a", "b"]}}
    argv = prepare_argv(runtime, CLONE, chosen=["a"], root="r")
    assert air.activated(argv, roots, {}) == ("a",)
    assert air.activated(prepare_argv(runtime, CLONE, root="r"), roots, {}) == ()
    assert "--without-defaults" in argv
    bare = tuple(word for word in argv if word != "--without-defaults")
    assert air.activated(bare, roots, {}) == ("a", "b")


@pytest.mark.requirement("selection-plugin-readds")
def test_a_plugin_brings_back_a_server_after_the_removals():
    argv = ("prepare", "claude", "--without-mcp-server", "b", "--mcp-server", "b", "--plugin", "p")
    assert air.activated(argv, {}, {"p": {"mcp_servers": ["b"]}}) == ("b",)
    assert "b" in servers(prepared("claude", [], {"b": NPX}, plugin_servers=["b"]))
