"""Zimmer's own servers: whose name they bear, which are injected, and at which instance they point.

Sources: seed 000 "Selection is per session"; requirements selection-injected-*, selection-self-session-*,
selection-retarget-*.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote_plus

from harness.reference.selection.connection import SELF_SESSION_GROUP, named_groups

ZIMMER = "zimmer"
ZIMMER_PREFIX = "zimmer-"
SELF_SESSION = "zimmer-self-session"
API_KEY_HEADER = "X-API-Key"
ENDPOINT = "/mcp"

PRODUCTION = "production"
STAGING = "staging"
PRODUCTION_BASE_URL = "https://zimmer.example.com"
STAGING_BASE_URL = "https://staging.zimmer.example.com"
LOCAL_PORT = "3000"

CODEX = "codex"
CODEX_HEADER_TABLES = ("http_headers", "env_http_headers")

# What stands before the path: a scheme, `//`, and an authority. A placeholder is one piece, whatever its
# default holds.
_PIECE = r"(?:\$\{[^}]*\}|[^/?#])"
_ORIGIN = re.compile(rf"(?:(?:\$\{{[^}}]*\}}|[A-Za-z][A-Za-z0-9+.-]*):)?//{_PIECE}*")
_BARE_AUTHORITY = re.compile(rf"{_PIECE}*")


class Instance(NamedTuple):
    """The Zimmer that prepares a session: `environment` is "production", "staging", or any other name
    (local).
    """

    environment: str
    base_url: str
    api_key: str

    @property
    def production(self) -> bool:
        return self.environment == PRODUCTION


def is_zimmer_name(name: str) -> bool:
    """Does a server name belong to a Zimmer instance? By name alone (selection-retarget-by-name)."""
    return name == ZIMMER or name.startswith(ZIMMER_PREFIX)


def variable_prefix(environment: str) -> str:
    """The prefix of the variables that name an environment's base URL and key
    (selection-retarget-targets).
    """
    return {PRODUCTION: "ZIMMER_PROD", STAGING: "ZIMMER_STAGING"}.get(environment, "ZIMMER_LOCAL")


def default_base_url(environment: str, variables: Mapping[str, str]) -> str:
    """The base URL where no variable gives one; locally http://localhost:$PORT, 3000 without a PORT."""
    if environment == PRODUCTION:
        return PRODUCTION_BASE_URL
    if environment == STAGING:
        return STAGING_BASE_URL
    return f"http://localhost:{_text(variables, 'PORT') or LOCAL_PORT}"


def instance_from(environment: str, variables: Mapping[str, str]) -> Instance:
    """The instance of `environment` with base URL and key of its own variables
    (selection-retarget-targets).
    """
    prefix = variable_prefix(environment)
    base_url = _text(variables, f"{prefix}_BASE_URL") or default_base_url(environment, variables)
    return Instance(environment, base_url, _text(variables, f"{prefix}_API_KEY"))


def blank_key_warning(instance: Instance) -> str | None:
    """What the log says when the instance has no key; a blank key never stops a prepare."""
    if instance.api_key.strip():
        return None
    variable = f"{variable_prefix(instance.environment)}_API_KEY"
    return f"{variable} is blank: Zimmer's own MCP servers will be refused for lack of an API key"


def _text(variables: Mapping[str, str], name: str) -> str:
    return (variables.get(name) or "").strip()


def injected_url(base_url: str, tool_groups: str | None = None, allowed_agent_roots: str | None = None) -> str:
    """`<base>/mcp` with one slash; query keys sorted, values form-escaped, a blank value left out
    (selection-self-session-url).
    """
    scope = {"allowed_agent_roots": allowed_agent_roots, "tool_groups": tool_groups}
    named = [(key, value) for key, value in sorted(scope.items()) if value and value.strip()]
    query = "&".join(f"{key}={quote_plus(value)}" for key, value in named)
    return base_url.strip().rstrip("/") + ENDPOINT + (f"?{query}" if query else "")


def covers_self_session(name: str, url: str | None) -> bool:
    """Does this one entry carry the self-session tools? Only a Zimmer entry with a URL that is unscoped or
    names the group.

    `zimmer-self-session` itself never counts: a catalog's copy of it is replaced
    (selection-self-session-covered).
    """
    if name == SELF_SESSION or not is_zimmer_name(name) or not url or not url.strip():
        return False
    groups = named_groups(url)
    return groups is None or SELF_SESSION_GROUP in groups


def self_session_covered(existing: Mapping[str, str | None]) -> bool:
    """Do the session's entries (name to URL, None for stdio) already carry the self-session tools?"""
    return any(covers_self_session(name, url) for name, url in existing.items())


def inject(existing: Mapping[str, str | None], default_subagent_roots: Sequence[str], base_url: str) -> dict[str, str]:
    """The servers Zimmer adds to a session, name to URL (selection-injected-names,
    selection-subagent-entry-url).

    An entry named `zimmer` that is already there is kept as it is and not narrowed
    (selection-existing-zimmer-kept).
    """
    injected: dict[str, str] = {}
    roots = [root for root in default_subagent_roots if root.strip()]
    if roots and ZIMMER not in existing:
        injected[ZIMMER] = injected_url(base_url, allowed_agent_roots=",".join(roots))
    if not self_session_covered({**existing, **injected}):
        injected[SELF_SESSION] = injected_url(base_url, tool_groups=SELF_SESSION_GROUP)
    return injected


def injected_entry(runtime: str, url: str, api_key: str) -> dict[str, Any]:
    """An injected server as a runtime's config holds it: streamable HTTP with the key header
    (selection-injected-transport).
    """
    if runtime == CODEX:
        return {"url": url, "http_headers": {API_KEY_HEADER: api_key}}
    return {"type": "http", "url": url, "headers": {API_KEY_HEADER: api_key}}


def retarget(name: str, entry: Mapping[str, Any], instance: Instance) -> dict[str, Any]:
    """`entry` as this instance may write it: a new dict whose URL and key are the instance's own.

    Nothing changes on production, under another server's name, or without a URL
    (selection-retarget-every-zimmer, selection-retarget-production-noop). The key header goes under any
    spelling and from every header table, so no other instance's key is left; Codex's forwarding of it from the
    environment goes too (selection-retarget-key).
    """
    url = entry.get("url")
    if instance.production or not is_zimmer_name(name) or not isinstance(url, str) or not url.strip():
        return dict(entry)
    moved = {**entry, "url": retargeted_url(url, instance.base_url)}
    return retargeted_headers(moved, instance.api_key)


def retargeted_url(url: str, base_url: str) -> str:
    """`url` at the origin of `base_url`: scheme, user, host and port replaced; path, query and fragment kept."""
    text = url.strip()
    origin = _ORIGIN.match(text) or _BARE_AUTHORITY.match(text)
    rest = text[origin.end() :] if origin else text
    return base_origin(base_url) + rest


def base_origin(base_url: str) -> str:
    """Scheme and authority of a base URL, without a path or trailing slash."""
    text = base_url.strip()
    origin = _ORIGIN.match(text)
    return origin.group() if origin else text.rstrip("/")


def retargeted_headers(entry: Mapping[str, Any], api_key: str) -> dict[str, Any]:
    """`entry` with `api_key` as its only API key header, in the header table its shape uses."""
    table = "http_headers" if any(key in entry for key in CODEX_HEADER_TABLES) else "headers"
    written = {key: value for key, value in entry.items() if key not in CODEX_HEADER_TABLES and key != "headers"}
    for key, value in entry.items():
        if key in (*CODEX_HEADER_TABLES, "headers") and key != table and (kept := _without_key_header(value)):
            written[key] = kept
    written[table] = _with_key_header(entry.get(table), api_key)
    # The order of an entry's keys is the order of the file it goes to.
    order = [*entry, *(key for key in written if key not in entry)]
    return {key: written[key] for key in order if key in written}


def is_key_header(name: str) -> bool:
    """Is this the API key header? Header names have no case (RFC 9110)."""
    return name.strip().lower() == API_KEY_HEADER.lower()


def _without_key_header(headers: object) -> object:
    if not isinstance(headers, Mapping):
        return headers
    return {name: value for name, value in headers.items() if not is_key_header(name)}


def _with_key_header(headers: object, api_key: str) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        if is_key_header(name):
            written[API_KEY_HEADER] = api_key
        else:
            written[name] = value
    written[API_KEY_HEADER] = api_key
    return written
