"""Placeholders and values joined: the entries of a runtime config as the runtime will read them.

What is walked: the texts in `env`, `headers`, `http_headers` (Codex's spelling), `args`, and `url`. Keys, command, cwd,
oauth, title and description are left as they are (secrets-placeholders-not-elsewhere).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.reference.secrets.blank import is_blank
from harness.reference.secrets.placeholders import Lookup, resolve_text

RESOLVED_TABLES = ("env", "headers", "http_headers")


def resolve_servers(servers: Mapping[str, Any], lookup: Lookup) -> dict[str, Any]:
    """All entries resolved, or MissingVariableError for the first missing name: nothing is rescued per entry.

    An entry that is no object is passed through. The input is not changed (secrets-no-rescue-per-entry).
    """
    return {
        name: resolve_entry(entry, lookup) if isinstance(entry, Mapping) else entry for name, entry in servers.items()
    }


def resolve_entry(entry: Mapping[str, Any], lookup: Lookup) -> dict[str, Any]:
    """A new entry with every placeholder resolved. Raises MissingVariableError."""
    resolved = dict(entry)
    for table in RESOLVED_TABLES:
        if isinstance(resolved.get(table), Mapping):
            resolved[table] = resolve_table(resolved[table], lookup)
    if isinstance(resolved.get("args"), list | tuple):
        resolved["args"] = [resolve_value(item, lookup) for item in resolved["args"]]
    if isinstance(resolved.get("url"), str):
        resolved["url"] = resolve_value(resolved["url"], lookup)
    return resolved


def resolve_table(table: Mapping[str, Any], lookup: Lookup) -> dict[str, Any]:
    """A table of env or headers resolved, without the keys whose value came out blank."""
    pairs = ((key, value, resolve_value(value, lookup)) for key, value in table.items())
    return {key: resolved for key, value, resolved in pairs if keeps_key(value, resolved)}


def keeps_key(written: object, resolved: object) -> bool:
    """A key goes when its text resolved to a blank one, unless the catalog wrote exactly ""
    (secrets-blank-result-dropped).
    """
    return not isinstance(resolved, str) or written == "" or not is_blank(resolved)


def resolve_value(value: Any, lookup: Lookup) -> Any:
    """A text resolved; a value that is no text is handed through untouched (secrets-nonstrings-untouched)."""
    return resolve_text(value, lookup) if isinstance(value, str) else value
