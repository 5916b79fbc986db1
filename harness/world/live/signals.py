"""Signals sent to this process, for whoever asks for them."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
from anyio.abc import TaskStatus

from harness.world.live.driver import Driver
from harness.world.live.waiting import Bell

NAMES = {signal.SIGINT: "SIGINT", signal.SIGTERM: "SIGTERM"}


class OwnSignals:
    """From the first question on SIGINT and SIGTERM do not end this process but are kept here, in order."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._listening = anyio.Lock()
        self._is_listening = False
        self._came: deque[str] = deque()
        self._changed = Bell()

    async def listen(self) -> None:
        """Once is enough."""
        async with self._listening:
            if not self._is_listening:
                if threading.current_thread() is not threading.main_thread():
                    raise self._driver.misused("only the main thread of a process can ask for its signals")
                await self._driver.tasks.start(self._receive)
                self._is_listening = True

    async def _receive(self, *, task_status: TaskStatus[None]) -> None:
        before = {number: signal.getsignal(number) for number in NAMES}
        try:
            with anyio.open_signal_receiver(*NAMES) as received:
                task_status.started()
                async for number in received:
                    self._came.append(NAMES[number])
                    self._changed.ring()
        finally:
            for number, handler in before.items():  # the loop leaves Python's own, whatever was there
                signal.signal(number, handler)

    async def next(self, timeout_seconds: float | None) -> str | None:
        """The name of the next; None when none came in time."""
        with self._driver.patience(timeout_seconds):
            while not self._came:
                await self._changed.wait()
        return self._came.popleft() if self._came else None


@contextmanager
def default_actions() -> Iterator[None]:
    """SIGINT and SIGTERM end this process, as one without a handler; afterwards they do what they did before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_DFL) for number in NAMES}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
