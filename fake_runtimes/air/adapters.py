"""AIR's adapters: which fields of a catalog entry reach a runtime's config, and under which names.

The field lists are closed: title, description, default_in_roots, unavailable, startup_timeout_sec and
whatever
else an entry carries stop here. Entries are translated as they are; nothing is validated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

Entry = Mapping[str, Any]

WHOLE_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
BEARER_PLACEHOLDER = re.compile(r"Bearer \$\{([A-Za-z_][A-Za-z0-9_]*)\}")
PLACEHOLDER = re.compile(r"\$\{([^}]+)\}")
SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
STDIO_FIELDS = ("command", "args", "env")
OAUTH_FIELDS = ("clientId", "scopes", "authServerMetadataUrl", "clientSecret")


def claude_entry(entry: Entry) -> dict[str, Any]:
    """The entry of `.mcp.json`: `{command, args?, env?}`, or `{type?, url?, headers?, oauth?}` for any
    other type.
    """
    if entry.get("type") == "stdio":
        return {field: entry[field] for field in STDIO_FIELDS if field in entry}
    written: dict[str, Any] = {}
    if entry.get("type") is not None:
        written["type"] = "http" if entry["type"] == "streamable-http" else entry["type"]
    written |= {field: entry[field] for field in ("url", "headers") if field in entry}
    if isinstance(entry.get("oauth"), Mapping):
        written["oauth"] = claude_oauth(entry["oauth"])
    return written


def claude_oauth(oauth: Entry) -> dict[str, Any]:
    """Claude's oauth block; the redirect URI survives as its explicit port only."""
    written = {field: oauth[field] for field in OAUTH_FIELDS if field in oauth}
    port = callback_port(oauth.get("redirectUri"))
    return written if port is None else written | {"callbackPort": port}


def callback_port(redirect_uri: object) -> int | None:
    """The explicit port of a redirect URI; None where there is none or the text is no URL."""
    if not isinstance(redirect_uri, str):
        return None
    try:
        return urlsplit(redirect_uri).port
    except ValueError:
        return None


def codex_entry(entry: Entry) -> dict[str, Any]:
    """The table of `.codex/config.toml` with values in place: the form of the `checked` adapter."""
    if entry.get("type") == "stdio":
        written = {field: entry[field] for field in STDIO_FIELDS if field in entry}
        return {field: value for field, value in written.items() if value or field == "command"}
    written = {"url": entry["url"]} if "url" in entry else {}
    if entry.get("headers"):
        written["http_headers"] = entry["headers"]
    return written | codex_oauth(entry)


def codex_oauth(entry: Entry) -> dict[str, Any]:
    """Only the client id has a place in a table; the redirect URI is one setting for the whole file."""
    oauth = entry.get("oauth")
    client_id = oauth.get("clientId") if isinstance(oauth, Mapping) else None
    return {} if client_id is None else {"oauth": {"client_id": client_id}}


def codex_forwarding_entry(entry: Entry) -> dict[str, Any]:
    """The table as the real adapter writes it: variables are forwarded by name instead of put in place."""
    return forwarding_stdio(entry) if entry.get("type") == "stdio" else forwarding_remote(entry)


def forwarding_stdio(entry: Entry) -> dict[str, Any]:
    """`K = "${K}"` becomes a name in env_vars; a value that mixes text and names needs a shell in front."""
    env = entry.get("env")
    if not isinstance(env, Mapping):
        return codex_entry(entry)
    names: list[str] = []
    literal: dict[str, Any] = {}
    rebound: dict[str, str] = {}
    for key, value in env.items():
        inside = PLACEHOLDER.findall(value) if isinstance(value, str) else []
        if not inside or not all(SHELL_NAME.fullmatch(name) for name in (key, *inside)):
            literal[key] = value
        elif value == f"${{{key}}}":
            names.append(key)
        else:
            rebound[key] = value
            names.extend(inside)
    written = codex_entry({**entry, "env": literal})
    if rebound:
        written |= shell_shim(written, rebound)
    if names:
        written["env_vars"] = list(dict.fromkeys(names))
    order = ("command", "args", "env_vars", "env")
    return {field: written[field] for field in order if field in written}


def shell_shim(written: Entry, rebound: Mapping[str, str]) -> dict[str, Any]:
    """`sh -c 'K="…${X}…" exec cmd arg'`, quoted so that only the placeholders are expanded."""
    assignments = " ".join(f'{key}="{double_quoted(value)}"' for key, value in rebound.items())
    args = written.get("args", ())
    words = [written.get("command", ""), *(args if isinstance(args, list | tuple) else ())]
    return {"command": "sh", "args": ["-c", f"{assignments} exec {' '.join(map(single_quoted, words))}"]}


def double_quoted(value: str) -> str:
    """The inside of a double-quoted shell word; text around placeholders is escaped, placeholders stay."""
    parts = re.split(r"(\$\{[^}]+\})", value)
    return "".join(part if part.startswith("${") else re.sub(r'([\\"`$])', r"\\\1", part) for part in parts)


def single_quoted(word: object) -> str:
    """A single-quoted shell word."""
    return "'" + str(word).replace("'", "'\\''") + "'"


def forwarding_remote(entry: Entry) -> dict[str, Any]:
    """Header values that are one placeholder are forwarded by name; mixed values stay literal."""
    written: dict[str, Any] = {"url": entry["url"]} if "url" in entry else {}
    headers = entry.get("headers")
    plain: dict[str, Any] = {}
    forwarded: dict[str, str] = {}
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        text = value if isinstance(value, str) else ""
        bearer = BEARER_PLACEHOLDER.fullmatch(text) if name.lower() == "authorization" else None
        whole = WHOLE_PLACEHOLDER.fullmatch(text)
        if bearer:
            written["bearer_token_env_var"] = bearer[1]
        elif whole:
            forwarded[name] = whole[1]
        else:
            plain[name] = value
    if plain:
        written["http_headers"] = plain
    if forwarded:
        written["env_http_headers"] = forwarded
    return written | codex_oauth(entry)


def callback_url(entries: Mapping[str, Entry]) -> str | None:
    """Codex's one `mcp_oauth_callback_url`: the first redirect URI among the activated remote entries."""
    for entry in entries.values():
        oauth = entry.get("oauth")
        if entry.get("type") != "stdio" and isinstance(oauth, Mapping) and isinstance(oauth.get("redirectUri"), str):
            return str(oauth["redirectUri"])
    return None
