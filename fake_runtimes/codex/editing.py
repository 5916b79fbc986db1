"""`codex mcp add` and `remove`: the user's `config.toml` is written anew, comments and spelling lost.

The words were not measured; the refusal of a name was, see `checked_name`.
"""

from __future__ import annotations

from typing import Any

from fake_runtimes.air.toml_text import emit
from fake_runtimes.codex.config import SERVERS_KEY
from fake_runtimes.codex.home import LOADING_FAILED, USER_CONFIG, UnreadableError, home_directory, read_text
from fake_runtimes.codex.layers import parse_toml
from fake_runtimes.codex.mcp import BAD_ARGUMENTS, Asked, McpError, checked_name, configuration
from fake_runtimes.loaded import EntryError
from fake_runtimes.profile import CodexProfile
from harness.world import World


async def add(world: World, profile: CodexProfile, asked: Asked) -> str:
    """`add NAME [--env K=V] -- COMMAND [ARG…]` or `add NAME --url URL`. Raises McpError."""
    name, entry = checked_name(asked.name, profile), entry_of(asked)
    await configuration(world, profile, asked)
    document = await load(world)
    document[SERVERS_KEY] = {**document.get(SERVERS_KEY, {}), name: entry}
    await save(world, document)
    return f"Added global MCP server '{name}'."


def entry_of(asked: Asked) -> dict[str, Any]:
    """The entry that is asked for. Raises McpError."""
    command, url = (*asked.words[1:], *asked.behind), asked.one("--url")
    if (url is None) == (not command):
        raise McpError(
            "error: the following required arguments were not provided:\n  <COMMAND|--url <URL>>", BAD_ARGUMENTS
        )
    if url is not None:
        variable = asked.one("--bearer-token-env-var")
        return {"url": url, **({"bearer_token_env_var": variable} if variable else {})}
    environment = dict(pair(text) for text in asked.options.get("--env", ()))
    entry: dict[str, Any] = {"command": command[0]}
    if command[1:]:
        entry["args"] = list(command[1:])
    return {**entry, **({"env": environment} if environment else {})}


def pair(text: str) -> tuple[str, str]:
    """A variable and its value. Raises McpError."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        wrong = f"error: invalid value '{text}' for '--env <KEY=VALUE>': environment entries must be in KEY=VALUE form"
        raise McpError(wrong, BAD_ARGUMENTS)
    return name.strip(), value


async def remove(world: World, profile: CodexProfile, asked: Asked) -> str:
    """`remove NAME`; a name that is not there is no failure. Raises McpError."""
    name = checked_name(asked.name, profile)
    await configuration(world, profile, asked)
    document = await load(world)
    servers = dict(document.get(SERVERS_KEY, {}))
    if servers.pop(name, None) is None:
        return f"No MCP server named '{name}' found."
    document[SERVERS_KEY] = servers
    if not servers:
        del document[SERVERS_KEY]
    await save(world, document)
    return f"Removed global MCP server '{name}'."


async def load(world: World) -> dict[str, Any]:
    """The user's file as tables. Raises McpError."""
    try:
        text = await read_text(world, f"{home_directory(world.env.variables)}/{USER_CONFIG}")
        return {} if text is None else dict(parse_toml(text))
    except (UnreadableError, EntryError) as error:
        home = home_directory(world.env.variables)
        cause = error.text.removeprefix(LOADING_FAILED)
        raise McpError(f"Error: failed to load MCP servers from {home}\n\nCaused by:\n    {cause}") from None


async def save(world: World, document: dict[str, Any]) -> None:
    """Write it back. Raises McpError."""
    home = home_directory(world.env.variables)
    try:
        await world.files.make_directory(home)
        await world.files.write_atomic(f"{home}/{USER_CONFIG}", emit(document).encode())
    except OSError as error:
        cause = f"{error.strerror} (os error {error.errno})"
        raise McpError(f"Error: failed to write MCP servers to {home}\n\nCaused by:\n    {cause}") from None
