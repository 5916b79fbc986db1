"""Environment variables of Pi and its adapter."""

from __future__ import annotations

from collections.abc import Mapping

AGENT_DIRECTORY = "PI_CODING_AGENT_DIR"
CONFIG_MODE, EXCLUSIVE = "PI_MCP_CONFIG_MODE", "exclusive"
OAUTH_DIRECTORY = "MCP_OAUTH_DIR"
DIRECT_TOOLS, NO_DIRECT_TOOLS = "MCP_DIRECT_TOOLS", "__none__"
OFFLINE = "PI_OFFLINE"
STORE_VARIABLE, MEMORY = "PI_MCP_ADAPTER_TEST_AUTH_STORE", "memory"
KEYRING_VARIABLE = "MCP_FAKE_KEYRING"
"""This fake's own: where the directory is that stands for the user's keyring."""


def process_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of the Pi process once it runs: what it was given, and what it sets for its children."""
    added = {"PI_CODING_AGENT": "true", "AI_AGENT": "pi"}
    if environment.get(OFFLINE):
        added["PI_SKIP_VERSION_CHECK"] = "1"
    return {**environment, **added}
