"""Names for what a coroutine waits in, for messages to whoever wrote it."""

from __future__ import annotations

from typing import Any


def innermost(coroutine: Any) -> str:
    """What a coroutine is suspended in, by name, for a message."""
    inner = coroutine
    while (deeper := getattr(inner, "cr_await", None) or getattr(inner, "gi_yieldfrom", None)) is not None:
        inner = deeper
    return where(inner)


def where(something: Any) -> str:
    """Where its code is, or its type."""
    frame = getattr(something, "cr_frame", None) or getattr(something, "gi_frame", None)
    module = f"{frame.f_globals.get('__name__')}." if frame is not None else ""
    return f"{module}{getattr(something, '__qualname__', type(something).__qualname__)}"
