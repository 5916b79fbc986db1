"""Codex's forwarding of variables by name, turned into values where Zimmer's secrets know the name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.reference.secrets.blank import is_blank
from harness.reference.secrets.placeholders import Lookup


def inline_known(entry: Mapping[str, Any], lookup: Lookup) -> dict[str, Any]:
    """Names of `env_vars`, `env_http_headers` and `bearer_token_env_var` that have a value move to where
    values are.

    Codex passes on only a fixed list of its own variables, and its process holds none of the secrets. What
    is not known stays forwarded; emptied tables go (prepare-codex-forwarding-inlined).
    """
    return inline_headers(inline_variables(dict(entry), lookup), lookup)


def inline_variables(entry: dict[str, Any], lookup: Lookup) -> dict[str, Any]:
    """`env_vars` names into `env`; a name that env already has keeps its value there."""
    names = entry.get("env_vars")
    env = entry.get("env", {})
    if not isinstance(names, list) or not isinstance(env, Mapping):
        return entry
    known = known_values((name for name in names if isinstance(name, str)), lookup)
    if not known:
        return entry
    return without_forwarded({**entry, "env": {**known, **env}}, known)


def inline_headers(entry: dict[str, Any], lookup: Lookup) -> dict[str, Any]:
    """`env_http_headers` values and the bearer variable into `http_headers`."""
    headers = entry.get("http_headers", {})
    forwarded = entry.get("env_http_headers", {})
    if not isinstance(headers, Mapping) or not isinstance(forwarded, Mapping):
        return entry
    bearer = entry.get("bearer_token_env_var")
    names = [name for name in (*forwarded.values(), bearer) if isinstance(name, str)]
    known = known_values(names, lookup)
    moved = {header: known[name] for header, name in forwarded.items() if name in known}
    written = {key: value for key, value in entry.items() if key not in ("http_headers", "env_http_headers")}
    if bearer in known:
        del written["bearer_token_env_var"]
        moved["Authorization"] = f"Bearer {known[bearer]}"
    if moved or headers or "http_headers" in entry:
        written["http_headers"] = {**headers, **moved}
    if rest := {header: name for header, name in forwarded.items() if header not in moved}:
        written["env_http_headers"] = rest
    return {key: written[key] for key in (*entry, *written) if key in written}


def known_values(names: Iterable[str], lookup: Lookup) -> dict[str, str]:
    """The values of those names that have one; a blank value is none."""
    found = {name: lookup(name) for name in names}
    return {name: value for name, value in found.items() if value is not None and not is_blank(value)}


def without_forwarded(entry: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The entry without these names in `env_vars`, and without an emptied list."""
    forwarded = entry.get("env_vars")
    if not isinstance(forwarded, list):
        return dict(entry)
    gone = set(names)
    rest = [item for item in forwarded if not (isinstance(item, str) and item in gone)]
    written = {**entry, "env_vars": rest}
    return written if rest else {key: value for key, value in written.items() if key != "env_vars"}
