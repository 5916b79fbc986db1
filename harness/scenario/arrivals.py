"""What an arrival at a switch point means to the monitor of token chains."""

from __future__ import annotations

from functools import lru_cache

from harness.reference.credentials.row import TABLE as CREDENTIALS
from harness.scenario.stores import ROW, is_store

LOCK_FILE = "/.zimmer-credential-store.lock"
SIGNALS = ("SIGINT", "SIGTERM", "SIGKILL")
NEEDS_AUTH_FILE = "/mcp-needs-auth-cache.json"


def is_kept(path: str) -> bool:
    """Whether changes of a file are followed."""
    return is_store(path) or path.endswith(NEEDS_AUTH_FILE)


@lru_cache(1 << 16)
def sort_of(label: str) -> tuple[str, str]:
    """What an arrival at a switch point means to the monitor, and of what; empty where it means nothing."""
    verb, _, what = label.partition(" ")
    if verb == "read":
        return ("read", what) if is_store(what) else ("", "")
    if verb in ("get", "lock", "rows"):
        if what.startswith((f"row {CREDENTIALS}/", f"of {CREDENTIALS}")):
            return "read", ROW
        return ("locking", what) if what.endswith(LOCK_FILE) else ("", "")
    if verb in ("truncated", "remove"):
        return ("changing", what) if is_kept(what) else ("", "")
    if verb == "renamed":
        return ("changed", what) if is_kept(what) else ("", "")
    if verb == "spawn":
        return "asking", what
    if verb in SIGNALS:
        return "giving up", what.removeprefix("to ")
    return (verb.lower(), what) if verb in ("POST", "committed") else ("", "")
