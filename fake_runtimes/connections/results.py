"""Who a client says it is, and how a connection, a call and an ending came out."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from harness.world import Child

FAILURE_KINDS = (
    "enoent",
    "eacces",
    "spawn",
    "exited",
    "timeout",
    "protocol",
    "status",
    "refused",
    "dns",
    "reset",
    "content",
    "oauth",
)
STAGES = ("spawn", "probe", "initialize", "list", "call")


class Identity(NamedTuple):
    """What a client tells about itself and the habits in which clients differ.

    `probe` sends `server/discover` first and gives it `probe_seconds` out of the start budget; a stdio server
    that exits over it is started once more when `respawn_on_probe_exit`. `fallback_statuses` are the answers
    to the first POST after which the older transport is tried at the same URL; `opens_stream` asks for the
    stream of server messages after the handshake.
    """

    client_name: str
    client_version: str
    protocol_version: str
    probe: bool = False
    probe_seconds: float = 0.0
    respawn_on_probe_exit: bool = False
    user_agent: str = ""
    capabilities: Mapping[str, Any] = {}
    client_info: Mapping[str, Any] = {}
    first_id: int = 0
    probe_protocol_version: str = "2026-07-28"
    fallback_statuses: tuple[int, ...] = ()
    opens_stream: bool = False


class Failure(NamedTuple):
    """Why there is no connection. `kind` is one of FAILURE_KINDS, `stage` one of STAGES.

    `detail` is the command (enoent, eacces, spawn), the server's error text (protocol), the content type (content), why
    a way in was not found (oauth, where `body` is the error's code) or what the network layer said. `error` is what the
    system refused a spawn with, where the kind does not say it. `after_seconds` counts from the first spawn or request.
    A process that still runs is `child`: nobody has signalled it. `stderr_before` is what the server printed before it
    was started again, `fallback_status` what the older transport was answered, `code` a JSON-RPC error's.
    `probe_unanswered` is whether the newer probe took its whole time before the older handshake.
    """

    kind: str
    detail: str = ""
    status: int | None = None
    challenge: str | None = None
    body: str = ""
    stderr: tuple[str, ...] = ()
    exit_code: int | None = None
    after_seconds: float = 0.0
    stage: str = "initialize"
    code: int | None = None
    child: Child | None = None
    respawned: bool = False
    stderr_before: tuple[str, ...] = ()
    fallback_status: int | None = None
    probe_unanswered: bool = False
    error: OSError | None = None

    @property
    def error_name(self) -> str:
        """The system's error by its name, as `E2BIG`; empty where there is none."""
        number = None if self.error is None else self.error.errno
        return "" if number is None else errno.errorcode.get(number, f"E{number}")


class OverTimeError(Exception):
    """The time of a request is over before it could be sent."""


class Access(Protocol):
    """What gets a client into a remote server, request by request."""

    async def token(self, until_seconds: float) -> str | None:
        """The token that goes along now. Raises OverTimeError."""

    async def refused(self, failure: Failure, until_seconds: float) -> Failure | None:
        """After a 401: None where the request is to be sent once more, else what it comes to. Raises OverTimeError."""


class CallResult(NamedTuple):
    """A tool call's end. `kind` is None for an answer without error, `error` when the tool says it is one.

    Else it is one of FAILURE_KINDS (`exited`: the process ended), and `failure` tells more.
    """

    ok: bool
    text: str = ""
    kind: str | None = None
    failure: Failure | None = None


class Closed(NamedTuple):
    """How a server process was ended: the signals it took, and its exit code (None: it runs on)."""

    sent: tuple[str, ...] = ()
    exit_code: int | None = None


Signals = Sequence[tuple[str, float]]
"""Signals in order, each with the seconds that the process has before the next; `EOF` closes its stdin."""
