"""How Pi's adapter reads its configuration: no schema, each entry fails or starts alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fake_runtimes.loaded import (
    SERVER_FAILS,
    SKIPPED,
    WARNING,
    EntryError,
    Loaded,
    LoadedServer,
    Problem,
    failing,
)
from fake_runtimes.pi.expansion import is_command
from fake_runtimes.pi.layers import merge
from fake_runtimes.pi.values import Values, bearer_token, cwd_of, expanded_values
from fake_runtimes.profile import PiProfile

CONFIG_PATH = ".mcp.json"
SCHEME = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*:")
TRANSPORTS = ("command", "url", "socket")
# Kept for servers, since the adapter reads them beside each entry.
SERVER_SETTINGS = (
    "requestTimeoutMs",
    "directTools",
    "toolPrefix",
    "oauthDir",
    "scriptMode",
    "disableProxyTool",
    "authRequiredMessage",
)


def read_config(files: Mapping[str, str] | str | None, environment: Mapping[str, str], profile: PiProfile) -> Loaded:
    """What the adapter holds after reading the files (paths as in layers.FILES; a bare text is `.mcp.json`).

    Never raises, and never runs a command that stands in a value: such a value is kept as it is, with a
    warning.
    """
    by_path = {CONFIG_PATH: files} if isinstance(files, str) else files or {}
    layers = merge(by_path, profile)
    settings = {key: value for key, value in layers.settings.items() if key in SERVER_SETTINGS}
    servers: list[LoadedServer] = []
    problems = list(layers.problems)
    for name, entry in layers.entries.items():
        if entry.get("disabled") is True:
            problems.append(Problem(name, SKIPPED, f"⊘ {name} (disabled)"))
            continue
        server = read_entry(name, entry, environment)._replace(settings=settings)
        servers.append(server)
        problems += remarks(server)
    return Loaded(tuple(servers), tuple(problems))


def read_entry(name: str, entry: Mapping[str, Any], environment: Mapping[str, str]) -> LoadedServer:
    """The server that an entry becomes; every entry becomes one, if only to fail."""
    try:
        transport = transport_of(name, entry)
        values = expanded_values(entry, environment)
        cwd_of(name, entry, environment)
    except EntryError as error:
        return failing(LoadedServer(name, likely_transport(entry), raw=entry), error.text)
    server = loaded_server(name, entry, transport, values)
    if values.unset_in_url:
        missing = ", ".join(values.unset_in_url)
        return failing(server, f"Missing environment variable in MCP server URL: {missing}")
    if server.url is not None and not is_url(server.url):
        return failing(server, f"Invalid MCP server URL after environment interpolation: {server.url}")
    return server


def is_url(text: str) -> bool:
    """Whether a text is one by its beginning."""
    return SCHEME.match(text) is not None


def transport_of(name: str, entry: Mapping[str, Any]) -> str:
    """Raises EntryError unless exactly one of command, url and socket is a text. `type` is never looked at."""
    given = [field for field in TRANSPORTS if entry.get(field)]
    if len(given) != 1 or not isinstance(entry[given[0]], str):
        raise EntryError(f"Server {name} must configure exactly one of command, url, or socket")
    return likely_transport(entry)


def likely_transport(entry: Mapping[str, Any]) -> str:
    """The transport by the fields that are there."""
    if entry.get("url"):
        return "sse" if entry.get("httpTransport") == "sse" else "http"
    return "socket" if entry.get("socket") else "stdio"


def loaded_server(name: str, entry: Mapping[str, Any], transport: str, values: Values) -> LoadedServer:
    """The server with the fields that belong to its transport. The command is never expanded."""
    if transport in ("http", "sse"):
        headers = {**values.headers, **bearer_header(values)}
        return LoadedServer(name, transport, url=values.url, headers=headers, unset=values.unset, raw=entry)
    command = entry["command"] if transport == "stdio" else None
    return LoadedServer(name, transport, command, values.args, values.env, unset=values.unset, raw=entry)


def bearer_header(values: Values) -> dict[str, str]:
    return {"Authorization": f"Bearer {values.bearer}"} if values.bearer else {}


def remarks(server: LoadedServer) -> tuple[Problem, ...]:
    """What is to be said of one server; only the failure is the adapter's own word."""
    said = [
        Problem(server.name, WARNING, f"{place} is a shell command, which is not run here")
        for place in commands(server.raw)
    ]
    if server.fault is not None:
        said.append(Problem(server.name, SERVER_FAILS, f"MCP: Failed to connect to {server.name}: {server.fault}"))
    return tuple(said)


def commands(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The places of values that the adapter would run as shell commands."""
    places = [
        f"{field}.{key}"
        for field in ("env", "headers")
        for key, value in (entry[field] if isinstance(entry.get(field), dict) else {}).items()
        if isinstance(value, str) and is_command(value)
    ]
    token = entry.get("bearerToken")
    if isinstance(token, str) and bearer_token(entry, {}) is not None and is_command(token):
        places.append("bearerToken")
    return tuple(places)


def oauth_considered(server: LoadedServer) -> bool:
    """Whether the adapter would look for stored tokens and authorize.

    Only for a url without `oauth: false`, and either with `auth: "oauth"` or with neither `auth` nor any
    header.
    """
    raw = server.raw
    if server.url is None or raw.get("oauth") is False:
        return False
    return raw.get("auth") == "oauth" or (raw.get("auth") is None and not raw.get("headers"))
