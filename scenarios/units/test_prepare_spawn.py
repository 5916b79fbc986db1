"""The environment of an agent process, and the clone's `.env`."""

from __future__ import annotations

from typing import Any

import pytest

from fake_runtimes.codex.child import child_environment
from fake_runtimes.profile import CodexProfile, load_profile
from harness.reference.catalog.catalog import read_catalog
from harness.reference.prepare.dotenv import MAXIMUM_CHARACTERS, read_dotenv
from harness.reference.prepare.elicitation import values
from harness.reference.prepare.spawn import claude_spawn, codex_spawn, pi_spawn
from scenarios.preparing import CACHE, CLONE, NPX, PINNED, loaded, prepared

SECRETS = {
    "DATABASE_URL": "x",
    "BUNDLE_GEMFILE": "x",
    "RAILS_ENV": "production",
    "ZIMMER_OPERATOR_SSH_KEY": "x",
    "ZIMMER_PARAMS_RESOLVER_SERVICE_ACCOUNT_KEY_JSON": "x",
    "SUPERVISOR_PASSWORD": "x",
}


def spawns(parent: dict[str, str], dotenv: dict[str, str]) -> tuple[Any, ...]:
    catalog = read_catalog({})
    return (
        claude_spawn(parent, dotenv, CLONE, catalog, mcp_json=None, has_mcp=True),
        codex_spawn(parent, dotenv, "/home/u"),
        pi_spawn(parent, dotenv),
    )


@pytest.mark.requirement("prepare-spawn-clears-zimmer-secrets")
def test_zimmers_own_secrets_are_not_inherited_unless_the_clone_sets_them():
    for spawn in spawns({**SECRETS, "PATH": "/bin"}, {"RAILS_ENV": "test"}):
        assert {name: value for name, value in spawn.variables.items() if name in SECRETS} == {"RAILS_ENV": "test"}
        assert spawn.variables["PATH"] == "/bin"


@pytest.mark.requirement("prepare-spawn-codex-no-mcp-env", "npx-pin-not-on-agent-codex")
def test_codex_gets_its_defaults_and_neither_budget_nor_cache():
    parent = {"MCP_TIMEOUT": "1", "NPM_CONFIG_CACHE": "/x"}
    spawn = codex_spawn(parent, {}, "/home/u")
    assert spawn.variables == {"RUST_LOG": "warn,rmcp=info", "CODEX_HOME": "/home/u/.codex"}
    own = codex_spawn({}, {"RUST_LOG": "debug", "CODEX_HOME": "/c"}, "/home/u")
    assert own.variables == {"RUST_LOG": "debug", "CODEX_HOME": "/c"}
    assert pi_spawn(parent, {}).variables == {}


@pytest.mark.requirement("npx-pin-not-inherited", "npx-cache-pinned-per-entry")
def test_a_child_of_codex_sees_the_cache_of_its_entry():
    profile = load_profile(PINNED["codex"])
    assert isinstance(profile, CodexProfile)
    (server, _) = loaded("codex", prepared("codex", ["a"], {"a": NPX})).servers
    assert child_environment(server, {"NPM_CONFIG_CACHE": "/elsewhere"}, profile).get("NPM_CONFIG_CACHE") == CACHE


def test_the_dotenv_reader_takes_outer_quotes_off_and_expands_nothing():
    text = "A=1\n# note\nB='two words'\nC=\"$A\"\nexport D=4\nE=\nA=last\nnot a line\n"
    assert read_dotenv(text) == {"A": "last", "B": "two words", "C": "$A", "E": ""}
    assert read_dotenv(None) == {}
    assert read_dotenv("A=1\n" + "#" * MAXIMUM_CHARACTERS) == {}
    assert read_dotenv("A=1\n" + "#" * (MAXIMUM_CHARACTERS - 4)) == {"A": "1"}


@pytest.mark.requirement("prepare-elicitation-env")
def test_the_elicitation_variables_of_a_session():
    assert values("https://zimmer.example.com/", "s1") == {
        "ELICITATION_REQUEST_URL": "https://zimmer.example.com/api/v1/elicitations",
        "ELICITATION_POLL_URL": "https://zimmer.example.com/api/v1/elicitations",
        "ELICITATION_PREFER_HTTP_FALLBACK": "true",
        "ELICITATION_TTL_MS": "3600000",
        "ELICITATION_SESSION_ID": "s1",
    }
