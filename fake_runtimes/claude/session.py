"""One headless run of Claude Code, `claude -p`, over a world.

Written from measurements of the program: which servers it starts, how many at a time, how long the first model
request waits for them, what it writes where, and what it leaves behind. What the program needs before it starts
its servers is left out of all times. No sign-in is begun.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fake_runtimes.claude.arguments import Arguments
from fake_runtimes.claude.calling import call
from fake_runtimes.claude.connecting import connect, is_tried_again, reconnect
from fake_runtimes.claude.given import NOTHING_GIVEN, Given
from fake_runtimes.claude.names import offered, tool_name
from fake_runtimes.claude.output import MODEL, Output
from fake_runtimes.claude.shutdown import end_servers
from fake_runtimes.claude.sources import DYNAMIC, Sources, homes, read_sources
from fake_runtimes.claude.startup import at_a_time, first_request_wait_seconds
from fake_runtimes.claude.state import CONNECTED, PENDING, ServerState, SessionState
from fake_runtimes.loaded import FILE_LOST, SKIPPED
from fake_runtimes.plan import Plan, Turn
from fake_runtimes.profile import ClaudeProfile
from harness.world import Task, World

TOOL_SEARCH_VARIABLE = "ENABLE_TOOL_SEARCH"
SEARCH_TOOL, PLACEHOLDER_TOOL = "ToolSearch", "DeferredToolPlaceholder"
UUID_DIGITS = 32
API_KEY = "ANTHROPIC_API_KEY"


async def run_session(world: World, profile: ClaudeProfile, plan: Plan, arguments: Arguments, given: Given) -> int:
    """A run of the profile's version whose model follows the plan; the answer is its exit code."""
    # not measured: a conversation that nobody has kept; here it is begun under its old id
    session = await begin(world, profile, given, arguments.session_id or arguments.resumed)
    output = Output(world, arguments, session.session_id)
    if session.servers:
        await session.read_needs_auth()
    await run_plan(session, plan, output)
    await end_servers(session)
    await output.finish(plan.last_words, len(plan.turns))
    world.events.emit("run.ended", exit_code=0)
    return 0


async def begin(
    world: World, profile: ClaudeProfile, given: Given = NOTHING_GIVEN, session_id: str = ""
) -> SessionState:
    """Read every file that says which servers there are."""
    places = homes(world.env.variables)
    sources = await read_sources(world, places, profile, given)
    session = SessionState(
        world,
        profile,
        places,
        sources,
        await real_path(world, world.env.directory),
        session_id or uuid(world.entropy.token(UUID_DIGITS)),
    )
    tell_of_problems(world, sources)
    return session


async def run_plan(session: SessionState, plan: Plan, output: Output) -> None:
    """Start the servers, wait for them as long as this version does, then turn after turn."""
    tasks = session.world.tasks
    awaited = start_servers(session, given=True)
    workers = start_servers(session)
    if workers:
        await tasks.wait(workers, timeout_seconds=first_request_wait_seconds(session.environment, session.profile))
    if awaited:
        await tasks.wait(awaited)
    await output.say(init_line(session))
    for number, turn in enumerate(plan.turns, start=1):
        emit_request(session, number)
        await take(session, number, turn, output)


async def take(session: SessionState, number: int, turn: Turn, output: Output) -> None:
    """One answer of the model: what it says, then its calls in order."""
    world = session.world
    if turn.seconds:
        await world.clock.sleep(turn.seconds)
    uses = [
        {
            "type": "tool_use",
            "id": f"toolu_{number}_{place}",
            "name": tool_name(wanted.server, wanted.tool),
            "input": dict(wanted.args),
        }
        for place, wanted in enumerate(turn.calls, start=1)
    ]
    said: list[dict[str, Any]] = [{"type": "text", "text": turn.words}] if turn.words else []
    await output.say_answer([*said, *uses])
    for use, wanted in zip(uses, turn.calls, strict=True):
        result = await call(session, wanted)
        world.events.emit("tool.call", server=wanted.server, tool=wanted.tool, ok=result.ok, text=result.text)
        await output.say_result(str(use["id"]), result.text, ok=result.ok)


def start_servers(session: SessionState, *, given: bool = False) -> list[Task]:
    """Tasks that bring servers to their outcome: so many processes at a time, and so many remote servers.

    Those `given` on the command line are waited for, and have places of their own here (not measured).
    """
    waiting = [
        state for state in session.servers.values() if state.status == PENDING and (state.source == DYNAMIC) == given
    ]
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
        if is_tried_again(await connect(session, state)):
            session.world.tasks.start(reconnect(session, state), f"reconnect {state.server.name}")


def emit_request(session: SessionState, number: int) -> None:
    """A model request: whose tools it offers, and who is still connecting.

    `tools` are those of the servers, `extra` what the version adds to or puts in place of them: a deferred
    tool is listed by name in a message only.
    """
    extra = own_tools(session)
    deferred = defers_tools(session)
    session.world.events.emit(
        "model.request",
        number=number,
        tools=tool_names(session),
        pending=pending_names(session),
        extra=[*extra, PLACEHOLDER_TOOL] if deferred else extra,
        deferred=deferred,
    )


def pending_names(session: SessionState) -> list[str]:
    """The servers that are still connecting."""
    return [state.server.name for state in session.servers.values() if state.status == PENDING]


def own_tools(session: SessionState) -> list[str]:
    """What the program offers because of its servers: a search for deferred tools, else something to wait with."""
    if defers_tools(session):
        return [SEARCH_TOOL]
    return [session.profile.wait_tool] if session.profile.wait_tool and pending_names(session) else []


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
    """The one init line of a run; it is not sent again when a pending server connects.

    Built-in tools that have nothing to do with servers are left out; the fields behind `mcp_servers` are those of the
    vendor's description.
    """
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
        "tools": [*own_tools(session), *tool_names(session)],
        "mcp_servers": servers,
        "model": MODEL,
        "permissionMode": "default",
        "apiKeySource": API_KEY if API_KEY in session.environment else "none",
        "claude_code_version": session.profile.version,
    }


def tell_of_problems(world: World, sources: Sources) -> None:
    """Entries that are skipped and files that are lost; the program itself prints nothing of them here."""
    for problem in sources.problems:
        if problem.code == SKIPPED and problem.server is not None:
            world.events.emit("server.skipped", server=problem.server, text=problem.text)
        elif problem.code == FILE_LOST:
            world.events.emit("config.lost", text=problem.text)


async def real_path(world: World, directory: str) -> str:
    """The directory with every link followed."""
    try:
        return await world.files.resolve(directory)
    except OSError:
        return directory


def uuid(digits: str) -> str:
    """32 hex digits in groups."""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
