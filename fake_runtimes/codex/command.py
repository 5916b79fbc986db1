"""`codex`, the program: `codex exec`, `codex app-server`, `codex mcp …` and `--version`, by the command line."""

from __future__ import annotations

from collections.abc import Sequence

from fake_runtimes.codex.arguments import OVERRIDE_OPTIONS, read_arguments
from fake_runtimes.codex.bugs import NONE, Bugs
from fake_runtimes.plan import Plan
from fake_runtimes.profile import CodexProfile, Profile
from harness.world import World
from harness.world.ports import Program

DONE, REFUSED, BAD_ARGUMENTS, BROKEN_STDOUT = 0, 1, 2, 101
EXEC, APP_SERVER, MCP = "exec", "app-server", "mcp"
VERSION_FLAGS, HELP_FLAGS = ("--version", "-V"), ("--help", "-h")
NOT_INTERACTIVE = "Error: stdin is not a terminal"
USAGE = "Usage: codex exec [--json] PROMPT | codex mcp list|get|add|remove|login|logout | codex app-server"


HOME_VARIABLE = "CODEX_HOME"
LOST_HOME = 'CODEX_HOME points to "{named}", but that path {fault}'
NO_ALIASES = "WARNING: proceeding, even though we could not create PATH aliases: "


def program(profile: Profile, plan: Plan = Plan(), bugs: Bugs = NONE) -> Program:  # noqa: B008 - immutable
    """`codex` of the profile's version, its model answering as planned, with these bugs."""
    if not isinstance(profile, CodexProfile):
        raise TypeError(f"{profile.name} is no profile of Codex")

    async def run(world: World, argv: Sequence[str]) -> int:
        try:
            return await run_command(world, profile, plan, argv, bugs)
        except BrokenPipeError:
            return BROKEN_STDOUT

    return run


async def run_command(world: World, profile: CodexProfile, plan: Plan, argv: Sequence[str], bugs: Bugs = NONE) -> int:
    """What the command line asks for."""
    words = tuple(argv[1:])
    lost = await lost_home(world)
    if lost:
        await world.processes.write_error(NO_ALIASES + lost)
    if words[:1] and words[0] in (*VERSION_FLAGS, *HELP_FLAGS):
        await world.processes.write_line(f"codex-cli {profile.version}" if words[0] in VERSION_FLAGS else USAGE)
        return DONE
    options = leading_options(words)
    if lost:
        return await refused(world, home_refusal(profile, words[len(options) :], lost), REFUSED)
    if words[len(options) : len(options) + 1] == (MCP,):
        from fake_runtimes.codex.mcp import run_mcp

        return await run_mcp(world, profile, (*options, *words[len(options) + 1 :]), bugs)
    return await run_words(world, profile, plan, argv, bugs)


async def lost_home(world: World) -> str:
    """What is wrong with the home that the environment names; empty where there is nothing, and without one.

    Where nobody names it the program uses the user's own, which it makes itself.
    """
    named = world.env.variables.get(HOME_VARIABLE)
    if not named:
        return ""
    path = named if named.startswith("/") else f"{world.env.directory.rstrip('/')}/{named}"
    try:
        there = await world.files.stat(await world.files.resolve(path))
    except OSError:
        there = None
    if there is not None and there.kind == "directory":
        return ""
    return LOST_HOME.format(named=named, fault="does not exist" if there is None else "is not a directory")


def home_refusal(profile: CodexProfile, words: Sequence[str], lost: str) -> str:
    """What a command says of a home that is not there."""
    if MCP in words[:1]:
        return f"Error: {profile.lost_home_text}\n\nCaused by:\n    {lost}"
    return f"Error finding codex home: {lost}" if EXEC in words else f"Error: {lost}"


def leading_options(words: Sequence[str]) -> tuple[str, ...]:
    """The overrides before the command."""
    count = 0
    while count + 1 < len(words) and words[count] in OVERRIDE_OPTIONS:
        count += 2
    return tuple(words[:count])


async def run_words(world: World, profile: CodexProfile, plan: Plan, argv: Sequence[str], bugs: Bugs) -> int:
    """Everything but `codex mcp`."""
    arguments = read_arguments(argv, profile)
    if arguments.command == EXEC or (arguments.error is not None and EXEC in argv[1:]):
        from fake_runtimes.codex.session import run_exec

        return await run_exec(world, arguments, profile, plan, bugs)
    if arguments.error is not None:
        return await refused(world, arguments.error, BAD_ARGUMENTS)
    if arguments.command == APP_SERVER:
        from fake_runtimes.codex.app_server import run_app_server

        return await run_app_server(world, arguments, profile, bugs)
    # not measured: without a command, or with a prompt alone, the program wants a terminal
    return await refused(world, NOT_INTERACTIVE, REFUSED)


async def refused(world: World, text: str, code: int) -> int:
    """Say on stderr why nothing is done; the answer is the exit code."""
    await world.processes.write_error(text)
    return code
