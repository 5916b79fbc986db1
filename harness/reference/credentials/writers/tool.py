"""A program that answers one question: its stdin in, its stdout and exit code out, within a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from harness.world import ReadTimeout, World
from harness.world.ports import Child

REAPING_SECONDS = 1.0


class ToolAnswer(NamedTuple):
    """How it ended and what it printed."""

    exit_code: int
    lines: tuple[str, ...]


async def ask(world: World, argv: Sequence[str], line: str | None, until: float) -> ToolAnswer | None:
    """Run a program with a line on its stdin; None where it cannot be started or has not ended at that time.

    It is killed then. Secrets go through stdin, never through argv, which every process of the machine can see.
    """
    try:
        child = await world.processes.spawn(argv, env=world.env.variables, directory=world.env.directory)
    except OSError:
        return None
    with suppress(BrokenPipeError):  # whoever ends without reading may have answered all the same
        if line is not None:
            await child.write_line(line)
        await child.close_stdin()
    answer = await answer_of(world, child, until)
    if answer is None:
        await child.signal("SIGKILL")
        await child.wait(timeout_seconds=REAPING_SECONDS)
    return answer


async def answer_of(world: World, child: Child, until: float) -> ToolAnswer | None:
    """What it prints until it ends; None where that is not in time."""
    lines: list[str] = []
    try:
        while (printed := await child.read_line(timeout_seconds=left(world, until))) is not None:
            lines.append(printed)
    except ReadTimeout:
        return None
    exit_code = await child.wait(timeout_seconds=left(world, until))
    return None if exit_code is None else ToolAnswer(exit_code, tuple(lines))


def left(world: World, until: float) -> float:
    """Seconds until then."""
    return max(until - world.clock.now(), 0.0)
