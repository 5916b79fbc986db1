"""Waiting in the event loop: for a change, and for a lock that the operating system hands out."""

from __future__ import annotations

import fcntl

import anyio

FIRST_POLL_SECONDS = 0.001
LAST_POLL_SECONDS = 0.02


class Bell:
    """Wakes everybody who waits for a change. Look at what has changed before waiting, and again afterwards."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = anyio.Event()

    def ring(self) -> None:
        """Something has changed."""
        self._event.set()
        self._event = anyio.Event()

    async def wait(self) -> None:
        """Until it rings next."""
        await self._event.wait()


class Backoff:
    """Pauses between looks at what gives no notice, in real seconds: short at first."""

    __slots__ = ("_seconds",)

    def __init__(self) -> None:
        self._seconds = FIRST_POLL_SECONDS

    async def pause(self) -> None:
        """The next one."""
        await anyio.sleep(self._seconds)
        self._seconds = min(self._seconds * 2, LAST_POLL_SECONDS)


def try_lock(descriptor: int) -> bool:
    """Take the lock on an open file unless somebody holds it; closing the descriptor frees it, and so does death."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def locked(descriptor: int, real_seconds: float | None) -> bool:
    """Wait for that lock; False when it was not free in time. A thread that waits could not be called back."""
    if try_lock(descriptor):
        return True
    backoff = Backoff()
    with anyio.move_on_after(real_seconds):
        while not try_lock(descriptor):
            await backoff.pause()
        return True
    return False
