"""A runtime's store as a file that others write too: read, changed under a lock, replaced in one piece.

The lock is an flock on a file beside the store, since the store itself is replaced by rename and a lock on it would be
a lock on the file before (store-lock-sibling-file). Whoever dies frees it. The runtimes know nothing of this lock: a
write of theirs between our read and our rename is lost, a known hole that a short critical section only narrows
(store-cli-does-not-lock).

Source: seed 002 "The runtime credential stores are host-global and shared across sessions"; requirements
writers-secret-file-mode, writers-missing-store-not-error, store-*.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from harness.reference.prepare.json_document import fraction, integer, refuse_constant, value_text
from harness.world import World
from harness.world.ports import Lock

LOCK_FILE = ".zimmer-credential-store.lock"
LOCK_SECONDS = 60.0
"""How long somebody may hold a store. A critical section takes milliseconds; one that stops must not stop all."""

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700
UNREADABLE_SUFFIX = ".unreadable"
"""What could not be read stays beside the store: it may hold the account's tokens (writers-missing-store-not-error)."""

TEMPORARY = re.compile(rf"(?:{re.escape(UNREADABLE_SUFFIX)})?\.[0-9]+-[0-9a-f]{{8}}\.tmp")
"""What a write in one piece puts behind the name of its file; a killed writer leaves such a file."""

DECODER = json.JSONDecoder(parse_float=fraction, parse_int=integer, parse_constant=refuse_constant)

FEW_BRACKETS = 100
"""A text with no more of them can be written, however they nest."""

Document = dict[str, Any]
Result = TypeVar("Result")
Change = Callable[[Document], tuple[Document | None, Result]]
"""From the document as it stands to the one after (None: nothing is written) and what the caller wants to know."""


def parse(text: str | None) -> Document | None:
    """A store's content; None for what is no JSON object. Numbers keep their spelling.

    What is nested too deeply to be written again is none either.
    """
    try:
        content = DECODER.decode(text or "")
        if not isinstance(content, dict):
            return None
        if text is not None and text.count("{") + text.count("[") > FEW_BRACKETS:
            value_text(content, "\n")
    except (ValueError, RecursionError):
        return None
    return content


def document_of(text: str | None) -> Document:
    """The same with what cannot be read as empty."""
    return parse(text) or {}


def text_of(document: Document) -> str:
    """A store's text: what others wrote in it stands as they spelled it."""
    return f"{value_text(document, chr(10))}\n"


async def read_text(world: World, path: str) -> str | None:
    """A file's text without a byte order mark, None where there is none.

    Raises OSError where it cannot be read: that is not an empty one.
    """
    try:
        return (await world.files.read(path)).decode("utf-8-sig", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None


async def read_document(world: World, path: str) -> Document:
    """A store's content, empty where there is none. Raises OSError.

    Without the lock: whoever writes replaces the file, so a reader sees the one before or the one after.
    """
    return document_of(await read_text(world, path))


async def rewrite(world: World, path: str, change: Change[Result], *, mode: int | None = PRIVATE_FILE) -> Result:
    """Read, change and replace a store, all of it under its lock. Raises OSError; the store is as before then.

    `mode` None keeps the mode that the file has.
    """
    await world.files.make_directory(directory_of(path), mode=PRIVATE_DIRECTORY)
    lock = await locked(world, directory_of(path))
    try:
        return await changed(world, path, change, mode)
    finally:
        await lock.release()


async def rewrite_existing(
    world: World, path: str, change: Change[Result], *, mode: int | None = PRIVATE_FILE
) -> Result:
    """The same, which makes no file where there is none: there is nothing to take away. Raises OSError."""
    try:
        there = await world.files.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        there = None
    if there is None:
        return change({})[1]
    return await rewrite(world, path, change, mode=mode)


async def changed(world: World, path: str, change: Change[Result], mode: int | None) -> Result:
    """The critical section."""
    text = await read_text(world, path)
    document, result = change(document_of(text))
    if document is None:
        return result
    if text is not None and text.strip() and parse(text) is None:
        await world.files.write_atomic(f"{path}{UNREADABLE_SUFFIX}", text.encode(), mode=PRIVATE_FILE)
    await replace(world, path, document, mode)
    await sweep(world, path)
    return result


async def replace(world: World, path: str, document: Document, mode: int | None = PRIVATE_FILE) -> None:
    """A temporary file that is private from its first byte, then a rename (store-atomic-replace)."""
    await world.files.write_atomic(path, text_of(document).encode(), mode=mode)


async def locked(world: World, directory: str) -> Lock:
    """The lock of a directory's stores. Raises TimeoutError where somebody does not let go, and OSError."""
    beside = lock_path(directory)
    there = await world.files.stat(beside)
    if there is None:
        await world.files.append(beside, b"", mode=PRIVATE_FILE)
    elif there.kind == "file" and there.mode != PRIVATE_FILE:
        with suppress(PermissionError):  # somebody else's: it locks all the same, and holds nothing
            await world.files.chmod(beside, PRIVATE_FILE)
    lock = await world.files.lock(beside, timeout_seconds=LOCK_SECONDS)
    if lock is None:
        raise TimeoutError(errno.ETIMEDOUT, "the credential store is locked by another process", beside)
    return lock


def lock_path(directory: str) -> str:
    """The lock of all stores of one directory: a store elsewhere has a lock of its own (store-lock-per-directory)."""
    return f"{directory}/{LOCK_FILE}"


async def sweep(world: World, path: str, *, unused_seconds: float = LOCK_SECONDS) -> None:
    """Remove what killed writers left of their secrets.

    The runtime does not know our lock: what is young may be its own file, on the way to be renamed.
    """
    directory, name = directory_of(path), path.rpartition("/")[2]
    until = world.clock.now() - unused_seconds
    with suppress(OSError):
        for found in await world.files.names(directory):
            if found.startswith(name) and TEMPORARY.fullmatch(found, len(name)):
                await remove_unused(world, f"{directory}/{found}", until)


async def remove_unused(world: World, path: str, until: float) -> None:
    """Remove a file that nobody has written since."""
    there = await world.files.stat(path)
    if there is not None and there.modified_seconds <= until:
        await world.files.remove(path)


def directory_of(path: str) -> str:
    """Where a file lies."""
    return path.rpartition("/")[0] or "/"
