"""A `.codex/config.toml` changed in place: the user's text stays as it is outside what is added or changed.

Servers that are new go to the end as tables in name order; a server that is already there is edited through
tomlkit, which keeps comments and layout. The result is parsed again and compared with what was meant, so an
unusual layout (servers inline, tables out of order) can cost the layout but never a value.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

from harness.reference.prepare import toml_text
from harness.reference.prepare.failures import MalformedConfigError

SERVERS = "mcp_servers"
REWRITTEN = "{file}: written anew without its comments, because its layout could not be edited in place"


class Rendered(NamedTuple):
    """The new text, and a warning where the layout was lost."""

    text: str
    warnings: tuple[str, ...] = ()


def read(text: str, *, file: str) -> dict[str, Any]:
    """Parse a config text. Raises MalformedConfigError where it is no TOML, or `mcp_servers` is no table."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MalformedConfigError(file, f"no TOML ({error})") from None
    except RecursionError:
        raise MalformedConfigError(file, "nested too deeply") from None
    if not isinstance(content.get(SERVERS, {}), dict):
        raise MalformedConfigError(file, f"`{SERVERS}` is no table")
    return content


def render(
    text: str,
    content: Mapping[str, Any],
    servers: Mapping[str, Any],
    settings: Mapping[str, Any],
    *,
    file: str,
) -> Rendered:
    """The text with exactly these servers, and those settings that the file does not have yet.

    `content` is the parsed `text`; what is equal in both is not touched at all.
    """
    missing = {key: value for key, value in settings.items() if key not in content}
    meant = {**content, **missing, SERVERS: dict(servers)}
    edited = edit(text, content.get(SERVERS), servers, missing)
    if edited is not None and says(edited, meant):
        return Rendered(edited)
    return Rendered(toml_text.table_text((), meant), (REWRITTEN.format(file=file),))


def edit(
    text: str, table: Mapping[str, Any] | None, servers: Mapping[str, Any], settings: Mapping[str, Any]
) -> str | None:
    """The edited text; None where tomlkit cannot make the change. `table`: the servers of `text`, if it
    has any.
    """
    before = table or {}
    kept = {name: entry for name, entry in servers.items() if name in before}
    added = {name: servers[name] for name in sorted(servers) if name not in before}
    changed = kept != before
    try:
        document = tomlkit.parse(text) if table is not None and (changed or added) else None
        if document is not None and isinstance(document[SERVERS], InlineTable):
            kept, added, changed = {**kept, **added}, {}, True
        if document is not None and changed:
            edit_tables(document[SERVERS], before, kept)
            text = tomlkit.dumps(document)
    except (TOMLKitError, AttributeError, TypeError, ValueError):
        return None
    text = with_settings(text, settings)
    return text + added_tables(text, added)


def edit_tables(tables: Any, before: Mapping[str, Any], servers: Mapping[str, Any]) -> None:
    """Make tomlkit's `tables` say what `servers` say, touching only what differs from `before`."""
    for name in before:
        if name not in servers:
            del tables[name]
    for name, entry in servers.items():
        if name not in before or not isinstance(before[name], Mapping) or not isinstance(entry, Mapping):
            if before.get(name) != entry:
                tables[name] = entry
        elif entry != before[name]:
            edit_tables(tables[name], before[name], entry)


def added_tables(text: str, added: Mapping[str, Any]) -> str:
    """What follows the text: a blank line before each new table."""
    if not added:
        return ""
    tables = "\n".join(toml_text.table_text((SERVERS, name), entry) for name, entry in added.items())
    if not text:
        return tables
    return ("" if text.endswith("\n") else "\n") + ("" if text.endswith("\n\n") else "\n") + tables


def with_settings(text: str, settings: Mapping[str, Any]) -> str:
    """New top-level keys stand first, where no table of the user's can swallow them."""
    lines = "".join(f"{toml_text.key_text(key)} = {toml_text.value_text(value)}\n" for key, value in settings.items())
    return f"{lines}\n{text}" if lines and text else lines + text


def says(text: str, meant: Mapping[str, Any]) -> bool:
    """Does a text parse to exactly this document? An empty server table need not be spelled out."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return {SERVERS: {}, **found} == meant
