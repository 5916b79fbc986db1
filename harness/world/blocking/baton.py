"""One thing at a time: the tasks of a process are threads that hand one baton round, in the order in which they ask."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic


class Baton:
    """Who has it runs. It goes to whoever has waited longest, so that nobody starves."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._taken = False

    @property
    def is_taken(self) -> bool:
        """Whether somebody has it."""
        return self._taken

    def take(self) -> None:
        """Wait for it."""
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def give(self) -> None:
        """Hand it to the next, or put it down."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False

    def share(self) -> None:
        """Let those who wait for it have their turn first."""
        if self._waiting:
            self.give()
            self.take()

    @contextmanager
    def put_down(self) -> Iterator[None]:
        """Others run meanwhile."""
        self.give()
        try:
            yield
        finally:
            self.take()


class Deadline:
    """When a wait is over, in real seconds from now; None: never."""

    def __init__(self, real_seconds: float | None) -> None:
        self._at = inf if real_seconds is None else monotonic() + max(real_seconds, 0.0)

    @property
    def left(self) -> float | None:
        """Real seconds, 0 when it is over; None where there is no end."""
        return None if self._at == inf else min(max(self._at - monotonic(), 0.0), threading.TIMEOUT_MAX)

    @property
    def over(self) -> bool:
        """Whether it has come."""
        return self._at != inf and monotonic() >= self._at


class Condition:
    """Something to wait for. It is notified and waited for with the baton in hand, which is put down meanwhile."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._waiters: list[threading.Lock] = []

    def notify(self) -> None:
        """Wake everybody who waits."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter.locked():
                waiter.release()

    def wait(self, deadline: Deadline) -> bool:
        """Until notified; False when the time came first."""
        return wait_for_any(self._baton, [self], deadline)

    def add(self, waiter: threading.Lock) -> None:
        """Release this lock when notified."""
        self._waiters.append(waiter)

    def discard(self, waiter: threading.Lock) -> None:
        """No more."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)


def wait_for_any(baton: Baton, conditions: list[Condition], deadline: Deadline) -> bool:
    """Until one of them is notified; False when the time came first."""
    waiter = threading.Lock()
    waiter.acquire()
    for condition in conditions:
        condition.add(waiter)
    left = deadline.left
    with baton.put_down():
        notified = waiter.acquire(timeout=-1 if left is None else left)
    for condition in conditions:
        condition.discard(waiter)
    return notified or not waiter.locked()
