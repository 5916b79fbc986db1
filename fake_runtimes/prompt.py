"""A prompt that is given on stdin."""

from __future__ import annotations

from harness.world import World


async def read_stdin(world: World) -> str:
    """All of stdin."""
    lines = []
    while (line := await world.processes.read_line()) is not None:
        lines.append(line)
    return "\n".join(lines)
