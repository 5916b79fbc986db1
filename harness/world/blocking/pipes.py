"""Lines of text through descriptors: with timeouts, without keeping the others from running."""

from __future__ import annotations

import errno
import os
import select
from collections import deque
from math import ceil

from harness.world.blocking.baton import Baton, Deadline
from harness.world.errors import ReadTimeout
from harness.world.sites import LONGEST_LINE_BYTES

READ_BYTES = 65_536
LONGEST_POLL_MILLISECONDS = 2**31 - 1


def is_ready(descriptor: int, events: int, deadline: Deadline, wake: int = -1) -> bool:
    """Wait until something can be done with a descriptor; False when the time came first, or `wake` can be read.

    A descriptor that has an error, or an end, is ready: whoever uses it learns it.
    """
    poller = select.poll()
    poller.register(descriptor, events)
    if wake >= 0:
        poller.register(wake, select.POLLIN)
    while True:
        left = deadline.left
        milliseconds = None if left is None else min(ceil(left * 1_000), LONGEST_POLL_MILLISECONDS)
        found = dict(poller.poll(milliseconds))
        if found:
            return wake not in found
        if deadline.over:
            return False


NOW = Deadline(0)


class LineReader:
    """Lines from a descriptor. What was read and not yet taken waits here, as much as one line may have."""

    def __init__(self, baton: Baton, descriptor: int) -> None:
        self._baton, self._descriptor = baton, descriptor
        self._lines: deque[bytes] = deque()
        self._rest: list[bytes] = []
        self._rest_bytes = 0
        self._is_over = False

    def read(self, deadline: Deadline) -> str | None:
        """The next line, None at the end. Raises ReadTimeout, after which it can be read again."""
        while not self._lines:
            if self._is_over:
                return None
            if not is_ready(self._descriptor, select.POLLIN, NOW):
                if deadline.over:
                    raise ReadTimeout
                with self._baton.put_down():
                    is_ready(self._descriptor, select.POLLIN, deadline)
                continue  # another task may have been faster
            self._fill()
        return self._lines.popleft().decode(errors="surrogateescape")

    def _fill(self) -> None:
        try:
            part = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:  # somebody else who has the same stream was faster
            return
        except OSError:  # a terminal that is gone, a stream that was closed: nothing comes any more
            part = b""
        *lines, rest = part.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._rest, lines[0]])
            self._rest, self._rest_bytes = [], 0
            self._lines += lines
        if rest:
            self._rest.append(rest)
            self._rest_bytes += len(rest)
        if self._rest_bytes > LONGEST_LINE_BYTES:
            self._rest, self._is_over = [], True
        if not part:
            self._is_over = True
            if self._rest:
                self._lines.append(b"".join(self._rest))


class LineWriter:
    """Lines to a descriptor. One that does not fit is written piece by piece (a pipe that says that it is ready takes
    PIPE_BUF bytes without waiting), and no other comes in between."""

    def __init__(self, baton: Baton, descriptor: int) -> None:
        self._baton, self._descriptor = baton, descriptor
        self._turn = Baton()
        self._is_closed = False
        self._waker = -1

    def write(self, line: str) -> None:
        """Raises BrokenPipeError when nobody reads any more, or when it was closed."""
        content = memoryview(encoded(line))
        if len(content) <= select.PIPE_BUF and not self._turn.is_taken and self._can_write():
            os.write(self._descriptor, content)
            return
        with self._baton.put_down():
            self._turn.take()
        try:
            while content:
                if not self._can_write():
                    self._wait()
                    continue
                content = content[os.write(self._descriptor, content[: select.PIPE_BUF]) :]
        finally:
            self._turn.give()

    def _can_write(self) -> bool:
        if self._is_closed:
            raise BrokenPipeError(errno.EPIPE, "nobody reads")
        return is_ready(self._descriptor, select.POLLOUT, NOW)

    def _wait(self) -> None:
        wake, self._waker = os.pipe()
        try:
            with self._baton.put_down():
                is_ready(self._descriptor, select.POLLOUT, Deadline(None), wake)
        finally:
            os.close(wake)
            self._forget_waker()

    def close(self) -> None:
        """Nothing more is written; who waits for room has waited in vain."""
        if self._is_closed:
            return
        self._is_closed = True
        self._forget_waker()
        os.close(self._descriptor)

    def _forget_waker(self) -> None:
        waker, self._waker = self._waker, -1
        if waker >= 0:
            os.close(waker)


def encoded(line: str) -> bytes:
    """A line as it is written. What was read and is no UTF-8 is written as it was."""
    try:
        return f"{line}\n".encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return f"{line}\n".encode(errors="replace")
