"""The layers of Pi's configuration: several files, merged field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_runtimes.loaded import FILE_LOST, SKIPPED, Problem
from fake_runtimes.pi.jsonc import parse_jsonc
from fake_runtimes.profile import PiProfile
from fake_runtimes.text import JsonTextError, javascript_order

BYTE_ORDER_MARK = "\ufeff"
SERVERS_KEYS = ("mcpServers", "mcp-servers")
# Lowest precedence first; `~` is the user's home, a bare path lies in the session's directory.
FILES = (
    "~/.config/mcp/mcp.json",
    "~/.agents/mcp.json",
    "~/.agents/mcp/mcp.json",
    "~/.pi/agent/mcp.json",
    ".mcp.json",
    ".pi/mcp.json",
)
DROPPED_BY_COMMAND = (
    "url",
    "headers",
    "requestHeadersCommand",
    "auth",
    "bearerToken",
    "bearerTokenEnv",
    "bearerTokenStore",
    "oauth",
)
DROPPED_BY_URL = ("command", "args", "env", "cwd")
DROPPED_BY_OTHER_URL = (
    "headers",
    "requestHeadersCommand",
    "bearerToken",
    "bearerTokenEnv",
    "bearerTokenStore",
)


class Layers(NamedTuple):
    """All files merged: entries by name, settings, and what was said on the way."""

    entries: dict[str, dict[str, Any]]
    settings: dict[str, Any]
    problems: tuple[Problem, ...]


def merge(files: Mapping[str, str], profile: PiProfile) -> Layers:
    """The files from lowest to highest precedence. One that cannot be read contributes nothing, and only that one."""
    merged = Layers({}, {}, ())
    for path in by_precedence(files):
        merged = merge_file(merged, path, files[path], profile)
    return merged


def by_precedence(files: Mapping[str, str]) -> tuple[str, ...]:
    """The known places in the runtime's order; any other path keeps its place before them."""
    others = tuple(path for path in files if path not in FILES)
    return (*others, *(path for path in FILES if path in files))


def merge_file(below: Layers, path: str, text: str, profile: PiProfile) -> Layers:
    """One more file over the layers below it."""
    if profile.empty_file_is_absent and not text.strip():
        return below
    if text.startswith(BYTE_ORDER_MARK):
        return lost(below, f"Failed to load MCP config from {path}: SyntaxError: Unexpected token")
    try:
        document = parse_jsonc(text)
    except JsonTextError as error:
        return lost(below, f"Failed to load MCP config from {path}: SyntaxError: {error}")
    if isinstance(document, list):
        return below
    if not isinstance(document, dict):
        return lost(below, f"Failed to load MCP config from {path}: no object")
    settings = document.get("settings", {})
    if not isinstance(settings, dict):
        if profile.settings_must_be_object:
            return lost(below, f"Failed to load MCP config from {path}: settings is no object")
        settings = {}
    return merge_servers(below, document, settings)


def lost(below: Layers, text: str) -> Layers:
    return below._replace(problems=(*below.problems, Problem(None, FILE_LOST, text)))


def merge_servers(below: Layers, document: Mapping[str, Any], settings: Mapping[str, Any]) -> Layers:
    """A readable file's servers and settings over the layers below. What is no object is dropped without a word."""
    servers: Any = next((document[key] for key in SERVERS_KEYS if key in document), {})
    entries, problems = dict(below.entries), list(below.problems)
    if not isinstance(servers, dict):
        problems.append(Problem(None, FILE_LOST, ""))
        servers = {}
    for name, entry in javascript_order(servers).items():
        if isinstance(entry, dict):
            entries[name] = merge_entry(entries.get(name, {}), entry)
        else:
            problems.append(Problem(name, SKIPPED, ""))
    return Layers(entries, {**below.settings, **settings}, tuple(problems))


def merge_entry(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """One entry over a lower one, field by field; a change of transport or address drops what belonged to the old."""
    dropped: list[str] = []
    if "command" in above:
        dropped += DROPPED_BY_COMMAND
    if "url" in above:
        dropped += DROPPED_BY_URL
        if "url" in below and above["url"] != below["url"]:
            dropped += DROPPED_BY_OTHER_URL
            dropped += ["oauth"] if below.get("oauth") is not False else []
    kept = {field: value for field, value in below.items() if field not in dropped}
    return {**kept, **above}
