"""How Codex reads its configuration: one invalid `[mcp_servers.x]` ends the run, an unknown key is ignored."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from fake_runtimes.codex.layers import overlay, parse_toml
from fake_runtimes.codex.shape import FieldError, check_entry, check_milliseconds, check_variant, described
from fake_runtimes.loaded import (
    RUN_KILLED,
    SERVER_FAILS,
    SKIPPED,
    WARNING,
    EntryError,
    Loaded,
    LoadedServer,
    Problem,
    failing,
)
from fake_runtimes.profile import CodexProfile

CONFIG_PATH = ".codex/config.toml"
SERVERS_KEY = "mcp_servers"
GRACE_KEY = "mcp_optional_startup_grace_ms"
STORE_KEY = "mcp_oauth_credentials_store"
STORES = ("auto", "file", "keyring")
T = TypeVar("T")


def read_config(
    project_text: str | None,
    environment: Mapping[str, str],
    profile: CodexProfile,
    user_text: str | None = None,
    *,
    trusted: bool = True,
    above: Mapping[str, Any] = MappingProxyType({}),
) -> Loaded:
    """What the runtime holds after the user's and the project's configuration, `above` over both. Never raises.

    The project's file counts only in a trusted project; see `codex.trust`.
    """
    project = project_text if counts(trusted=trusted) else None
    warnings = untrusted_warnings(project_text, profile, trusted=trusted)
    try:
        merged = overlay(overlay(layer(user_text), layer(project)), above)
        check_settings(merged, profile)
        tables = server_tables(merged)
        transports = {name: checked(name, entry, profile) for name, entry in tables.items()}
    except EntryError as error:
        return Loaded(problems=(*warnings, Problem(None, RUN_KILLED, f"Error loading config.toml: {error.text}")))
    settings = {GRACE_KEY: merged[GRACE_KEY]} if GRACE_KEY in merged else {}
    read = [
        read_entry(Table(name, entry, transports[name], settings), environment, profile)
        for name, entry in tables.items()
    ]
    servers = tuple(server for server, _ in read if server is not None)
    return Loaded(servers, (*warnings, *(problem for _, problems in read for problem in problems)))


def counts(*, trusted: bool) -> bool:
    """Whether a project's file is read at all."""
    return trusted


def untrusted_warnings(project_text: str | None, profile: CodexProfile, *, trusted: bool) -> tuple[Problem, ...]:
    """What the runtime says about a project file that it leaves out."""
    if trusted or project_text is None or not profile.untrusted_warning:
        return ()
    return (Problem(None, WARNING, profile.untrusted_warning),)


def layer(text: str | None) -> dict[str, Any]:
    return {} if text is None else parse_toml(text)


def check_settings(merged: Mapping[str, Any], profile: CodexProfile) -> None:
    """The top-level keys that concern servers. Raises EntryError with the place in its text."""
    if STORE_KEY in merged:
        at_place(STORE_KEY, lambda: check_variant(merged[STORE_KEY], STORES))
    if profile.grace_key and GRACE_KEY in merged:
        at_place(GRACE_KEY, lambda: check_milliseconds(merged[GRACE_KEY]))


def server_tables(merged: Mapping[str, Any]) -> dict[str, Any]:
    """`[mcp_servers.*]`; the spelling `mcpServers` is an unknown key."""
    tables = merged.get(SERVERS_KEY, {})
    if not isinstance(tables, dict):
        raise EntryError(f"invalid type: {described(tables)}, expected a map\nin `{SERVERS_KEY}`")
    return tables


def checked(name: str, entry: Any, profile: CodexProfile) -> str:
    """The entry's transport. Raises EntryError with the place in its text."""
    return at_place(f"{SERVERS_KEY}.{name}", lambda: check_entry(entry, profile))


def at_place(place: str, check: Callable[[], T]) -> T:
    """The check's answer; its error with the place added."""
    try:
        return check()
    except FieldError as error:
        raise EntryError(f"{error.text}\nin `{'.'.join((place, *error.place))}`") from None
    except EntryError as error:
        raise EntryError(f"{error.text}\nin `{place}`") from None


class Table(NamedTuple):
    """One checked `[mcp_servers.x]` and what stands around it."""

    name: str
    entry: Mapping[str, Any]
    transport: str
    settings: Mapping[str, Any]


def read_entry(
    table: Table, environment: Mapping[str, str], profile: CodexProfile
) -> tuple[LoadedServer | None, tuple[Problem, ...]]:
    """The server of a valid table, unless it is switched off; with the fault that it will start with."""
    if table.entry.get("enabled", True) is False:
        return None, (Problem(table.name, SKIPPED, "disabled"),)
    server = stdio_server(table, environment) if table.transport == "stdio" else http_server(table, environment)
    if re.fullmatch(profile.server_name_pattern, table.name) is None:
        server = failing(
            server,
            f"Invalid MCP server name '{table.name}': must match pattern {profile.server_name_pattern}",
        )
    problems = (Problem(table.name, SERVER_FAILS, server.fault),) if server.fault is not None else ()
    return server, problems


def stdio_server(table: Table, environment: Mapping[str, str]) -> LoadedServer:
    """A stdio server. Values are literal: this runtime expands nothing."""
    entry = table.entry
    return LoadedServer(
        table.name,
        "stdio",
        command=entry["command"],
        args=tuple(entry.get("args", ())),
        env=dict(entry.get("env", {})),
        unset=tuple(name for name in env_vars(entry) if name not in environment),
        raw=entry,
        settings=table.settings,
    )


def env_vars(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The variables that the entry asks to inherit."""
    return tuple(item["name"] if isinstance(item, dict) else item for item in entry.get("env_vars", ()))


def http_server(table: Table, environment: Mapping[str, str]) -> LoadedServer:
    """An HTTP server with its own headers and those from variables; an unset header variable is left out."""
    entry, headers, unset = table.entry, dict(table.entry.get("http_headers", {})), []
    for header, variable in entry.get("env_http_headers", {}).items():
        if variable in environment:
            headers[header] = environment[variable]
        else:
            unset.append(variable)
    bearer = entry.get("bearer_token_env_var")
    if bearer is not None and bearer in environment:
        headers["Authorization"] = f"Bearer {environment[bearer]}"
    elif bearer is not None:
        unset.append(bearer)
    server = LoadedServer(
        table.name,
        "http",
        url=entry["url"],
        headers=headers,
        unset=tuple(dict.fromkeys(unset)),
        raw=entry,
        settings=table.settings,
    )
    if bearer is None or bearer in environment:
        return server
    return failing(server, f"Environment variable {bearer} for MCP server '{table.name}' is not set")
