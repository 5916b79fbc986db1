"""The fake runtimes as programs for PATH: which version one is, and what its model does, by flags or environment.

    MCP_FAKE_PROFILE=2.1.328 MCP_FAKE_PLAN='[{"text": "hello"}]' claude -p "go on"

`--fake-profile` and `--fake-plan` say the same on the command line and are taken away before the program reads it;
`--about` alone tells what it is. `MCP_FAKE_BUGS` and `--fake-bugs` name bugs of Codex that no profile has.
`WORLD_TIME_SCALE` makes all waits that many times shorter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

from fake_runtimes.plan import AT_ONCE, Plan, PlanError, read_plan, require_servers
from fake_runtimes.profile import (
    PINNED,
    Profile,
    ProfileError,
    UnknownProfileError,
    known_profiles,
    load_profile,
    parse_runtime,
    profile_at,
)
from fake_runtimes.text import JsonTextError, parse_json
from harness.world import World
from harness.world.ports import Program

PROFILE_VARIABLE, PLAN_VARIABLE, BUGS_VARIABLE = "MCP_FAKE_PROFILE", "MCP_FAKE_PLAN", "MCP_FAKE_BUGS"
PROFILE_FLAG, PLAN_FLAG, BUGS_FLAG, ABOUT_FLAG = "--fake-profile", "--fake-plan", "--fake-bugs", "--about"
VARIABLES = {PROFILE_FLAG: PROFILE_VARIABLE, PLAN_FLAG: PLAN_VARIABLE, BUGS_FLAG: BUGS_VARIABLE}
CODEX, CALLS_ITS_OWN = "codex", ("pi",)
HOME = "HOME"
DONE, UNUSABLE = 0, 64
"""`UNUSABLE` is the exit code of a fake that was told something that it cannot be; no runtime has it."""

ABOUT = """\
{program}: a stand-in for {runtime} {version}, part of mcp-harness. It is not the real program and asks no model:
its answers are a plan ({plan_variable}), its behaviour towards MCP servers is that of the profile
({profile_variable}; known: {known}).
Profiles were written from measurements of the real programs, and the fakes of the known ones are held to what those
did, claim by claim (mcp-harness canary list). Nothing was asked of a real program on this machine: that is what
mcp-harness canary {runtime}@{version} --fakes does. What was not measured stands in fake_runtimes/README.md."""


class Told(NamedTuple):
    """What a fake was told to be, as text, and the command line that is left."""

    profile: str
    plan: str
    argv: tuple[str, ...]
    bugs: str = ""


class UnusableError(Exception):
    """A profile or plan that cannot be used; the message says why."""


def program(runtime: str, told: Told) -> Program:
    """The program of that runtime as it was told to be."""

    async def run(world: World, argv: Sequence[str]) -> int:  # noqa: ARG001 - it is what is left of it that counts
        try:
            profile = profile_of(runtime, told.profile)
            if told.argv[1:] == (ABOUT_FLAG,):
                await world.processes.write_line(about(runtime, profile))
                return DONE
            found = command(runtime, profile, plan_of(told.plan, runtime), told.bugs)
        except UnusableError as error:
            await world.processes.write_error(f"mcp-fake-{runtime}: {error}")
            return UNUSABLE
        return await found(world, told.argv)

    return run


def told_by(argv: Sequence[str], variables: Mapping[str, str]) -> Told:
    """The flags, else the environment. Flags count up to `--`."""
    found = {flag: variables.get(variable, "") for flag, variable in VARIABLES.items()}
    left, kept = list(argv), []
    while left and left[0] != "--":
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if name in found and (equals or left):
            found[name] = value if equals else left.pop(0)
        else:
            kept.append(word)
    return Told(found[PROFILE_FLAG], found[PLAN_FLAG], (*kept, *left), found[BUGS_FLAG])


def profile_of(runtime: str, told: str) -> Profile:
    """The profile by its name, by `runtime@version` or by the version alone; the pinned one without any word.

    What has a `/` in it is the path of a profile file. Raises UnusableError.
    """
    names = (told, f"{runtime}-{told}") if told else (PINNED[runtime],)
    try:
        if "/" in told:
            profile = profile_at(told)
        else:
            name = next((name for name in names if name in known_profiles()), "")
            profile = load_profile(name or parse_runtime(told))
    except (UnknownProfileError, ProfileError, OSError, UnicodeDecodeError) as error:
        raise UnusableError(f"{PROFILE_VARIABLE}: {error}") from None
    if profile.runtime != runtime:
        raise UnusableError(f"{PROFILE_VARIABLE}: {told!r} is no profile of {runtime}")
    return profile


def plan_of(told: str, runtime: str) -> Plan:
    """The plan: JSON in itself, or the path of a file that holds it. Raises UnusableError.

    What a fake is told is no part of what it does: the file is read past the world, which may be steered.
    """
    if not told:
        return AT_ONCE
    text = told
    if told.lstrip()[:1] not in ("{", "["):
        try:
            with open(told, encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes long to load
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise UnusableError(f"{PLAN_VARIABLE}: {error}") from None
    try:
        plan = read_plan(parse_json(text))
        if runtime not in CALLS_ITS_OWN:
            require_servers(plan)
    except JsonTextError as error:
        raise UnusableError(f"{PLAN_VARIABLE}: line {error.line}, column {error.column}: {error}") from None
    except PlanError as error:
        raise UnusableError(f"{PLAN_VARIABLE}: {error}") from None
    return plan


def command(runtime: str, profile: Profile, plan: Plan, bugs: str = "") -> Program:
    """The runtime's own program; only this one's modules are loaded. Raises UnusableError for unknown bugs."""
    if bugs and runtime != CODEX:
        raise UnusableError(f"{BUGS_VARIABLE}: no bugs of {runtime} are known")
    if runtime == "claude":
        from fake_runtimes.claude.command import program as claude_program

        return claude_program(profile, plan)
    if runtime == CODEX:
        from fake_runtimes.codex.bugs import UnknownBugError, read_bugs
        from fake_runtimes.codex.command import program as codex_program

        try:
            return codex_program(profile, plan, read_bugs(bugs))
        except UnknownBugError as error:
            raise UnusableError(f"{BUGS_VARIABLE}: {error}") from None
    from fake_runtimes.pi.command import program as pi_program

    return pi_program(profile, plan)


def about(runtime: str, profile: Profile) -> str:
    """What the fake says of itself, since `--version` speaks as the real program does."""
    return ABOUT.format(
        program=f"mcp-fake-{runtime}",
        runtime=runtime,
        version=profile.version,
        plan_variable=PLAN_VARIABLE,
        profile_variable=PROFILE_VARIABLE,
        known=", ".join(name for name in known_profiles() if name.startswith(f"{runtime}-")),
    )


def start(runtime: str) -> NoReturn:
    """Be this process. The variables of its own are hidden from the program, and so from what that starts."""
    import os  # noqa: TID251 - before there is a world
    import sys

    from harness.world.blocking import main

    told = told_by(sys.argv, os.environ)
    for name in VARIABLES.values():
        os.environ.pop(name, None)
    if not os.environ.get(HOME):
        os.environ.update(home_variable(os.getuid()))
    main(program(runtime, told), sys.argv)


def home_variable(user: int) -> dict[str, str]:
    """HOME as the password database has it, for who is started without any; nothing where that knows no such user.

    The real programs ask it themselves. What a fake starts sees the variable too.
    """
    import pwd

    try:
        return {HOME: pwd.getpwuid(user).pw_dir}
    except KeyError:
        return {}
