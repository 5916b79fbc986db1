"""Where a runtime entry comes from: seeded from the catalog for Pi, taken from AIR elsewhere, and merged
around.

An entry that an earlier preparation wrote is refreshed (values, command), but keeps what Zimmer itself put in:
budgets and the npm cache. An entry of the repository's own is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.reference.catalog.catalog import Catalog
from harness.reference.catalog.connection import missing_member, skip_warning
from harness.reference.catalog.entry import Entry
from harness.reference.npx.isolation import CACHE_VARIABLE
from harness.reference.secrets.blank import is_blank
from harness.reference.secrets.interpolator import RESOLVED_TABLES

TRANSLATED_KEYS = frozenset(
    {
        "type", "command", "args", "env", "env_vars", "url", "headers",
        "http_headers", "env_http_headers", "bearer_token_env_var", "oauth",
    }
)  # fmt: skip
"""Keys that the catalog's entry decides; all others of an earlier entry stay."""

RESOLVED_KEYS = (*RESOLVED_TABLES, "args", "url")
"""Keys whose texts Zimmer resolves by its own rules."""


class Sources(NamedTuple):
    """Entries that go into the file, by name, and a warning for each selected name that has none."""

    entries: dict[str, Any]
    warnings: tuple[str, ...]


def seed(names: tuple[str, ...], catalog: Catalog) -> Sources:
    """Pi's entries for the selected servers; what cannot be one is skipped, never raised
    (prepare-pi-seed-*).
    """
    entries: dict[str, Any] = {}
    warnings: list[str] = []
    for name in names:
        entry = catalog.find(name)
        missing = None if entry is None else missing_member(entry)
        if entry is None:
            warnings.append(unknown_warning(name))
        elif missing is not None:
            warnings.append(skip_warning(name, missing))
        else:
            entries[name] = seeded_entry(entry)
    return Sources(entries, tuple(warnings))


def seeded_entry(entry: Entry) -> dict[str, Any]:
    """The entry of `.mcp.json` for one connectable server (prepare-pi-seed-shape)."""
    if entry.stdio:
        seeded: dict[str, Any] = {"type": "stdio", "command": entry.command}
        if entry.args:
            seeded["args"] = list(entry.args)
        if entry.env:
            seeded["env"] = dict(entry.env)
        return seeded
    return {"type": seeded_type(entry), "url": entry.url, "headers": dict(entry.headers)}


def seeded_type(entry: Entry) -> str:
    """`sse` stays; `http` and `streamable-http` are one transport (catalog-http-alias-everywhere)."""
    return "sse" if entry.type == "sse" else "http"


def from_air(names: tuple[str, ...], translated: Mapping[str, Any], catalog: Catalog) -> Sources:
    """AIR's entries that can be connected to; an entry without command and url is skipped with a warning.

    AIR leaves out a selected name where the repository has an entry of its own; that is no loss.
    """
    entries = {name: entry for name, entry in translated.items() if is_connectable(entry)}
    warnings = [unknown_warning(name) for name in names if catalog.find(name) is None]
    warnings += [skip_warning(name, lacking(name, catalog)) for name in translated if name not in entries]
    shaped = {name: without_blanks(entry, declared_entry(catalog, name)) for name, entry in entries.items()}
    return Sources(shaped, tuple(warnings))


def is_connectable(entry: object) -> bool:
    """Has a translated entry anything to start or to reach?"""
    if not isinstance(entry, Mapping):
        return False
    target = entry.get("command", entry.get("url"))
    return isinstance(target, str) and bool(target.strip())


def lacking(name: str, catalog: Catalog) -> str:
    """What the catalog's entry should have had."""
    entry = catalog.find(name)
    return (entry and missing_member(entry)) or "command or url"


def unknown_warning(name: str) -> str:
    """The line for a selected name that the catalog does not hold."""
    return f"Skipping MCP server '{name}': it is not in the catalog"


def declared_entry(catalog: Catalog, name: str) -> Mapping[str, Any]:
    """The catalog's entry as written; empty for a name it does not know."""
    entry = catalog.find(name)
    return {} if entry is None else entry.raw


def without_blanks(entry: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """AIR resolves `${B:-}` to an empty text and keeps the key; Zimmer drops what came out blank.

    What the catalog wrote as exactly "" stays (secrets-blank-result-dropped).
    """
    written = dict(entry)
    for table, source in (("env", "env"), ("headers", "headers"), ("http_headers", "headers")):
        catalog_table = declared.get(source)
        if isinstance(written.get(table), Mapping) and isinstance(catalog_table, Mapping):
            written[table] = {
                key: value
                for key, value in written[table].items()
                if not (isinstance(value, str) and is_blank(value) and catalog_table.get(key, "") != "")
            }
    return written


def transformed(entry: Any, rewritten: Any) -> Any:
    """A local entry with those members as AIR's transforms left them that Zimmer does not resolve itself.

    AIR walks every text, also of entries that it did not write (secrets-local-entries-trap).
    """
    if not isinstance(entry, Mapping) or not isinstance(rewritten, Mapping):
        return entry
    changed = {key: value for key, value in rewritten.items() if key not in RESOLVED_KEYS and value != entry[key]}
    return {**entry, **changed}


def merge(
    present: Mapping[str, Any], entries: Mapping[str, Any], owned: tuple[str, ...], *, overwrites: bool
) -> dict[str, Any]:
    """The servers of the file with `entries` merged around: places are kept, new ones follow.

    `overwrites`: an entry of the repository's own gives way (AIR of the older kind has decided so).
    """
    merged = dict(present)
    for name, entry in entries.items():
        if name not in present:
            merged[name] = entry
        elif name in owned:
            merged[name] = carry_over(present[name], entry)
        elif overwrites:
            merged[name] = entry
    return merged


def carry_over(earlier: Any, fresh: Mapping[str, Any]) -> dict[str, Any]:
    """The fresh entry with what Zimmer wrote into the earlier one (startup-timeout-earlier-prepare-wins)."""
    if not isinstance(earlier, Mapping) or ("command" in earlier) != ("command" in fresh):
        return dict(fresh)
    carried = {key: value for key, value in earlier.items() if key not in TRANSLATED_KEYS}
    return {**carried_cache(earlier, fresh), **carried}


def carried_cache(earlier: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, Any]:
    """The fresh entry with the earlier npm cache, unless it names one itself
    (npx-isolate-stable-across-prepare).
    """
    before, after = earlier.get("env"), fresh.get("env", {})
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return dict(fresh)
    if CACHE_VARIABLE not in before or after.get(CACHE_VARIABLE) or fresh.get("command") != earlier.get("command"):
        return dict(fresh)
    return {**fresh, "env": {**after, CACHE_VARIABLE: before[CACHE_VARIABLE]}}
