"""Bugs of Codex that were reported and that no measured version shows: off, unless whoever starts the fake wants them.

They are what an orchestrator's own writing and renewing of credentials works around, so that it can be seen with
which of them it is needed. A profile says nothing of them: it holds what was measured.
"""

from __future__ import annotations

LOGIN_IS_LOST = "openai/codex#15122"
"""What somebody has signed in to with Codex itself is gone at its next start; what others have written is not."""
REFRESH_IS_UNUSED = "openai/codex#17265"
"""A stored refresh token is never used: a token that has ended is an end."""

KNOWN = (LOGIN_IS_LOST, REFRESH_IS_UNUSED)
Bugs = frozenset[str]
NONE: Bugs = frozenset()
AUTHORIZATION_REQUIRED = "Authorization required"


class UnknownBugError(ValueError):
    """Nobody has modelled such a bug; the message says which are known."""


def read_bugs(text: str) -> Bugs:
    """The bugs that a text names, with commas or blanks in between. Raises UnknownBugError."""
    named = text.replace(",", " ").split()
    unknown = next((name for name in named if name not in KNOWN), None)
    if unknown is not None:
        raise UnknownBugError(f"unknown bug {unknown!r}, known are {', '.join(KNOWN)}")
    return frozenset(named)


def keeps_login(bugs: Bugs) -> bool:
    """Whether what somebody signs in to is still there at the next start."""
    return LOGIN_IS_LOST not in bugs


def uses_refresh_token(bugs: Bugs) -> bool:
    """Whether a token that has ended, or is refused, is renewed."""
    return REFRESH_IS_UNUSED not in bugs
