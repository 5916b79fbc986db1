"""Credentials that are there before a run: the orchestrator's rows, and the runtime's own store as that reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.gate.spawn import Runtime
from harness.reference.catalog.entry import read_entry
from harness.reference.credentials.key import pi_account, runtime_key
from harness.reference.credentials.row import Credential as Row
from harness.reference.oauth.server import remote_server
from harness.reference.secrets.placeholders import MissingVariableError, resolve_text
from harness.scenario.authorization import CLIENT
from harness.scenario.cast import Cast, Known
from harness.scenario.model import HOME, ORCHESTRATOR, RUNTIME, Credential, Scenario

REDIRECT = "http://127.0.0.1/callback"
AGE_SECONDS = 24 * 3600.0
"""Since when the orchestrator's rows are unchanged: longer than the refresh job leaves one alone."""


def stored_rows(
    credentials: Iterable[Credential], catalog: Mapping[str, Any], secrets: Mapping[str, str], cast: Cast, now: float
) -> Iterator[Row]:
    """The orchestrator's rows, under the keys of the catalog's entries as they are given to its sessions."""
    for each in credentials:
        entry = catalog.get(each.server)
        if ORCHESTRATOR not in each.held_by or entry is None:
            continue
        try:
            server = remote_server(read_entry(each.server, entry), secrets.get)
        except MissingVariableError:
            continue
        issuer = cast.authorizations.servers.get(each.issued_by or "")
        yield Row(
            credential_key=server.credential_key,
            server_name=each.server,
            server_url=server.url,
            client_id=CLIENT,
            access_token=each.access_token,
            refresh_token=each.refresh_token,
            token_endpoint=None if issuer is None else issuer.endpoint_url("token"),
            resource=None if issuer is None else server.url,
            issuer=None if issuer is None else issuer.issuer_at(server.url),
            redirect_uri=REDIRECT,
            expires_at=None if each.expires_in_seconds is None else now + each.expires_in_seconds,
            runtime_keys=server.runtime_keys,
            updated_at=now - AGE_SECONDS,
        )


def store_credentials(
    scenario: Scenario, credentials: Iterable[Credential], runtime: Runtime, known: Iterable[Known], now: float
) -> dict[str, str]:
    """The runtime's store files by their path, below the home directory."""
    urls = {server.name: server.url for server in known if server.url}
    given = [(each, urls[each.server]) for each in credentials if each.server in urls and RUNTIME in each.held_by]
    if not given:
        return {}
    match runtime.family:
        case "claude":
            entries = {key(scenario, runtime, each, url): claude_entry(each, url, now) for each, url in given}
            return {f"{HOME}/.claude/.credentials.json": json.dumps({"mcpOAuth": entries})}
        case "codex":
            entries = {key(scenario, runtime, each, url): codex_entry(each, url, now) for each, url in given}
            return {f"{HOME}/.codex/.credentials.json": json.dumps(entries)}
    folder = f"{HOME}/.pi/agent/mcp-oauth"
    return {
        f"{folder}/{pi_account(each.server)}/tokens.json": json.dumps(pi_entry(each, url, now)) for each, url in given
    }


def key(scenario: Scenario, runtime: Runtime, credential: Credential, url: str) -> str:
    """The key over the entry as the runtime reads it, at the address where its server is."""
    entry = scenario.catalog.get(credential.server, {"type": "http"})
    headers = {name: resolved(value, scenario.secrets) for name, value in (entry.get("headers") or {}).items()}
    config = {"type": entry.get("type"), "url": url, "headers": headers}
    return runtime_key(runtime.family, credential.server, config, scenario.environment)


def resolved(value: Any, secrets: Mapping[str, str]) -> Any:
    """A header's value with its secrets in it."""
    try:
        return resolve_text(value, secrets.get) if isinstance(value, str) else value
    except MissingVariableError:
        return value


def claude_entry(credential: Credential, url: str, now: float) -> dict[str, Any]:
    """Milliseconds; what is not known is left out."""
    entry: dict[str, Any] = {"serverName": credential.server, "serverUrl": url, "accessToken": credential.access_token}
    if credential.expires_in_seconds is not None:
        entry["expiresAt"] = int((now + credential.expires_in_seconds) * 1000)
    if credential.refresh_token:
        entry |= {"refreshToken": credential.refresh_token, "clientId": CLIENT}
    return entry


def codex_entry(credential: Credential, url: str, now: float) -> dict[str, Any]:
    """Milliseconds or null."""
    expires = credential.expires_in_seconds
    return {
        "server_name": credential.server,
        "server_url": url,
        "client_id": CLIENT,
        "access_token": credential.access_token,
        "expires_at": None if expires is None else int((now + expires) * 1000),
        "refresh_token": credential.refresh_token,
        "scopes": [],
    }


def pi_entry(credential: Credential, url: str, now: float) -> dict[str, Any]:
    """Seconds, and the URL that the tokens are bound to."""
    tokens: dict[str, Any] = {"accessToken": credential.access_token}
    if credential.expires_in_seconds is not None:
        tokens["expiresAt"] = now + credential.expires_in_seconds
    if credential.refresh_token:
        tokens["refreshToken"] = credential.refresh_token
    return {
        "tokens": tokens,
        "clientInfo": {"clientId": CLIENT, "redirectUris": [REDIRECT]},
        "serverUrl": url,
    }
