"""Names under which a runtime never has a server, whatever its entry says.

Measured: Claude keeps some for itself, of Codex one name with another character breaks the whole config.
"""

from __future__ import annotations

import re

from harness.reference.prepare.request import Runtime

CLAUDE_RESERVED_NAMES = ("workspace", "claude-in-chrome", "computer-use", "claude_ai", "claude.ai", "__proto__")
"""Measured on the pinned version; a later one loads some more of JavaScript's own names no longer."""
CODEX_NAME = re.compile(r"[a-zA-Z0-9_-]+")


def name_refusal(runtime: Runtime, name: str) -> str | None:
    """Why this runtime has no server of this name; None: it may have one."""
    if runtime == "claude" and name in CLAUDE_RESERVED_NAMES:
        return "the name is reserved"
    if runtime == "codex" and not CODEX_NAME.fullmatch(name):
        return "the name may hold only letters, digits, `_` and `-`"
    return None
