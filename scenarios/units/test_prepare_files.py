"""Which file is written for a runtime, in which form, and what of the repository's own stays in it."""

from __future__ import annotations

import json
import tomllib

import pytest

from fake_runtimes import runtimes
from fake_runtimes.profile import load_profile
from harness.preparation import RUNTIMES, TooDeepError
from harness.reference.catalog.catalog import read_catalog
from harness.reference.prepare import codex_tables
from harness.reference.prepare.documents import open_document, write_document
from harness.reference.prepare.failures import MalformedConfigError
from harness.reference.prepare.request import PrepareRequest
from scenarios.preparing import (
    CACHE,
    CLONE,
    FILES,
    LOCAL_BINARY,
    NPX,
    PINNED,
    PRODUCTION,
    REMOTE,
    SELF_SESSION,
    again,
    document,
    loaded,
    prepared,
    servers,
)

CATALOG_ONLY = {
    "title": "T",
    "description": "D",
    "default_in_roots": ["zimmer"],
    "unavailable": "broken",
    "startup_timeout_sec": 20,
    "oauth": {"clientSecret": "s3cr3t"},
    "frob": 1,
}


@pytest.mark.requirement("prepare-file-per-runtime", "prepare-claude-never-settings-json")
@pytest.mark.parametrize(("runtime", "path"), FILES.items())
def test_one_file_is_written_and_it_is_the_runtimes_own(runtime, path):
    written = prepared(runtime, ["a"], {"a": NPX})
    assert [write.path for write in written.prepared.writes] == [path]
    assert ("mcp_servers" if runtime == "codex" else "mcpServers") in document(written)


@pytest.mark.requirement("prepare-claude-json-format")
def test_json_keeps_the_order_and_other_keys_and_puts_injected_entries_last():
    mine = (
        '{\n  "zzz": 1E400,\n  "mcpServers": {\n    "own": {\n      "command": "o",\n      "n": -0\n    }\n  },\n'
        '  "aaa": "ü"\n}\n'
    )
    written = prepared("claude", ["z", "b"], {"z": REMOTE, "b": REMOTE}, files={".mcp.json": mine})
    assert written.text is not None
    assert list(servers(written)) == ["own", "z", "b", SELF_SESSION]
    assert written.text.startswith(
        '{\n  "zzz": 1E400,\n  "mcpServers": {\n    "own": {\n      "command": "o",\n      "n": -0\n    },'
    )
    assert written.text.endswith('  "aaa": "ü"\n}\n')


TOML = """# the user's comment
model = "o9"  # and another

[projects."/x"]
trust_level = "trusted"

[mcp_servers.mine] # keep
command = "m"
startup_timeout_sec = 12

[tui]
theme = "dark"
"""


@pytest.mark.requirement("prepare-codex-toml-format", "prepare-local-values-merge")
def test_toml_keeps_the_users_text_and_adds_tables_in_name_order():
    tree = {"acme-server": LOCAL_BINARY, "acme-http": REMOTE}
    written = prepared("codex", list(tree), tree, files={".codex/config.toml": TOML})
    assert written.text is not None
    assert written.text.startswith(TOML)
    headers = [
        line
        for line in written.text.removeprefix(TOML).splitlines()
        if line.startswith("[mcp_servers.") and line.count(".") == 1
    ]
    assert headers == ["[mcp_servers.acme-http]", "[mcp_servers.acme-server]", f"[mcp_servers.{SELF_SESSION}]"]
    assert document(written)["projects"] == {"/x": {"trust_level": "trusted"}}


@pytest.mark.requirement("prepare-codex-toml-format")
def test_toml_edits_inside_a_users_table_leave_the_rest_byte_for_byte():
    text = TOML.replace("startup_timeout_sec = 12\n", "")
    written = prepared("codex", ["a"], {"a": REMOTE}, files={".codex/config.toml": text})
    assert written.text is not None
    assert servers(written)["mine"] == {"command": "m", "startup_timeout_sec": 180}
    assert written.text.replace("startup_timeout_sec = 180\n", "").startswith(text)


@pytest.mark.requirement("prepare-codex-toml-format", "prepare-codex-entry-validated")
@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { mine = { command = "m" } }\n',
        "mcp_servers = {}\n",
        'mcp_servers.mine.command = "m"\n',
        "[mcp_servers]\n",
        '[mcp_servers.mine.env]\nA = "a"\n[other]\nx = 1\n[mcp_servers.mine]\ncommand = "m"\n',
        '[mcp_servers.mine]\r\ncommand = "m"\r\n',
        "a = 1",
        "",
    ],
)
def test_any_layout_of_the_users_tables_takes_the_added_ones(text):
    written = prepared("codex", ["a"], {"a": NPX}, files={".codex/config.toml": text})
    assert set(servers(written)) == {"a", SELF_SESSION, *tomllib.loads(text).get("mcp_servers", {})}
    assert not loaded("codex", written).run_killed
    assert again("codex", ["a"], {"a": NPX}, written).text == written.text


@pytest.mark.requirement("prepare-http-entry-shape", "catalog-http-alias-everywhere")
@pytest.mark.parametrize(("declared", "shown"), [("streamable-http", "http"), ("http", "http"), ("sse", "sse")])
def test_a_remote_entry_has_each_runtimes_shape(declared, shown):
    tree = {"a": {"type": declared, "url": "https://a.test/mcp", "headers": {"H": "h"}}}
    expected = {"type": shown, "url": "https://a.test/mcp", "headers": {"H": "h"}}
    assert servers(prepared("claude", ["a"], tree)).get("a") == expected
    assert servers(prepared("pi", ["a"], tree)).get("a") == expected
    codex = servers(prepared("codex", ["a"], tree)).get("a")
    assert codex == {"url": "https://a.test/mcp", "http_headers": {"H": "h"}}


@pytest.mark.requirement("prepare-stdio-entry-shape")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_stdio_entry_carries_command_and_args_verbatim(runtime):
    entry = servers(prepared(runtime, ["a"], {"a": {**NPX, "env": {"A": "a"}}}))["a"]
    assert (entry["command"], entry["args"], entry["env"]["A"]) == ("npx", ["-y", "some-package"], "a")
    assert entry.get("type") == {"pi": "stdio"}.get(runtime)


@pytest.mark.requirement("prepare-unknown-keys-not-copied", "unavailable-air-ignores-field")
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("entry", [NPX, REMOTE])
def test_catalog_only_fields_do_not_reach_a_runtime(runtime, entry):
    declared = CATALOG_ONLY if entry is NPX else {**CATALOG_ONLY, "oauth": {"clientId": "c", "scopes": ["s"]}}
    written = servers(prepared(runtime, ["a"], {"a": {**entry, **declared}}))["a"]
    allowed = {"type", "command", "args", "env", "url", "headers", "http_headers", "requestTimeoutMs"}
    allowed |= {"startup_timeout_sec"} if runtime == "codex" else set()
    assert set(written) <= allowed | ({"oauth"} if entry is REMOTE else set())
    assert "s3cr3t" not in json.dumps(written)


@pytest.mark.requirement("prepare-pi-seeds-itself", "prepare-pi-seed-shape")
@pytest.mark.parametrize(
    ("entry", "seeded"),
    [
        ({"type": "stdio", "command": "c"}, {"type": "stdio", "command": "c", "requestTimeoutMs": 180_000}),
        (
            {"type": "stdio", "command": "c", "args": [], "env": {}},
            {"type": "stdio", "command": "c", "requestTimeoutMs": 180_000},
        ),
        ({"type": "streamable-http", "url": "https://u"}, {"type": "http", "url": "https://u", "headers": {}}),
        ({"type": "http", "url": "https://u"}, {"type": "http", "url": "https://u", "headers": {}}),
        (
            {"type": "sse", "url": "https://u", "headers": {"H": "h"}},
            {"type": "sse", "url": "https://u", "headers": {"H": "h"}},
        ),
    ],
)
def test_a_pi_entry_is_seeded_from_the_catalog(entry, seeded):
    assert servers(prepared("pi", ["a"], {"a": entry}))["a"] == seeded
    assert servers(prepared("pi", [], {"a": entry}, plugin_servers=["a"]))["a"] == seeded


@pytest.mark.requirement("prepare-pi-seed-existing-wins")
def test_an_entry_already_in_pis_file_is_left_by_seeding():
    existing = {".mcp.json": '{"mcpServers": {"playwright-custom": {"command": "local-override"}}}'}
    entry = servers(prepared("pi", ["playwright-custom"], {"playwright-custom": NPX}, files=existing))
    assert entry["playwright-custom"] == {"command": "local-override", "requestTimeoutMs": 180_000}


@pytest.mark.requirement(
    "prepare-pi-seed-skips-unusable", "prepare-prompt-config-agree", "catalog-stdio-fields", "catalog-remote-fields"
)
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("broken", [None, {"type": "stdio"}, {"type": "sse"}, {"type": "stdio", "command": " "}])
def test_an_unusable_name_is_skipped_with_a_warning(runtime, broken):
    tree = {"ok": NPX} | ({} if broken is None else {"bad": broken})
    written = prepared(runtime, ["ok", "bad"], tree)
    assert set(servers(written)) == {"ok", SELF_SESSION}
    assert [warning for warning in written.warnings if "'bad'" in warning] == list(written.warnings)
    assert len(written.warnings) == 1


@pytest.mark.requirement(
    "prepare-synthesizes-missing-file", "prepare-injected-are-synthesized", "selection-injected-synthesised"
)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_session_without_servers_gets_a_file_with_the_injected_one(runtime):
    written = prepared(runtime, [], {})
    assert list(servers(written)) == [SELF_SESSION]
    assert written.prepared.injected == (SELF_SESSION,)


MALFORMED = {
    "claude": ["{oops", "[]", '{"mcpServers": []}', '{"a": NaN}', "[" * 100_000, ""],
    "codex": ["[oops", "a = 1\na = 2", "mcp_servers = 1", "x = " + "[" * 100_000],
    "pi": ["{oops", '{"mcpServers": null}'],
}


@pytest.mark.requirement("prepare-malformed-local-file")
@pytest.mark.parametrize(("runtime", "text"), [(r, text) for r, texts in MALFORMED.items() for text in texts])
@pytest.mark.parametrize("names", [["a"], []])
def test_a_local_file_that_cannot_be_read_fails_the_prepare_and_is_named(runtime, text, names):
    path = FILES[runtime]
    try:
        written = prepared(runtime, names, {"a": NPX}, files={path: text}).text
    except MalformedConfigError as error:
        written, named = None, error.file
    assert written is None, "the file was replaced"
    assert named == path


@pytest.mark.requirement("prepare-local-values-merge")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_repositorys_own_server_stays_with_all_its_keys(runtime):
    mine = {"command": "mine", "args": ["--x"], "enabled": False, "tool_timeout_sec": 45}
    text = (
        '[mcp_servers.mine]\ncommand = "mine"\nargs = ["--x"]\nenabled = false\ntool_timeout_sec = 45\n'
        if runtime == "codex"
        else json.dumps({"mcpServers": {"mine": mine}})
    )
    written = prepared(runtime, ["context7"], {"context7": NPX}, files={FILES[runtime]: text})
    assert set(servers(written)) == {"mine", "context7", SELF_SESSION}
    assert servers(written)["mine"].items() >= mine.items()
    assert written.prepared.local == ("mine",)


@pytest.mark.requirement("prepare-secret-file-mode")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_created_file_is_the_owners_alone_and_kept_out_of_commits(runtime):
    written = prepared(runtime, ["a"], {"a": NPX})
    (write,) = written.prepared.writes
    assert write.mode is not None
    assert write.mode & 0o077 == 0
    assert written.prepared.excluded == (FILES[runtime],)
    (rewrite,) = again(runtime, ["a"], {"a": NPX}, written).prepared.writes
    assert rewrite.mode is None


@pytest.mark.requirement("prepare-codex-entry-validated", "prepare-prompt-config-agree")
def test_every_codex_table_is_one_that_codex_takes():
    tree = {
        "numbers": {"type": "stdio", "command": "c", "env": {"N": 1, "F": 1.5, "B": True, "C": False}},
        "a.b": NPX,
        "bad-args": {"type": "stdio", "command": "c", "args": [1]},
        "bad-env": {"type": "stdio", "command": "c", "env": {"X": None}},
        "bad-headers": {**REMOTE, "headers": {"X": 1}},
        "budget-only": {"startup_timeout_sec": 60},
        "half": {"type": "stdio", "command": "c", "env": {"X": "\ud800"}},
        "good": NPX,
    }
    written = prepared("codex", list(tree), tree)
    assert set(servers(written)) == {"numbers", "good", SELF_SESSION}
    assert servers(written)["numbers"]["env"] == {"N": "1", "F": "1.5", "B": "true", "C": "false"}
    for name in set(tree) - {"numbers", "good"}:
        assert [warning for warning in written.warnings if f"'{name}'" in warning]
    read = loaded("codex", written)
    assert not read.run_killed
    assert len(read.servers) == 3


@pytest.mark.requirement("prepare-codex-entry-validated")
@pytest.mark.parametrize(
    ("name", "entry", "refused"),
    [
        ("a", {"command": "c", "url": "https://u"}, True),
        ("a", {"startup_timeout_sec": 60}, True),
        ("a", {"url": "https://u", "args": []}, True),
        ("a", {"command": "c", "http_headers": {}}, True),
        ("a", {"command": "c", "startup_timeout_sec": "20"}, True),
        ("a", {"command": "c", "startup_timeout_sec": True}, True),
        ("a", {"command": "c", "startup_timeout_sec": -1}, True),
        ("a", {"command": "c", "startup_timeout_sec": 1.5}, False),
        ("a", {"command": "c", "startup_timeout_sec": 0}, False),
        ("a", {"command": "c", "startup_timeout_sec": float("inf")}, True),
        ("a", {"command": "c", "startup_timeout_ms": 1500}, False),
        ("a", {"command": "c", "startup_timeout_ms": 1.5}, True),
        ("a", {"command": "c", "default_tools_approval_mode": "writes"}, False),
        ("a", {"command": "c", "default_tools_approval_mode": "always"}, True),
        ("a", {"command": "c", "tools": {"t": {"approval_mode": "approve"}, "u": {}}}, False),
        ("a", {"command": "c", "tools": {"t": {"approval_mode": "always"}}}, True),
        ("a", {"command": "c", "env_vars": ["A", {"name": "B"}, {"name": "C", "source": "remote"}]}, False),
        ("a", {"command": "c", "env_vars": [{"name": "A", "source": "vault"}]}, True),
        ("a", {"command": 5}, True),
        ("a", {"command": "c", "args": "x"}, True),
        ("a", {"command": "c", "env": "x"}, True),
        ("a", {"command": "c", "enabled": "yes"}, True),
        ("a", {"command": "c", "enabled": False}, False),
        ("a", {"command": "c", "unknown": {"k": [1, None]}}, True),
        ("a", {"command": "c", "unknown": {"k": [1, "x"]}}, False),
        ("a", {"command": "\udfff"}, True),
        ("a b", {"command": "c"}, True),
        ("", {"command": "c"}, True),
        ("A_z-9", {"command": "c", "unknown": 1}, False),
    ],
)
def test_a_table_is_refused_where_codex_would_refuse_it(name, entry, refused):
    assert (codex_tables.refusal(name, entry) is not None) == refused


def test_a_repositorys_own_table_that_codex_refuses_stays_and_is_warned_about():
    text = "[mcp_servers.mine]\nstartup_timeout_sec = 60\n"
    written = prepared("codex", ["a"], {"a": REMOTE}, files={".codex/config.toml": text})
    assert written.text is not None
    assert written.text.startswith(text)
    assert any("'mine'" in warning for warning in written.warnings)


@pytest.mark.requirement("prepare-claude-reserved-names")
def test_names_that_claude_keeps_for_itself_are_warned_about_and_still_written():
    written = prepared("claude", ["workspace"], {"workspace": NPX})
    assert "workspace" in servers(written)
    assert any("'workspace'" in warning for warning in written.warnings)


@pytest.mark.requirement("prepare-duplicate-json-keys")
def test_duplicate_keys_are_reported():
    text = '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}, "mcpServers": {}}'
    written = prepared("claude", [], {}, files={".mcp.json": text})
    assert any("`a`" in warning for warning in written.warnings)
    assert any("`mcpServers`" in warning for warning in written.warnings)
    assert len(written.warnings) == 2
    single = '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}'
    assert prepared("claude", [], {}, files={".mcp.json": single}).warnings == ()


@pytest.mark.requirement("prepare-empty-servers-key")
@pytest.mark.parametrize("runtime", ["claude", "pi"])
def test_a_file_without_servers_still_has_the_key(runtime):
    request = PrepareRequest(runtime, CLONE, read_catalog({}), PRODUCTION, lambda _: None)
    written = write_document(open_document(request), {}, set(), request)
    assert written.write.text == '{\n  "mcpServers": {}\n}\n'
    assert runtimes.read(load_profile(PINNED[runtime]), written.write.text, {}).problems == ()


@pytest.mark.requirement("npx-cache-pinned-per-entry", "npx-pin-not-inherited", "npx-isolate-all-runtimes")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_npx_entry_carries_its_own_cache_and_twins_are_parted(runtime):
    tree = {
        "twin-a": NPX,
        "twin-b": NPX,
        "solo": {**NPX, "args": ["other"]},
        "shell": {**NPX, "command": "/usr/bin/npx"},
    }
    entries = servers(prepared(runtime, list(tree), tree))
    assert entries["solo"].get("env") == {"NPM_CONFIG_CACHE": CACHE}
    assert entries["twin-a"].get("env") == {"NPM_CONFIG_CACHE": f"{CACHE}/isolated/twin-a"}
    assert entries["twin-b"].get("env") == {"NPM_CONFIG_CACHE": f"{CACHE}/isolated/twin-b"}
    assert "NPM_CONFIG_CACHE" not in entries["shell"].get("env", {})
    assert "env" not in entries[SELF_SESSION]


@pytest.mark.requirement("npx-isolate-stable-across-prepare")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_isolated_cache_stays_when_its_twin_goes(runtime):
    tree = {"twin-a": NPX, "twin-b": NPX}
    both = prepared(runtime, list(tree), tree)
    assert again(runtime, list(tree), tree, both).text == both.text
    alone = servers(again(runtime, ["twin-a"], tree, both))
    assert set(alone) == {"twin-a", SELF_SESSION}
    assert alone["twin-a"].get("env", {}).get("NPM_CONFIG_CACHE") == f"{CACHE}/isolated/twin-a"


@pytest.mark.requirement("npx-pin-operator-value-kept", "npx-pin-scope-exact")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_earlier_cache_gives_way_to_the_catalogs_own_and_goes_with_npx(runtime):
    first = prepared(runtime, ["a"], {"a": NPX})
    own = {**NPX, "env": {"NPM_CONFIG_CACHE": "/operators/choice"}}
    assert servers(again(runtime, ["a"], {"a": own}, first))["a"]["env"] == {"NPM_CONFIG_CACHE": "/operators/choice"}
    assert "NPM_CONFIG_CACHE" not in servers(again(runtime, ["a"], {"a": LOCAL_BINARY}, first))["a"].get("env", {})


@pytest.mark.requirement("prepare-env-not-a-table-skipped")
@pytest.mark.parametrize("runtime", ["claude", "pi"])
def test_an_env_that_is_no_table_is_left_alone(runtime):
    text = json.dumps({"mcpServers": {"odd": {"command": "npx", "env": "x"}, "junk": "not-a-table"}})
    entries = servers(
        prepared(runtime, ["a"], {"a": NPX}, files={".mcp.json": text}, elicitation={"ELICITATION_TTL_MS": "1"})
    )
    assert entries["odd"]["env"] == "x"
    assert entries["junk"] == "not-a-table"
    assert entries["a"]["env"]["NPM_CONFIG_CACHE"] == CACHE


@pytest.mark.requirement("prepare-elicitation-env")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_elicitation_variables_are_merged_into_stdio_entries_only(runtime):
    tree = {"a": {**LOCAL_BINARY, "env": {"KEY": "k", "ELICITATION_TTL_MS": "5"}}, "r": REMOTE}
    given = {"ELICITATION_TTL_MS": "3600000", "ELICITATION_SESSION_ID": "s1"}
    entries = servers(prepared(runtime, ["a", "r"], tree, elicitation=given, dotenv={"ELICITATION_SESSION_ID": "own"}))
    assert entries["a"]["env"] == {"KEY": "k", "ELICITATION_TTL_MS": "3600000", "ELICITATION_SESSION_ID": "own"}
    assert "env" not in entries["r"]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_is_nested_beyond_walking_is_a_typed_error(runtime):
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(TooDeepError):
        prepared(runtime, ["a"], {"a": {**NPX, "args": deep}})
