"""NPM_CONFIG_CACHE of every npx entry: the clone's shared cache, or one of its own where two servers run one package.

Source: seed 000 "Timeouts and caching" (RuntimeConfigPostProcessor, NpxCacheIsolator); requirements
npx-pin-*, npx-collide-detects, npx-isolate-*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from harness.reference.npx import layout, paths
from harness.reference.npx.specs import entry_specs, is_npx_entry

CACHE_VARIABLE = "NPM_CONFIG_CACHE"


def collision_key(entry: object) -> tuple[str, ...]:
    """What two entries must share to collide: their sorted package specs as written; empty never collides."""
    return tuple(sorted(entry_specs(entry)))


def colliding(servers: Mapping[str, object]) -> tuple[str, ...]:
    """The servers that share a package with another one, in config order (npx-collide-detects).

    An entry with a cache of its own still counts: its twin must not fall back to the shared cache.
    """
    keys = {name: collision_key(entry) for name, entry in servers.items()}
    shared = Counter(keys.values())
    return tuple(name for name, key in keys.items() if key and shared[key] > 1)


def own_cache(entry: Mapping[str, Any]) -> str | None:
    """The cache an entry already names, by an operator or an earlier prepare; a blank or non-text value is none."""
    env = entry.get("env")
    value = env.get(CACHE_VARIABLE) if isinstance(env, Mapping) else None
    return value if isinstance(value, str) and value.strip() else None


def has_env_table(entry: Mapping[str, Any]) -> bool:
    """Can a variable be written into the entry? A missing env is made, one that is no table is left alone."""
    env = entry.get("env")
    return env is None or isinstance(env, Mapping)


def planned_cache(name: str, clone: str, collides: bool) -> str:
    """The cache directory Zimmer gives a server that names none."""
    return layout.isolated_cache(clone, name) if collides else layout.shared_cache(clone)


def cache_directories(clone: str, servers: Mapping[str, object]) -> dict[str, str]:
    """NPM_CONFIG_CACHE of each exact npx entry once pinned; an entry that gets none is not listed.

    Without an absolute working directory nothing is planned and only the entries' own values are left.
    """
    twins = set(colliding(servers))
    directories: dict[str, str] = {}
    for name, entry in servers.items():
        if not is_npx_entry(entry) or not has_env_table(entry):
            continue
        own = own_cache(entry)
        if own is not None:
            directories[name] = own
        elif paths.is_absolute(clone):
            directories[name] = planned_cache(name, clone, name in twins)
    return directories


def pin_caches(servers: Mapping[str, Any], clone: str) -> dict[str, Any]:
    """The runtime's server table with every npx entry pinned; entries that change are new dicts."""
    directories = cache_directories(clone, servers)
    return {name: pinned(entry, directories[name]) if name in directories else entry for name, entry in servers.items()}


def pinned(entry: Mapping[str, Any], cache: str) -> dict[str, Any]:
    """`entry` with the cache merged into its env table, and no longer forwarded from Codex's own environment."""
    if own_cache(entry) is not None:
        return dict(entry)
    written = {**entry, "env": {**(entry.get("env") or {}), CACHE_VARIABLE: cache}}
    if isinstance(entry.get("env_vars"), list):
        written["env_vars"] = [item for item in entry["env_vars"] if forwarded_name(item) != CACHE_VARIABLE]
        if not written["env_vars"]:
            del written["env_vars"]
    return written


def forwarded_name(item: object) -> object:
    """The variable an item of Codex's `env_vars` forwards: a name, or a table with one."""
    return item.get("name") if isinstance(item, Mapping) else item


def directory_clashes(servers: Mapping[str, object]) -> tuple[str, ...]:
    """One warning for each isolated directory that two names share after sanitising
    (npx-layout-name-collision).
    """
    members: dict[str, list[str]] = {}
    for name in colliding(servers):
        members.setdefault(layout.directory_name(name), []).append(name)
    return tuple(
        f"MCP servers {', '.join(names)} share the isolated npm cache {directory}: "
        "their names differ only in replaced characters"
        for directory, names in members.items()
        if len(names) > 1
    )
