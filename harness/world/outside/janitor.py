"""Cleaning up after a program that did not come to it: one that was killed leaves no process and no file either.

The janitor is a program of its own that waits for the end of its stdin, which is that of whoever started it. Standard
library alone.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

SOURCES = Path(__file__).resolve().parents[3]
PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from harness.world.outside.janitor import wait_and_clean; "
    "wait_and_clean(*sys.argv[2:])"
)


class Janitor:
    """Begins at once. When it is left or finished, or when this process ends in any way, the folders go.

    With a `mark` every process goes first that holds it in its environment.
    """

    def __init__(self, *folders: Path, mark: str = "") -> None:
        argv = [sys.executable, "-IS", "-c", PROGRAM, str(SOURCES), mark, *map(str, folders)]
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()

    def finish(self) -> None:
        """Have it clean now: when this comes back nothing is left."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


def wait_and_clean(mark: str, *folders: str) -> None:
    """What it does. It outlives what a terminal sends to a whole group."""
    from harness.world.outside.reaping import reap

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    if mark:
        reap(mark)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
