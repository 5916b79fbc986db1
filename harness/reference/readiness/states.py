"""The nine states of a server, their labels and severities, and which of them block a spawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TypeVar

Row = TypeVar("Row")


class State(StrEnum):
    """Could a session attach the server at this moment? In the order of the labels (readiness-labels)."""

    READY = "ready"
    NO_CREDENTIAL_REQUIRED = "no_credential_required"
    NEEDS_AUTHORIZATION = "needs_authorization"
    TOKEN_EXPIRED = "token_expired"
    NEEDS_REAUTH = "needs_reauth"
    MISSING_CONFIGURATION = "missing_configuration"
    DECLARED_UNAVAILABLE = "declared_unavailable"
    STORE_UNAVAILABLE = "store_unavailable"
    PROBE_FAILED = "probe_failed"


STATES = tuple(State)

LABELS = {
    State.READY: "Ready",
    State.NO_CREDENTIAL_REQUIRED: "No credential required",
    State.NEEDS_AUTHORIZATION: "Needs authorization",
    State.TOKEN_EXPIRED: "Token expired",
    State.NEEDS_REAUTH: "Needs re-auth",
    State.MISSING_CONFIGURATION: "Missing configuration",
    State.DECLARED_UNAVAILABLE: "Unavailable",
    State.STORE_UNAVAILABLE: "Secret store unreachable",
    State.PROBE_FAILED: "Probe failed",
}

RANKS = {
    State.DECLARED_UNAVAILABLE: 0,
    State.MISSING_CONFIGURATION: 1,
    State.NEEDS_REAUTH: 2,
    State.NEEDS_AUTHORIZATION: 3,
    State.STORE_UNAVAILABLE: 4,
    State.PROBE_FAILED: 5,
    State.TOKEN_EXPIRED: 6,
    State.READY: 7,
    State.NO_CREDENTIAL_REQUIRED: 8,
}

ATTENTION_RANK_CEILING = RANKS[State.READY]
UNKNOWN_RANK = RANKS[State.READY]

BLOCKING = frozenset(
    {State.MISSING_CONFIGURATION, State.NEEDS_AUTHORIZATION, State.NEEDS_REAUTH, State.DECLARED_UNAVAILABLE}
)
AUTHORIZABLE = frozenset({State.NEEDS_AUTHORIZATION, State.NEEDS_REAUTH})
"""What a human cures by consenting."""


def label(state: State) -> str:
    """The badge text."""
    return LABELS[state]


def rank(state: str) -> int:
    """Severity, 0 the worst. A state that the table does not know ranks like a ready one (readiness-severity-ranks)."""
    return {str(known): severity for known, severity in RANKS.items()}.get(state, UNKNOWN_RANK)


def needs_attention(state: str) -> bool:
    """Whether the Connectors page counts the state."""
    return rank(state) < ATTENTION_RANK_CEILING


def blocks(state: str) -> bool:
    """Whether a session with such a server cannot start with it. "Could not find out" never blocks."""
    return state in BLOCKING


def by_severity(rows: Iterable[Row], state_of: Callable[[Row], str]) -> list[Row]:
    """Rows worst first; rows of one rank keep their order."""
    return sorted(rows, key=lambda row: rank(state_of(row)))
