"""`mcp-cache.json`: which tools each server had, so that a lazy server need not be started to be offered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fake_runtimes.loaded import EntryError, LoadedServer
from fake_runtimes.pi.home import kept_entries
from fake_runtimes.pi.values import cwd_of

FILE = "mcp-cache.json"
VERSION = 1
LIFE_SECONDS = 7 * 24 * 3600

Tools = Sequence[Mapping[str, Any]]


def config_hash(server: LoadedServer, environment: Mapping[str, str]) -> str:
    """What a cached entry must agree with: the fields that decide which server it is, variables expanded.

    Lifecycle and budgets play no part. The serialisation is this fake's own.
    """
    identity = {
        "command": server.command,
        "args": list(server.args),
        "env": dict(server.env),
        "cwd": working_directory(server, environment),
        "url": server.url,
        "headers": dict(server.headers),
        "auth": server.raw.get("auth"),
    }
    import hashlib  # loads a library, which most runs do not need

    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def working_directory(server: LoadedServer, environment: Mapping[str, str]) -> str | None:
    """The entry's own `cwd`, expanded; None without one, and where it makes the entry fail."""
    try:
        return cwd_of(server.name, server.raw, environment)
    except EntryError:
        return None


def read_cache(text: str | None) -> dict[str, Any]:
    """The entries by server; a file that cannot be used holds none."""
    return kept_entries(text, VERSION, "servers")


def cached_tools(
    entries: Mapping[str, Any], server: LoadedServer, environment: Mapping[str, str], now: float
) -> tuple[str, ...] | None:
    """The tool names that are remembered of a server; None where nothing valid is."""
    entry = entries.get(server.name)
    if not isinstance(entry, dict) or entry.get("configHash") != config_hash(server, environment):
        return None
    cached_at = entry.get("cachedAt")
    if not isinstance(cached_at, int | float) or now - cached_at / 1000 > LIFE_SECONDS:
        return None
    tools = entry.get("tools")
    listed = tools if isinstance(tools, list) else []
    return tuple(tool["name"] for tool in listed if isinstance(tool, dict) and isinstance(tool.get("name"), str))


def cache_entry(server: LoadedServer, tools: Tools, environment: Mapping[str, str], now: float) -> dict[str, Any]:
    """What is kept of a server that has connected."""
    return {
        "configHash": config_hash(server, environment),
        "tools": [dict(tool) for tool in tools],
        "resources": [],
        "prompts": [],
        "cachedAt": int(now * 1000),
    }


def cache_text(entries: Mapping[str, Any]) -> str:
    return json.dumps({"version": VERSION, "servers": entries}, separators=(",", ":"))
