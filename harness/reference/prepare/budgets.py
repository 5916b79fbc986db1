"""How the startup budget reaches each runtime: Codex and Pi by a key of the entry, Claude by a variable.

Source: seed 000, "startup_timeout_sec" and "Timeouts and caching". A value that is already in a file
counts as the repository's own, also when an earlier preparation wrote it: in-place preparation keeps it
(startup-timeout-local-value-wins, startup-timeout-earlier-prepare-wins).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from harness.reference.catalog import startup_timeout
from harness.reference.catalog.catalog import Catalog
from harness.reference.prepare import json_document
from harness.reference.prepare.failures import MalformedConfigError
from harness.reference.prepare.request import JSON_FILE, SERVERS_KEYS

CODEX_KEY = "startup_timeout_sec"
CODEX_LOCAL_KEYS = (CODEX_KEY, "startup_timeout_ms")
PI_KEY = "requestTimeoutMs"


def codex_table(entry: Any, declared_raw: object) -> Any:
    """A server's table of Codex's config with its budget in seconds; what is no table is given back as it is.

    `declared_raw` is the catalog's field, not yet judged. The budget is startup-scoped there, so a
    shorter one is honoured; `tool_timeout_sec` is another budget and stays untouched.
    """
    if not isinstance(entry, Mapping):
        return entry
    if has_local_budget(entry, CODEX_LOCAL_KEYS):
        return dict(entry)
    seconds = codex_seconds(startup_timeout.accept(declared_raw).seconds, starts_command=starts_command(entry))
    return with_budget(entry, CODEX_KEY, seconds)


def pi_entry(entry: Any, declared_raw: object) -> Any:
    """A server's entry of Pi's config with its budget in milliseconds; what is no object comes back as it is.

    The key is the budget of every request on the connection, tool calls included, so a value below the
    default would cut those short and is left out (startup-timeout-pi-lengthens-only).
    """
    if not isinstance(entry, Mapping):
        return entry
    if has_local_budget(entry, (PI_KEY,)):
        return dict(entry)
    seconds = pi_seconds(startup_timeout.accept(declared_raw).seconds, starts_command=starts_command(entry))
    return with_budget(entry, PI_KEY, None if seconds is None else startup_timeout.milliseconds(seconds))


def claude_mcp_timeout(mcp_json_text: str | None, catalog: Catalog) -> str:
    """MCP_TIMEOUT of a Claude spawn: milliseconds as a decimal text, without a unit.

    `mcp_json_text` is the clone's .mcp.json at spawn, injected servers included; None: no such file.
    The variable belongs to the process, so the server that asks for most decides and none is starved.
    """
    entries = (catalog.find(name) for name in server_names(mcp_json_text))
    accepted = [entry.startup_timeout_sec for entry in entries if entry and entry.startup_timeout_sec is not None]
    return str(startup_timeout.milliseconds(process_seconds(accepted)))


def codex_seconds(accepted_seconds: int | None, *, starts_command: bool) -> int | None:
    """The number for Codex: the accepted one, else the default where a command is started.

    The default is not written for a URL: it would only delay the news that nothing answers there.
    """
    if accepted_seconds is not None:
        return accepted_seconds
    return startup_timeout.SECONDS if starts_command else None


def pi_seconds(accepted_seconds: int | None, *, starts_command: bool) -> int | None:
    """The number for Pi: an accepted one above the default, else the default where a command is started."""
    if accepted_seconds is not None and accepted_seconds > startup_timeout.SECONDS:
        return accepted_seconds
    return startup_timeout.SECONDS if starts_command else None


def process_seconds(accepted_seconds: Iterable[int]) -> int:
    """The number for a whole Claude process: the largest accepted one, never below the default."""
    return max([startup_timeout.SECONDS, *accepted_seconds])


def has_local_budget(entry: Mapping[str, Any], keys: Iterable[str]) -> bool:
    """Does the file already hold a budget of its own? Zero is one as well."""
    return any(key in entry for key in keys)


def starts_command(entry: Mapping[str, Any]) -> bool:
    """Is this a runtime entry that starts a process?"""
    return "command" in entry


def with_budget(entry: Mapping[str, Any], key: str, value: int | None) -> dict[str, Any]:
    """A new entry that ends with the budget; None adds nothing."""
    return dict(entry) if value is None else {**entry, key: value}


@lru_cache(maxsize=256)
def server_names(mcp_json_text: str | None) -> tuple[str, ...]:
    """The names under `mcpServers`; none where the file is absent, unreadable or shaped otherwise.

    A spawn must not fail because of it (startup-timeout-claude-unreadable-config). The file is read as the
    preparation reads it, so a byte order mark hides no server.
    """
    if mcp_json_text is None:
        return ()
    servers_key = SERVERS_KEYS["claude"]
    try:
        document = json_document.read(mcp_json_text, file=JSON_FILE, servers_key=servers_key)
    except MalformedConfigError:
        return ()
    return tuple(document.content.get(servers_key, ()))
