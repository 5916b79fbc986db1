"""The environment of an agent process: what Zimmer sets, what it takes away, and what has to exist first.

Source: seed 000 "Timeouts and caching". Claude's startup budget and npm cache are variables of its process;
Codex and Pi get neither, since they take both from their config (prepare-spawn-*).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.reference.catalog.catalog import Catalog
from harness.reference.npx.layout import shared_cache
from harness.reference.prepare.budgets import claude_mcp_timeout

CLAUDE_SETTINGS: Mapping[str, str] = {
    "CLAUDE_CODE_DISABLE_CRON": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
}
CODEX_LOG_FILTER = "warn,rmcp=info"
ZIMMER_SECRET_NAMES = frozenset(
    {
        "RAILS_ENV",
        "GEM_HOME",
        "GEM_PATH",
        "RUBYLIB",
        "RUBYOPT",
        "ZIMMER_OPERATOR_SSH_KEY",
        "ZIMMER_PARAMS_RESOLVER_SERVICE_ACCOUNT_KEY_JSON",
        "SENTRY_DSN_BACKEND",
        "ALERTS_ENABLED",
        "SUPERVISOR_PASSWORD",
    }
)
ZIMMER_SECRET_PREFIXES = ("DATABASE_", "BUNDLE")


class SpawnEnvironment(NamedTuple):
    """What the agent's process gets. `directories` are created first; `runs_bin_guard`: once, before the
    spawn.
    """

    variables: dict[str, str]
    directories: tuple[str, ...] = ()
    runs_bin_guard: bool = False


def claude_spawn(
    parent: Mapping[str, str],
    dotenv: Mapping[str, str],
    clone: str,
    catalog: Catalog,
    *,
    mcp_json: str | None,
    has_mcp: bool,
) -> SpawnEnvironment:
    """Claude's process. `mcp_json` is the clone's config at spawn; the MCP part beats the clone's `.env`."""
    variables = {**without_zimmer_secrets(parent), **CLAUDE_SETTINGS, **dotenv}
    if not has_mcp:
        return SpawnEnvironment(variables)
    mcp = claude_mcp_variables(clone, catalog, mcp_json)
    return SpawnEnvironment({**variables, **mcp}, (mcp["NPM_CONFIG_CACHE"],), runs_bin_guard=True)


def claude_mcp_variables(clone: str, catalog: Catalog, mcp_json: str | None) -> dict[str, str]:
    """The two variables of a Claude spawn with MCP servers (prepare-claude-timeout-env)."""
    return {
        "MCP_TIMEOUT": claude_mcp_timeout(mcp_json, catalog),
        "NPM_CONFIG_CACHE": shared_cache(clone),
    }


def codex_spawn(parent: Mapping[str, str], dotenv: Mapping[str, str], home: str) -> SpawnEnvironment:
    """Codex's process: no startup budget and no npm cache, defaults that yield to the clone's `.env`."""
    defaults = {"RUST_LOG": CODEX_LOG_FILTER, "CODEX_HOME": f"{home}/.codex"}
    return SpawnEnvironment({**without_runtime_keys(without_zimmer_secrets(parent)), **defaults, **dotenv})


def pi_spawn(parent: Mapping[str, str], dotenv: Mapping[str, str]) -> SpawnEnvironment:
    """Pi's process: nothing of MCP's."""
    return SpawnEnvironment({**without_runtime_keys(without_zimmer_secrets(parent)), **dotenv})


def without_zimmer_secrets(parent: Mapping[str, str]) -> dict[str, str]:
    """The inherited variables without Zimmer's own (prepare-spawn-clears-zimmer-secrets)."""
    return {name: value for name, value in parent.items() if not is_zimmer_secret(name)}


def is_zimmer_secret(name: str) -> bool:
    """Is this a variable of Zimmer's own process, through which an agent could reach the operator's realm?"""
    return name in ZIMMER_SECRET_NAMES or name.startswith(ZIMMER_SECRET_PREFIXES)


def without_runtime_keys(parent: Mapping[str, str]) -> dict[str, str]:
    """The inherited variables without Claude's two, should Zimmer's own process carry them."""
    return {name: value for name, value in parent.items() if name not in ("MCP_TIMEOUT", "NPM_CONFIG_CACHE")}
