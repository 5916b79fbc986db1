"""Which tables Codex takes. One that it refuses takes the whole config with it: no server starts, and no
turn.

Measured on 0.146.0 and 0.169.0: exactly one of command and url; the other transport's keys are an error; texts
in env and headers; a budget is a number that is not negative, whole where it is milliseconds; modes of approval and
sources of variables are of a list; a name is letters, digits, `_` and `-`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from harness.reference.prepare.names import name_refusal

STDIO_KEYS = ("args", "env", "env_vars", "cwd")
REMOTE_KEYS = ("bearer_token_env_var", "http_headers", "env_http_headers", "oauth", "oauth_resource")
TEXTS = ("command", "url", "cwd", "bearer_token_env_var", "oauth_resource")
TEXT_LISTS = ("args", "enabled_tools", "disabled_tools", "scopes")
TEXT_TABLES = ("env", "http_headers", "env_http_headers", "oauth")
NUMBERS = ("startup_timeout_sec", "tool_timeout_sec")
WHOLE_NUMBERS = ("startup_timeout_ms",)
FLAGS = ("enabled", "required")
APPROVAL_MODES = ("auto", "prompt", "writes", "approve")
VARIABLE_SOURCES = ("local", "remote")


def writable(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with numbers and booleans of its env as the texts that Codex wants."""
    env = entry.get("env")
    if not isinstance(env, Mapping):
        return dict(entry)
    return {**entry, "env": {name: env_text(value) for name, value in env.items()}}


def env_text(value: Any) -> Any:
    """An env value as JSON spells it; what is neither number nor boolean stays."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def remote_table(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The table that is made of a remote entry of the catalog: address, headers, the client of its `oauth`."""
    oauth = entry.get("oauth")
    client = oauth.get("clientId") if isinstance(oauth, Mapping) else None
    table = {"url": entry.get("url"), "http_headers": entry.get("headers")}
    return {key: value for key, value in table.items() if value} | (
        {} if client is None else {"oauth": {"client_id": client}}
    )


def refusal(name: str, entry: Mapping[str, Any]) -> str | None:
    """Why Codex would refuse this table; None: it takes it (prepare-codex-entry-validated)."""
    return name_refusal("codex", name) or transport_refusal(entry) or form_refusal(entry)


def transport_refusal(entry: Mapping[str, Any]) -> str | None:
    """What is wrong with the choice between command and url."""
    if "command" in entry and "url" in entry:
        return "url is not supported for stdio"
    if "command" not in entry and "url" not in entry:
        return "invalid transport: neither command nor url"
    transport, foreign = ("stdio", REMOTE_KEYS) if "command" in entry else ("streamable_http", STDIO_KEYS)
    wrong = next((key for key in foreign if key in entry), None)
    return None if wrong is None else f"{wrong} is not supported for {transport}"


def form_refusal(entry: Mapping[str, Any]) -> str | None:
    """The first value that has another form than Codex wants."""
    for key, value in entry.items():
        if not has_form(key, value):
            return f"{key} has a form that Codex refuses"
    return None


def has_form(key: str, value: Any) -> bool:
    """Does the value of a known key have the form that Codex wants? Unknown keys are ignored by it."""
    if key in TEXTS:
        return is_text(value)
    if key in TEXT_LISTS:
        return isinstance(value, list) and all(map(is_text, value))
    if key in TEXT_TABLES:
        return isinstance(value, Mapping) and all(map(is_text, (*value, *value.values())))
    if key in NUMBERS:
        return is_budget(value)
    if key in WHOLE_NUMBERS:
        return is_budget(value) and isinstance(value, int)
    if key in FLAGS:
        return isinstance(value, bool)
    return is_representable(value) and has_known_words(key, value)


def has_known_words(key: str, value: Any) -> bool:
    """Are the words of a list that Codex knows, where a key takes only those?"""
    match key:
        case "default_tools_approval_mode":
            return value in APPROVAL_MODES
        case "tools":
            return isinstance(value, Mapping) and all(map(is_tool_table, value.values()))
        case "env_vars":
            return isinstance(value, list) and all(map(is_variable, value))
    return True


def is_tool_table(value: object) -> bool:
    """The settings of one tool; its mode of approval may be left out."""
    return isinstance(value, Mapping) and value.get("approval_mode", APPROVAL_MODES[0]) in APPROVAL_MODES


def is_variable(value: object) -> bool:
    """The name of a variable, or a table with it and where it comes from."""
    if isinstance(value, Mapping):
        return is_text(value.get("name")) and value.get("source", VARIABLE_SOURCES[0]) in VARIABLE_SOURCES
    return is_text(value)


def is_text(value: object) -> bool:
    """A text that UTF-8, and so TOML, has a form for."""
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def is_budget(value: object) -> bool:
    """A finite number that is not negative."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def is_representable(value: object) -> bool:
    """Has the value a TOML form? A null has none, at any depth."""
    if isinstance(value, Mapping):
        return all(is_text(key) and is_representable(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(is_representable, value))
    return value is not None and (not isinstance(value, str) or is_text(value))
