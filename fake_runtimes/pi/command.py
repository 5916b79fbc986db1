"""`pi`, the program with its MCP adapter: headless runs in three modes and `--version`, by the command line."""

from __future__ import annotations

from collections.abc import Sequence

from fake_runtimes.pi.arguments import RPC, read_arguments
from fake_runtimes.plan import Plan
from fake_runtimes.profile import PiProfile, Profile
from fake_runtimes.prompt import read_stdin
from harness.world.ports import Program, World

DONE, REFUSED = 0, 1
NO_PROMPT = "Error: no prompt given"
USAGE = "Usage: pi -p [--mode text|json|rpc] PROMPT"


def program(profile: Profile, plan: Plan = Plan()) -> Program:  # noqa: B008 - immutable
    """`pi` of the profile's version, its model answering as planned; over RPC every prompt plays the whole plan.

    Exit code 0 whatever becomes of its servers; 1 for arguments that are not taken.
    """
    if not isinstance(profile, PiProfile):
        raise TypeError(f"{profile.name} is no profile of Pi")

    async def run(world: World, argv: Sequence[str]) -> int:
        arguments = read_arguments(argv[1:])
        if arguments.version or arguments.help:
            await world.processes.write_line(own_version(profile) if arguments.version else USAGE)
            return DONE
        if arguments.error is not None:
            return await refused(world, arguments.error)
        if arguments.mode == RPC:
            from fake_runtimes.pi.rpc import serve

            return await serve(world, profile, argv, plan)
        # not measured: without a terminal it is headless even without -p; stdin is read where no prompt is given
        prompt = arguments.prompt or await read_stdin(world)
        if not prompt.strip():
            return await refused(world, NO_PROMPT)
        from fake_runtimes.pi.session import Run

        return await Run(world, profile, argv, arguments.mode).play(plan, prompt)

    return run


def own_version(profile: PiProfile) -> str:
    """The program's own version, without its adapter's."""
    return profile.version.partition("+")[0]


async def refused(world: World, text: str) -> int:
    """Say on stderr why there is no run (not measured); the answer is the exit code."""
    await world.processes.write_error(text)
    return REFUSED
