"""What Codex says of a server that did not start: the cause, the status made of it, and its line on stderr."""

from __future__ import annotations

import json
from typing import NamedTuple

from fake_runtimes.client import Failure
from fake_runtimes.codex.startup import attempt_seconds, timeout_text
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.profile import CodexProfile

UNAUTHORIZED = 401
NOT_LOGGED_IN = "The {name} MCP server is not logged in. Run `codex mcp login {name}`."
BEARER = "bearer"
NO_SUCH_FILE = "No such file or directory (os error 2)"
PERMISSION_DENIED = "Permission denied (os error 13)"
HANDSHAKE = "handshaking with MCP server failed: "
CONNECTION_CLOSED = "connection closed: initialize response"


class NotStarted(NamedTuple):
    """A server that did not start. `kind` is a failure's kind, `config`, `credential` or `renewal`; `text` the status.

    `cause` is the error inside the status, which a required server's end of the run tells; `reason` the
    machine-readable one. `unauthorized` tells a server that asks for a login.
    """

    kind: str
    text: str
    cause: str
    reason: str | None = None
    unauthorized: bool = False


def not_started(server: LoadedServer, failure: Failure, profile: CodexProfile) -> NotStarted:
    """How a failed start is told."""
    cause = repeated(cause_of(server, failure, profile), profile)
    if asks_for_login(failure):
        return NotStarted(failure.kind, NOT_LOGGED_IN.format(name=server.name), cause, unauthorized=True)
    if failure.kind == "timeout" and failure.stage != "list":
        return NotStarted(failure.kind, timeout_text(server, profile), cause)
    return NotStarted(failure.kind, failed_to_start(server.name, cause), cause)


def failed_to_start(name: str, cause: str) -> str:
    """The status around a cause."""
    return f"MCP client for `{name}` failed to start: MCP startup failed: {cause}"


def asks_for_login(failure: Failure) -> bool:
    """A 401 with a bearer challenge, whether or not a credential was sent: the text is the same."""
    scheme = (failure.challenge or "").partition(" ")[0].lower()
    return failure.status == UNAUTHORIZED and scheme == BEARER


def cause_of(server: LoadedServer, failure: Failure, profile: CodexProfile) -> str:
    """The error of one start attempt."""
    if failure.kind == "enoent":
        return NO_SUCH_FILE
    if failure.kind == "eacces":
        return PERMISSION_DENIED
    if failure.error is not None:
        return f"{failure.error.strerror} (os error {failure.error.errno})"
    if failure.kind == "timeout":
        return timeout_cause(server, failure, profile)
    if failure.stage == "list":
        return list_error(failure)
    if failure.kind == "exited":
        return HANDSHAKE + CONNECTION_CLOSED
    if failure.kind == "protocol" and (failure.code is not None or server.transport == "stdio"):
        told = f"{failure.code}: {failure.detail}" if failure.code is not None else failure.detail
        return f"{HANDSHAKE}JSON-RPC error: {told}"
    transport = f"Send message error Transport [{profile.transport_type}] error: "
    return f"{HANDSHAKE}{transport}{transport_error(server, failure, profile)}, when send initialize request"


def timeout_cause(server: LoadedServer, failure: Failure, profile: CodexProfile) -> str:
    """The budget that ran out: that of the handshake or that of the list of tools."""
    seconds = attempt_seconds(server, profile)
    if failure.stage == "list":
        return f"timed out awaiting tools/list after {duration(seconds)}"
    return f"timed out handshaking with MCP server after {seconds:g}s"


def duration(seconds: float) -> str:
    """A duration as the program writes it: seconds from one on, else milliseconds."""
    return f"{seconds:g}s" if seconds >= 1 else f"{seconds * 1000:g}ms"


def list_error(failure: Failure) -> str:
    """What the client library says of a failed list of tools."""
    if failure.kind == "protocol" and failure.code is not None:
        return f"Mcp error: {failure.code}: {failure.detail}"
    return "Transport closed"


def transport_error(server: LoadedServer, failure: Failure, profile: CodexProfile) -> str:
    """What the HTTP layer says of a request that got no answer of the protocol."""
    if asks_for_login(failure):
        return "Auth required"
    if failure.kind == "status":
        return f"unexpected server response: HTTP {failure.status}: {failure.body}"
    if failure.kind == "content":
        shown = json.dumps(f"{failure.detail}; body: {failure.body}", ensure_ascii=False)
        return f"Unexpected content type: Some({shown})"
    if failure.kind == "protocol":
        return f"Deserialize error: {profile.no_message_text}"
    return f"Client error: HTTP request failed: http/request failed: error sending request for url ({server.url})"


def repeated(cause: str, profile: CodexProfile) -> str:
    """The cause as the version writes it: the newer one tells its last link twice."""
    if not profile.timeout_repeats_cause:
        return cause
    if cause.startswith("timed out handshaking"):
        return f"{cause}: deadline has elapsed"
    if cause.startswith(HANDSHAKE):
        return f"{cause}: {cause.removeprefix(HANDSHAKE)}"
    return cause


def error_line(failure: Failure) -> str | None:
    """The line on stderr at the default level: a 401 with a challenge, without the server's name; else none."""
    if not asks_for_login(failure):
        return None
    return (
        "ERROR rmcp::transport::worker: worker quit with fatal: Transport channel closed, when"
        f" AuthRequired(AuthRequiredError {{ www_authenticate_header: {json.dumps(failure.challenge)} }})"
    )
