"""Which servers stand in the written file: selected, bundled, injected, and where Zimmer's own point."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from harness.preparation import RUNTIMES, air_input, written_config
from harness.reference.catalog.catalog import read_catalog
from harness.reference.catalog.readers import CatalogError, read_servers
from harness.reference.prepare.argv import prepare_argv
from harness.reference.prepare.pipeline import prepare
from harness.reference.prepare.request import PrepareRequest, Record
from harness.reference.selection.session import (
    Session,
    all_mcp_servers,
    backfill,
    custom_metadata,
    lost_servers,
    record_injected,
    session_json,
)
from harness.reference.selection.zimmer import Instance
from scenarios.preparing import (
    CLONE,
    FILES,
    NPX,
    PRODUCTION,
    REMOTE,
    SELF_SESSION,
    STAGING,
    again,
    goes_through,
    prepared,
    servers,
)

ZIMMER = {
    "type": "streamable-http",
    "url": "https://zimmer.example.com/mcp?tool_groups=sessions",
    "headers": {"X-API-Key": "${ZIMMER_PROD_API_KEY}"},
}


def key_of(entry: dict[str, Any]) -> Any:
    return entry.get("headers", entry.get("http_headers", {})).get("X-API-Key")


@pytest.mark.requirement(
    "prepare-inject-self-session", "selection-injected-transport", "prepare-injected-are-synthesized"
)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_session_gets_the_self_session_server(runtime):
    written = prepared(runtime, ["playwright-custom"], {"playwright-custom": NPX})
    assert written.prepared.injected == (SELF_SESSION,)
    url = "https://zimmer.example.com/mcp?tool_groups=self_session"
    expected = {"url": url, "http_headers": {"X-API-Key": "production-key"}}
    if runtime != "codex":
        expected = {"type": "http", "url": url, "headers": {"X-API-Key": "production-key"}}
    assert servers(written)[SELF_SESSION] == expected


@pytest.mark.requirement("prepare-injected-are-synthesized", "selection-injected-synthesised")
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("roots", [[], ["docs"]])
def test_a_catalog_that_cannot_be_read_costs_no_injected_server(runtime, roots):
    def failing() -> dict[str, Any]:
        raise CatalogError("air exited with 1")

    degraded = read_servers(failing).catalog
    request = PrepareRequest(runtime, CLONE, degraded, PRODUCTION, lambda _: None, default_subagent_roots=tuple(roots))
    written = prepare(request)
    assert written.injected == (("zimmer",) if roots else (SELF_SESSION,))
    assert set(written.servers) == set(written.injected)
    assert len(written.writes) == 1


@pytest.mark.requirement("prepare-inject-self-session-covered")
@pytest.mark.parametrize(
    ("name", "entry", "injects"),
    [
        ("zimmer-sessions", {**REMOTE, "url": "https://z/mcp?tool_groups=sessions"}, True),
        ("zimmer-full", {**REMOTE, "url": "https://z/mcp?tool_groups=sessions,self_session"}, False),
        ("zimmer-spaced", {**REMOTE, "url": "https://z/mcp?tool_groups=sessions,%20self_session"}, False),
        ("zimmer", {**REMOTE, "url": "https://z/mcp"}, False),
        ("zimmerman", {**REMOTE, "url": "https://z/mcp"}, True),
        ("zimmer-legacy", NPX, True),
    ],
)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_entry_that_carries_the_tools_covers_the_self_session(runtime, name, entry, injects):
    written = prepared(runtime, [name], {name: entry})
    assert (SELF_SESSION in written.prepared.injected) == injects
    assert (SELF_SESSION in servers(written)) == injects


@pytest.mark.requirement("prepare-inject-self-session-covered", "selection-injected-synthesised")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_catalogs_copy_of_the_self_session_server_is_replaced(runtime):
    copy = {**REMOTE, "url": "https://elsewhere.test/mcp"}
    written = prepared(runtime, [SELF_SESSION], {SELF_SESSION: copy})
    assert written.prepared.injected == (SELF_SESSION,)
    assert servers(written)[SELF_SESSION]["url"].startswith("https://zimmer.example.com/mcp?")


@pytest.mark.requirement("prepare-inject-subagent-server")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_root_with_subagent_roots_gets_a_server_limited_to_them(runtime):
    written = prepared(runtime, ["a"], {"a": NPX}, default_subagent_roots=["a", "b"])
    assert written.prepared.injected == ("zimmer",)
    assert servers(written)["zimmer"]["url"] == "https://zimmer.example.com/mcp?allowed_agent_roots=a%2Cb"
    assert SELF_SESSION not in servers(written)
    full = {"zimmer": {**REMOTE, "url": "https://zimmer.example.com/mcp"}}
    kept = prepared(runtime, ["zimmer"], full, default_subagent_roots=["a", "b"])
    assert kept.prepared.injected == ()
    assert servers(kept)["zimmer"]["url"] == "https://zimmer.example.com/mcp"


@pytest.mark.requirement("prepare-injected-recorded")
def test_injected_names_are_recorded_beside_the_chosen_ones():
    session = Session(chosen=("playwright-custom",))
    assert all_mcp_servers(session) == ("playwright-custom",)
    written = prepared("claude", list(session.chosen), {"playwright-custom": NPX})
    after = record_injected(session, written.prepared.injected)
    assert session_json(after) == {
        "mcp_servers": ["playwright-custom"],
        "injected_mcp_servers": [SELF_SESSION],
        "all_mcp_servers": ["playwright-custom", SELF_SESSION],
    }
    assert set(servers(written)) == set(all_mcp_servers(after))
    assert custom_metadata(after) == {"injected_mcp_servers": [SELF_SESSION]}
    covering = {"zimmer": {**REMOTE, "url": "https://zimmer.example.com/mcp"}}
    covered = record_injected(after, prepared("claude", ["zimmer"], covering).prepared.injected)
    assert (custom_metadata(session), custom_metadata(covered)) == ({}, {})


@pytest.mark.requirement("prepare-retarget-zimmer", "secrets-retargeted-key-not-required")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_zimmer_entries_point_at_the_instance_that_prepares(runtime):
    tree = {"zimmer-sessions": ZIMMER, "zimmerman": {**REMOTE, "url": "https://zimmer.example.com/mcp"}}
    entries = servers(goes_through(runtime, list(tree), tree, instance=STAGING))
    assert entries["zimmer-sessions"]["url"] == "https://staging.zimmer.example.com/mcp?tool_groups=sessions"
    assert key_of(entries["zimmer-sessions"]) == "staging-key"
    assert entries["zimmerman"]["url"] == "https://zimmer.example.com/mcp"
    production = servers(prepared(runtime, list(tree), tree, {"ZIMMER_PROD_API_KEY": "k"}))
    assert production["zimmer-sessions"]["url"] == ZIMMER["url"]
    assert key_of(production["zimmer-sessions"]) == "k"


@pytest.mark.requirement("prepare-retarget-drops-forwarded-key")
@pytest.mark.parametrize("headers", ["", 'http_headers = { "X-Other" = "o" }\n'])
def test_a_forwarded_production_key_does_not_come_back_on_codex(headers):
    text = (
        '[mcp_servers.zimmer-mine]\nurl = "https://zimmer.example.com/mcp?tool_groups=sessions"\n'
        f'{headers}env_http_headers = {{ "X-API-Key" = "ZIMMER_PROD_API_KEY" }}\n'
    )
    entry = servers(prepared("codex", [], {}, files={FILES["codex"]: text}, instance=STAGING))["zimmer-mine"]
    assert "env_http_headers" not in entry
    assert entry["http_headers"]["X-API-Key"] == "staging-key"


@pytest.mark.requirement("prepare-retarget-blank-key-warns", "selection-injected-no-secret-chain")
@pytest.mark.parametrize(
    ("environment", "variable"), [("test", "ZIMMER_LOCAL_API_KEY"), ("staging", "ZIMMER_STAGING_API_KEY")]
)
def test_a_blank_instance_key_is_written_and_warned_about(environment, variable):
    written = prepared("claude", [], {}, instance=Instance(environment, "http://localhost:3000", " "))
    said = "\n".join(written.warnings)
    assert said.count("blank API key") == 1
    assert variable in said
    assert SELF_SESSION in servers(written)
    assert prepared("claude", [], {}).warnings == ()


@pytest.mark.requirement("prepare-retarget-blank-key-warns")
def test_the_warning_about_a_blank_key_names_the_entries_that_get_it():
    tree = {
        "zimmer-x": {**REMOTE, "url": "https://zimmer.example.com/mcp?tool_groups=sessions"},
        "zimmer-local": NPX,
        "figma": REMOTE,
    }
    staging = prepared("claude", list(tree), tree, instance=STAGING._replace(api_key="")).warnings
    production = prepared("claude", list(tree), tree, instance=PRODUCTION._replace(api_key="")).warnings
    assert [line.partition(" with ")[0] for line in staging] == [f"Writing zimmer-x, {SELF_SESSION}"]
    assert [line.partition(" with ")[0] for line in production] == [f"Writing {SELF_SESSION}"]
    covering = {"zimmer": {**REMOTE, "url": "https://zimmer.example.com/mcp"}}
    assert prepared("claude", ["zimmer"], covering, instance=PRODUCTION._replace(api_key="")).warnings == ()


@pytest.mark.requirement("selection-injected-no-secret-chain")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_injected_entry_asks_no_secret(runtime):
    def no_secrets(name):
        raise AssertionError(f"asked for {name}")

    odd = Instance("production", "https://zimmer.example.com", "${ZIMMER_PROD_API_KEY}")
    entry = servers(prepared(runtime, [], {}, no_secrets, instance=odd))[SELF_SESSION]
    assert key_of(entry) == "${ZIMMER_PROD_API_KEY}"


@pytest.mark.requirement("selection-staging-never-production")
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("instance", [STAGING, Instance("development", "http://localhost:3000", "local-key")])
def test_no_production_address_or_key_is_written_by_another_instance(runtime, instance):
    tree = {"zimmer": ZIMMER, "zimmer-fleet": {**ZIMMER, "headers": {"x-api-key": "production-key"}}}
    table = "http_headers" if runtime == "codex" else "headers"
    local = {"url": "https://zimmer.example.com/mcp", table: {"X-API-Key": "production-key"}}
    text = (
        '[mcp_servers.zimmer-local]\nurl = "https://zimmer.example.com/mcp"\n'
        'http_headers = { "X-API-Key" = "production-key" }\n'
        if runtime == "codex"
        else json.dumps({"mcpServers": {"zimmer-local": {"type": "http", **local}}})
    )
    written = prepared(
        runtime,
        ["zimmer", "zimmer-fleet"],
        tree,
        {"ZIMMER_PROD_API_KEY": "production-key"},
        files={FILES[runtime]: text},
        instance=instance,
        default_subagent_roots=["r"],
    )
    assert written.text is not None
    assert "//zimmer.example.com" not in written.text
    assert "production-key" not in written.text


@pytest.mark.requirement("secrets-retargeted-key-not-required", "prepare-step-order")
def test_air_sees_the_retargeted_entry():
    session = PrepareRequest(
        "claude", CLONE, read_catalog({"zimmer": ZIMMER}), STAGING, lambda _: None, chosen=("zimmer",)
    )
    assert air_input(session)["zimmer"]["headers"] == {"X-API-Key": "staging-key"}


STEPS = [
    "read",
    "inject_subagent_server",
    "inject_self_session",
    "retarget",
    "elicitation",
    "resolve_secrets",
    "pin_npx_caches",
    "startup_budgets",
    "write",
]


@pytest.mark.requirement("prepare-step-order")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_steps_run_in_their_order(runtime):
    steps = list(prepared(runtime, ["a"], {"a": NPX}).prepared.steps)
    assert steps == ([STEPS[0], "seed", *STEPS[1:]] if runtime == "pi" else STEPS)


@pytest.mark.requirement("npx-pin-after-secrets", "prepare-step-order")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_clone_path_is_not_scanned_for_placeholders(runtime):
    written = goes_through(runtime, ["a"], {"a": NPX}, clone="/clones/${X}")
    assert servers(written)["a"]["env"]["NPM_CONFIG_CACHE"] == "/clones/${X}/.npm-cache"


@pytest.mark.requirement("prepare-argv-order")
def test_the_argument_list_of_air():
    argv = prepare_argv(
        "codex",
        "/c",
        chosen=["x"],
        plugin_servers=["x", "y"],
        root="r",
        skills=["s1", "s2"],
        hooks=["h"],
        plugins=["p"],
    )
    assert " ".join(argv) == (
        "prepare codex --target /c --no-subagent-merge --without-defaults --root r --skill s1 --skill s2 "
        "--mcp-server x --mcp-server y --hook h --plugin p"
    )


@pytest.mark.requirement("prepare-baseline-noop", "prepare-path-choice")
@pytest.mark.parametrize("runtime", ["claude", "pi"])
def test_nothing_selected_and_nothing_injected_leaves_the_file_alone(runtime):
    text = json.dumps({"mcpServers": {"zimmer": {**REMOTE, "headers": {"K": "${NOPE}"}}}})
    written = goes_through(runtime, [], {}, files={".mcp.json": text})
    assert (written.prepared.writes, written.prepared.injected, written.text) == ((), (), text)
    assert written.air is None
    assert "write" not in written.prepared.steps
    gone = goes_through(runtime, [], {}, files={".mcp.json": text}, earlier=Record(owned=("gone",)))
    assert gone.prepared.writes == ()


@pytest.mark.requirement("selection-staging-never-production", "prepare-retarget-zimmer")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_repositorys_own_entry_is_retargeted_though_the_session_selects_nothing(runtime):
    url = "https://zimmer.example.com/mcp"
    text = (
        f'[mcp_servers.zimmer]\nurl = "{url}"\n'
        if runtime == "codex"
        else json.dumps({"mcpServers": {"zimmer": {**REMOTE, "url": url}}})
    )
    moved = prepared(runtime, [], {}, files={FILES[runtime]: text}, instance=STAGING)
    assert servers(moved)["zimmer"]["url"] == "https://staging.zimmer.example.com/mcp"
    assert key_of(servers(moved)["zimmer"]) == "staging-key"
    assert again(runtime, [], {}, moved, instance=STAGING).prepared.writes == ()
    assert prepared(runtime, [], {}, files={FILES[runtime]: text}).prepared.writes == ()


@pytest.mark.requirement("prepare-path-choice")
def test_any_artifact_takes_the_full_path():
    text = json.dumps({"mcpServers": {"zimmer": REMOTE}})
    written = prepared("claude", [], {}, files={".mcp.json": text}, other_artifacts=True)
    assert written.air is not None
    assert len(written.prepared.writes) == 1


@pytest.mark.requirement("selection-removed-stays-removed")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_removed_server_stays_out_over_many_preparations(runtime):
    tree = {"a": NPX, "b": REMOTE}
    written = prepared(runtime, ["a", "b"], tree)
    for _ in range(5):
        written = again(runtime, ["b"], tree, written)
        assert set(servers(written)) == {"b", SELF_SESSION}
    written = again(runtime, [], tree, written)
    assert set(servers(written)) == {SELF_SESSION}


@pytest.mark.requirement("selection-plugin-readds")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_plugins_server_is_prepared_though_it_is_not_chosen(runtime):
    written = prepared(runtime, [], {"b": REMOTE}, plugin_servers=["b"])
    assert set(servers(written)) == {"b", SELF_SESSION}


@pytest.mark.requirement("unavailable-not-filtered-from-prepare", "prepare-degraded-still-written")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_declared_or_degraded_server_is_written_like_any_other(runtime):
    tree = {"a": {**NPX, "env": {"T": "${T}"}}, "declared": {**REMOTE, "unavailable": "broken"}}
    degraded = {"a": "Connection closed"}
    written = prepared(runtime, list(tree), tree, {"T": "tok"}, degraded=degraded)
    plain = prepared(runtime, list(tree), tree, {"T": "tok"})
    assert set(servers(written)) == {"a", "declared", SELF_SESSION}
    assert written.text == plain.text
    session = record_injected(Session(chosen=tuple(tree)), written.prepared.injected)
    assert all_mcp_servers(session) == ("a", "declared", SELF_SESSION)


@pytest.mark.requirement("prepare-lost-servers-warning")
def test_servers_that_were_there_and_are_not_carried_any_more_are_lost():
    written = prepared("claude", ["a"], {"a": NPX})
    statuses = {"a": {"status": "connected"}, "b": {"status": "connected"}, "c": {"status": "pending"}}
    statuses[SELF_SESSION] = {"status": "connected"}
    assert lost_servers(["a"], written.prepared.injected, statuses) == ("b",)
    assert lost_servers(["a"], written.prepared.injected, None) == ()


@pytest.mark.requirement("prepare-does-not-mutate-catalog", "catalog-readonly")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_two_sessions_share_no_tables_and_the_catalog_stays_as_it_was(runtime):
    tree = {"a": {**NPX, "env": {"T": "${T}"}}, "zimmer-x": ZIMMER}
    before = deepcopy(tree)
    first = written_config(runtime, list(tree), tree, values={"T": "1"}, clone="/clones/1", instance=STAGING)
    second = written_config(runtime, list(tree), tree, values={"T": "2"}, clone="/clones/2", instance=STAGING)
    assert tree == before
    assert servers(first)["a"]["env"] == {"T": "1", "NPM_CONFIG_CACHE": "/clones/1/.npm-cache"}
    assert servers(second)["a"]["env"] == {"T": "2", "NPM_CONFIG_CACHE": "/clones/2/.npm-cache"}


@pytest.mark.requirement("prepare-backfill-empty-selection")
def test_an_empty_list_that_nobody_meant_is_restored_before_the_write():
    tree = {"x": NPX}
    for session, expected in ((Session(), {"x"}), (Session(explicitly_empty=True), set())):
        chosen = list(backfill(session, ["x", "gone"], tree).chosen)
        assert set(servers(prepared("claude", chosen, tree))) == {*expected, SELF_SESSION}
