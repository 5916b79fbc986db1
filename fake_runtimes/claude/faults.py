"""The words with which Claude Code skips an entry."""

from __future__ import annotations

from typing import Any, NoReturn

from fake_runtimes.loaded import EntryError
from fake_runtimes.profile import ClaudeProfile
from fake_runtimes.text import kind

ABSENT = object()


def skip_text(name: str, detail: str) -> str:
    """The line that tells of an entry which fits no shape of a server."""
    return f'Skipped — invalid MCP server config for "{name}": {detail}'


def refuse(name: str, detail: str) -> NoReturn:
    """Skip the entry with this detail."""
    raise EntryError(skip_text(name, detail))


def refuse_type(name: str, field: str, expected: str, found: Any, profile: ClaudeProfile) -> NoReturn:
    """Skip the entry because a field has the wrong type; `found` is ABSENT where the field is missing."""
    received = "undefined" if found is ABSENT else kind(found)
    detail = f"expected {expected}, received {received}" if profile.faults_name_types else "Invalid input"
    refuse(name, f"{field or '(root)'}: {detail}")
