"""How often Python looks for garbage during a run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MADE_BETWEEN = 5_000
"""Most runs make fewer objects that stay. What they leave is found afterwards, at the usual rate."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Nearly all that a run makes lives to its end: to look through it every few hundred objects costs a tenth of it.

    A rate that is lower already, or none, is left as it is.
    """
    young, middle, old = gc.get_threshold()
    if not 0 < young < MADE_BETWEEN:
        yield
        return
    gc.set_threshold(MADE_BETWEEN, middle, old)
    try:
        yield
    finally:
        gc.set_threshold(young, middle, old)
