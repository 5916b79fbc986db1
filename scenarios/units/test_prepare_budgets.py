"""Startup budgets as they are written: the default, declarations, and values that are already there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fake_runtimes.budgets import Attempt
from fake_runtimes.profile import load_profile
from fake_runtimes.runtimes import attempt, start_budget
from harness.preparation import RUNTIMES
from harness.reference.catalog import startup_timeout
from harness.reference.catalog.catalog import read_catalog
from harness.reference.prepare.spawn import claude_spawn, codex_spawn, pi_spawn
from scenarios.preparing import (
    CLONE,
    FILES,
    LOCAL_BINARY,
    NPX,
    PINNED,
    REMOTE,
    SELF_SESSION,
    again,
    document,
    goes_through,
    loaded,
    prepared,
    servers,
)

KEYS = {"codex": "startup_timeout_sec", "pi": "requestTimeoutMs"}
UNIT = {"codex": 1, "pi": 1000}


def declaring(entry: dict[str, Any], seconds: object) -> dict[str, Any]:
    return {"a": {**entry, "startup_timeout_sec": seconds}}


def budget(runtime: Any, tree: dict[str, Any], **more: Any) -> Any:
    return servers(prepared(runtime, ["a"], tree, **more))["a"].get(KEYS[runtime])


def mcp_timeout(tree: dict[str, Any], names: tuple[str, ...] = ("a",), mcp_json: str | None = None) -> str | None:
    text = prepared("claude", list(names), tree).text if mcp_json is None else mcp_json
    return claude_spawn({}, {}, CLONE, read_catalog(tree), mcp_json=text, has_mcp=True).variables.get("MCP_TIMEOUT")


@pytest.mark.requirement(
    "prepare-budget-default-180", "prepare-codex-default-stdio", "prepare-pi-default-stdio", "prepare-budget-units"
)
@pytest.mark.parametrize("entry", [NPX, LOCAL_BINARY])
def test_every_stdio_server_gets_three_minutes_on_every_runtime(entry):
    assert mcp_timeout({"a": entry}) == "180000"
    assert budget("codex", {"a": entry}) == 180
    assert budget("pi", {"a": entry}) == 180_000


@pytest.mark.requirement("prepare-budget-single-constant")
def test_the_three_spellings_follow_one_constant(monkeypatch):
    monkeypatch.setattr(startup_timeout, "SECONDS", 200)
    assert mcp_timeout({"a": NPX}) == "200000"
    assert budget("codex", {"a": NPX}) == 200
    assert budget("pi", {"a": NPX}) == 200_000


@pytest.mark.requirement("prepare-budget-units", "prepare-codex-declared-both-ways")
@pytest.mark.parametrize("seconds", [5, 15, 300, 420, 600])
def test_a_declared_budget_has_each_runtimes_unit(seconds):
    tree = declaring(NPX, seconds)
    longer = max(seconds, 180)
    assert mcp_timeout(tree) == f"{longer}000"
    assert budget("codex", tree) == seconds
    assert budget("pi", tree) == longer * 1000
    profile = load_profile(PINNED["codex"])
    (server, _) = loaded("codex", prepared("codex", ["a"], tree)).servers
    assert start_budget(profile, server, {}).attempt_seconds == seconds


@pytest.mark.requirement(
    "prepare-budget-accepted-range", "startup-timeout-refusal-falls-to-default", "startup-timeout-refusal-not-fatal"
)
@pytest.mark.parametrize("value", [4, 601, 0, -30, "20", 60.0, 1.5, True, [60], {}, None])
def test_a_refused_budget_leaves_the_default_and_is_warned_about(value):
    tree = declaring(NPX, value)
    for runtime in RUNTIMES:
        assert set(servers(goes_through(runtime, ["a"], tree))) == {"a", SELF_SESSION}
        assert goes_through(runtime, ["a"], tree).text == prepared(runtime, ["a"], {"a": NPX}).text
    assert [budget(runtime, tree) for runtime in KEYS] == [180, 180_000]
    assert mcp_timeout(tree) == "180000"
    assert len(read_catalog(tree).warnings) == (0 if value is None else 1)


@pytest.mark.requirement("prepare-codex-default-not-http", "prepare-pi-default-not-http")
@pytest.mark.parametrize("runtime", KEYS)
def test_a_remote_entry_gets_no_default(runtime):
    entries = servers(prepared(runtime, ["a"], {"a": REMOTE}))
    assert KEYS[runtime] not in entries["a"]
    assert KEYS[runtime] not in entries[SELF_SESSION]


@pytest.mark.requirement(
    "prepare-codex-declared-on-remote", "prepare-pi-declared-long-on-remote", "prepare-pi-only-lengthens"
)
@pytest.mark.parametrize(("seconds", "codex", "pi"), [(300, 300, 300_000), (20, 20, None), (180, 180, None)])
def test_a_declared_budget_reaches_remote_entries(seconds, codex, pi):
    assert budget("codex", declaring(REMOTE, seconds)) == codex
    assert budget("pi", declaring(REMOTE, seconds)) == pi


@pytest.mark.requirement("prepare-pi-only-lengthens")
@pytest.mark.parametrize(("seconds", "expected"), [(15, 180_000), (180, 180_000), (181, 181_000), (420, 420_000)])
def test_pi_only_lengthens(seconds, expected):
    assert budget("pi", declaring(NPX, seconds)) == expected


@pytest.mark.requirement("prepare-codex-tool-timeout-untouched")
@pytest.mark.parametrize("declared", [None, 20])
def test_codex_tool_timeout_is_another_budget(declared):
    text = '[mcp_servers.a]\ncommand = "npx"\ntool_timeout_sec = 45\n'
    entry = servers(prepared("codex", ["a"], declaring(NPX, declared), files={FILES["codex"]: text}))["a"]
    assert entry["tool_timeout_sec"] == 45
    assert "tool_timeout_sec" not in servers(prepared("codex", ["a"], declaring(NPX, declared)))["a"]


def attempts(runtime: Any, tree: dict[str, Any], seconds: dict[str, float | None]) -> dict[str, Attempt]:
    """How the pinned runtime's start of each prepared server ends that answers after so many seconds, or never."""
    written = prepared(runtime, list(tree), tree)
    spawned = claude_spawn({}, {}, CLONE, read_catalog(tree), mcp_json=written.text, has_mcp=True).variables
    environment = spawned if runtime == "claude" else {}
    profile = load_profile(PINNED[runtime])
    found = {server.name: server for server in loaded(runtime, written).servers}
    return {name: attempt(profile, found[name], environment, after) for name, after in seconds.items()}


@pytest.mark.requirement("startup-timeout-default-hang-held", "npx-cold-clone-fits-budget")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_server_that_declares_nothing_has_three_minutes_on_the_prepared_runtime(runtime):
    tree = {"hangs": NPX, "late": LOCAL_BINARY, "cold": {**NPX, "args": ["-y", "other-package"]}}
    ended = attempts(runtime, tree, {"hangs": None, "late": 179.0, "cold": 65.0})
    assert ended == {"hangs": ("timed_out", 180.0), "late": ("connected", 179.0), "cold": ("connected", 65.0)}


@pytest.mark.requirement("startup-timeout-codex-fast-beside-slow", "startup-timeout-codex-startup-scoped")
def test_a_fast_server_fails_fast_beside_a_slow_one_on_a_prepared_codex():
    tree = {"first": {**NPX, "startup_timeout_sec": 20}, "second": {**LOCAL_BINARY, "startup_timeout_sec": 300}}
    ended = attempts("codex", tree, {"first": None, "second": 250.0})
    assert ended == {"first": ("timed_out", 20.0), "second": ("connected", 250.0)}


LOCAL_VALUES = [
    ("codex", '[mcp_servers.a]\ncommand = "m"\nstartup_timeout_sec = 12\n', "startup_timeout_sec", 12),
    ("codex", '[mcp_servers.a]\ncommand = "m"\nstartup_timeout_sec = 500\n', "startup_timeout_sec", 500),
    ("codex", '[mcp_servers.a]\ncommand = "m"\nstartup_timeout_ms = 9000\n', "startup_timeout_ms", 9000),
    ("pi", '{"mcpServers": {"a": {"command": "m", "requestTimeoutMs": 9000}}}', "requestTimeoutMs", 9000),
    ("pi", '{"mcpServers": {"a": {"command": "m", "requestTimeoutMs": 0}}}', "requestTimeoutMs", 0),
]


@pytest.mark.requirement(
    "prepare-codex-local-sec-wins",
    "prepare-codex-local-ms-wins",
    "prepare-pi-local-value-wins",
    "startup-timeout-local-value-wins",
)
@pytest.mark.parametrize(("runtime", "text", "key", "value"), LOCAL_VALUES)
@pytest.mark.parametrize("declared", [None, 30, 420])
def test_a_budget_the_repository_wrote_beats_the_catalogs(runtime, text, key, value, declared):
    entry = servers(prepared(runtime, ["a"], declaring(NPX, declared), files={FILES[runtime]: text}))["a"]
    budgets = {
        name: entry[name] for name in ("startup_timeout_sec", "startup_timeout_ms", "requestTimeoutMs") if name in entry
    }
    assert budgets == {key: value}


@pytest.mark.requirement("prepare-pi-no-global-setting")
@pytest.mark.parametrize("settings", [None, {"requestTimeoutMs": 5}])
def test_pis_global_budget_is_never_written_and_an_existing_one_survives(settings):
    files = {} if settings is None else {".mcp.json": json.dumps({"settings": settings, "mcpServers": {}})}
    assert document(prepared("pi", ["a"], declaring(NPX, 420), files=files)).get("settings") == settings


@pytest.mark.requirement(
    "prepare-own-earlier-value-sticks", "startup-timeout-earlier-prepare-wins", "startup-timeout-regenerated-picks-new"
)
@pytest.mark.parametrize(
    ("runtime", "first", "second", "kept", "regenerated"),
    [
        ("codex", None, 300, 180, 300),
        ("codex", 20, 60, 20, 60),
        ("pi", None, 300, 180_000, 300_000),
        ("pi", 300, 400, 300_000, 400_000),
    ],
)
@pytest.mark.parametrize("remembers", [True, False])
def test_an_earlier_budget_sticks_until_the_file_is_made_anew(runtime, first, second, kept, regenerated, remembers):
    before = prepared(runtime, ["a"], declaring(NPX, first))
    more = {} if remembers else {"earlier": None}
    in_place = again(runtime, ["a"], declaring(NPX, second), before, **more)
    assert servers(in_place)["a"].get(KEYS[runtime]) == kept
    assert budget(runtime, declaring(NPX, second)) == regenerated


@pytest.mark.requirement(
    "startup-timeout-stdio-default-only", "prepare-codex-default-not-http", "prepare-pi-default-not-http"
)
@pytest.mark.parametrize("runtime", KEYS)
def test_an_entry_that_became_a_remote_one_does_not_inherit_the_default_of_its_command(runtime):
    as_stdio = prepared(runtime, ["a"], {"a": NPX})
    as_remote = again(runtime, ["a"], {"a": REMOTE}, as_stdio)
    assert KEYS[runtime] not in servers(as_remote)["a"]
    assert servers(again(runtime, ["a"], {"a": NPX}, as_remote))["a"][KEYS[runtime]] == 180 * UNIT[runtime]


@pytest.mark.requirement("prepare-own-earlier-value-sticks")
def test_claude_picks_up_a_new_budget_at_the_next_spawn():
    text = prepared("claude", ["a"], {"a": NPX}).text
    assert mcp_timeout({"a": NPX}, mcp_json=text) == "180000"
    assert mcp_timeout(declaring(NPX, 300), mcp_json=text) == "300000"


@pytest.mark.requirement("prepare-non-table-entry-skipped")
def test_a_junk_entry_is_skipped_and_its_neighbours_get_their_budget():
    text = '{"mcpServers": {"junk": "not-a-table", "mine": {"command": "m"}}}'
    entries = servers(prepared("pi", ["a"], {"a": NPX}, files={".mcp.json": text}))
    assert entries["junk"] == "not-a-table"
    assert entries["mine"].get("requestTimeoutMs") == 180_000
    assert entries["a"].get("requestTimeoutMs") == 180_000


@pytest.mark.requirement("prepare-baseline-path-budgets")
@pytest.mark.parametrize("runtime", KEYS)
def test_the_baseline_path_writes_budgets_too(runtime):
    text = '[mcp_servers.a]\ncommand = "m"\n' if runtime == "codex" else '{"mcpServers": {"a": {"command": "m"}}}'
    tree = declaring(NPX, 420)
    written = prepared(runtime, [], tree, files={FILES[runtime]: text})
    assert written.air is None
    assert servers(written)["a"].get(KEYS[runtime]) == 420 * UNIT[runtime]


@pytest.mark.requirement("prepare-claude-no-entry-timeout-key")
@pytest.mark.parametrize("seconds", [None, 20, 420])
def test_claudes_entry_has_no_budget_of_its_own(seconds):
    written = prepared("claude", ["a"], declaring(NPX, seconds))
    entry = servers(written)["a"]
    assert not {"startupTimeoutSec", "startup_timeout_sec", "timeout", "requestTimeoutMs"} & set(entry)
    (server, _) = loaded("claude", written).servers
    profile = load_profile(PINNED["claude"])
    assert start_budget(profile, server, {"MCP_TIMEOUT": "60000"}).attempt_seconds == 60


@pytest.mark.requirement("prepare-claude-timeout-env", "prepare-spawn-claude-mcp-env", "prepare-spawn-codex-no-mcp-env")
def test_the_budget_is_in_claudes_process_and_only_with_servers():
    catalog = read_catalog({"a": NPX})
    text = prepared("claude", ["a"], {"a": NPX}).text
    with_servers = claude_spawn({}, {}, CLONE, catalog, mcp_json=text, has_mcp=True)
    assert with_servers.variables.get("MCP_TIMEOUT") == "180000"
    assert with_servers.variables.get("NPM_CONFIG_CACHE") == f"{CLONE}/.npm-cache"
    assert with_servers.directories == (f"{CLONE}/.npm-cache",)
    assert with_servers.runs_bin_guard
    without = claude_spawn({}, {}, CLONE, catalog, mcp_json=text, has_mcp=False)
    others = (without, codex_spawn({}, {}, "/home/u"), pi_spawn({}, {}))
    for spawn in others:
        assert not {"MCP_TIMEOUT", "NPM_CONFIG_CACHE"} & set(spawn.variables)
        assert (spawn.directories, spawn.runs_bin_guard) == ((), False)
    for runtime in RUNTIMES:
        assert "MCP_TIMEOUT" not in servers(prepared(runtime, ["a"], {"a": NPX}))["a"]["env"]


@pytest.mark.requirement("prepare-claude-timeout-max")
@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ([], "180000"),
        ([15], "180000"),
        ([300], "300000"),
        ([15, 300, None], "300000"),
        ([300, 15], "300000"),
        ([601], "180000"),
    ],
)
def test_the_server_that_asks_for_most_decides_for_claude(declared, expected):
    tree = {f"s{index}": {**NPX, "startup_timeout_sec": seconds} for index, seconds in enumerate(declared)}
    assert mcp_timeout(tree, tuple(tree)) == expected


@pytest.mark.requirement("prepare-claude-timeout-covers-injected")
def test_the_names_in_the_clones_file_count_and_an_unreadable_one_gives_the_default():
    tree = {"slow": {**NPX, "startup_timeout_sec": 300}}
    assert mcp_timeout(tree, mcp_json='{"mcpServers": {"slow": {}, "unknown": {}}}') == "300000"
    assert mcp_timeout(tree, mcp_json="not json") == "180000"
    of_a_plugin = prepared("claude", [], tree, plugin_servers=["slow"]).text
    assert mcp_timeout(tree, mcp_json=of_a_plugin) == "300000"
    absent = claude_spawn({}, {}, CLONE, read_catalog(tree), mcp_json=None, has_mcp=True)
    assert absent.variables.get("MCP_TIMEOUT") == "180000"


@pytest.mark.requirement("prepare-claude-timeout-beats-dotenv")
def test_the_clones_dotenv_does_not_shorten_claudes_budget():
    dotenv = {"MCP_TIMEOUT": "1000", "NPM_CONFIG_CACHE": "/elsewhere", "OTHER": "o"}
    spawn = claude_spawn({}, dotenv, CLONE, read_catalog({}), mcp_json=None, has_mcp=True)
    assert spawn.variables.get("MCP_TIMEOUT") == "180000"
    assert spawn.variables.get("NPM_CONFIG_CACHE") == f"{CLONE}/.npm-cache"
    assert spawn.variables["OTHER"] == "o"
