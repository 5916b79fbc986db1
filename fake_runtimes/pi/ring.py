"""The kernel's keyring as the adapter's library uses it, seen from one process.

A program has a keyring of its session, and there is one of its user. To read is to look in the session's first, and to
publish in the user's what was found; so a program that holds an older key takes a newer one, which somebody wrote who
had not read it, out of the user's keyring by reading alone. Whoever has read a key changes just that one by writing,
and all who hold it see that. To remove a key ends it for everybody. Measured on the library with processes each in a
session of its own.

The user's keyring is a directory here, with a file an account. Beside it there is another directory, which tells of
each account which key that is, and which keys have ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fake_runtimes.pi.credentials import KEYRING_SERVICE
from fake_runtimes.pi.variables import KEYRING_VARIABLE
from harness.world.ports import World

KEYRING = f"/run/keyring/{KEYRING_SERVICE}"
BESIDE, ENDED = ".keys", "ended-"
KEY_DIGITS = 16


class Key(NamedTuple):
    """A key that is held: which one it is (empty: one that nobody has named), and what was last seen of it."""

    name: str
    text: str


def ring_directory(environment: Mapping[str, str]) -> str:
    """Where the user's keyring is."""
    return f"{environment.get(KEYRING_VARIABLE) or KEYRING.rpartition('/')[0]}/{KEYRING_SERVICE}"


class Ring:
    """The session's keyring of one process, over the user's."""

    def __init__(self, world: World, directory: str) -> None:
        self.world, self.directory, self.beside = world, directory, f"{directory}{BESIDE}"
        self._held: dict[str, Key] = {}

    async def read(self, account: str) -> str | None:
        """What is held for an account, published again; else what the user's keyring has. Raises OSError."""
        there, held = await self._published(account), await self._still_held(account)
        if there is None:
            self._held.pop(account, None)
            return None
        if held is not None and held.name != there.name:
            await self._publish(account, held)
            return held.text
        if not there.name:
            there = Key(self.world.entropy.token(KEY_DIGITS), there.text)
            await self._publish(account, there)
        self._held[account] = there
        return there.text

    async def write(self, account: str, text: str) -> None:
        """Change the key that is held, or make one. Raises OSError."""
        held = await self._still_held(account)
        key = Key(self.world.entropy.token(KEY_DIGITS) if held is None else held.name, text)
        await self._publish(account, key)
        self._held[account] = key

    async def remove(self, account: str) -> None:
        """End a key, if there is one, for all who hold it. Raises OSError."""
        there = await self._published(account)
        if there is not None and there.name:
            await self.world.files.write(self._end_of(there), b"", mode=0o600)  # it was named in a directory of these
        self._held.pop(account, None)
        for path in (f"{self.directory}/{account}", f"{self.beside}/{account}"):
            try:
                await self.world.files.remove(path)
            except FileNotFoundError:
                continue

    async def _still_held(self, account: str) -> Key | None:
        """The key that this process holds, unless somebody has ended it."""
        held = self._held.get(account)
        if held is not None and await self.world.files.stat(self._end_of(held)) is not None:
            del self._held[account]
            return None
        return held

    def _end_of(self, key: Key) -> str:
        """What tells that a key has ended."""
        return f"{self.beside}/{ENDED}{key.name}"

    async def _published(self, account: str) -> Key | None:
        """The key of the user's keyring."""
        try:
            text = (await self.world.files.read(f"{self.directory}/{account}")).decode(errors="replace")
        except FileNotFoundError:
            return None
        try:
            name = (await self.world.files.read(f"{self.beside}/{account}")).decode(errors="replace")
        except FileNotFoundError:
            name = ""
        return Key(name, text)

    async def _publish(self, account: str, key: Key) -> None:
        """Put a key into the user's keyring, in the place of any other."""
        for directory, text in ((self.directory, key.text), (self.beside, key.name)):
            await self.world.files.make_directory(directory, mode=0o700)
            await self.world.files.write(f"{directory}/{account}", text.encode(), mode=0o600)
