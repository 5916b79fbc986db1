"""Fields that other hosts know, or that are slips of a field of the catalog, and what becomes of them.

AIR's adapters copy a closed list of fields into a runtime's config, so whatever stands beside them reaches
nobody (facts: AIR 0.3.0, Gemini CLI 0.61.0, Claude Code, Codex, Pi's adapter, VS Code, Cursor, OpenCode, ZCode).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.gate.nearness import did_you_mean

KNOWN_FIELDS = (
    "title",
    "description",
    "type",
    "command",
    "args",
    "env",
    "url",
    "headers",
    "oauth",
    "default_in_roots",
    "unavailable",
    "startup_timeout_sec",
)
OAUTH_FIELDS = ("clientId", "clientSecret", "redirectUri", "authServerMetadataUrl", "scopes")
SNAKE_CASE_OAUTH_FIELDS = ("client_id", "client_secret", "redirect_uri")
"""Zimmer reads these too; AIR does not."""

SLIP_CLOSENESS = 0.84
"""How like a known field an unknown one must be to count as a slip of it."""


class Foreign(NamedTuple):
    """What a field is for where it is known, and the catalog's own field for that (None: there is none)."""

    purpose: str
    field: str | None


BUDGET = "startup_timeout_sec"

FOREIGN = {
    "environment": Foreign("OpenCode's name of the environment", "env"),
    "envFile": Foreign("a file of variables, in VS Code and Cursor", None),
    "env_vars": Foreign("Codex's list of variables to pass on", "env"),
    "env_http_headers": Foreign("Codex's headers whose values are variables", "headers"),
    "http_headers": Foreign("Codex's name of the headers", "headers"),
    "requestInit": Foreign("the options of a JavaScript request", "headers"),
    "bearerToken": Foreign("Pi's bearer token", "headers"),
    "bearer_token": Foreign("a bearer token", "headers"),
    "bearer_token_env_var": Foreign("Codex's variable for a bearer token", "headers"),
    "auth": Foreign("Pi's and Cursor's way to sign in", "oauth"),
    "httpUrl": Foreign("Gemini's address of a streamable HTTP server", "url"),
    "serverUrl": Foreign("another host's address of a remote server", "url"),
    "transport": Foreign("another host's transport", "type"),
    "transportType": Foreign("another host's transport", "type"),
    "name": Foreign("a heading in other hosts", "title"),
    "cwd": Foreign("the directory a server runs in, on Codex, Gemini and VS Code", None),
    "enabled": Foreign("a switch of Codex, ZCode and OpenCode", "unavailable"),
    "enable": Foreign("an older switch of ZCode", "unavailable"),
    "disabled": Foreign("a switch of other hosts", "unavailable"),
    "required": Foreign("Codex's mark of a server without which it does not start", None),
    "timeout": Foreign("a budget in milliseconds, on Gemini and OpenCode", BUDGET),
    "timeoutMs": Foreign("ZCode's budget in milliseconds", BUDGET),
    "startupTimeoutSec": Foreign("a field that Claude documents and, as measured, does not read", BUDGET),
    "startup_timeout_ms": Foreign("Codex's budget in milliseconds", BUDGET),
    "startup_timeout_seconds": Foreign("a budget in seconds", BUDGET),
    "requestTimeoutMs": Foreign("Pi's budget of every request, in milliseconds", BUDGET),
    "tool_timeout_sec": Foreign("Codex's budget of a tool call", None),
    "trust": Foreign("Gemini's mark of a server whose tools need no approval", None),
    "alwaysAllow": Foreign("a list of tools that need no approval in other hosts", None),
    "autoApprove": Foreign("a list of tools that need no approval in other hosts", None),
    "includeTools": Foreign("Gemini's list of offered tools", None),
    "excludeTools": Foreign("Gemini's list of hidden tools", None),
    "enabled_tools": Foreign("Codex's list of offered tools", None),
    "disabled_tools": Foreign("Codex's list of hidden tools", None),
    "scopes": Foreign("Codex's OAuth scopes", "oauth"),
    "default_roots": Foreign("another spelling of the roots that get a server by default", "default_in_roots"),
}
"""Field to its meaning elsewhere."""

UNFIT_FIELDS = {"stdio": ("url", "headers", "oauth"), "remote": ("command", "args", "env")}
"""Fields that the schema forbids, or that nobody reads, on a transport."""

SAME_SHAPE = frozenset({"environment", "http_headers", "httpUrl", "serverUrl", "default_roots"})
"""Fields that only have to be renamed."""


def foreign_field(name: str) -> Foreign | None:
    """What an unknown field of an entry was probably meant to be; None: nothing that can be told."""
    if name in KNOWN_FIELDS:
        return None
    if name in FOREIGN:
        return FOREIGN[name]
    slip = slip_of(name, (*FOREIGN, *KNOWN_FIELDS))
    if slip is None:
        return None
    return Foreign(f"probably a slip of {slip!r}", FOREIGN[slip].field if slip in FOREIGN else slip)


def renames_alone(name: str) -> bool:
    """Whether another key is all that a field needs: what it holds is what the catalog's own field holds."""
    meant = name if name in FOREIGN else slip_of(name, (*FOREIGN, *KNOWN_FIELDS))
    return meant not in FOREIGN or meant in SAME_SHAPE


def foreign_oauth_field(name: str) -> Foreign | None:
    """The same for a member of the `oauth` block."""
    if name in (*OAUTH_FIELDS, *SNAKE_CASE_OAUTH_FIELDS):
        return None
    slip = slip_of(name, OAUTH_FIELDS)
    return Foreign(f"probably a slip of {slip!r}", slip) if slip else None


def slip_of(name: str, known: tuple[str, ...]) -> str | None:
    """The known field of which a name is a slip, whatever its case and separators."""
    by_letters = {letters(field): field for field in known}
    if letters(name) in by_letters:
        return by_letters[letters(name)]
    close = did_you_mean(letters(name), by_letters, SLIP_CLOSENESS)
    return by_letters[close] if close else None


def letters(name: str) -> str:
    """A name in lower case without separators."""
    return name.replace("_", "").replace("-", "").lower()


def can_be_renamed(name: str, foreign: Foreign, entry: Mapping[str, Any]) -> bool:
    """Whether another key makes the field mean what was meant: the place is free, and the value fits there."""
    if foreign.field is None or foreign.field in entry or not renames_alone(name):
        return False
    if foreign.field in UNFIT_FIELDS["remote" if entry.get("type") != "stdio" else "stdio"]:
        return False
    value = entry[name]
    if foreign.field in ("env", "headers"):
        return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    if foreign.field in ("args", "default_in_roots", "scopes"):
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, str) and bool(value)
