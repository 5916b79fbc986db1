"""The stores of refresh tokens as a monitor sees them: which files they are, and which tokens stand in a text.

A store is the orchestrator's row, or a file that a runtime keeps credentials in. What cannot be read as JSON holds
nothing: nobody can take a token out of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from harness.scenario.cast import RUNTIME_PROGRAMS
from harness.scenario.model import HOME
from harness.scenario.naming import plain

ROW = "row"
STORE_FILES = (".credentials.json", "tokens.json")
STAGED_FILE = "/tokens.json"
"""What is handed in to Pi: the orchestrator's own copy, which nobody but Pi reads."""
KEYRING = "/run/keyring/"
KEYS = ".keys/"
"""Beside the fake's keyring: which key is which. No tokens."""
HOST_GLOBAL = tuple(f"{HOME}/.{family}/" for family in RUNTIME_PROGRAMS)
"""Where runtimes keep what all sessions of the host share."""
CLAUDE_ENTRIES = "mcpOAuth"
EXPIRIES = ("expiresAt", "expires_at")
SHORTEST_TOKEN = 16
MILLISECONDS_FROM = 1e11
"""A larger number of seconds is one of milliseconds: this many seconds are three thousand years."""
REMEMBERED_TEXTS = 4096


class Written(NamedTuple):
    """A text in a store that may be a token, and the expiry beside it in seconds; None where none is told."""

    text: str
    expires_at: float | None


def is_store(path: str) -> bool:
    """Whether a file is made for credentials."""
    return path.endswith(STORE_FILES) or (path.startswith(KEYRING) and KEYS not in path)


def is_host_global(path: str) -> bool:
    """Whether all sessions of the host share a store; else it is one session's own."""
    return path.startswith((*HOST_GLOBAL, KEYRING))


def family_of(path: str, text: str | None) -> str:
    """Whose store a file is: the family of the runtime."""
    if path.startswith(KEYRING) or path.endswith(STAGED_FILE):
        return "pi"
    if "/.claude/" in path or CLAUDE_ENTRIES in (text or ""):
        return "claude"
    return "codex"


@lru_cache(REMEMBERED_TEXTS)
def is_of_a_runtime(actor: str) -> bool:
    """Whether an actor is a runtime or below one. What is started by nobody is the orchestrator's, its helpers too."""
    _, slash, below = actor.partition("/")
    return bool(slash) and plain(below.partition("/")[0]) in RUNTIME_PROGRAMS


@lru_cache(REMEMBERED_TEXTS)
def whose(actor: str) -> str:
    """For whom an actor acts: a runtime with all that it started, or the process of the orchestrator."""
    parts = actor.split("/", 2)
    return "/".join(parts[:2]) if is_of_a_runtime(actor) else parts[0]


def parsed(text: str) -> Any:
    """The JSON in a text; None for what is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@lru_cache(REMEMBERED_TEXTS)
def tokens_in(text: str) -> tuple[Written, ...]:
    """Every text in a file's JSON that is long enough for a token."""
    return tuple(written_in(parsed(text)))


def written_in(tree: Any, expires_at: float | None = None) -> Iterator[Written]:
    """The same in a tree. A text that holds JSON itself counts as what it holds."""
    if isinstance(tree, str):
        if len(tree) >= SHORTEST_TOKEN:
            yield Written(tree, expires_at)
            if tree[0] in "{[":
                yield from written_in(parsed(tree))
    elif isinstance(tree, Mapping):
        beside = expiry_in(tree)
        for value in tree.values():
            yield from written_in(value, beside)
    elif isinstance(tree, list):
        for value in tree:
            yield from written_in(value, expires_at)


def expiry_in(entry: Mapping[str, Any]) -> float | None:
    """The expiry that an entry tells, in seconds since the epoch."""
    for name in EXPIRIES:
        value = entry.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value / 1000 if value > MILLISECONDS_FROM else float(value)
    return None
