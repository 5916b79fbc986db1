"""`--strict-config`: a key that the version does not know ends the run instead of being passed over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fake_runtimes.codex.config import GRACE_KEY, SERVERS_KEY
from fake_runtimes.codex.shape import FLAGS, LISTS_OF_TEXT, RECORDS_OF_TEXT, SECONDS, TEXTS
from fake_runtimes.profile import CodexProfile

STRUCTURED = ("startup_timeout_ms", "env_vars", "oauth", "tools", "default_tools_approval_mode")
MISSPELT_SERVERS = "mcpServers"


def unknown_field(merged: Mapping[str, Any], profile: CodexProfile) -> str | None:
    """The place of the first unknown key among those that concern servers; None where all are known."""
    unknown = (MISSPELT_SERVERS,) if profile.grace_key else (MISSPELT_SERVERS, GRACE_KEY)
    for key in unknown:
        if key in merged:
            return key
    known = {*TEXTS, *LISTS_OF_TEXT, *RECORDS_OF_TEXT, *FLAGS, *SECONDS, *STRUCTURED}
    if profile.header_helper_key:
        known.add("http_headers_helper")
    tables = merged.get(SERVERS_KEY, {})
    for name, table in tables.items():
        for key in table:
            if key not in known:
                return f"{SERVERS_KEY}.{name}.{key}"
    return None


def refusal(merged: Mapping[str, Any], profile: CodexProfile) -> str | None:
    """What the program says of the first unknown key."""
    place = unknown_field(merged, profile)
    return None if place is None else f"Error loading config.toml: unknown configuration field `{place}`"
