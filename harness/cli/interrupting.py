"""An end by a signal is an interrupt like Ctrl-C: what was started is ended first, and what there is is kept."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Whoever ends this by a signal gets what Ctrl-C does: everything that was started is ended first."""

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    kept = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
