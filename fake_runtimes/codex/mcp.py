"""`codex mcp …`: servers as they are configured, and whether a credential is there; none is ever started.

Measured are the fields of the list, the texts of a configuration that cannot be read, the refusal of a name and what
`logout` removes. The table for people, `get` and the words of success are chosen after the program's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fake_runtimes.codex.arguments import Arguments
from fake_runtimes.codex.auth import NOT_LOGGED_IN, USER_AGENT, auth_status, forget_credential
from fake_runtimes.codex.bugs import NONE, Bugs
from fake_runtimes.codex.home import LOADING_FAILED, Held, read_home
from fake_runtimes.codex.renewal import Renewing
from fake_runtimes.codex.startup import attempt_seconds
from fake_runtimes.loaded import SKIPPED, LoadedServer
from fake_runtimes.profile import CodexProfile
from harness.world import World

DONE, REFUSED, BAD_ARGUMENTS = 0, 1, 2
COMMANDS = ("list", "get", "add", "remove", "login", "logout")
NONE_CONFIGURED = "No MCP servers configured yet. Try `codex mcp add my-tool -- my-command`."
MCP = "mcp"
VALUED = ("--env", "--url", "--bearer-token-env-var", "--scopes", "--config", "-c")
COLUMNS = {
    "stdio": ("Name", "Command", "Args", "Env", "Cwd", "Status", "Auth"),
    "http": ("Name", "Url", "Bearer Token Env Var", "Status", "Auth"),
}


class McpError(Exception):
    """Why a command ends; the message is what the program says, `code` its exit code."""

    def __init__(self, text: str, code: int = REFUSED) -> None:
        super().__init__(text)
        self.code = code


class Asked(NamedTuple):
    """The words of one command: its name, what stands behind it, its options, and the words behind `--`."""

    command: str
    words: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    behind: tuple[str, ...]

    def one(self, option: str) -> str | None:
        """An option that is given once."""
        values = self.options.get(option)
        return values[-1] if values else None

    @property
    def name(self) -> str:
        """The server that is meant. Raises McpError."""
        if not self.words:
            missing = "error: the following required arguments were not provided:\n  <NAME>"
            raise McpError(missing, BAD_ARGUMENTS)
        return self.words[0]


class Listed(NamedTuple):
    """A server as it is configured, switched off or not."""

    name: str
    raw: Mapping[str, Any]
    server: LoadedServer | None

    @property
    def enabled(self) -> bool:
        """Whether it is switched on."""
        return self.raw.get("enabled", True) is not False


async def run_mcp(world: World, profile: CodexProfile, words: Sequence[str], bugs: Bugs = NONE) -> int:
    """One command; the answer is its exit code."""
    try:
        asked = read_words(words)
        if asked.command in ("add", "remove"):
            from fake_runtimes.codex.editing import add, remove

            said = await (add if asked.command == "add" else remove)(world, profile, asked)
        else:
            said = await told(world, profile, asked, bugs)
    except McpError as error:
        await world.processes.write_error(str(error))
        return error.code
    await world.processes.write_line(said)
    return DONE


def read_words(words: Sequence[str]) -> Asked:
    """The command line behind `codex mcp`. Raises McpError."""
    left, found, options = list(words), list[str](), dict[str, tuple[str, ...]]()
    while left and left[0] != "--":
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            found.append(word)
        elif word == "--json":
            options[word] = ()
        elif name in VALUED and (equals or left):
            options[name] = (*options.get(name, ()), value if equals else left.pop(0))
        else:
            raise McpError(f"error: unexpected argument '{name}' found", BAD_ARGUMENTS)
        if found and found[0] == "add" and len(found) > 2:
            break  # the command of a server may stand without `--`
    command, *rest = found or [""]
    if command not in COMMANDS:
        raise McpError(f"error: unrecognized subcommand '{command}'", BAD_ARGUMENTS)
    behind = left[1:] if left[:1] == ["--"] else left
    return Asked(command, tuple(rest), options, tuple(behind))


async def told(world: World, profile: CodexProfile, asked: Asked, bugs: Bugs) -> str:
    """What a command that writes no configuration prints. Raises McpError."""
    held = (await configuration(world, profile, asked))._replace(bugs=bugs)
    servers = listed(held)
    if asked.command == "list":
        rows = [await element(world, profile, held, one) for one in servers.values()]
        return json.dumps(rows, indent=2, ensure_ascii=False) if "--json" in asked.options else table(rows)
    one = servers.get(asked.name)
    if one is None:
        where = " in configuration" if asked.command == "logout" else ""
        raise McpError(f"Error: No MCP server named '{asked.name}' found{where}.")
    if asked.command == "get":
        row = await element(world, profile, held, one)
        return json.dumps(row, indent=2, ensure_ascii=False) if "--json" in asked.options else shown(row)
    say = logged_in if asked.command == "login" else logged_out
    return await say(world, held, profile, one)


async def configuration(world: World, profile: CodexProfile, asked: Asked) -> Held:
    """What is configured here. Raises McpError with the version's words for what cannot be read."""
    overrides = (*asked.options.get("--config", ()), *asked.options.get("-c", ()))
    held = await read_home(world, profile, Arguments(command=MCP, overrides=overrides))
    if held.refused is not None:
        cause = held.refused.removeprefix(LOADING_FAILED).replace("\n", "\n    ")
        # not measured: how the cause stands behind the first line
        raise McpError(f"Error: failed to load {profile.configuration_name}\n\nCaused by:\n    {cause}")
    return held


def listed(held: Held) -> dict[str, Listed]:
    """All servers by name, sorted, those that are switched off among them."""
    found = {server.name: Listed(server.name, server.raw, server) for server in held.servers}
    for problem in held.loaded.problems:
        if problem.code == SKIPPED and problem.server is not None:
            found[problem.server] = Listed(problem.server, held.tables.get(problem.server, {}), None)
    return dict(sorted(found.items()))


async def element(world: World, profile: CodexProfile, held: Held, one: Listed) -> dict[str, Any]:
    """One server as `--json` shows it."""
    raw = one.raw
    seconds = None
    if one.server is not None and raw.keys() & {"startup_timeout_sec", "startup_timeout_ms"}:
        seconds = attempt_seconds(one.server, profile)
    timeout = raw.get("tool_timeout_sec")
    return {
        "name": one.name,
        "enabled": one.enabled,
        "disabled_reason": None,
        "transport": transport(raw, profile),
        "startup_timeout_sec": seconds,
        "tool_timeout_sec": None if timeout is None else float(timeout),
        "auth_status": await auth_status(world, profile, held, one.server),
    }


def transport(raw: Mapping[str, Any], profile: CodexProfile) -> dict[str, Any]:
    """How a server is reached, as it is configured."""
    if "url" in raw:
        keys: tuple[str, ...] = ("url", "bearer_token_env_var", "http_headers", "env_http_headers")
        if profile.header_helper_key:
            keys = (*keys, "http_headers_helper")
        return {"type": "streamable_http", **{key: raw.get(key) for key in keys}}
    given = {"args": raw.get("args", []), "env": raw.get("env"), "env_vars": raw.get("env_vars", [])}
    return {"type": "stdio", "command": raw.get("command"), **given, "cwd": raw.get("cwd")}


async def logged_in(world: World, held: Held, profile: CodexProfile, one: Listed) -> str:
    """`login`, as far as it can be done without anybody who has to see a page. Raises McpError."""
    from fake_runtimes.codex.login import NobodyThereError, sign_in

    if "url" not in one.raw:
        raise McpError("Error: OAuth login is only supported for streamable HTTP servers.")
    renewing = Renewing(world, held, profile, USER_AGENT)
    authorization = None if one.server is None else await renewing.authorization(one.server)
    if one.server is None or authorization is None:
        raise McpError("Error: No authorization support detected")
    try:
        await sign_in(renewing, one.server, authorization)
    except NobodyThereError:
        raise McpError(f"Error: nobody can sign in to '{one.name}' through this stand-in") from None
    return f"Successfully logged in to MCP server '{one.name}'."


async def logged_out(world: World, held: Held, profile: CodexProfile, one: Listed) -> str:
    """`logout`: what is stored under the server's own key goes. Raises McpError."""
    if "url" not in one.raw:
        raise McpError("Error: OAuth logout is only supported for streamable_http transports.")
    if await forget_credential(world, held, profile, one.name, str(one.raw["url"])):
        return f"Removed OAuth credentials for '{one.name}'."
    return f"No OAuth credentials stored for '{one.name}'."


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The list for people: processes first, then remote servers, each with columns as wide as they need be."""
    if not rows:
        return NONE_CONFIGURED
    parts = []
    for kind, heads in COLUMNS.items():
        lines = [cells(row) for row in rows if (row["transport"]["type"] == "stdio") == (kind == "stdio")]
        if lines:
            widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
            padded = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in (heads, *lines)]
            parts.append("\n".join(padded))
    return "\n\n".join(parts)


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """One line of the table."""
    reached = row["transport"]
    ends = ("enabled" if row["enabled"] else "disabled", words_of(row["auth_status"]))
    if reached["type"] != "stdio":
        return (row["name"], reached["url"], reached["bearer_token_env_var"] or "-", *ends)
    env = ", ".join(f"{name}=*****" for name in sorted(reached["env"] or ())) or "-"
    return (row["name"], reached["command"], " ".join(reached["args"]) or "-", env, reached["cwd"] or "-", *ends)


def words_of(status: str) -> str:
    """A credential's status for people."""
    names = {"o_auth": "OAuth", "bearer_token": "Bearer token", NOT_LOGGED_IN: "Not logged in"}
    return names.get(status, status.capitalize())


def shown(row: Mapping[str, Any]) -> str:
    """`get` for people."""
    reached = row["transport"]
    lines = [row["name"], f"  enabled: {str(row['enabled']).lower()}", f"  transport: {reached['type']}"]
    if reached["type"] == "stdio":
        lines += [f"  command: {reached['command']}", f"  args: {' '.join(reached['args']) or '-'}"]
        lines += [f"  cwd: {reached['cwd'] or '-'}"]
        lines += [f"  env: {', '.join(f'{name}=*****' for name in sorted(reached['env'] or ())) or '-'}"]
    else:
        lines += [f"  url: {reached['url']}", f"  bearer_token_env_var: {reached['bearer_token_env_var'] or '-'}"]
    return "\n".join((*lines, f"  remove: codex mcp remove {row['name']}"))


def checked_name(name: str, profile: CodexProfile) -> str:
    """A name under which a server may be added. Raises McpError."""
    if re.fullmatch(profile.server_name_pattern, name) is None:
        more = "" if "." not in profile.server_name_pattern else ", ':', '@', '/', '.'"
        raise McpError(f"Error: invalid server name '{name}' (use letters, numbers, '-', '_'{more})")
    return name
