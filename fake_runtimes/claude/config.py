"""How Claude Code reads `.mcp.json`: a bad entry is skipped with a word, a bad file loses every server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fake_runtimes.claude.entries import checked_entry, load_server, transport_of
from fake_runtimes.claude.faults import ABSENT
from fake_runtimes.loaded import (
    FILE_LOST,
    SERVER_FAILS,
    SKIPPED,
    WARNING,
    EntryError,
    Loaded,
    LoadedServer,
    Problem,
)
from fake_runtimes.profile import ClaudeProfile
from fake_runtimes.text import BYTE_ORDER_MARK, JsonTextError, javascript_order, kind, parse_json

CONFIG_PATH = ".mcp.json"
SERVERS_KEY = "mcpServers"
# Names under which other programs keep their servers; the runtime points at the first one it finds.
MISTAKEN_KEYS = ("servers",)
MISTAKEN = (
    'mcpServers: Missing "mcpServers" — found "{found}" instead.'
    ' Claude Code reads MCP servers from the "mcpServers" key.'
)


def read_config(text: str | None, environment: Mapping[str, str], profile: ClaudeProfile) -> Loaded:
    """What the runtime holds after reading this text of `.mcp.json` (None: there is no file). Never raises."""
    if text is None or (profile.empty_file_is_absent and not text.removeprefix(BYTE_ORDER_MARK).strip()):
        return Loaded()
    try:
        members = server_members(text, profile)
    except EntryError as error:
        return Loaded(problems=(Problem(None, FILE_LOST, error.text),))
    servers: list[LoadedServer] = []
    problems: list[Problem] = []
    for name, entry in javascript_order(members).items():
        server, found = read_entry(name, entry, environment, profile)
        problems += found
        if server is not None:
            servers.append(server)
    return Loaded(tuple(servers), tuple(problems))


def server_files(files: Mapping[str, str]) -> tuple[str, ...]:
    """Which of a project's files hold servers. A `mcpServers` table in a settings.json registers none."""
    return tuple(path for path in files if path == CONFIG_PATH)


def read_project(files: Mapping[str, str], environment: Mapping[str, str], profile: ClaudeProfile) -> Loaded:
    """What the runtime holds in a project directory; `files` maps relative paths to texts."""
    read = [read_config(files[path], environment, profile) for path in server_files(files)]
    return Loaded(
        tuple(server for loaded in read for server in loaded.servers),
        tuple(problem for loaded in read for problem in loaded.problems),
    )


OF_EVERY_OBJECT = "__"
"""Names that every JavaScript object has are looked at before the entry, others that are reserved after it."""


def server_members(text: str, profile: ClaudeProfile) -> dict[str, Any]:
    """The entries by name. Raises EntryError with the text of a fault that loses the file."""
    try:
        document = parse_json(text)
    except JsonTextError as error:
        place = f" (line {error.line}, column {error.column})" if profile.json_fault_names_place else ""
        raise EntryError(f"MCP config is not a valid JSON{place}") from None
    if not isinstance(document, dict):
        raise EntryError(file_fault("", "object", document, profile))
    if SERVERS_KEY not in document:
        mistaken = next((key for key in MISTAKEN_KEYS if key in document), None)
        if mistaken is None:
            raise EntryError(file_fault(f"{SERVERS_KEY}: ", "record", ABSENT, profile))
        raise EntryError(MISTAKEN.format(found=mistaken))
    members = document[SERVERS_KEY]
    if not isinstance(members, dict):
        raise EntryError(file_fault(f"{SERVERS_KEY}: ", "record", members, profile))
    return members


def file_fault(prefix: str, expected: str, found: Any, profile: ClaudeProfile) -> str:
    """A file-level fault in the profile's wording."""
    received = "undefined" if found is ABSENT else kind(found)
    return f"{prefix}Invalid input" + (
        f": expected {expected}, received {received}" if profile.faults_name_types else ""
    )


def read_entry(
    name: str, entry: Any, environment: Mapping[str, str], profile: ClaudeProfile
) -> tuple[LoadedServer | None, tuple[Problem, ...]]:
    """One entry: the server if it is loaded, and everything that the runtime says about it."""
    reserved = Problem(name, SKIPPED, f'"{name}" is a reserved MCP server name and was not loaded')
    if name in profile.reserved_names and name.startswith(OF_EVERY_OBJECT):
        return None, (reserved,)
    try:
        transport = transport_of(name, entry, profile)
        checked_entry(name, entry, transport, profile)
    except EntryError as error:
        return None, (Problem(name, SKIPPED, error.text),)
    if name in profile.reserved_names:
        return None, (reserved,)
    server = load_server(name, entry, transport, environment)
    return server, remarks(server)


def remarks(server: LoadedServer) -> tuple[Problem, ...]:
    """What the runtime says about a server that it loaded."""
    said: list[Problem] = []
    if server.unset:
        said.append(Problem(server.name, WARNING, f"Missing environment variables: {', '.join(server.unset)}"))
    if server.url is not None and server.url != server.url.strip() and server.starts:
        said.append(Problem(server.name, WARNING, "url has leading or trailing whitespace"))
    if server.fault is not None:
        said.append(Problem(server.name, SERVER_FAILS, server.fault))
    return tuple(said)
