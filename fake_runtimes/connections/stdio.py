"""A server that is a child process and speaks over its stdin and stdout."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from fake_runtimes.connections.connection import DEFAULT_SIGNALS, Connection
from fake_runtimes.connections.ending import end_child
from fake_runtimes.connections.messages import Message, answers, decode, encode, reply_to
from fake_runtimes.connections.results import Closed, Failure, Identity, Signals
from fake_runtimes.loaded import LoadedServer
from harness.world import Child, ReadTimeout, World

# How long a process whose stdout has ended may take to end itself.
LAST_WORDS_SECONDS = 1.0
# One that never stops printing errors is not heard out: so much is read at a time, and so much of all is kept.
ERROR_CHARACTERS_READ = 2 * 1024 * 1024
ERROR_CHARACTERS_KEPT = 1024 * 1024

Spawned = Callable[[Child], None]


async def connect_stdio(
    world: World,
    server: LoadedServer,
    env: Mapping[str, str],
    directory: str,
    identity: Identity,
    budget_seconds: float,
    list_budget_seconds: float | None = None,
    *,
    lists_tools: bool = True,
    on_spawn: Spawned | None = None,
) -> Connection | Failure:
    """Start a server and shake hands within the budget, from the spawn on.

    The list of tools has a budget of its own, or None what is left of the first; without `lists_tools` it is
    left to the caller. `on_spawn` is told each process at once. A failure ends nobody: see `Failure.child`.
    """
    started = world.clock.now()
    until = started + budget_seconds
    made = await _spawn(world, server, env, directory, identity, started, on_spawn)
    if isinstance(made, Failure):
        return made
    failure = await made.shake_hands(until, probing=identity.probe)
    if failure is not None and failure.kind == "exited" and failure.stage == "probe" and identity.respawn_on_probe_exit:
        before = failure.stderr
        made = await _spawn(world, server, env, directory, identity, started, on_spawn)
        if isinstance(made, Failure):
            return made._replace(respawned=True, stderr_before=before)
        made.respawned, made.stderr_before = True, before
        failure = await made.shake_hands(until, probing=False)
    if failure is None and lists_tools:
        left = until - world.clock.now() if list_budget_seconds is None else list_budget_seconds
        failure = await made.list_tools(left)
    await made.read_errors()
    if failure is None:
        return made
    return failure._replace(stderr=made.stderr, child=made.child if failure.exit_code is None else None)


async def _spawn(
    world: World,
    server: LoadedServer,
    env: Mapping[str, str],
    directory: str,
    identity: Identity,
    started: float,
    on_spawn: Spawned | None,
) -> StdioConnection | Failure:
    command = server.command or ""
    try:
        child = await world.processes.spawn((command, *server.args), env=env, directory=directory)
    except FileNotFoundError:
        return Failure("enoent", command, stage="spawn", after_seconds=world.clock.now() - started)
    except (PermissionError, NotADirectoryError):
        return Failure("eacces", command, stage="spawn", after_seconds=world.clock.now() - started)
    except OSError as error:
        return Failure("spawn", command, stage="spawn", after_seconds=world.clock.now() - started, error=error)
    if on_spawn is not None:
        on_spawn(child)
    return StdioConnection(world, server, identity, started, child)


class StdioConnection(Connection):
    """A connection to a child process."""

    def __init__(
        self, world: World, server: LoadedServer, identity: Identity, started_seconds: float, child: Child
    ) -> None:
        super().__init__(world, server, identity, started_seconds)
        self.child = child
        self._errors_ended = False

    async def exchange(self, message: Message, until_seconds: float, stage: str) -> Message | Failure:
        """A line out, then lines in until the one that answers; what is no JSON object is passed over.

        A server that has always something to say runs out of time as a silent one does.
        """
        lost = await self.tell(message, until_seconds, stage)
        if lost is not None:
            return lost
        while True:
            try:
                line = await self.child.read_line(max(until_seconds - self.world.clock.now(), 0.0))
            except ReadTimeout:
                return self.failed("timeout", stage)
            if line is None:
                return await self._exited(stage)
            received = decode(line)
            if received is not None and answers(received, message["id"]):
                return received
            if self.world.clock.now() > until_seconds:
                return self.failed("timeout", stage)
            reply = None if received is None else reply_to(received)
            if reply is not None:
                await self.tell(reply, until_seconds, stage)

    async def tell(self, message: Message, until_seconds: float, stage: str) -> Failure | None:  # noqa: ARG002
        """A line out; it never waits."""
        try:
            await self.child.write_line(encode(message))
        except BrokenPipeError:
            return await self._exited(stage)
        return None

    async def _exited(self, stage: str) -> Failure:
        exit_code = await self.child.wait(LAST_WORDS_SECONDS)
        await self.read_errors(LAST_WORDS_SECONDS)
        return self.failed("exited", stage, stderr=self.stderr, exit_code=exit_code)

    async def read_errors(self, patience_seconds: float = 0.0) -> None:
        """Take what the process has printed on stderr, until nothing more comes in that time, or until it is much.

        The last of all that was read is kept.
        """
        kept, held, taken = deque(self.stderr), sum(map(weight, self.stderr)), 0
        while not self._errors_ended and taken < ERROR_CHARACTERS_READ:
            try:
                line = await self.child.read_error(patience_seconds)
            except ReadTimeout:
                break
            if line is None:
                self._errors_ended = True
                break
            kept.append(line)
            taken, held = taken + weight(line), held + weight(line)
            while held > ERROR_CHARACTERS_KEPT:
                held -= weight(kept.popleft())
        self.stderr = tuple(kept)

    async def running(self) -> bool:
        """Whether the process has not ended."""
        return await self.child.wait(0.0) is None

    async def close(self, signals: Signals = DEFAULT_SIGNALS) -> Closed:
        """End the process by these signals."""
        return await end_child(self.child, signals)


def weight(line: str) -> int:
    """What a line counts for: its characters and its end."""
    return len(line) + 1
