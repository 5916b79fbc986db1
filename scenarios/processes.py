"""Processes that tests have started, looked at from outside."""

from __future__ import annotations

import os
import select


def is_gone(pid: int, patience_seconds: float) -> bool:
    """Whether a process has ended, or does so soon."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], patience_seconds)[0])
    finally:
        os.close(handle)
