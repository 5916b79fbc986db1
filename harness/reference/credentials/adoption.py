"""May a runtime's stored pair be taken over into the row? Each refusal is a rule of its own (seed 002 "Capturing the
token the runtime rotates").

The order that no lock gives comes from the tokens: only a strictly later expiry is taken, so that the chain advances in
one direction. An expired pair is taken all the same, its refresh token is the head of the chain
(reconcile-adopt-expired-pair).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Literal, NamedTuple

from harness.reference.credentials.row import Credential
from harness.reference.credentials.writers.protocol import RuntimePair
from harness.reference.secrets.blank import is_blank

Refusal = Literal[
    "no entry",
    "incomplete pair",
    "same pair",
    "other server",
    "row without expiry",
    "entry without expiry",
    "not later",
    "retired",
]

END_OF_TIME_SECONDS = 1e15
"""No expiry is later: numbers beyond are no times, and some are none that can be calculated with."""


class Retirement(NamedTuple):
    """What a retired row was worth: which token it held, and the expiry that retiring it took away (None: none).

    `tokens` are the digests of all that this credential's retirements have ended, access and refresh tokens.
    """

    access_token_digest: str
    expires_at: float | None
    tokens: tuple[str, ...] = ()


def adopted(row: Credential, pair: RuntimePair | None, retirement: Retirement | None = None) -> Credential | None:
    """The row with the pair taken over: both tokens and the expiry at once, every other column as it was; None where
    one of the refusals holds.

    A refresh token that arrives settles whether the server issues any (reconcile-adoption-clears-one-shot-flag).
    """
    if pair is None or refusal(row, pair, retirement) is not None:
        return None
    return taken_over(row, pair)


def taken_over(row: Credential, pair: RuntimePair) -> Credential:
    """The row with what a runtime refreshed in place of its own."""
    return replace(
        row,
        access_token=pair.access_token or "",
        refresh_token=pair.refresh_token,
        expires_at=pair.expires_at,
        refresh_token_unsupported=False,
    )


def refusal(row: Credential, pair: RuntimePair | None, retirement: Retirement | None = None) -> Refusal | None:
    """Why a runtime's entry is not taken over; None where it is."""
    if pair is None:
        return "no entry"
    rules: dict[Refusal, Callable[[], bool]] = {
        "incomplete pair": lambda: is_incomplete(pair),
        "same pair": lambda: is_same_pair(row, pair),
        "other server": lambda: is_of_another_server(row, pair),
        "row without expiry": lambda: row_never_expires(row),
        "entry without expiry": lambda: has_no_expiry(pair),
        "not later": lambda: is_not_later(row, pair),
        "retired": lambda: belongs_to_retired_chain(row, pair, retirement),
    }
    return next((name for name, holds in rules.items() if holds()), None)


def is_incomplete(pair: RuntimePair) -> bool:
    """A token is missing, blank or no text: an emptied entry is no pair (reconcile-refuse-incomplete-pair)."""
    return not (is_token(pair.access_token) and is_token(pair.refresh_token))


def is_token(value: object) -> bool:
    """A text that is not blank. Stores are others' files: anything may stand there."""
    return isinstance(value, str) and not is_blank(value)


def is_same_pair(row: Credential, pair: RuntimePair) -> bool:
    """What Zimmer has itself, whatever expiry stands beside it (reconcile-refuse-identical-pair)."""
    return (pair.access_token, pair.refresh_token) == (row.access_token, row.refresh_token)


def is_of_another_server(row: Credential, pair: RuntimePair) -> bool:
    """It names a URL and not this one, byte for byte; keys alone do not tell (reconcile-refuse-other-server-url)."""
    return not is_blank(pair.server_url) and pair.server_url != row.server_url


def row_never_expires(row: Credential) -> bool:
    """A token without an expiry is one that no runtime refreshes: what lies in the store is older
    (reconcile-refuse-row-without-expiry).
    """
    return row.expires_at is None


def has_no_expiry(pair: RuntimePair) -> bool:
    """Missing, no number, or none that a token can have (reconcile-refuse-runtime-without-expiry)."""
    return not is_time(pair.expires_at)


def is_time(value: object) -> bool:
    """A positive number of seconds that a calendar can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < END_OF_TIME_SECONDS


def is_not_later(row: Credential, pair: RuntimePair) -> bool:
    """It does not expire after the row: equal is not later (reconcile-equal-expiry-keeps-row)."""
    if row.expires_at is None or pair.expires_at is None:
        return False
    return pair.expires_at <= row.expires_at


def belongs_to_retired_chain(row: Credential, pair: RuntimePair, retirement: Retirement | None) -> bool:
    """A copy of what was retired, or of something older, in a store that retiring did not reach
    (reconcile-scoped-revocation-limit).

    Retiring moved the row's expiry into the past, so the expiry before that is what a pair is measured with. Once the
    row holds another token it has been authorized again: an expiry says nothing of the retirement any more, but what
    was retired by name never comes back.
    """
    if retirement is None:
        return False
    if holds_what_was_retired(row, pair, retirement):
        return True
    if not is_blank(row.refresh_token):
        return False
    if retirement.access_token_digest != token_digest(row.access_token):
        return False
    if retirement.expires_at is None or pair.expires_at is None:
        return True
    return pair.access_token == row.access_token or pair.expires_at <= retirement.expires_at


def holds_what_was_retired(row: Credential, pair: RuntimePair, retirement: Retirement) -> bool:
    """A token of it is one that was retired, and that the row has no more.

    Such a pair may expire later than what a new authorization gave: one server does not always grant the same time.
    """
    new = {pair.access_token, pair.refresh_token} - {row.access_token, row.refresh_token, None}
    return any(token_digest(token) in retirement.tokens for token in new if token is not None)


def token_digest(access_token: str) -> str:
    """What stands for a token where the token itself need not."""
    return sha256(access_token.encode("utf-8", "surrogatepass")).hexdigest()
