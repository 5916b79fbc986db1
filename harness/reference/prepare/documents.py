"""The runtime's config file opened and written: one shape for JSON and TOML."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, NamedTuple

from harness.reference.prepare import codex_document, codex_tables, json_document
from harness.reference.prepare.request import (
    CONFIG_FILES,
    CREATED_MODE,
    SERVERS_KEYS,
    FileWrite,
    PrepareRequest,
)


class Document(NamedTuple):
    """A config file as found: its text (None: there was none), parsed content, servers, and what is odd
    about it.
    """

    text: str | None
    content: dict[str, Any]
    servers: dict[str, Any]
    warnings: tuple[str, ...] = ()


class Written(NamedTuple):
    """The file to write and the servers that stand in it."""

    write: FileWrite
    servers: dict[str, Any]
    warnings: tuple[str, ...]


def open_document(request: PrepareRequest) -> Document:
    """The file of the request's runtime, or a skeleton where there is none. Raises MalformedConfigError."""
    text, key = request.config_text, SERVERS_KEYS[request.runtime]
    if text is None:
        return skeleton(key)
    if request.runtime == "codex":
        content = codex_document.read(text, file=CONFIG_FILES["codex"])
        return Document(text, content, content.get(key, {}))
    parsed = json_document.read(text, file=CONFIG_FILES[request.runtime], servers_key=key)
    return Document(text, parsed.content, parsed.content.get(key, {}), duplicate_warnings(parsed.duplicates))


def skeleton(servers_key: str) -> Document:
    """What stands for a missing file, so that injected servers still reach the session."""
    return Document(None, {servers_key: {}}, {})


def duplicate_warnings(keys: tuple[str, ...]) -> tuple[str, ...]:
    """A key that stands twice in an object loses its first value without a word
    (prepare-duplicate-json-keys).
    """
    return tuple(f".mcp.json: `{key}` stands more than once in one object; the last one wins" for key in keys)


def write_document(document: Document, servers: Mapping[str, Any], own: Set[str], request: PrepareRequest) -> Written:
    """The file with these servers. `own` are the names that Zimmer answers for; others are the
    repository's.
    """
    path = CONFIG_FILES[request.runtime]
    mode = CREATED_MODE if document.text is None else None
    if request.runtime != "codex":
        kept = in_earlier_order(document.servers, servers)
        text = json_document.write({**document.content, SERVERS_KEYS[request.runtime]: kept})
        return Written(FileWrite(path, text, mode), kept, ())
    accepted, warnings = accepted_tables(document, servers, own)
    before = document.content if document.text is not None else {}
    rendered = codex_document.render(document.text or "", before, accepted, request.settings, file=path)
    return Written(FileWrite(path, rendered.text, mode), accepted, warnings + rendered.warnings)


def in_earlier_order(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The servers with the keys of an entry that was there, and of its tables, in the order they had."""
    return {name: ordered_like(before.get(name), entry) for name, entry in after.items()}


def ordered_like(earlier: Any, value: Any) -> Any:
    """An object with the keys of `earlier` first, in its order; anything else as it is."""
    if not isinstance(earlier, Mapping) or not isinstance(value, Mapping):
        return value
    order = [*(key for key in earlier if key in value), *(key for key in value if key not in earlier)]
    return {key: ordered_like(earlier.get(key), value[key]) for key in order}


def accepted_tables(
    document: Document, servers: Mapping[str, Any], own: Set[str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The tables that Codex takes. One of Zimmer's that it would refuse is left out, with a warning naming
    it.

    A table of the repository's own is not Zimmer's to remove: it stays as it was, and is warned about.
    """
    accepted: dict[str, Any] = {}
    warnings: list[str] = []
    for name, entry in servers.items():
        table = codex_tables.writable(entry) if isinstance(entry, Mapping) else {}
        refusal = codex_tables.refusal(name, table)
        if refusal is None:
            accepted[name] = table
        elif name in own:
            warnings.append(f"Skipping MCP server '{name}': Codex would refuse the whole config ({refusal})")
        else:
            accepted[name] = document.servers.get(name, entry)
            warnings.append(f"MCP server '{name}' in {CONFIG_FILES['codex']} is not accepted by Codex ({refusal})")
    return accepted, tuple(warnings)
