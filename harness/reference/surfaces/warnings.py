"""McpServerReadiness: the sentence that creating a session gives when a server of it cannot start (seed 000).

It warns and never refuses; where readiness cannot be computed it says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from harness.reference.readiness.contained import contained
from harness.reference.readiness.probe import Status
from harness.reference.readiness.states import AUTHORIZABLE
from harness.reference.secrets.blank import is_blank

WILL_FAIL = (
    "The session was created anyway, but preparing it is expected to fail outright until the missing value "
    "is set — /connectors names the variable and where it goes."
)
WILL_PARK = (
    "The session was created anyway, but it will park for OAuth authorization before the agent runs — "
    "authorize it at /connectors."
)
WILL_LACK_TOOLS = (
    "The session was created anyway and will run without those tools; the catalog entry has to change, "
    "and nothing at /connectors will fix it."
)


class CannotStart(NamedTuple):
    """A server of the session that cannot start, with its state and plain reason."""

    name: str
    state: str
    reason: str | None


def cannot_start(statuses: Iterable[Status]) -> tuple[CannotStart, ...]:
    """The servers to warn about, in the order they were judged."""
    return tuple(
        CannotStart(status.name, status.state.value, status.reason_plain) for status in statuses if not status.available
    )


def creation_warning(compute: Callable[[], Iterable[Status]]) -> str | None:
    """A session's warning, or None: also when computing it raises (warnings-readiness-raises-silent)."""
    return contained(lambda: sentence(cannot_start(compute()))).answer


def sentence(servers: Sequence[CannotStart]) -> str | None:
    """The warning: which servers, why, and what it costs the session. None for no server."""
    if not servers:
        return None
    plural = "" if len(servers) == 1 else "s"
    named = joined([mention(server.name, server.reason) for server in servers])
    return f"Zimmer cannot start MCP server{plural} {named}. {consequence({server.state for server in servers})}"


def mention(name: str, reason: str | None) -> str:
    """A server in the sentence: its reason without one closing full stop; the name alone if that leaves none."""
    told = (reason or "").removesuffix(".")
    return name if is_blank(told) else f"{name} ({told})"


def joined(mentions: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b, and c`."""
    if len(mentions) <= 2:
        return " and ".join(mentions)
    return f"{', '.join(mentions[:-1])}, and {mentions[-1]}"


def consequence(states: Iterable[str]) -> str:
    """What the worst state present costs the session: one consequence, never several."""
    present = set(states)
    if "missing_configuration" in present:
        return WILL_FAIL
    return WILL_PARK if present & AUTHORIZABLE else WILL_LACK_TOOLS
