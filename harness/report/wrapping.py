"""How wide a text report is: as wide as the terminal that shows it, and always the same wherever else it goes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

WIDTH = 100
"""In files and pipes, so that equal runs give equal texts."""
NARROWEST, WIDEST = 60, 120

_COLUMNS: ContextVar[int] = ContextVar("columns", default=WIDTH)


def width() -> int:
    """How many columns there are for what is rendered here."""
    return _COLUMNS.get()


@contextmanager
def fitting(columns: int | None) -> Iterator[None]:
    """What is rendered in this block is for a terminal of so many columns; None: for none."""
    token = _COLUMNS.set(WIDTH if columns is None else min(max(columns, NARROWEST), WIDEST))
    try:
        yield
    finally:
        _COLUMNS.reset(token)


def wrapped(head: str, text: str, hanging: str) -> list[str]:
    """`head` and `text` in lines that fit where words allow it, all but the first indented by `hanging`.

    No word is broken: names, keys and addresses can be copied whole.
    """
    return textwrap.wrap(
        text,
        width=width(),
        initial_indent=head,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [head]
