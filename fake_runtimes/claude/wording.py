"""The words of Claude Code's log for each way in which a connection comes out, in both measured wordings.

A 5xx answer to the older transport's stream, a JSON-RPC error and a message that is none were measured in
their form, not in every version and letter: there the texts follow the form of their neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fake_runtimes.claude.logs import DEBUG, ERROR, redacted
from fake_runtimes.client import Failure
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.text import json_stringify

FAILED, NEEDS_AUTH = "failed", "needs-auth"
REJECTED_HEADER = (
    "Server rejected the configured Authorization header (HTTP 401). Check that the token is valid for this MCP"
    " endpoint — OAuth fallback is disabled when headers.Authorization is set."
)
RESPAWNING = (
    "version negotiation probe closed the stdio server (rmcp-class pre-init hard close); respawning pinned legacy"
)
SOCKET_CLOSED = (
    "The socket connection was closed unexpectedly. For more information, pass `verbose: true` in the second"
    " argument to fetch()"
)
UNABLE_TO_CONNECT = "Unable to connect. Is the computer able to access the url?"
INVALID_MESSAGE = json_stringify([{"code": "invalid_union", "path": [], "message": "Invalid input"}])
SHUTTING_DOWN = "Claude Code is shutting down"
STACK = "\n    at <anonymous>"


class Wording(NamedTuple):
    """What differs between the versions."""

    awake: bool
    closed: tuple[str, str]
    refused: tuple[str, str]
    reset: tuple[str, str]
    content: tuple[str, str]
    status_code: str
    rpc_prefix: str
    post_prefix: str
    unauthorized: str
    names_hanging_server: bool
    tells_of_abandoning: bool


WORDINGS: Mapping[str, Wording] = {
    "numbered": Wording(
        awake=False,
        closed=("-32000", "MCP error -32000: Connection closed"),
        refused=("ConnectionRefused", UNABLE_TO_CONNECT),
        reset=("ECONNRESET", SOCKET_CLOSED),
        content=("-1", "Streamable HTTP error: Unexpected content type: "),
        status_code="",
        rpc_prefix="MCP error {code}: ",
        post_prefix="Streamable HTTP error: ",
        unauthorized="Error: Unauthorized",
        names_hanging_server=True,
        tells_of_abandoning=False,
    ),
    "named": Wording(
        awake=True,
        closed=("CONNECTION_CLOSED", "Connection closed"),
        refused=("ECONNREFUSED", f"ECONNREFUSED: {UNABLE_TO_CONNECT}"),
        reset=("ECONNRESET", f"ECONNRESET: {SOCKET_CLOSED}"),
        content=("CLIENT_HTTP_UNEXPECTED_CONTENT", "Unexpected content type: "),
        status_code="CLIENT_HTTP_NOT_IMPLEMENTED",
        rpc_prefix="",
        post_prefix="",
        unauthorized="UnauthorizedError: Unauthorized",
        names_hanging_server=False,
        tells_of_abandoning=True,
    ),
}


class Told(NamedTuple):
    """What a session says of a server that did not connect: its status, the lines, and the words that count."""

    status: str
    lines: tuple[tuple[str, str], ...]
    text: str


def tell(
    server: LoadedServer, failure: Failure, limit_ms: int, wording: Wording, *, static_authorization: bool
) -> Told:
    """The lines of a failed connection, in order."""
    if failure.status in (401, 403) and failure.kind == "status":
        return tell_refused(server, failure, wording, static_authorization=static_authorization)
    code, text = cause(server, failure, limit_ms, wording)
    loud = f"Connection failed ({code}): {text}" if code else f"Connection failed: {text}"
    lines = [*before(failure, limit_ms, wording)]
    if failure.kind == "protocol" and failure.code is None:
        lines.append((ERROR, f"ZodError: {text}"))
    lines += [(DEBUG, quiet_line(server, failure, code, text, wording)), (ERROR, loud)]
    return Told(FAILED, tuple(lines), loud)


def tell_refused(server: LoadedServer, failure: Failure, wording: Wording, *, static_authorization: bool) -> Told:
    """401 and 403: the server wants somebody to sign in, unless its own header was refused."""
    kind = transport_name(server)
    if failure.status == 401 and static_authorization:
        return Told(FAILED, ((ERROR, REJECTED_HEADER),), REJECTED_HEADER)
    wants = f"Authentication required for {kind} server"
    if failure.status == 401:
        quiet = detail_line(server, failure, "Unauthorized", "none", wording)
        lines = ((DEBUG, quiet), (ERROR, f"{wording.unauthorized}{STACK}"), (DEBUG, wants))
        return Told(NEEDS_AUTH, lines, wants)
    code, text = cause(server, failure, 0, wording)
    quiet = detail_line(server, failure, text, wording.status_code or code, wording)
    return Told(NEEDS_AUTH, ((DEBUG, quiet), (DEBUG, wants)), wants)


def reason(loud: str) -> str:
    """What a list of servers tells of a failure: `CODE: text`, or the text alone."""
    said = loud.removeprefix("Connection failed")
    code, bracket, text = said.removeprefix(" (").partition("): ")
    return f"{code}: {text}" if bracket and said.startswith(" (") else said.removeprefix(": ")


def cause(server: LoadedServer, failure: Failure, limit_ms: int, wording: Wording) -> tuple[str, str]:
    """The code in brackets (empty: there is none) and the text behind it."""
    kind = failure.kind
    if kind in ("enoent", "eacces"):
        return process_cause(kind, failure.detail)
    if kind == "timeout":
        name = server.name if wording.names_hanging_server else "[redacted]"
        return "CONNECT_TIMEOUT", f'MCP server "{name}" connection timed out after {limit_ms}ms'
    if kind == "status":
        return status_cause(server, failure, wording)
    if kind == "content":
        return wording.content[0], f"{wording.content[1]}{failure.detail}"
    if kind == "dns":
        return "ENOTFOUND", f"getaddrinfo ENOTFOUND {urlsplit(server.url or '').hostname or ''}"
    if kind == "protocol":
        if failure.code is None:
            return "", INVALID_MESSAGE
        return str(failure.code), f"{wording.rpc_prefix.format(code=failure.code)}{failure.detail}"
    return {"exited": wording.closed, "refused": wording.refused, "reset": wording.reset}[kind]


def process_cause(kind: str, command: str) -> tuple[str, str]:
    """A command that cannot be executed; a bare one is looked for in PATH."""
    if kind == "eacces":
        return "EACCES", f"EACCES: permission denied, posix_spawn '{command}'"
    if "/" not in command:
        return "ENOENT", f'Executable not found in $PATH: "{command}"'
    return "ENOENT", f"ENOENT: no such file or directory, posix_spawn '{command}'"


def status_cause(server: LoadedServer, failure: Failure, wording: Wording) -> tuple[str, str]:
    """An HTTP status that is no refusal."""
    if server.transport == "sse":
        return str(failure.status), f"SSE error: Non-200 status code ({failure.status})"
    if failure.status == 404:
        parts = urlsplit(server.url or "")
        place = f"{parts.scheme}://{parts.netloc}"
        return "ENDPOINT_NOT_FOUND", f"MCP endpoint not found at {place}. Check the URL in your MCP config."
    return str(failure.status), f"{wording.post_prefix}Error POSTing to endpoint: {failure.body}"


def before(failure: Failure, limit_ms: int, wording: Wording) -> tuple[tuple[str, str], ...]:
    """What is said ahead of the failure itself: a second start, the server's own words, a way that was tried."""
    lines = [*second_start(failure)]
    if failure.stderr:
        lines.append((ERROR, server_stderr(failure.stderr)))
    if failure.kind == "timeout":
        lines.append((DEBUG, f"Connection timeout triggered {after(failure, wording)} (limit: {limit_ms}ms)"))
    if failure.fallback_status is not None:
        posted = f"{wording.post_prefix}Error POSTing to endpoint: {failure.body}"
        got = f"SSE error: Non-200 status code ({failure.fallback_status})"
        lines += [
            (DEBUG, f"initialize POST rejected ({posted}); trying legacy HTTP+SSE"),
            (DEBUG, f"legacy HTTP+SSE not confirmed ({got}); surfacing the POST failure"),
        ]
    return tuple(lines)


def second_start(attempt: Any) -> tuple[tuple[str, str], ...]:
    """The lines of a process that was started again because it ended over the probe."""
    if not attempt.respawned:
        return ()
    printed = "".join(f"{redacted(text)}\n" for text in attempt.stderr_before)
    told = ((DEBUG, f"stderr of the stdio server before restarting it: {printed}"),) if printed else ()
    return ((DEBUG, RESPAWNING), *told)


def server_stderr(lines: tuple[str, ...]) -> str:
    """All that a server printed until its outcome, folded into one line."""
    return "Server stderr: " + "".join(f"{redacted(text)}\n" for text in lines)


def quiet_line(server: LoadedServer, failure: Failure, code: str, text: str, wording: Wording) -> str:
    """The debug line of a failure."""
    if server.transport == "stdio" or failure.kind == "timeout":
        bracket = f" ({code})" if code else ""
        return f"Connection failed {after(failure, wording)}{bracket}: {text}"
    return detail_line(
        server, failure, text, (wording.status_code or code) if failure.kind == "status" else code, wording
    )


def detail_line(server: LoadedServer, failure: Failure, text: str, code: str, wording: Wording) -> str:
    """The debug line of a remote server's failure."""
    if server.transport == "sse":
        said = json_stringify({"code": failure.status, "message": text})
        return f"SSE Connection failed {after(failure, wording)}: {said}"
    return f"HTTP Connection failed {after(failure, wording)}: {text} (code: {code or 'none'}, errno: none)"


def after(failure: Failure, wording: Wording) -> str:
    """`after Nms`, and how much of it the machine was awake."""
    return duration("after", failure.after_seconds, wording)


def duration(word: str, seconds: float, wording: Wording) -> str:
    """A time that has passed."""
    passed = f"{milliseconds(seconds)}ms"
    return f"{word} {passed}, {passed} of it awake" if wording.awake else f"{word} {passed}"


def milliseconds(seconds: float) -> int:
    """Whole milliseconds."""
    return round(seconds * 1000)


def transport_name(server: LoadedServer) -> str:
    """How the log calls a remote transport."""
    return server.transport.upper()


def uptime(seconds: float) -> str:
    """Whole seconds, cut."""
    return f"{int(seconds)}s"
