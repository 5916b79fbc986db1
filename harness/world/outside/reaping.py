"""No process outlives the run that started it, whoever its parent was."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PATIENCE_SECONDS = 2.0
PROC = Path("/proc")


def adopt_orphans() -> None:
    """Have orphans of this process's tree become its children, where the system can (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Have this process killed when the one that forked it ends, where the system can (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def marked(mark: str) -> set[int]:
    """Every process that has the mark in its environment; none where the system does not show environments."""
    found = set()
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes():
                found.add(int(folder.name))
    return found - {os.getpid()}


def reap(mark: str, known: Iterable[int] = ()) -> set[int]:
    """End every process that has the mark, and those known; the answer is who still lived.

    Their exit codes are taken where they are, or have become, children of this process.
    """
    ended: set[int] = set()
    known = set(known)
    left = known | marked(mark)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while left and time.monotonic() < deadline:
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                ended.add(pid)
        for pid in known | ended:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        left = marked(mark)
        if left:
            time.sleep(0.005)
    return ended


def ancestors(pid: int) -> list[int]:
    """A process, whoever started it, and so on; only itself where the system does not show processes."""
    line = [pid]
    with suppress(OSError, ValueError, IndexError):
        while line[-1] > 1:
            told = (PROC / str(line[-1]) / "stat").read_text(encoding="utf-8", errors="replace")
            line.append(int(told.rpartition(")")[2].split()[1]))
    return line
