"""Cleaning up after a program that did not come to it: one that was killed leaves no process and no file either."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection

from harness.world.live.forks import Fork
from harness.world.outside.reaping import reap


class Janitor:
    """A process that waits for the end of this one, or of its shift, and then leaves nothing of a run.

    That is: no process that has `mark` in its environment, and nothing of `folder`.
    """

    def __init__(self, mark: str, folder: str, preload: Sequence[str]) -> None:
        theirs, self._ours = multiprocessing.Pipe(duplex=False)
        self._fork = Fork(_wait_and_clean, (theirs, mark, folder), preload, _is_over)
        theirs.close()

    def finish(self) -> None:
        """End its shift: when this comes back all is clean."""
        self._ours.close()
        self._fork.join()


def _wait_and_clean(lifeline: Connection, mark: str, folder: str) -> int:
    """What it does. It outlives what a terminal sends to a whole group."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    lifeline.poll(None)
    reap(mark)
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def _is_over(_exit_code: int) -> None:
    """Nobody asks how it ended."""
