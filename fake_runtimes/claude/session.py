"""One headless run of Claude Code, `claude -p --output-format stream-json`, over a world.

Written from measurements of the program: which servers it starts, how many at a time, how long the first model
request waits for them, what it writes where, and what it leaves behind. What the program needs before it starts
its servers is left out of all times. A token is never refreshed and no sign-in is begun.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fake_runtimes.claude.calling import call
from fake_runtimes.claude.connecting import connect
from fake_runtimes.claude.names import offered
from fake_runtimes.claude.shutdown import end_servers
from fake_runtimes.claude.sources import Sources, homes, read_sources
from fake_runtimes.claude.startup import at_a_time, first_request_wait_seconds
from fake_runtimes.claude.state import CONNECTED, PENDING, ServerState, SessionState
from fake_runtimes.loaded import FILE_LOST, SKIPPED
from fake_runtimes.plan import Plan
from fake_runtimes.profile import ClaudeProfile, Profile
from fake_runtimes.text import json_stringify
from harness.world import Task, World
from harness.world.ports import Program

TOOL_SEARCH_VARIABLE = "ENABLE_TOOL_SEARCH"
DEFERRING_TOOLS = ("ToolSearch", "DeferredToolPlaceholder")
DEFAULT_PLAN = Plan()


def program(profile: Profile, plan: Plan = DEFAULT_PLAN) -> Program:
    """A run of the profile's version whose model follows the plan."""
    if not isinstance(profile, ClaudeProfile):
        raise TypeError(f"{profile.name} is no profile of Claude Code")

    async def run(world: World, _argv: Sequence[str]) -> int:
        session = await begin(world, profile)
        await run_plan(session, plan)
        await end_servers(session)
        await say(world, {"type": "result", "subtype": "success", "is_error": False, "session_id": session.session_id})
        world.events.emit("run.ended", exit_code=0)
        return 0

    return run


async def begin(world: World, profile: ClaudeProfile) -> SessionState:
    """Read every file that the session reads at its start."""
    places = homes(world.env.variables)
    sources = await read_sources(world, places, profile)
    session = SessionState(
        world,
        profile,
        places,
        sources,
        await real_path(world, world.env.directory),
        uuid(world.entropy.token(32)),
    )
    tell_of_problems(world, sources)
    if session.servers:
        await session.read_needs_auth()
    return session


async def run_plan(session: SessionState, plan: Plan) -> None:
    """Start the servers, wait for them as long as this version does, then turn after turn."""
    world = session.world
    workers = start_servers(session)
    if workers:
        wait = first_request_wait_seconds(session.environment, session.profile)
        await world.tasks.wait(workers, timeout_seconds=wait)
    await say(world, init_line(session))
    for number, turn in enumerate(plan.turns, start=1):
        emit_request(session, number)
        if turn.seconds:
            await world.clock.sleep(turn.seconds)
        for wanted in turn.calls:
            result = await call(session, wanted)
            world.events.emit("tool.call", server=wanted.server, tool=wanted.tool, ok=result.ok, text=result.text)


def start_servers(session: SessionState) -> list[Task]:
    """Tasks that bring all servers to their outcome: so many processes at a time, and so many remote servers."""
    waiting = [state for state in session.servers.values() if state.status == PENDING]
    workers: list[Task] = []
    for transport in ("stdio", "http"):
        kind = [state for state in waiting if (state.server.transport == "stdio") == (transport == "stdio")]
        queue = iter(kind)
        width = min(len(kind), at_a_time(transport, session.environment, session.profile))
        workers += [session.world.tasks.start(work(session, queue), f"{transport} {number}") for number in range(width)]
    return workers


async def work(session: SessionState, queue: Iterator[ServerState]) -> None:
    """Take one server after the other."""
    for state in queue:
        await connect(session, state)


def emit_request(session: SessionState, number: int) -> None:
    """A model request: whose tools it offers, and who is still connecting.

    `tools` are those of the servers, `extra` what the version adds to or puts in place of them: a deferred
    tool is listed by name in a message only.
    """
    pending = [state.server.name for state in session.servers.values() if state.status == PENDING]
    deferred = defers_tools(session)
    extra = list(DEFERRING_TOOLS) if deferred else []
    if pending and session.profile.wait_tool:
        extra.append(session.profile.wait_tool)
    session.world.events.emit(
        "model.request", number=number, tools=tool_names(session), pending=pending, extra=extra, deferred=deferred
    )


def defers_tools(session: SessionState) -> bool:
    """Whether tools are searched for in place of being sent."""
    chosen = session.environment.get(TOOL_SEARCH_VARIABLE, "")
    return {"true": True, "false": False}.get(chosen, session.profile.defers_tools)


def tool_names(session: SessionState) -> list[str]:
    """The names of all connected servers' tools, sorted."""
    connected = {
        name: state.connection.tools
        for name, state in session.servers.items()
        if state.status == CONNECTED and state.connection is not None
    }
    return sorted(offered(connected)[0].values())


def init_line(session: SessionState) -> dict[str, object]:
    """The one init line of a run; it is not sent again when a pending server connects."""
    servers = []
    for state in session.servers.values():
        shown = {"name": state.server.name, "status": state.status}
        if session.profile.init_names_source:
            shown["source"] = state.source
        servers.append(shown)
    return {
        "type": "system",
        "subtype": "init",
        "cwd": session.directory,
        "session_id": session.session_id,
        "tools": tool_names(session),
        "mcp_servers": servers,
    }


def tell_of_problems(world: World, sources: Sources) -> None:
    """Entries that are skipped and files that are lost; the program itself prints nothing of them here."""
    for problem in sources.problems:
        if problem.code == SKIPPED and problem.server is not None:
            world.events.emit("server.skipped", server=problem.server, text=problem.text)
        elif problem.code == FILE_LOST:
            world.events.emit("config.lost", text=problem.text)


async def say(world: World, message: dict[str, object]) -> None:
    """A line of the event stream; nobody need listen."""
    try:
        await world.processes.write_line(json_stringify(message))
    except BrokenPipeError:
        return


async def real_path(world: World, directory: str) -> str:
    """The directory with every link followed."""
    try:
        return await world.files.resolve(directory)
    except OSError:
        return directory


def uuid(digits: str) -> str:
    """32 hex digits in groups."""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
