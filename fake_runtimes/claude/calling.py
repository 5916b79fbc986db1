"""Tool calls of a session, and what the model reads of them."""

from __future__ import annotations

from fake_runtimes.budgets import LONGEST_TIMER_MS
from fake_runtimes.claude.access import Access, still_renewable
from fake_runtimes.claude.connecting import attempt, take_connection, take_failure
from fake_runtimes.claude.names import tool_name
from fake_runtimes.claude.state import ServerState, SessionState
from fake_runtimes.claude.wording import NEEDS_AUTH, milliseconds, uptime
from fake_runtimes.client import CallResult, Connection, Failure, HttpConnection, StdioConnection
from fake_runtimes.plan import ToolCall

# How long a call may take was not measured: as long as a timer can.
CALL_SECONDS = LONGEST_TIMER_MS / 1000
TIMED_OUT_CODE, UNAUTHORIZED = -32001, 401
RETRYING = "returned 401; {why} — reconnecting and retrying once"
RENEWABLE, DEAD = "refresh token stored", "stored sign-in rejected, no refresh token"
REFUSED_AGAIN = 'MCP server "{name}" needs authentication'


async def call(session: SessionState, wanted: ToolCall) -> CallResult:
    """One call by raw names; `text` is what the model reads."""
    state = session.servers.get(wanted.server)
    connection = None if state is None else state.connection
    if state is None or connection is None or wanted.tool not in connection.tools:
        return CallResult(ok=False, text=f"No such tool available: {tool_name(wanted.server, wanted.tool)}")
    if state.status == NEEDS_AUTH:
        return CallResult(ok=False, text=REFUSED_AGAIN.format(name=wanted.server))
    state.log.debug(f"Calling MCP tool: {wanted.tool}")
    began = session.world.clock.now()
    there = await ready(session, state, connection)
    if isinstance(there, Failure):
        result = CallResult(ok=False, kind=there.kind, failure=there)
    else:
        result = await there.call(wanted.tool, wanted.args, CALL_SECONDS)
    told = await told_of(session, state, wanted, result, session.world.clock.now() - began)
    await state.log.flush()
    return told


async def ready(session: SessionState, state: ServerState, connection: Connection) -> Connection | Failure:
    """A connection to call over: a process that has ended is started again."""
    if not isinstance(connection, StdioConnection) or await connection.running():
        return connection
    came = await attempt(session, state)
    if isinstance(came, Failure):
        await take_failure(session, state, came)
        return came
    return await take_connection(session, state, came) or came


async def told_of(
    session: SessionState, state: ServerState, wanted: ToolCall, result: CallResult, seconds: float
) -> CallResult:
    """Write the lines of a finished call; the answer has the text that the model reads."""
    log, tool = state.log, wanted.tool
    if result.ok:
        log.debug(f"Tool '{tool}' completed successfully in {milliseconds(seconds)}ms")
        return result
    failure = result.failure
    if failure is not None and failure.status == UNAUTHORIZED:
        if isinstance(state.connection, HttpConnection):
            up = session.world.clock.now() - state.connection.connected_seconds
            log.debug(f"{state.server.transport.upper()} connection dropped after {uptime(up)} uptime")
            log.debug("Connection error: Unauthorized")
        log.debug(f"Tool '{tool}' failed after {uptime(seconds)}: Unauthorized")
        again = await once_more(session, state, wanted)
        if again is not None:
            return again
        log.debug("Tool call returned 401 Unauthorized - token may have expired")
        return result._replace(text=session.profile.refused_call_text.format(name=state.server.name))
    text = result.text if failure is None else call_failure_text(session, failure)
    if failure is not None and failure.kind == "exited":
        log.debug("UNKNOWN connection closed after 0s (cleanly)")
    log.debug(f"Tool '{tool}' failed after {uptime(seconds)}: {text}")
    return result._replace(text=text)


async def once_more(session: SessionState, state: ServerState, wanted: ToolCall) -> CallResult | None:
    """After a refused call: connect anew and call again, where the version does; None where that does not help."""
    access = state.connection.access if isinstance(state.connection, HttpConnection) else None
    if not isinstance(access, Access):
        return None
    renewable = still_renewable(await access.entry())
    if not renewable and not session.profile.remembers_refused_call:
        return None
    why = RENEWABLE if renewable else DEAD
    state.log.debug(f"Tool '{wanted.tool}' {RETRYING.format(why=why)}")
    if not renewable:
        state.rejected_token = access.shown
    came = await attempt(session, state)
    if isinstance(came, Failure):
        connection = state.connection
        await take_failure(session, state, came)
        state.connection = connection
        more = "the call is not retried" if session.profile.remembers_refused_call else "falling through to needs-auth"
        state.log.debug(f"Auth reconnect returned '{state.status}'; {more}")
        return None
    if await take_connection(session, state, came) is not None:
        return None
    began = session.world.clock.now()
    result = await came.call(wanted.tool, wanted.args, CALL_SECONDS)
    if result.failure is not None and result.failure.status == UNAUTHORIZED:
        return None
    return await told_of(session, state, wanted, result, session.world.clock.now() - began)


def call_failure_text(session: SessionState, failure: Failure) -> str:
    """The words for a call that had no result."""
    wording = session.wording
    if failure.kind == "timeout":
        return f"{wording.rpc_prefix.format(code=TIMED_OUT_CODE)}Request timed out"
    if failure.kind == "protocol" and failure.code is not None:
        return f"{wording.rpc_prefix.format(code=failure.code)}{failure.detail}"
    if failure.kind == "status":
        return f"{wording.post_prefix}Error POSTing to endpoint: {failure.body}"
    return {"refused": wording.refused, "reset": wording.reset}.get(failure.kind, wording.closed)[1]
