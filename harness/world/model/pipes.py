"""Pipes between actors: lines of text, ends that close."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Iterable

from harness.world.errors import ReadTimeout
from harness.world.model.scheduler import Condition, Scheduler


class Pipe:
    """Lines on their way from one actor to another. Writing never waits; the model has no full pipes."""

    __slots__ = ("changed", "lines", "reader_open", "writer_open")

    def __init__(self, lines: Iterable[str] = (), *, writer_open: bool = True) -> None:
        self.lines: deque[str] = deque(lines)
        self.changed = Condition()
        self.writer_open = writer_open
        self.reader_open = True

    def write(self, line: str, scheduler: Scheduler) -> None:
        """Put a line in (more than one when it holds line breaks). Raises BrokenPipeError."""
        if not (self.reader_open and self.writer_open):
            raise BrokenPipeError(errno.EPIPE, "nobody reads")
        self.lines.extend(line.split("\n"))
        scheduler.notify(self.changed)

    async def read(self, scheduler: Scheduler, timeout_seconds: float | None) -> str | None:
        """Take a line out, None at the end. Raises ReadTimeout, after which it can be read again."""
        until = None if timeout_seconds is None else scheduler.now + timeout_seconds
        while not self.lines:
            if not self.writer_open:
                return None
            if timeout_seconds is not None and timeout_seconds <= 0:
                raise ReadTimeout
            if not await self.changed.wait(until) and not self.lines:
                raise ReadTimeout
        return self.lines.popleft()

    def close_writer(self, scheduler: Scheduler) -> None:
        """No more lines come: whoever reads gets those that are there, then the end."""
        self.writer_open = False
        scheduler.notify(self.changed)


class Tee(Pipe):
    """A pipe that remembers every line, read or not."""

    __slots__ = ("written",)

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def write(self, line: str, scheduler: Scheduler) -> None:
        """As a pipe does; a line that nobody can read was printed all the same."""
        self.written.append(line)
        super().write(line, scheduler)
