"""Which servers of a project may be contacted by `claude mcp list`: headless runs ask for no approval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fake_runtimes.claude.sources import PROJECT, json_object, names, read_text
from fake_runtimes.claude.state import SessionState

PROJECT_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")
ALL_KEY, NAMES_KEY, TRUST_KEY = "enableAllProjectMcpServers", "enabledMcpjsonServers", "hasTrustDialogAccepted"


async def approved(session: SessionState) -> frozenset[str]:
    """The names of the servers that may be contacted.

    Those of the user always; a project's where the user's settings say so, or where the directory is trusted and its
    own settings, or what `.claude.json` holds of it, say so. Trust alone approves nothing.
    """
    rules = [session.sources.settings]
    if session.sources.here.get(TRUST_KEY) is True:
        rules.append(session.sources.here)
        directory = session.world.env.directory.rstrip("/")
        rules += [json_object(await read_text(session.world, f"{directory}/{name}")) for name in PROJECT_SETTINGS]
    return frozenset(
        name
        for name, state in session.servers.items()
        if state.source != PROJECT or any(approves(rule, name) for rule in rules)
    )


def approves(rule: Mapping[str, Any], name: str) -> bool:
    """Whether one table of settings approves a project's server."""
    return rule.get(ALL_KEY) is True or name in names(rule.get(NAMES_KEY))
