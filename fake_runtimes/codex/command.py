"""`codex`, the program: `codex exec`, `codex app-server`, `codex mcp …` and `--version`, by the command line."""

from __future__ import annotations

from collections.abc import Sequence

from fake_runtimes.codex.arguments import OVERRIDE_OPTIONS, read_arguments
from fake_runtimes.plan import Plan
from fake_runtimes.profile import CodexProfile, Profile
from harness.world import World
from harness.world.ports import Program

DONE, REFUSED, BAD_ARGUMENTS, BROKEN_STDOUT = 0, 1, 2, 101
EXEC, APP_SERVER, MCP = "exec", "app-server", "mcp"
VERSION_FLAGS, HELP_FLAGS = ("--version", "-V"), ("--help", "-h")
NOT_INTERACTIVE = "Error: stdin is not a terminal"
USAGE = "Usage: codex exec [--json] PROMPT | codex mcp list|get|add|remove|login|logout | codex app-server"


def program(profile: Profile, plan: Plan = Plan()) -> Program:  # noqa: B008 - immutable
    """`codex` of the profile's version, its model answering as planned."""
    if not isinstance(profile, CodexProfile):
        raise TypeError(f"{profile.name} is no profile of Codex")

    async def run(world: World, argv: Sequence[str]) -> int:
        try:
            return await run_command(world, profile, plan, argv)
        except BrokenPipeError:
            return BROKEN_STDOUT

    return run


async def run_command(world: World, profile: CodexProfile, plan: Plan, argv: Sequence[str]) -> int:
    """What the command line asks for."""
    words = tuple(argv[1:])
    if words[:1] and words[0] in (*VERSION_FLAGS, *HELP_FLAGS):
        await world.processes.write_line(f"codex-cli {profile.version}" if words[0] in VERSION_FLAGS else USAGE)
        return DONE
    options = leading_options(words)
    if words[len(options) : len(options) + 1] == (MCP,):
        from fake_runtimes.codex.mcp import run_mcp

        return await run_mcp(world, profile, (*options, *words[len(options) + 1 :]))
    return await run_words(world, profile, plan, argv)


def leading_options(words: Sequence[str]) -> tuple[str, ...]:
    """The overrides before the command."""
    count = 0
    while count + 1 < len(words) and words[count] in OVERRIDE_OPTIONS:
        count += 2
    return tuple(words[:count])


async def run_words(world: World, profile: CodexProfile, plan: Plan, argv: Sequence[str]) -> int:
    """Everything but `codex mcp`."""
    arguments = read_arguments(argv, profile)
    if arguments.command == EXEC or (arguments.error is not None and EXEC in argv[1:]):
        from fake_runtimes.codex.session import run_exec

        return await run_exec(world, arguments, profile, plan)
    if arguments.error is not None:
        return await refused(world, arguments.error, BAD_ARGUMENTS)
    if arguments.command == APP_SERVER:
        from fake_runtimes.codex.app_server import run_app_server

        return await run_app_server(world, arguments, profile)
    # not measured: without a command, or with a prompt alone, the program wants a terminal
    return await refused(world, NOT_INTERACTIVE, REFUSED)


async def refused(world: World, text: str, code: int) -> int:
    """Say on stderr why nothing is done; the answer is the exit code."""
    await world.processes.write_error(text)
    return code
