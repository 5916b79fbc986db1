"""How a session ends its servers, and which processes it leaves behind."""

from __future__ import annotations

from fake_runtimes.claude.state import PENDING, ServerState, SessionState
from fake_runtimes.claude.wording import SHUTTING_DOWN, milliseconds, uptime
from fake_runtimes.client import Closed, HttpConnection, Signals, StdioConnection, end_children

SIGNALS: Signals = (("SIGINT", 0.1), ("SIGTERM", 0.4), ("SIGKILL", 0.0))
FAILED_SIGNALS = {
    "SIGTERM": "SIGINT failed, sending SIGTERM to MCP server process",
    "SIGKILL": "SIGTERM failed, sending SIGKILL to MCP server process",
}


async def end_servers(session: SessionState) -> None:
    """End every connected server side by side; stdin is not closed before the signals.

    A process that never connected is left alone, and so lives on unless it ends with its stdin; the newer
    version sends it SIGINT.
    """
    processes = [state for state in session.servers.values() if isinstance(state.connection, StdioConnection)]
    for state in session.servers.values():
        if isinstance(state.connection, HttpConnection):
            await state.connection.close()
            state.log.debug(f"{state.server.transport.upper()} connection closed after {age(session, state)} (cleanly)")
        elif state.status == PENDING:
            await abandon(session, state)
    for state in processes:
        state.log.debug("Sending SIGINT to MCP server process")
    children = [state.connection.child for state in processes if isinstance(state.connection, StdioConnection)]
    endings = await end_children(session.world, children, SIGNALS)
    for state, closed in zip(processes, endings, strict=True):
        tell_of_ending(session, state, closed)
    for state in session.servers.values():
        await state.log.flush()


def tell_of_ending(session: SessionState, state: ServerState, closed: Closed) -> None:
    """The lines of one process that was ended."""
    for name in closed.sent:
        if name in FAILED_SIGNALS:
            state.log.debug(FAILED_SIGNALS[name])
    state.log.debug(f"UNKNOWN connection closed after {age(session, state)} (cleanly)")
    state.log.debug("Cleared connection cache for reconnection")
    if closed.sent == ("SIGINT",):
        state.log.debug("MCP server process exited cleanly")


async def abandon(session: SessionState, state: ServerState) -> None:
    """A server that is still connecting when the session ends."""
    if session.wording.tells_of_abandoning and state.began_seconds is not None:
        waited = session.world.clock.now() - state.began_seconds
        state.log.debug(f"Connection abandoned after {milliseconds(waited)}ms ({SHUTTING_DOWN})")
    if state.child is not None and session.profile.signals_unconnected:
        await state.child.signal("SIGINT")


def age(session: SessionState, state: ServerState) -> str:
    """How long a connection has lasted."""
    connection = state.connection
    return uptime(0.0 if connection is None else session.world.clock.now() - connection.connected_seconds)
