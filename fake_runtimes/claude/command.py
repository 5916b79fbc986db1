"""`claude`, the program: headless runs, `claude mcp …` and `--version`, told apart by the command line."""

from __future__ import annotations

from collections.abc import Sequence

from fake_runtimes.claude.arguments import STREAM, Arguments, read_arguments
from fake_runtimes.claude.output import print_line
from fake_runtimes.plan import Plan
from fake_runtimes.profile import ClaudeProfile, Profile
from fake_runtimes.prompt import read_stdin
from harness.world import World
from harness.world.ports import Program

DONE, REFUSED = 0, 1
MCP = "mcp"
NO_PROMPT = "Error: Input must be provided either through stdin or as a prompt argument when using --print"
NEEDS_VERBOSE = "Error: When using --print, --output-format=stream-json requires --verbose"
NOT_INTERACTIVE = "Error: this stand-in has no interactive mode; use -p/--print"
USAGE = "Usage: claude -p PROMPT [--output-format text|json|stream-json] | claude mcp list|get|add|add-json|remove"


def program(profile: Profile, plan: Plan = Plan()) -> Program:  # noqa: B008 - immutable
    """`claude` of the profile's version, its model answering as planned.

    Exit codes: 0 for a run however its servers fared, and for `mcp list`; 1 for arguments that are not taken, for a
    configuration of `--mcp-config` that cannot be read, and for a name that `mcp` does not know.
    """
    if not isinstance(profile, ClaudeProfile):
        raise TypeError(f"{profile.name} is no profile of Claude Code")

    async def run(world: World, argv: Sequence[str]) -> int:
        words = argv[1:]
        if words and words[0] == MCP:
            from fake_runtimes.claude.mcp import run_mcp

            return await run_mcp(world, profile, words[1:])
        return await run_words(world, profile, plan, words)

    return run


async def run_words(world: World, profile: ClaudeProfile, plan: Plan, words: Sequence[str]) -> int:
    """Everything but `claude mcp`."""
    arguments = read_arguments(words)
    if arguments.version or arguments.help:
        await print_line(world, f"{profile.version} (Claude Code)" if arguments.version else USAGE)
        return DONE
    refusal = arguments.error or unfit(arguments)
    if refusal is not None:
        return await refused(world, refusal)
    # not measured: stdin is read only where the command line holds no prompt
    prompt = arguments.prompt or await read_stdin(world)
    if not prompt.strip():
        return await refused(world, NO_PROMPT)
    return await begin_session(world, profile, plan, arguments)


def unfit(arguments: Arguments) -> str | None:
    """What is said of arguments that do not fit together (not measured)."""
    if not arguments.prints:
        return NOT_INTERACTIVE
    return NEEDS_VERBOSE if arguments.output == STREAM and not arguments.verbose else None


async def begin_session(world: World, profile: ClaudeProfile, plan: Plan, arguments: Arguments) -> int:
    """A headless run."""
    from fake_runtimes.claude.given import GivenError, read_given
    from fake_runtimes.claude.session import run_session

    try:
        given = await read_given(world, arguments.configs, profile, strict=arguments.strict)
    except GivenError as error:
        return await refused(world, str(error))
    return await run_session(world, profile, plan, arguments, given)


async def refused(world: World, text: str) -> int:
    """Say on stderr why there is no run; the answer is the exit code."""
    await world.processes.write_error(text)
    return REFUSED
