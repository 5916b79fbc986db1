"""What a token endpoint's answer to a refresh makes of the row. Pure.

Source: seed 002 "Refresh"; ARCHITECTURE "Where sources disagree", refresh by status. The status alone decides wherever
the grant is refused: many servers answer a bare HTML page. A row that is not renewed stays as it is, but for a dead
grant: its refresh token goes, and never anything else. `expires_at` in particular never moves by a failure.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from harness.reference.credentials.row import Credential
from harness.reference.oauth.tokens import TokenAnswer, token_answer

StatusClass = Literal["success", "transient", "permanent", "odd"]
Result = Literal["refreshed", "permanent", "failed", "unexpected"]
LogLevel = Literal["warn", "error"]
BodyKind = Literal["empty", "json", "html", "other"]

SUCCESS = 200
TOO_MANY_REQUESTS = 429
DEAD_GRANT_ERRORS = frozenset({"invalid_grant", "invalid_client", "unauthorized_client"})
UNPARSEABLE = object()
"""What a body is that is no JSON; JSON itself knows null."""


class Refreshed(NamedTuple):
    """The row afterwards. `unexpected`: a 200 that cannot be read, so perhaps a rotation that nobody will ever see."""

    result: Result
    row: Credential
    log_level: LogLevel | None


def refreshed_row(row: Credential, status: int, body: str, now: float) -> Refreshed:
    """The row after an answer that came at `now`, in seconds since the epoch."""
    kind = status_class(status)
    if kind == "transient":
        return Refreshed("failed", row, "error")
    if kind == "permanent":
        return dead_grant(row)
    document = json_document(body)
    answer = granted(document) if kind == "success" else None
    if answer is not None:
        return Refreshed("refreshed", renewed(row, answer, now), None)
    if names_dead_grant(document):
        return dead_grant(row)
    return Refreshed("unexpected" if kind == "success" and document is UNPARSEABLE else "failed", row, "error")


def status_class(status: int) -> StatusClass:
    """Transient statuses come first: a rate limit is a 4xx too, and says nothing about the grant.

    The credential of X splits its statuses in the same way (refresh-splits-like-x).
    """
    if status == TOO_MANY_REQUESTS or 500 <= status <= 599:
        return "transient"
    if 400 <= status <= 499:
        return "permanent"
    return "success" if status == SUCCESS else "odd"


def json_document(body: str) -> Any:
    """The body as JSON, UNPARSEABLE where it is none. A refresh answer is never read as a form.

    NaN and Infinity are no JSON: a lifetime of that would be read as a token that never expires.
    """
    try:
        return json.loads(body, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return UNPARSEABLE


def refuse_constant(name: str) -> None:
    """What Python's parser takes beyond JSON."""
    raise ValueError(f"{name} is no JSON")


def granted(document: Any) -> TokenAnswer | None:
    """The tokens of a parsed answer, None where it has no usable access token; the same extraction as the exchange."""
    return token_answer(document) if isinstance(document, dict) else None


def names_dead_grant(document: Any) -> bool:
    """Whether a JSON answer says that the grant or its client is good no more (refresh-error-in-200-body)."""
    error = document.get("error") if isinstance(document, dict) else None
    return isinstance(error, str) and error in DEAD_GRANT_ERRORS


def renewed(row: Credential, answer: TokenAnswer, now: float) -> Credential:
    """The new pair. An answer without refresh token keeps the stored one; one without a lifetime lasts for ever."""
    lifetime = answer.expires_in_seconds
    return replace(
        row,
        access_token=answer.access_token,
        refresh_token=answer.refresh_token or row.refresh_token,
        expires_at=None if lifetime is None else now + lifetime,
        refresh_token_unsupported=False,
    )


def dead_grant(row: Credential) -> Refreshed:
    """The refresh token goes; an access token that is still good stays (refresh-permanent-*).

    Nor does the flag for one-shot credentials change: that the grant died is no sign that the server issues none.
    """
    return Refreshed("permanent", replace(row, refresh_token=None), "warn")


def body_kind(body: str) -> BodyKind:
    """What a log line says of a body: a page of a firewall looks unlike an answer of the provider."""
    text = body.strip().lower()
    if not text:
        return "empty"
    if text.startswith("<"):
        return "html"
    return "other" if json_document(body) is UNPARSEABLE else "json"
