"""The programs of the fake runtimes, by the name of their command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import fake_runtimes.claude.command as claude
import fake_runtimes.codex.command as codex
import fake_runtimes.pi.command as pi

# The commands load what they need when they need it; a known-bad variant is to find all of it loaded.
from fake_runtimes.claude import session as claude_session
from fake_runtimes.codex import app_server, session
from fake_runtimes.pi import session as pi_session

CODEX = "codex"
"""The one whose program can be given bugs besides its plan."""
LOADED = (claude_session, session, app_server, pi_session)


def runtime_programs() -> Mapping[str, Callable[..., Any]]:
    """From profile and plan (and Codex's bugs) to a program.

    Looked up at each call, so that a known-bad variant takes effect.
    """
    return {"claude": claude.program, "codex": codex.program, "pi": pi.program}
