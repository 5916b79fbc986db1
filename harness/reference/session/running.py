"""A runtime's process while it runs: what it prints is read as it comes, since a full pipe would stop it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.reference.prepare.request import Runtime
from harness.reference.session import evidence, rows
from harness.reference.session.order import Order
from harness.world import Child, Task, World

TERMINATION_SECONDS = 5.0
LAST_LINES_SECONDS = 1.0


@dataclass(slots=True)
class Running:
    """`lines` are those that may tell of a server. `started_seconds` is the time from which its evidence counts.

    `has_answered`: the model was heard, so the turn that the process was started for has reached the agent.
    `conversation` is the runtime's own id of it, once it has told that.
    """

    world: World
    child: Child
    session: str
    runtime: Runtime
    started_seconds: float
    variables: Mapping[str, str]
    lines: list[str] = field(default_factory=list)
    readers: list[Task] = field(default_factory=list)
    has_answered: bool = False
    conversation: str = ""

    @classmethod
    def listening(
        cls, world: World, child: Child, order: Order, started_seconds: float, variables: Mapping[str, str]
    ) -> Running:
        """A process whose output is being read."""
        running = cls(world, child, order.session, order.runtime, started_seconds, variables)
        for name, read in (("stdout", child.read_line), ("stderr", child.read_error)):
            running.readers.append(world.tasks.start(running.listen(read), name))
        return running

    async def listen(self, read: Callable[[], Awaitable[str | None]]) -> None:
        """Read to the end, and keep what counts."""
        while (line := await read()) is not None:
            if evidence.is_telling(self.runtime, line):
                self.lines.append(line)
            self.conversation = self.conversation or evidence.conversation(self.runtime, line)
            if not self.has_answered and evidence.is_answer(self.runtime, line):
                self.has_answered = True
                await self.note_conversation()

    async def note_conversation(self) -> None:
        """Keep the id in the session's row. One in which nothing was said yet is none that a message could continue."""
        if self.conversation:
            await rows.change(self.world, self.session, lambda values: {**values, rows.CONVERSATION: self.conversation})

    async def send(self, lines: Sequence[str]) -> None:
        """Its whole stdin. A process that reads none of it is told by its end."""
        try:
            for line in lines:
                await self.child.write_line(line)
            await self.child.close_stdin()
        except BrokenPipeError:
            return

    async def ended(self, timeout_seconds: float | None) -> int | None:
        """The exit code, with all output read; None when it still runs. What outlives it may hold its pipes open."""
        code = await self.child.wait(timeout_seconds)
        if code is not None:
            await self.world.tasks.wait(self.readers, timeout_seconds=LAST_LINES_SECONDS)
        return code

    async def stop(self) -> None:
        """End it: politely, then for certain. One that has ended is left alone."""
        for signal in ("SIGTERM", "SIGKILL"):
            if await self.child.wait(0) is not None:
                return
            await self.child.signal(signal)
            if await self.child.wait(TERMINATION_SECONDS) is not None:
                return
