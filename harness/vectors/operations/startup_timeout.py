"""The operations of the area `startup-timeout`."""

from __future__ import annotations

from typing import Any

from harness.reference.catalog.catalog import read_catalog
from harness.reference.catalog.startup_timeout import FIELD, accept
from harness.reference.prepare.budgets import claude_mcp_timeout, codex_table, pi_entry
from harness.vectors.registry import operation


@operation(
    "startup-timeout.normalize",
    requirements=(
        "startup-timeout-integer-5-600",
        "startup-timeout-nonintegers-refused",
        "startup-timeout-null-is-silent",
    ),
)
def startup_timeout_normalize(given: dict[str, Any]) -> Any:
    """What became of an entry's declared budget."""
    return accept(given["entry"].get(FIELD))._asdict()


@operation(
    "startup-timeout.claude",
    requirements=(
        "startup-timeout-default-180",
        "startup-timeout-longer-reaches-all",
        "startup-timeout-claude-process-max",
        "startup-timeout-claude-session-servers",
        "startup-timeout-claude-no-server-starved",
        "startup-timeout-claude-unreadable-config",
        "startup-timeout-refusal-falls-to-default",
    ),
)
def startup_timeout_claude(given: dict[str, Any]) -> Any:
    """MCP_TIMEOUT of a Claude spawn."""
    return claude_mcp_timeout(given["mcp_json"], read_catalog(given["catalog"]))


@operation(
    "startup-timeout.codex",
    requirements=(
        "startup-timeout-default-180",
        "startup-timeout-longer-reaches-all",
        "startup-timeout-shorter-codex-only",
        "startup-timeout-codex-startup-scoped",
        "startup-timeout-stdio-default-only",
        "startup-timeout-local-value-wins",
        "startup-timeout-refusal-falls-to-default",
    ),
)
def startup_timeout_codex(given: dict[str, Any]) -> Any:
    """A server's table in Codex's config."""
    return codex_table(given["entry"], given["declared"])


@operation(
    "startup-timeout.pi",
    requirements=(
        "startup-timeout-default-180",
        "startup-timeout-longer-reaches-all",
        "startup-timeout-shorter-codex-only",
        "startup-timeout-pi-lengthens-only",
        "startup-timeout-stdio-default-only",
        "startup-timeout-local-value-wins",
        "startup-timeout-refusal-falls-to-default",
    ),
)
def startup_timeout_pi(given: dict[str, Any]) -> Any:
    """A server's entry in Pi's config."""
    return pi_entry(given["entry"], given["declared"])
