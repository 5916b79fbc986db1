"""The values of one entry after expansion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_runtimes.loaded import EntryError
from fake_runtimes.pi.expansion import expand, is_command, literal

ARGS_NO_LIST = "(definition.args ?? []).map is not a function"
VALUE_NO_TEXT = "value.startsWith is not a function"
VALUE_NULL = "Cannot read properties of null (reading 'startsWith')"
ARGUMENT_NO_TEXT = "value.replace is not a function"


class Values(NamedTuple):
    """`bearer` is None unless the entry says `auth: "bearer"`; unset variables are empty in the texts."""

    args: tuple[str, ...]
    env: dict[str, str]
    url: str | None
    headers: dict[str, str]
    bearer: str | None
    unset: tuple[str, ...]
    unset_in_url: tuple[str, ...]


def expanded_values(entry: Mapping[str, Any], environment: Mapping[str, str]) -> Values:
    """The entry's values. Raises EntryError with the text of the failure where one has the wrong type."""
    unset: dict[str, None] = {}

    def value(text: str) -> str:
        expanded = expand(text, environment)
        unset.update(dict.fromkeys(expanded.unset))
        return expanded.text

    def runnable(text: str) -> str:
        return text if is_command(text) else value(literal(text))

    args = tuple(value(argument) for argument in arguments(entry))
    env = {key: runnable(text) for key, text in record(entry, "env").items()}
    headers = {key: runnable(text) for key, text in record(entry, "headers").items()}
    token = bearer_token(entry, environment)
    bearer = None if token is None else runnable(token)
    if not isinstance(entry.get("url"), str):
        return Values(args, env, None, headers, bearer, tuple(unset), ())
    url, unset_in_url = expand(entry["url"], environment)
    unset.update(dict.fromkeys(unset_in_url))
    return Values(args, env, url, headers, bearer, tuple(unset), unset_in_url)


def arguments(entry: Mapping[str, Any]) -> list[str]:
    """`args`, absent or null being none. What a member that is no text does was not measured; here it fails."""
    args = entry.get("args")
    if args is None:
        return []
    if not isinstance(args, list):
        raise EntryError(ARGS_NO_LIST)
    if not all(isinstance(argument, str) for argument in args):
        raise EntryError(ARGUMENT_NO_TEXT)
    return args


def record(entry: Mapping[str, Any], field: str) -> dict[str, str]:
    """`env` or `headers`; what is no object holds nothing."""
    members = entry.get(field)
    if not isinstance(members, dict):
        return {}
    for value in members.values():
        if not isinstance(value, str):
            raise EntryError(VALUE_NULL if value is None else VALUE_NO_TEXT)
    return members


def bearer_token(entry: Mapping[str, Any], environment: Mapping[str, str]) -> str | None:
    """The static token as written; without `auth: "bearer"` the adapter ignores it."""
    if entry.get("auth") != "bearer":
        return None
    token, variable = entry.get("bearerToken"), entry.get("bearerTokenEnv")
    if isinstance(token, str):
        return token
    return environment.get(variable, "") if isinstance(variable, str) else None


def cwd_of(name: str, entry: Mapping[str, Any], environment: Mapping[str, str]) -> str | None:
    """The directory of a stdio child. Raises EntryError where a variable leaves it empty."""
    cwd = entry.get("cwd")
    if not isinstance(cwd, str):
        return None
    expanded = expand(cwd, environment).text
    if not expanded:
        raise EntryError(f'MCP server "{name}" configured cwd does not exist: ""')
    home = environment.get("HOME", "~")
    return home + expanded[1:] if expanded == "~" or expanded.startswith("~/") else expanded
