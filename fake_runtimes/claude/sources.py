"""Where a session finds its servers: `.mcp.json` here and above, the user's files, and what these forbid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fake_runtimes.claude.config import CONFIG_PATH, SERVERS_KEY, read_config, read_entry
from fake_runtimes.claude.given import NOTHING_GIVEN, Given
from fake_runtimes.loaded import LoadedServer, Problem
from fake_runtimes.profile import ClaudeProfile
from fake_runtimes.text import JsonTextError, javascript_order, parse_json
from harness.world import World

USER, PROJECT, LOCAL, DYNAMIC = "user", "project", "local", "dynamic"
USER_CONFIG = ".claude.json"
SETTINGS = "settings.json"


class Sourced(NamedTuple):
    """A server, where it was found, and whether the user has switched it off here."""

    server: LoadedServer
    source: str
    disabled: bool = False


class Homes(NamedTuple):
    """The directory of settings, stores and caches, the user's `.claude.json`, and where logs go."""

    config: str
    user_config: str
    cache: str


def homes(environment: Mapping[str, str]) -> Homes:
    """By HOME; CLAUDE_CONFIG_DIR moves everything but the logs, which follow XDG_CACHE_HOME."""
    home, moved = environment.get("HOME", ""), environment.get("CLAUDE_CONFIG_DIR")
    cache = environment.get("XDG_CACHE_HOME") or f"{home}/.cache"
    if moved:
        return Homes(moved, f"{moved}/{USER_CONFIG}", cache)
    return Homes(f"{home}/.claude", f"{home}/{USER_CONFIG}", cache)


class Sources(NamedTuple):
    """All servers of a session by name, what was wrong with the files, and the environment with the settings' own.

    `settings` are the user's, `here` what `.claude.json` holds of this directory.
    """

    servers: dict[str, Sourced]
    problems: tuple[Problem, ...]
    environment: Mapping[str, str]
    settings: Mapping[str, Any] = {}
    here: Mapping[str, Any] = {}


async def read_sources(world: World, homes: Homes, profile: ClaudeProfile, given: Given = NOTHING_GIVEN) -> Sources:
    """Read everything that a headless session reads; it asks for no approval.

    Of equal names local beats project beats user, and the nearer `.mcp.json` beats the farther. What is given on the
    command line stands above all, and alone where that is asked for.
    """
    directory = world.env.directory
    settings = json_object(await read_text(world, f"{homes.config}/{SETTINGS}"))
    user = json_object(await read_text(world, homes.user_config))
    environment = {**world.env.variables, **texts(settings.get("env"))}
    here = table(table(user.get("projects")).get(directory))
    project, problems = await read_project(world, directory, environment, profile)
    refused = names(settings.get("disabledMcpjsonServers"))
    found = {
        **sourced(members(user, environment, profile, problems), USER),
        **sourced([server for server in project if server.name not in refused], PROJECT),
        **sourced(members(here, environment, profile, problems), LOCAL),
    }
    called = given_servers(given, environment, profile, problems)
    merged = {**({} if given.strict else found), **sourced(called, DYNAMIC)}
    switched_off, denied = names(here.get("disabledMcpServers")), denied_names(settings)
    servers = {name: one._replace(disabled=name in switched_off) for name, one in merged.items() if name not in denied}
    return Sources(servers, tuple(problems), environment, settings, here)


def given_servers(
    given: Given, environment: Mapping[str, str], profile: ClaudeProfile, problems: list[Problem]
) -> list[LoadedServer]:
    """The servers of `--mcp-config`, of equal names the later; what is wrong with them is added to the problems."""
    servers: dict[str, LoadedServer] = {}
    for text in given.texts:
        loaded = read_config(text, environment, profile)
        problems += loaded.problems
        servers |= {server.name: server for server in loaded.servers}
    return list(servers.values())


async def read_project(
    world: World, directory: str, environment: Mapping[str, str], profile: ClaudeProfile
) -> tuple[list[LoadedServer], list[Problem]]:
    """The servers of `.mcp.json` in this directory and in all above it; the nearer file wins per name."""
    servers: dict[str, LoadedServer] = {}
    problems: list[Problem] = []
    for place in upwards(directory):
        text = await read_text(world, f"{place}/{CONFIG_PATH}")
        if text is None:
            continue
        loaded = read_config(text, environment, profile)
        problems += loaded.problems
        servers = {**{server.name: server for server in loaded.servers}, **servers}
    return list(servers.values()), problems


def upwards(directory: str) -> tuple[str, ...]:
    """A directory and all above it, the nearest first; the root is the empty text."""
    parts = directory.rstrip("/").split("/")
    return tuple("/".join(parts[:count]) for count in range(len(parts), 0, -1))


def members(
    holder: Mapping[str, Any], environment: Mapping[str, str], profile: ClaudeProfile, problems: list[Problem]
) -> list[LoadedServer]:
    """The servers under `mcpServers` of a user's table; what is wrong with them is added to the problems."""
    read = [
        read_entry(name, entry, environment, profile)
        for name, entry in javascript_order(table(holder.get(SERVERS_KEY))).items()
    ]
    problems += [problem for _, found in read for problem in found]
    return [server for server, _ in read if server is not None]


def sourced(servers: Iterable[LoadedServer], source: str) -> dict[str, Sourced]:
    """Servers by name with where they are from."""
    return {server.name: Sourced(server, source) for server in servers}


def denied_names(settings: Mapping[str, Any]) -> frozenset[str]:
    """`deniedMcpServers: [{"serverName": …}]` of the user's settings."""
    listed = settings.get("deniedMcpServers")
    rules = listed if isinstance(listed, list) else []
    return names([table(rule).get("serverName") for rule in rules])


def names(listed: object) -> frozenset[str]:
    """The texts of a list."""
    return frozenset(item for item in listed if isinstance(item, str)) if isinstance(listed, list) else frozenset()


def table(value: object) -> Mapping[str, Any]:
    """A JSON object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def texts(value: object) -> dict[str, str]:
    """The members of an object that are texts."""
    return {key: text for key, text in table(value).items() if isinstance(text, str)}


def json_object(text: str | None) -> Mapping[str, Any]:
    """The object that a text holds; empty when there is none."""
    if text is None:
        return {}
    try:
        return table(parse_json(text))
    except JsonTextError:
        return {}


async def read_text(world: World, path: str) -> str | None:
    """A file's text; None when it cannot be read."""
    try:
        return (await world.files.read(path)).decode("utf-8", "replace")
    except OSError:
        return None
