"""A keyring of a thread's own, so that what is stored in a probe is seen by its programs and by nobody else.

On Linux without a secret service Pi's adapter keeps credentials in the kernel's keyring: as keys of the type `user`
in the session's keyring, with a link in the user's persistent one. A thread that has joined a new session keyring
passes that on to what it starts. The names of servers in a probe are its own, and their keys are taken back after it.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from harness.canary.probes.pi.ground import account
from harness.canary.trial import Trial, TrialError
from harness.world.outside.keyring import (
    ADD_KEY,
    LINK_PERSISTENT,
    READ,
    SESSION,
    NoKeyringError,
    join_session,
    keyctl,
    system_call,
)

SERVICE = "pi-mcp-adapter.oauth"
UPDATE, LINK, SEARCH, INVALIDATE = 2, 8, 10, 21
Result = TypeVar("Result")
ENTRY_LIMIT, MOST_PARTS = 65_536, 64


class Keyring:
    """What is stored for servers, by their names. Of a fake it is a directory of files."""

    def __init__(self, trial: Trial, names: Iterable[str]) -> None:
        self._trial, self._names = trial, tuple(names)
        if not trial.subject.is_fake:
            joined()

    def read(self, name: str) -> str | None:
        """What is stored for a server; None where that is nothing."""
        if self._trial.subject.is_fake:
            place = self._trial.folder / "keyring" / SERVICE / account(name)
            return place.read_text(encoding="utf-8") if place.exists() else None
        key = found(account(name))
        return None if key is None else content(key)

    def write(self, name: str, text: str, *, has_read: bool) -> None:
        """What another program stores for a server, in a session of its own; one that has not read makes a key anew."""
        if self._trial.subject.is_fake:
            folder = self._trial.folder / "keyring" / SERVICE
            (folder / account(name)).write_text(text, encoding="utf-8")
            if not has_read:
                (folder.with_name(f"{SERVICE}.keys") / account(name)).write_text(secrets.token_hex(8), encoding="utf-8")
        else:
            elsewhere(lambda: store(account(name), text, has_read=has_read))

    def read_elsewhere(self, name: str) -> str | None:
        """What another program finds, in a session of its own."""
        return self.read(name) if self._trial.subject.is_fake else elsewhere(lambda: self.read(name))

    def forget(self) -> None:
        """Take back all that is stored for these servers, in whichever keyring it is."""
        if self._trial.subject.is_fake:
            return
        for name in self._names:
            for each in (*parts(account(name), self.read(name)), account(name)):
                while (key := found(each)) is not None and keyctl(INVALIDATE, key, 0, 0) >= 0:
                    pass


def parts(whole: str, text: str | None) -> Iterator[str]:
    """The accounts of an entry's parts, where it is kept in parts."""
    try:
        manifest = json.loads(text or "null")
    except ValueError:
        return
    if isinstance(manifest, dict) and isinstance(manifest.get("chunkCount"), int):
        for number in range(min(manifest["chunkCount"], MOST_PARTS)):
            yield f"{whole}.chunk.{manifest.get('chunkDigest')}.{number}"


def content(key: int) -> str | None:
    """What a key holds."""
    room = ctypes.create_string_buffer(ENTRY_LIMIT)
    length = keyctl(READ, key, ctypes.addressof(room), ENTRY_LIMIT)
    return room.raw[:length].decode() if length >= 0 else None


@contextmanager
def keyring(trial: Trial, names: Iterable[str]) -> Iterator[Keyring]:
    """A keyring for as long as the context. Raises TrialError where the kernel allows none."""
    made = Keyring(trial, names)
    try:
        yield made
    finally:
        made.forget()


def elsewhere(work: Callable[[], Result]) -> Result:
    """Do something in a session keyring of its own. Raises TrialError."""

    def alone() -> Result:
        joined()
        return work()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(alone).result()


def store(account_name: str, text: str, *, has_read: bool) -> None:
    """Change the key of an account, or put a new one in its place. Raises TrialError."""
    payload = ctypes.create_string_buffer(text.encode(), len(text.encode()))
    key = found(account_name) if has_read else None
    if key is not None:
        done = keyctl(UPDATE, key, ctypes.addressof(payload), len(payload))
    else:
        kind = ctypes.create_string_buffer(b"user")
        described = ctypes.create_string_buffer(f"keyring:{account_name}@{SERVICE}".encode())
        words = (ctypes.addressof(kind), ctypes.addressof(described), ctypes.addressof(payload), len(payload), SESSION)
        key = system_call(ADD_KEY, *words)
        done = keyctl(LINK, key, keyctl(LINK_PERSISTENT, -1, SESSION, 0), 0)
    if done < 0:
        raise TrialError(f"nothing can be stored in the keyring: {os.strerror(ctypes.get_errno())}")


def joined() -> None:
    """Give this thread a session keyring of its own. Raises TrialError."""
    try:
        join_session()
    except NoKeyringError as error:
        raise TrialError(str(error)) from None
    keyctl(LINK_PERSISTENT, -1, SESSION, 0)


def found(account_name: str) -> int | None:
    """The key of an account in the session's keyring or below it."""
    kind = ctypes.create_string_buffer(b"user")
    described = ctypes.create_string_buffer(f"keyring:{account_name}@{SERVICE}".encode())
    key = keyctl(SEARCH, SESSION, ctypes.addressof(kind), ctypes.addressof(described))
    return key if key > 0 else None
