"""The catalog that ships with the project."""

from __future__ import annotations

import pytest

from harness.reference.catalog.catalog import read_catalog
from harness.reference.catalog.roots import default_mcp_servers, read_roots
from harness.reference.catalog.schema import validate
from harness.reference.prepare.budgets import claude_mcp_timeout, codex_table
from harness.reference.readiness.probe import judge_all
from harness.reference.readiness.states import State
from harness.reference.secrets.loader import SecretsLoader
from harness.reference.surfaces.options import mcp_servers_answer, options
from harness.reference.surfaces.roster import mcp_section
from scenarios.shipped import shipped_catalog, shipped_roots

ZIMMER = (
    "zimmer",
    "zimmer-sessions",
    "zimmer-fleet",
    "zimmer-self-session",
    "zimmer-gate-decisions",
    "zimmer-work-backlog",
)
USABLE = ("playwright-custom", "context7", "linear", "remote-fs-screenshots", "image-diff", "svg-tracer")
OTHERS = ("slack-workspace", "figma", "notion", "secrets-service-account")


@pytest.mark.requirement("catalog-sixteen-count")
def test_sixteen_servers_ship():
    names = read_catalog(shipped_catalog()).names
    assert len(names) == 16
    assert set(names) == {*USABLE, *ZIMMER, *OTHERS}


@pytest.mark.requirement("catalog-sixteen-one-default-on")
def test_one_server_is_on_by_default_and_for_one_root():
    catalog, roots = read_catalog(shipped_catalog()), read_roots(shipped_roots())
    on = {name: entry.default_in_roots for name, entry in catalog.entries.items() if entry.default_in_roots}
    assert on == {"playwright-custom": ("zimmer",)}
    assert {root: default_mcp_servers(root, catalog, roots) for root in roots} == {
        "zimmer": ("playwright-custom",),
        "general-agent": (),
    }


@pytest.mark.requirement("catalog-sixteen-playwright-entry")
def test_the_playwright_entry_is_the_documented_one():
    entry = read_catalog(shipped_catalog()).require("playwright-custom")
    assert (entry.type, entry.command, entry.args) == (
        "stdio",
        "npx",
        ("-y", "playwright-stealth-mcp-server@latest"),
    )
    assert entry.env == {"STEALTH_MODE": "false", "HEADLESS": "true"}
    assert (entry.title, entry.default_in_roots) == ("Playwright Custom", ("zimmer",))


@pytest.mark.requirement("catalog-sixteen-no-budget")
def test_no_shipped_entry_declares_a_budget():
    catalog = read_catalog(shipped_catalog())
    offered = mcp_servers_answer(options(catalog, ()))["mcp_servers"]
    assert [server["startup_timeout_sec"] for server in offered] == [None] * 16
    for entry in catalog.entries.values():
        assert "startup_timeout_sec" not in entry.raw
        if entry.stdio:
            table = codex_table({"command": entry.command}, entry.startup_timeout_sec)
            assert table["startup_timeout_sec"] == 180
    everything = '{"mcpServers": {' + ", ".join(f'"{name}": {{}}' for name in catalog.names) + "}}"
    assert claude_mcp_timeout(everything, catalog) == "180000"


@pytest.mark.requirement("catalog-sixteen-npx-bare")
def test_every_shipped_stdio_server_is_started_by_bare_npx():
    entries = read_catalog(shipped_catalog()).entries.values()
    assert [entry.command for entry in entries if entry.stdio] == ["npx"] * 7


@pytest.mark.requirement("catalog-sixteen-valid")
def test_the_shipped_catalog_is_valid():
    assert validate(shipped_catalog()) == ()


@pytest.mark.requirement("catalog-sixteen-readiness-no-secrets")
def test_without_any_secret_six_of_the_sixteen_can_start():
    catalog = read_catalog(shipped_catalog())
    statuses = judge_all(catalog, SecretsLoader().resolution, lambda _: None)
    by_state = {
        state: {status.name for status in statuses if status.state is state}
        for state in {status.state for status in statuses}
    }
    assert by_state == {
        State.NO_CREDENTIAL_REQUIRED: set(USABLE),
        State.MISSING_CONFIGURATION: {*ZIMMER, "slack-workspace", "secrets-service-account"},
        State.NEEDS_AUTHORIZATION: {"figma", "notion"},
    }
    missing = {status.name: status.missing_variables for status in statuses if status.missing_variables}
    assert missing == {
        **dict.fromkeys(ZIMMER, ("ZIMMER_PROD_API_KEY",)),
        "slack-workspace": ("SLACK_BOT_TOKEN",),
        "secrets-service-account": ("STRAD_API_KEY",),
    }
    header = "Found 6 usable servers (of 16 in the catalog; the other 10 are unavailable, listed below):"
    assert header in mcp_section(catalog, statuses).splitlines()
