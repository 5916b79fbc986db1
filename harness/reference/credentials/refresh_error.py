"""What a failed refresh request may have done, and so whether the job repeats it by itself.

Source: seed 002 "Refresh"; requirements refresh-retryable-class, refresh-ambiguous-class,
refresh-unexpected-error-class. A refresh token is good once. A request that may have been processed has perhaps spent
it, so it is never repeated before the next scheduled run, which looks into the runtimes' stores first.
"""

from __future__ import annotations

from typing import Literal

from harness.world import Ambiguous, NotSent

ErrorClass = Literal["retryable", "ambiguous", "unexpected"]
ErrorKind = Literal[
    "connect_timeout", "connection_refused", "host_unreachable", "name_resolution", "read_timeout", "write_timeout",
    "other_timeout", "socket_timed_out", "connection_reset", "broken_pipe", "end_of_file", "tls",
    "network_unreachable", "connection_aborted", "unparseable_body", "programming_error",
]  # fmt: skip

NEVER_CONNECTED: frozenset[ErrorKind] = frozenset(
    {"connect_timeout", "connection_refused", "host_unreachable", "name_resolution"}
)
TIMEOUTS: frozenset[ErrorKind] = frozenset({"connect_timeout", "read_timeout", "write_timeout", "other_timeout"})
PERHAPS_PROCESSED: frozenset[ErrorKind] = TIMEOUTS | {
    "socket_timed_out", "connection_reset", "broken_pipe", "end_of_file", "tls",
}  # fmt: skip
"""A connect timeout is a timeout too: so the question whether there was a connection comes first. Any TLS error is
here, a failed handshake too: in which part of the exchange it came up is not always known."""

NOT_SENT: dict[str, ErrorKind] = {
    "timeout": "connect_timeout",
    "refused": "connection_refused",
    "dns": "name_resolution",
    "tls": "tls",
}
AMBIGUOUS: dict[str, ErrorKind] = {"timeout": "read_timeout", "reset": "connection_reset"}


def error_kind(error: Exception) -> ErrorKind:
    """What went wrong with a request, in the words of the requirements; anything else is an error of the program."""
    if isinstance(error, NotSent):
        return NOT_SENT.get(error.reason, "programming_error")
    if isinstance(error, Ambiguous):
        return AMBIGUOUS.get(error.reason, "other_timeout")
    return "programming_error"


def class_of(kind: ErrorKind) -> ErrorClass:
    """Retryable: nothing was sent. Ambiguous: the token may be spent. Anything else is for a human to look at."""
    if kind in NEVER_CONNECTED:
        return "retryable"
    return "ambiguous" if kind in PERHAPS_PROCESSED else "unexpected"


def error_class(error: Exception) -> ErrorClass:
    """The class of what a refresh request raised."""
    return class_of(error_kind(error))


def is_repeated_in_band(outcome: str) -> bool:
    """Whether the job repeats a refresh that ended so by itself: only what has certainly not been processed."""
    return outcome == "retryable"
