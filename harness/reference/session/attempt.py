"""Work that must not fail its caller, whatever comes of it: a task of its own, whose error is a value."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from harness.reference.readiness.contained import Outcome, contained
from harness.world import World

Answer = TypeVar("Answer")


async def attempted(world: World, work: Coroutine[Any, Any, Answer], name: str) -> Outcome[Answer]:
    """Do it to its end; the answer, or the error as `<Class>: <text>`."""
    task = world.tasks.start(work, name)
    await world.tasks.wait([task])
    return contained(task.result)


def error_class(error: str) -> str:
    """The class alone of an error that nobody foresaw: its text may hold anything, a token too."""
    return error.partition(":")[0]
