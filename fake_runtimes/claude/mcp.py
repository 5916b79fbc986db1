"""`claude mcp …`: which of its commands was asked for, and the two that show servers as they are found now.

`list` and `get` connect: the needs-auth cache keeps them from nobody, and a refusal is written down in it.
"""

from __future__ import annotations

from collections.abc import Sequence

from fake_runtimes.claude.approval import approved
from fake_runtimes.claude.connecting import connect
from fake_runtimes.claude.editing import add, add_json, remove
from fake_runtimes.claude.output import print_line
from fake_runtimes.claude.session import begin
from fake_runtimes.claude.showing import diagnostics, listed, shown
from fake_runtimes.claude.shutdown import end_servers
from fake_runtimes.claude.state import PENDING, UNAPPROVED, ServerState, SessionState
from fake_runtimes.profile import ClaudeProfile
from harness.world import World

DONE, REFUSED = 0, 1
# However they are reached: measured for stdio and for http.
AT_A_TIME = 3
CHECKING = "Checking MCP server health…\n"
NONE_CONFIGURED = "No MCP servers configured. Use `claude mcp add` to add a server."


async def run_mcp(world: World, profile: ClaudeProfile, words: Sequence[str]) -> int:
    """One command; the answer is its exit code."""
    command, *rest = words or [""]
    if command == "list" and not rest:
        return await list_servers(world, profile)
    if command == "get" and len(rest) == 1:
        return await get_server(world, profile, rest[0])
    editing = {"add": add, "add-json": add_json, "remove": remove}.get(command)
    if editing is not None:
        return await editing(world, rest)
    # not measured
    said = f"error: unknown command '{command}'" if command not in ("list", "get") else arguments_fault(command, rest)
    await world.processes.write_error(said)
    return REFUSED


def arguments_fault(command: str, rest: Sequence[str]) -> str:
    """What is said of a command that got too few or too many words (not measured)."""
    option = next((word for word in rest if word.startswith("-")), None)
    if option is not None:
        return f"error: unknown option '{option}'"
    if command == "get" and not rest:
        return "error: missing required argument 'name'"
    return f"error: too many arguments for '{command}'."


async def list_servers(world: World, profile: ClaudeProfile) -> int:
    """Every server with its status; 0 whatever that is."""
    session = await begin(world, profile)
    said = diagnostics(session.problems, profile)
    if not session.servers:
        await print_line(world, "\n".join((NONE_CONFIGURED, *said)))
        return DONE
    await world.processes.write_line(CHECKING)
    await check(session, list(session.servers.values()))
    await print_line(world, "\n".join((*(listed(state) for state in session.servers.values()), *said)))
    await end_servers(session)
    return DONE


async def get_server(world: World, profile: ClaudeProfile, name: str) -> int:
    """One server in full; 1 for a name that is not there."""
    session = await begin(world, profile)
    state = session.servers.get(name)
    if state is None:
        configured = ", ".join(session.servers)
        await world.processes.write_error(f'No MCP server named "{name}". Configured servers: {configured}')
        return REFUSED
    await check(session, [state])
    await print_line(world, shown(state))
    await end_servers(session)
    return DONE


async def check(session: SessionState, states: Sequence[ServerState]) -> None:
    """Bring servers to their outcome; what nobody approved is left alone."""
    allowed = await approved(session)
    for state in session.servers.values():
        if state.status == PENDING and (state.server.name not in allowed or state not in states):
            state.status = UNAPPROVED
    queue = iter([state for state in states if state.status == PENDING])

    async def work() -> None:
        for state in queue:
            await connect(session, state)

    workers = [session.world.tasks.start(work(), f"check {number}") for number in range(AT_A_TIME)]
    await session.world.tasks.wait(workers)
    for worker in workers:
        worker.result()
