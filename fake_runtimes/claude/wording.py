"""The words of Claude Code's log for each way in which a connection comes out, in both measured wordings.

A 5xx answer to the older transport's stream, a JSON-RPC error and a message that is none were measured in
their form, not in every version and letter: there the texts follow the form of their neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fake_runtimes.claude.logs import DEBUG, ERROR
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
DEFERRED = "Authentication required; client registration is deferred until the user authenticates"
TIMED_OUT = "Request timed out"
PROBE_TIMED_OUT = "Version negotiation probe timed out after 5000ms"
RECONNECTING = "version negotiation probe failed on the http transport; reconnecting pinned legacy"
LOSES_THE_PROBE = ("content", "refused", "reset", "oauth")
SPEAKING_CODES = ("CONNECT_TIMEOUT", "ENDPOINT_NOT_FOUND")
"""Codes that a list of servers leaves out: the text says it all."""
NO_PROGRAM = "ENOEXEC"
"""A file that may be executed and is no program: its error is one for which the program has no words."""
SHUTTING_DOWN = "Claude Code is shutting down"
NAMELESS = "De"
"""A class whose name the build has shortened, to another one each time."""
STACK = "\n    at <anonymous>"


class Wording(NamedTuple):
    """What differs between the versions.

    `asks_in_time` is the version whose own request runs out before its watch does, unless the newer probe took a part
    of the time away; `repeats_code` the one whose list says a code that the text begins with once more, and adds a
    detail; `names_codes` the one that has OAuth's code for what was refused without a description.
    """

    awake: bool
    closed: tuple[str, str]
    refused: tuple[str, str]
    reset: tuple[str, str]
    content: tuple[str, str]
    status_code: str
    rpc_prefix: str
    post_prefix: str
    unauthorized: str
    classes: Mapping[str, str]
    asks_in_time: bool
    repeats_code: bool
    tells_of_abandoning: bool
    names_codes: bool


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
        classes={"protocol": "McpError"},
        asks_in_time=False,
        repeats_code=True,
        tells_of_abandoning=False,
        names_codes=False,
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
        classes={"protocol": "ProtocolError", "status": "SdkHttpError", "content": "SdkError"},
        asks_in_time=True,
        repeats_code=False,
        tells_of_abandoning=True,
        names_codes=True,
    ),
}


class Told(NamedTuple):
    """What a session says of a server that did not connect: its status, the lines, and the words that count.

    `detail` is what a list of servers adds to the words.
    """

    status: str
    lines: tuple[tuple[str, str], ...]
    text: str
    detail: str = ""


def tell(
    server: LoadedServer,
    failure: Failure,
    limit_ms: int,
    wording: Wording,
    *,
    static_authorization: bool,
    has_client: bool = False,
) -> Told:
    """The lines of a failed connection, in order. `has_client` is whether a client is registered in the store."""
    if failure.status in (401, 403) and failure.kind == "status":
        refused = static_authorization and failure.status == 401
        return rejected(server, failure, wording) if refused else unwelcome(server, failure, wording, has_client)
    code, text = cause(server, failure, limit_ms, wording)
    bracket = f" ({code})" if code else ""
    lines = [*before(failure, limit_ms, wording)]
    if server.transport != "stdio":
        lines += transport_lines(server, failure, said_by_transport(failure, code, text, wording), wording)
    lines.append((DEBUG, f"Connection failed {after(failure, wording)}{bracket}: {text}"))
    lines.append((ERROR, f"Connection failed{bracket}: {text}"))
    return Told(FAILED, tuple(lines), f"Connection failed{bracket}: {text}")


def unwelcome(server: LoadedServer, failure: Failure, wording: Wording, has_client: bool) -> Told:
    """401 and 403: the server wants somebody to sign in."""
    wants = f"Authentication required for {transport_name(server)} server"
    if failure.status == 403:
        said = said_by_transport(failure, *cause(server, failure, 0, wording), wording)
    elif has_client:
        said = Said("none", "Unauthorized", wording.unauthorized.partition(":")[0])
    else:
        said = Said("none", DEFERRED, "McpClientRegistrationDeferredError")
    return Told(NEEDS_AUTH, (*transport_lines(server, failure, said, wording), (DEBUG, wants)), wants)


def rejected(server: LoadedServer, failure: Failure, wording: Wording) -> Told:
    """401 where the server's own configured header was refused."""
    said = said_by_transport(failure, *cause(server, failure, 0, wording), wording)
    lines = transport_lines(server, failure, said, wording)
    detail = f" Error detail: {said.text}".rstrip() if wording.repeats_code else ""
    return Told(FAILED, (*lines, (ERROR, REJECTED_HEADER)), REJECTED_HEADER, detail)


class Said(NamedTuple):
    """What a remote transport says of a failure: a code (`none`), a text, and the class of its error."""

    code: str
    text: str
    error_class: str


def said_by_transport(failure: Failure, code: str, text: str, wording: Wording) -> Said:
    """It has other words than what is said of the server, for a status and for a time that is over."""
    kind = failure.kind
    error_class = {"refused": "TypeError", "reset": "TypeError", "dns": "Error", "timeout": "TelemetrySafeError"}.get(
        kind, wording.classes.get(kind, "Error")
    )
    if kind == "oauth":
        if text == PROBE_TIMED_OUT:
            return Said("REQUEST_TIMEOUT", text, "SdkError")
        return Said(code or "none", text, "OAuthError" if code else NAMELESS)
    if kind == "protocol" and failure.code is None:
        return Said("none", text, "ZodError")
    if kind == "timeout" and text == TIMED_OUT:
        return Said("REQUEST_TIMEOUT", text, "SdkError")
    if kind == "status" and text.startswith("SSE error"):
        return Said(code, text, "Error")
    if kind != "status":
        return Said(code or "none", text, error_class)
    return Said(wording.status_code or str(failure.status), posted(failure, wording), error_class)


def transport_lines(
    server: LoadedServer, failure: Failure, said: Said, wording: Wording
) -> tuple[tuple[str, str], ...]:
    """A debug line with the code, and a loud one with the class and its stack."""
    reconnected = wording.asks_in_time and server.transport == "http" and failure.kind in LOSES_THE_PROBE
    again = ((DEBUG, RECONNECTING),) if reconnected else ()
    passed = f"after {milliseconds(failure.after_seconds)}ms"
    if server.transport == "sse":
        error = f"{said.error_class}: {said.text}{STACK}"
        fields = {"url": server.url, "error": said.text, "errorType": said.error_class, "stack": error}
        quiet = f"SSE Connection failed {passed}: {json_stringify(fields)}"
    else:
        quiet = f"HTTP Connection failed {passed}: {said.text} (code: {said.code}, errno: none)"
    return (*again, (DEBUG, quiet), (ERROR, f"{said.error_class}: {said.text}{STACK}"))


def reason(loud: str, wording: Wording) -> str:
    """What a list of servers tells of a failure: `CODE: text`, or the text alone."""
    said = loud.removeprefix("Connection failed")
    code, bracket, text = said.removeprefix(" (").partition("): ")
    if code == text:
        return text
    if not bracket or not said.startswith(" ("):
        return " ".join(said.removeprefix(": ").split())
    if code in SPEAKING_CODES or (not wording.repeats_code and text.startswith(f"{code}: ")):
        return text
    return f"HTTP {code}: {text}" if code.isdecimal() else f"{code}: {text}"


def cause(server: LoadedServer, failure: Failure, limit_ms: int, wording: Wording) -> tuple[str, str]:
    """The code in brackets (empty: there is none) and the text behind it."""
    kind = failure.kind
    if kind in ("enoent", "eacces", "spawn"):
        return process_cause(failure)
    if kind == "timeout":
        alone = wording.asks_in_time and not failure.probe_unanswered
        named = f'MCP server "{server.name}" connection timed out after {limit_ms}ms'
        return "CONNECT_TIMEOUT", TIMED_OUT if alone else named
    if kind == "status":
        return status_cause(server, failure, wording)
    if kind == "content":
        return wording.content[0], f"{wording.content[1]}{failure.detail}"
    if kind == "dns":
        return "ENOTFOUND", f"getaddrinfo ENOTFOUND {urlsplit(server.url or '').hostname or ''}"
    if kind == "oauth":
        return oauth_cause(failure, wording)
    if kind == "protocol":
        if failure.code is None:
            return "", INVALID_MESSAGE
        return str(failure.code), f"{wording.rpc_prefix.format(code=failure.code)}{failure.detail}"
    return {"exited": wording.closed, "refused": wording.refused, "reset": wording.reset}[kind]


def oauth_cause(failure: Failure, wording: Wording) -> tuple[str, str]:
    """An authorization server that cannot be used. A probe whose time was over before counts for more than a code."""
    if not wording.names_codes:
        return "", failure.detail
    if failure.probe_unanswered and failure.body:
        return "CONNECT_TIMEOUT", PROBE_TIMED_OUT
    return failure.body, failure.detail


def process_cause(failure: Failure) -> tuple[str, str]:
    """A command that cannot be executed; a bare one is looked for in PATH. Measured but for the rarer errors."""
    kind, command = failure.kind, failure.detail
    if failure.error is not None:
        name = failure.error_name
        words = "unknown error" if name == NO_PROGRAM else str(failure.error.strerror).lower()
        return name, f"{name}: {words}, posix_spawn '{command}'"
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
    return str(failure.status), posted(failure, wording)


def posted(failure: Failure, wording: Wording) -> str:
    """What is said of a POST that was answered with a status."""
    return f"{wording.post_prefix}Error POSTing to endpoint: {failure.body}"


def before(failure: Failure, limit_ms: int, wording: Wording) -> tuple[tuple[str, str], ...]:
    """What is said ahead of the failure itself: a second start, the server's own words, a way that was tried."""
    lines = [*second_start(failure)]
    if failure.stderr:
        lines.append((ERROR, server_stderr(failure.stderr)))
    if failure.kind == "timeout" and (failure.probe_unanswered or not wording.asks_in_time):
        lines.append((DEBUG, f"Connection timeout triggered {after(failure, wording)} (limit: {limit_ms}ms)"))
    if failure.fallback_status is not None:
        got = f"SSE error: Non-200 status code ({failure.fallback_status})"
        lines += [
            (DEBUG, f"initialize POST rejected ({posted(failure, wording)}); trying legacy HTTP+SSE"),
            (DEBUG, f"legacy HTTP+SSE not confirmed ({got}); surfacing the POST failure"),
        ]
    return tuple(lines)


def second_start(attempt: Any) -> tuple[tuple[str, str], ...]:
    """The lines of a process that was started again because it ended over the probe."""
    if not attempt.respawned:
        return ()
    printed = "".join(f"{text}\n" for text in attempt.stderr_before)
    told = ((DEBUG, f"stderr of the stdio server before restarting it: {printed}"),) if printed else ()
    return ((DEBUG, RESPAWNING), *told)


def server_stderr(lines: tuple[str, ...]) -> str:
    """All that a server printed until its outcome, folded into one line."""
    return "Server stderr: " + "".join(f"{text}\n" for text in lines)


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
