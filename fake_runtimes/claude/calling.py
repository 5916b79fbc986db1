"""Tool calls of a session, and what the model reads of them."""

from __future__ import annotations

from fake_runtimes.budgets import LONGEST_TIMER_MS
from fake_runtimes.claude.bearer import request_headers
from fake_runtimes.claude.connecting import attempt, take_connection, take_failure
from fake_runtimes.claude.names import tool_name
from fake_runtimes.claude.state import ServerState, SessionState
from fake_runtimes.claude.wording import milliseconds, uptime
from fake_runtimes.client import CallResult, Connection, Failure, HttpConnection, StdioConnection
from fake_runtimes.plan import ToolCall

# How long a call may take was not measured: as long as a timer can.
CALL_SECONDS = LONGEST_TIMER_MS / 1000
TIMED_OUT_CODE = -32001
RETRYING = "returned 401; stored sign-in rejected, no refresh token — reconnecting and retrying once"


async def call(session: SessionState, wanted: ToolCall) -> CallResult:
    """One call by raw names; `text` is what the model reads."""
    state = session.servers.get(wanted.server)
    connection = None if state is None else state.connection
    if state is None or connection is None or wanted.tool not in connection.tools:
        return CallResult(ok=False, text=f"No such tool available: {tool_name(wanted.server, wanted.tool)}")
    state.log.debug(f"Calling MCP tool: {wanted.tool}")
    began = session.world.clock.now()
    there = await ready(session, state, connection)
    if isinstance(there, Failure):
        result = CallResult(ok=False, kind=there.kind, failure=there)
    else:
        result = await there.call(wanted.tool, wanted.args, CALL_SECONDS)
    told = await told_of(session, state, wanted.tool, result, session.world.clock.now() - began)
    await state.log.flush()
    return told


async def ready(session: SessionState, state: ServerState, connection: Connection) -> Connection | Failure:
    """A connection to call over: a process that has ended is started again, a remote one gets the stored token."""
    if isinstance(connection, HttpConnection):
        now = session.world.clock.now()
        headers = request_headers(state.server, await session.store_text(), now, session.environment)
        connection.headers = {"Accept-Encoding": "identity", **headers}
        return connection
    if not isinstance(connection, StdioConnection) or await connection.running():
        return connection
    came = await attempt(session, state)
    if isinstance(came, Failure):
        await take_failure(session, state, came)
        return came
    return await take_connection(session, state, came) or came


async def told_of(
    session: SessionState, state: ServerState, tool: str, result: CallResult, seconds: float
) -> CallResult:
    """Write the lines of a finished call; the answer has the text that the model reads."""
    log = state.log
    if result.ok:
        log.debug(f"Tool '{tool}' completed successfully in {milliseconds(seconds)}ms")
        return result
    failure = result.failure
    if failure is not None and failure.status == 401:
        log.debug(f"Tool '{tool}' failed after {uptime(seconds)}: Unauthorized")
        if session.wording.retries_refused_call:
            log.debug(f"Tool '{tool}' {RETRYING}")
        log.debug("Tool call returned 401 Unauthorized - token may have expired")
        if session.profile.remembers_refused_call:
            await session.remember_refusal(state.server.name)
        return result._replace(text=session.profile.refused_call_text.format(name=state.server.name))
    text = result.text if failure is None else call_failure_text(session, failure)
    if failure is not None and failure.kind == "exited":
        log.debug("UNKNOWN connection closed after 0s (cleanly)")
    log.debug(f"Tool '{tool}' failed after {uptime(seconds)}: {text}")
    return result._replace(text=text)


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
