"""One entry of `.mcp.json`: which kind of server it is, whether it fits, and what it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_runtimes.claude.expansion import expand
from fake_runtimes.claude.faults import ABSENT, refuse, refuse_type
from fake_runtimes.claude.urls import is_url
from fake_runtimes.loaded import EntryError, LoadedServer, failing
from fake_runtimes.profile import ClaudeProfile

TRANSPORTS = {"stdio": "stdio", "http": "http", "streamable-http": "http", "sse": "sse", "ws": "ws"}
INVALID_URL = "'url' is not a valid URL. Update the server's config and reconnect."
NOT_CONFIGURED = "Not configured"


def transport_of(name: str, entry: Any, profile: ClaudeProfile) -> str:
    """The transport that the entry declares. Raises EntryError where the entry is skipped for it."""
    if not isinstance(entry, dict):
        refuse_type(name, "", "object", entry, profile)
    if "type" not in entry:
        return untyped_transport(name, entry)
    declared = entry["type"]
    if not isinstance(declared, str):
        refuse(name, 'type: expected "stdio"' if profile.faults_name_types else "type: Invalid input")
    if declared == "sdk":
        text = profile.sdk_entry_text
        raise EntryError(f'Skipped — MCP server "{name}" {text}' if text else "")
    if declared == "ws" and not profile.websocket_entries:
        raise EntryError("")
    if declared not in TRANSPORTS:
        raise EntryError(f'Skipped — unknown MCP server type "{declared}" for server "{name}"')
    return TRANSPORTS[declared]


def untyped_transport(name: str, entry: Mapping[str, Any]) -> str:
    """An entry without a type runs a command; a url alone is not guessed at."""
    if "url" in entry and "command" not in entry:
        raise EntryError(
            f'Skipped — MCP server "{name}" has a "url" but no "type";'
            ' add "type": "http" (or "sse" / "ws") to this entry'
        )
    return "stdio"


def checked_entry(name: str, entry: Mapping[str, Any], transport: str, profile: ClaudeProfile) -> None:
    """Raise EntryError unless the fields of this transport have their types; all other fields are free."""
    if transport == "stdio":
        check_text(name, "command", entry, profile)
        if not entry["command"]:
            refuse(name, "command: Command cannot be empty")
        check_args(name, entry, profile)
        check_record(name, "env", entry, profile)
    else:
        check_text(name, "url", entry, profile)
        check_record(name, "headers", entry, profile)
        check_oauth(name, entry)


def check_text(name: str, field: str, entry: Mapping[str, Any], profile: ClaudeProfile) -> None:
    value = entry.get(field, ABSENT)
    if not isinstance(value, str):
        refuse_type(name, field, "string", value, profile)


def check_args(name: str, entry: Mapping[str, Any], profile: ClaudeProfile) -> None:
    args = entry.get("args", [])
    if not isinstance(args, list):
        refuse_type(name, "args", "array", args, profile)
    for place, argument in enumerate(args):
        if not isinstance(argument, str):
            refuse_type(name, f"args.{place}", "string", argument, profile)


def check_record(name: str, field: str, entry: Mapping[str, Any], profile: ClaudeProfile) -> None:
    record = entry.get(field, {})
    if not isinstance(record, dict):
        refuse_type(name, field, "record", record, profile)
    for key, value in record.items():
        if not isinstance(value, str):
            refuse_type(name, f"{field}.{key}", "string", value, profile)


def check_oauth(name: str, entry: Mapping[str, Any]) -> None:
    """The one field of the `oauth` block that is known to be looked at here."""
    oauth = entry.get("oauth")
    address = oauth.get("authServerMetadataUrl") if isinstance(oauth, dict) else None
    if isinstance(address, str) and not address.startswith("https://"):
        refuse(name, "oauth.authServerMetadataUrl: authServerMetadataUrl must use https://")


class Values(NamedTuple):
    """The expanded fields of an entry and all the variables that were missing."""

    command: str | None
    args: tuple[str, ...]
    env: dict[str, str]
    url: str | None
    headers: dict[str, str]
    unset: tuple[str, ...]


def load_server(name: str, entry: Mapping[str, Any], transport: str, environment: Mapping[str, str]) -> LoadedServer:
    """The server that a checked entry becomes. A missing variable stays literal and does not stop it."""
    values = expanded_values(entry, transport, environment)
    server = LoadedServer(
        name,
        transport,
        values.command,
        values.args,
        values.env,
        values.url,
        values.headers,
        values.unset,
        raw=entry,
    )
    if transport == "stdio":
        return server
    if not server.url:
        return failing(server, NOT_CONFIGURED)
    return server if is_url(server.url) else failing(server, INVALID_URL)


def expanded_values(entry: Mapping[str, Any], transport: str, environment: Mapping[str, str]) -> Values:
    """Expansion reaches command, args, env values, url and header values; names and keys are left alone."""
    unset: dict[str, None] = {}

    def value(text: str) -> str:
        expanded = expand(text, environment)
        unset.update(dict.fromkeys(expanded.unset))
        return expanded.text

    if transport == "stdio":
        command = value(entry["command"])
        args = tuple(value(argument) for argument in entry.get("args", []))
        env = {key: value(text) for key, text in entry.get("env", {}).items()}
        return Values(command, args, env, None, {}, tuple(unset))
    url = value(entry["url"])
    headers = {key: value(text) for key, text in entry.get("headers", {}).items()}
    return Values(None, (), {}, url, headers, tuple(unset))
