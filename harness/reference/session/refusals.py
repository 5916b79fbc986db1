"""What the text of a failed connection says of credentials: is it auth-shaped, and was the refresh grant rejected?

Source: seed 002 "The gate" (`AUTH_ERROR_PATTERN`, `REFRESH_TOKEN_REJECTED_PATTERN`), seed 000 "When a server cannot
connect, the server is left out — not the session"; requirements gate-auth-*, gate-rejected-pattern-*, failure-auth-*,
failure-grant-rejected-pattern, failure-stderr-*. The first pattern is broad and harmless, since only a server that
OAuth can apply to becomes fatal by it; the second retires a credential, so it is narrow. The third reads what a server
itself printed, and is narrow because it takes all retries from a server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

AUTH_ERROR = re.compile(r"unauthorized|401|supported scopes|oauth|invalid_token", re.IGNORECASE | re.ASCII)
REJECTED_GRANT = re.compile(
    r"token refresh failed[^\n]*\b(?:invalid_grant|invalid_client|unauthorized_client)\b|\binvalid refresh token\b",
    re.IGNORECASE | re.ASCII,
)
SEPARATOR = re.compile(r"\s+\|\s+", re.ASCII)
"""Between the lines that a poll collected; a bar without blanks on both sides belongs to its line."""

STDERR_MARKER = re.compile(r"server stderr:", re.IGNORECASE | re.ASCII)
REFUSED_CREDENTIAL = re.compile(
    r"invalid[\s_-]*api[\s_-]*(?:key|token)|(?:authentication|authorization)\s+failed|(?:invalid|bad|incorrect)\s+credentials",
    re.IGNORECASE | re.ASCII,
)
"""What a server can only mean in one way: its credential was refused."""

DETAIL_CHARACTERS = 300
MEASURES = re.compile(r"\b\d+ ?ms\b|\b\d+s\b|\blimit: \d+", re.ASCII)
"""Durations and limits that the runtime itself prints: one in three hundred holds the digits 401."""


class AuthText(NamedTuple):
    """`auth_error`: shaped like a failure of authorization. `refresh_token_rejected`: the grant itself was refused."""

    auth_error: bool
    refresh_token_rejected: bool


def auth_text(error: str | None, server_name: str | None = None, url: str | None = None) -> AuthText:
    """What an error text says; the failing server's own name and URL in it are no evidence."""
    parts = segments(error)
    rejected = is_grant_rejected(parts)
    told = (without_own_words(part, server_name, url) for part in parts if is_of_transport(part))
    return AuthText(rejected or any(map(is_auth_shaped, told)), rejected)


def segments(error: str | None) -> tuple[str, ...]:
    """The lines that the text was collected from, each of which is judged alone."""
    return tuple(SEPARATOR.split(error)) if error else ()


def is_grant_rejected(parts: Iterable[str]) -> bool:
    """A refresh failure and its error in one line of one segment; a bare `invalid_grant` may be anybody's."""
    return any(REJECTED_GRANT.search(part) is not None for part in parts)


def is_of_transport(part: str) -> bool:
    """Whether the runtime says it; what a child printed speaks of whatever it likes (failure-auth-reads-*)."""
    return STDERR_MARKER.search(part) is None


def is_auth_shaped(text: str) -> bool:
    """Whether it holds one of the broad words, anywhere, in any case."""
    return AUTH_ERROR.search(text) is not None


def without_own_words(text: str, server_name: str | None, url: str | None) -> str:
    """The text without what merely repeats the server's address and name, and without measures."""
    if url:
        text = text.replace(url, " ")
        port = port_of(url)
        text = text if port is None else re.sub(rf":{port}(?!\d)", " ", text)
    if server_name:
        text = re.sub(rf"(?<![A-Za-z0-9_-]){re.escape(server_name)}(?![A-Za-z0-9_-])", " ", text)
    return MEASURES.sub(" ", text)


def port_of(url: str) -> int | None:
    """The port that a URL names."""
    try:
        return urlsplit(url).port
    except ValueError:
        return None


# --- what the server itself printed


def is_stderr_rejected(error: str | None) -> bool:
    """Whether the server says on its stderr that its credential was refused: marker and phrase in one segment."""
    return bool(rejecting_segments(error))


def stderr_detail(error: str | None) -> str | None:
    """The line of it that says so, cut where it is very long; None: there is none."""
    lines = (line for part in rejecting_segments(error) for line in part.split("\n"))
    found = next((line for line in lines if is_refusal(line)), None)
    return None if found is None else found.strip()[:DETAIL_CHARACTERS]


def rejecting_segments(error: str | None) -> tuple[str, ...]:
    """The segments of a child's words that hold such a phrase; a segment may span lines."""
    return tuple(part for part in segments(error) if not is_of_transport(part) and is_refusal(part))


def is_refusal(text: str) -> bool:
    """Whether a text holds one of the phrases. None of the broad words is one (failure-stderr-never-broad-words)."""
    return REFUSED_CREDENTIAL.search(text) is not None
