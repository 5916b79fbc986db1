"""Tokens that stand in a runtime's own store before a run: under the reference's key, as the runtime reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from harness.gate.spawn import Runtime
from harness.reference.credentials.key import pi_account, runtime_key
from harness.reference.secrets.placeholders import MissingVariableError, resolve_text
from harness.scenario.cast import Known
from harness.scenario.model import HOME, Credential, Scenario

CLIENT = "a-client"


def store_credentials(scenario: Scenario, runtime: Runtime, known: Iterable[Known], now: float) -> dict[str, str]:
    """The runtime's store files by their path, below the home directory."""
    urls = {server.name: server.url for server in known if server.url}
    given = [(each, urls[each.server]) for each in scenario.credentials if each.server in urls]
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
        "clientInfo": {"clientId": CLIENT, "redirectUris": ["http://127.0.0.1/callback"]},
        "serverUrl": url,
    }
