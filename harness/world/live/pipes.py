"""Lines through file descriptors of the operating system, in the event loop.

No descriptor is made non-blocking, since its other holders would notice: it is asked first whether it is ready, and no
more is written at once than always fits then.
"""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Callable

import anyio

from harness.world.errors import ReadTimeout
from harness.world.sites import LONGEST_LINE_BYTES

_CHUNK = 65_536


def is_ready(descriptor: int, events: int) -> bool:
    """Whether reading (or writing) would not wait now."""
    poll = select.poll()
    poll.register(descriptor, events)
    return bool(poll.poll(0))


def decoded(line: bytes) -> str:
    """A line as text. What is no UTF-8 is kept, so that it can be written as it was."""
    return line.decode("utf-8", "surrogateescape")


def encoded(line: str) -> bytes:
    """A line as it is written."""
    try:
        return line.encode("utf-8", "surrogateescape") + b"\n"
    except UnicodeEncodeError:
        return line.encode("utf-8", "replace") + b"\n"


class LineReader:
    """Reads lines; a last one without its line break counts. Several may read at the same time."""

    __slots__ = ("_descriptor", "_ended", "_held", "_searched", "_turn")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._held = bytearray()
        self._searched = 0
        self._ended = False
        self._turn = anyio.Lock()

    async def read(self, patience: Callable[[], anyio.CancelScope]) -> str | None:
        """The next line, None at the end. Raises ReadTimeout when the patience is over first."""
        if not self._turn.locked() and self._advance():
            return self._take()
        with patience():
            async with self._turn:
                while not self._advance():
                    await anyio.wait_readable(self._descriptor)
                return self._take()
        raise ReadTimeout

    def end(self) -> None:
        """No more is read: the descriptor is about to be closed."""
        self._ended = True

    def _advance(self) -> bool:
        """Read what is there, until a line is whole or the end has come."""
        while self._held.find(b"\n", self._searched) < 0 and not self._ended:
            self._searched = len(self._held)
            if self._searched > LONGEST_LINE_BYTES:
                self._held, self._searched, self._ended = bytearray(), 0, True
                break
            if not is_ready(self._descriptor, select.POLLIN):
                return False
            try:
                chunk = os.read(self._descriptor, _CHUNK)
            except BlockingIOError:  # somebody else who has the same stream was faster
                return False
            except OSError:  # a terminal that is gone, a stream that was closed: nothing comes any more
                chunk = b""
            self._held += chunk
            self._ended = not chunk
        return True

    def _take(self) -> str | None:
        line, separator, rest = self._held.partition(b"\n")
        self._searched = 0
        if not line and not separator:
            return None
        self._held = rest
        return decoded(bytes(line))


class LineWriter:
    """Writes lines, one after the other."""

    __slots__ = ("_descriptor", "_turn", "is_closed")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._turn = anyio.Lock()
        self.is_closed = False

    async def write(self, line: str) -> None:
        """A line, when there is room. Raises BrokenPipeError when nobody reads any more, or when it was closed."""
        rest = memoryview(encoded(line))
        async with self._turn:
            while rest:
                self._require_open()
                while not is_ready(self._descriptor, select.POLLOUT):
                    await self._until_ready()
                rest = rest[os.write(self._descriptor, rest[: select.PIPE_BUF]) :]

    async def _until_ready(self) -> None:
        try:
            await anyio.wait_writable(self._descriptor)
        except anyio.ClosedResourceError:
            self.is_closed = True
        self._require_open()

    def _require_open(self) -> None:
        if self.is_closed:
            raise BrokenPipeError(errno.EPIPE, "it was closed")

    def end(self) -> None:
        """Nobody may write any more; whoever waits for room is told. The descriptor is about to be closed."""
        if not self.is_closed:
            self.is_closed = True
            anyio.notify_closing(self._descriptor)
