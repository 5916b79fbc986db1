"""Claude Code's memory of servers that wanted a sign-in: `mcp-needs-auth-cache.json` beside its credentials.

It maps bare server names (no hash, no project) to `{timestamp, ttlMs?}`. A live entry makes a session skip the server
without any request, whatever token it has, so who gives it a token has to strike the entry off. The file is shared as
the store is: what is not named belongs to other sessions.

Source: seed 002 "The runtime credential stores are host-global and shared across sessions"; requirements
store-clear-*, gate-needs-auth-clear-*.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.reference.credentials.writers import store_file
from harness.reference.credentials.writers.removal import Removed, without_keys
from harness.reference.credentials.writers.store_file import Document
from harness.world import World

CACHE_FILE = "mcp-needs-auth-cache.json"


async def clear(world: World, directory: str, names: Sequence[str]) -> tuple[str, ...]:
    """Strike names off; those that were there.

    It never fails an injection: what cannot be read or written gives a warning (store-clear-failure-harmless).
    """
    if not names:
        return ()
    try:
        return await struck_off(world, directory, names)
    except OSError as error:
        text = f"the needs-auth cache in {directory} could not be cleared: {error.strerror or error}"
        world.events.emit("log", level="warn", text=text)
        return ()


async def struck_off(world: World, directory: str, names: Sequence[str]) -> tuple[str, ...]:
    """The same under the lock of the store beside it, with its errors."""

    def change(document: Document) -> tuple[Document | None, tuple[str, ...]]:
        removed = without_names(document, names)
        return (removed.document if removed.keys else None), removed.keys

    return await store_file.rewrite_existing(world, f"{directory}/{CACHE_FILE}", change, mode=None)


def without_names(document: Document, names: Sequence[str]) -> Removed:
    """The cache without the named servers, each entry by its bare name."""
    return without_keys(document, names)
