"""Waiting for something that another thread decides, without keeping the world from going on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

Answer = TypeVar("Answer")


async def in_thread(function: Callable[[], Answer]) -> Answer:
    """What a function that may block answers."""
    return await anyio.to_thread.run_sync(function, abandon_on_cancel=True)
