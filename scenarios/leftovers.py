"""What a test leaves in its own process: threads and open files that were not there before it."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import NamedTuple

PATIENCE_SECONDS = 10.0
DESCRIPTORS = Path("/proc/self/fd")


class Held(NamedTuple):
    """The threads and open files of this process; files by number and what they are, none where no system tells."""

    threads: frozenset[threading.Thread]
    files: frozenset[tuple[str, str]]


def held_here() -> Held:
    """All of now."""
    files = set()
    for entry in list(DESCRIPTORS.iterdir()) if DESCRIPTORS.is_dir() else ():
        try:
            files.add((entry.name, str(entry.readlink())))
        except OSError:  # it was the listing's own, or is closed by now
            continue
    return Held(frozenset(threading.enumerate()), frozenset(files))


def left_since(before: Held) -> list[str]:
    """What is there besides, when it has had time to go. What others leave, and what of theirs ends, does not count."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        now = held_here()
        left = [thread.name for thread in now.threads - before.threads]
        left += [f"{number}: {what}" for number, what in now.files - before.files]
        if not left or time.monotonic() >= until:
            return sorted(left)
        time.sleep(0.01)
