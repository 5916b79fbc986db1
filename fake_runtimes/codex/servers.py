"""The servers of one run of Codex: all started at once, each with its budget, waited for as the version waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from fake_runtimes.client import Connection, Failure, HttpConnection, Identity, Signals, connect_stdio, end_children
from fake_runtimes.codex.child import child_environment
from fake_runtimes.codex.home import Held
from fake_runtimes.codex.logs import TRANSPORT_TARGET, failure_lines, server_lines, shown, shutdown_lines
from fake_runtimes.codex.remote import Way, connect_stored, renew_refused, wants_stored
from fake_runtimes.codex.renewal import Renewing
from fake_runtimes.codex.startup import REQUIRED_FAILED, attempt_seconds, first_request_wait_seconds
from fake_runtimes.codex.texts import NotStarted, error_line, failed_to_start, not_started
from fake_runtimes.loaded import SKIPPED, LoadedServer
from fake_runtimes.profile import CodexProfile
from harness.world import Child, Task, World

CLIENT_NAME = "codex-mcp-client"
PROTOCOL_VERSION = "2025-06-18"
# Read in the program's source: the group gets SIGTERM, and the process itself is killed when its handle goes.
END_SIGNALS: Signals = (("SIGTERM", 0.0), ("SIGKILL", 0.0))
PATH_TOKEN_CHARACTERS = 6
# Stands for the directory of the program's package, which also comes before an inherited PATH.
PACKAGE_PATH = "/usr/local/lib/codex/codex-path"
INTERNAL_ERROR_SUFFIX = " (code -32603)"

Told = Callable[[str, str, NotStarted | None], Awaitable[None]]


def identity(profile: CodexProfile) -> Identity:
    """Who the program says it is to a server."""
    return Identity(CLIENT_NAME, profile.version, PROTOCOL_VERSION, user_agent=f"{CLIENT_NAME}/{profile.version}")


class Servers:
    """Connections and failures by name, in the order in which they came about.

    `told` hears of each server: its name, starting, ready or failed, and how it failed.
    """

    def __init__(self, world: World, profile: CodexProfile, held: Held, told: Told | None = None) -> None:
        self.world, self.profile, self.held = world, profile, held
        self.connections: dict[str, Connection] = {}
        self.failures: dict[str, NotStarted] = {}
        self._told = told
        self._tasks: dict[str, Task] = {}
        self._children: list[Child] = []
        self._path_prefix = ""
        self._started_seconds = world.clock.now()
        self._ending = False

    @property
    def pending(self) -> tuple[str, ...]:
        """The servers that have neither started nor failed."""
        return tuple(name for name, task in self._tasks.items() if not task.done)

    async def start(self) -> None:
        """Start every server that is switched on, all at once."""
        world = self.world
        for problem in self.held.loaded.problems:
            if problem.code == SKIPPED and problem.server is not None:
                world.events.emit("server.skipped", server=problem.server, text=problem.text)
        token = world.entropy.token(PATH_TOKEN_CHARACTERS)
        self._path_prefix = f"{self.held.home}/{self.profile.path_prefix}{token}:{PACKAGE_PATH}:"
        self._started_seconds = world.clock.now()
        for server in self.held.servers:
            self._tasks[server.name] = world.tasks.start(self._start(server), f"start {server.name}")

    async def _start(self, server: LoadedServer) -> None:
        self.world.events.emit("server.connecting", server=server.name)
        await self._tell(server, "starting")
        outcome = await self._connect(server)
        if self._ending:
            return
        if isinstance(outcome, Connection):
            self.connections[server.name] = outcome
            seconds = self.world.clock.now() - self._started_seconds
            self.world.events.emit("server.connected", server=server.name, seconds=seconds)
            await self._tell(server, "ready")
            await self.print_errors(server_lines(server, outcome.stderr, self.world.env.variables))
        elif isinstance(outcome, Failure):
            await self._failed(server, not_started(server, outcome, self.profile), outcome)
        else:
            await self._failed(server, outcome, None)

    async def _connect(self, server: LoadedServer) -> Connection | Failure | NotStarted:
        if server.fault is not None:
            return NotStarted("config", failed_to_start(server.name, server.fault), server.fault)
        budget = attempt_seconds(server, self.profile)
        outcome: Connection | Failure | NotStarted
        if server.transport == "stdio":
            outcome = await self._connect_stdio(server, budget)
        else:
            outcome = await self._connect_http(server, budget)
        if isinstance(outcome, Connection) and budget <= 0:
            await outcome.close(END_SIGNALS)
            return Failure("timeout")
        return outcome

    async def _connect_stdio(self, server: LoadedServer, budget: float) -> Connection | Failure:
        return await connect_stdio(
            self.world,
            server,
            self._environment(server),
            server.raw.get("cwd", self.held.directory),
            identity(self.profile),
            budget,
            budget,
            on_spawn=self._children.append,
        )

    async def _connect_http(self, server: LoadedServer, budget: float) -> Connection | Failure | NotStarted:
        told = identity(self.profile)
        renewing = Renewing(self.world, self.held, self.profile, told.user_agent)
        return await connect_stored(Way(self.world, self.profile, told, budget), server, renewing)

    async def renewed(self, connection: Connection) -> bool:
        """Whether a connection whose stored token was refused in between goes on with another one."""
        server = connection.server
        if not self.profile.renews_refused or not wants_stored(server) or not isinstance(connection, HttpConnection):
            return False
        renewing = Renewing(self.world, self.held, self.profile, identity(self.profile).user_agent)
        looked = await renew_refused(renewing, server)
        if looked is None or looked.token is None:
            return False
        connection.headers = {**connection.headers, "Authorization": f"Bearer {looked.token}"}
        return True

    def _environment(self, server: LoadedServer) -> dict[str, str]:
        """The measured environment; an inherited PATH gets two directories in front."""
        environment = child_environment(server, self.world.env.variables, self.profile)
        if "PATH" in environment and "PATH" not in server.env:
            environment["PATH"] = self._path_prefix + environment["PATH"]
        return environment

    async def _failed(self, server: LoadedServer, failed: NotStarted, failure: Failure | None) -> None:
        self.failures[server.name] = failed
        if failed.unauthorized:
            self.world.events.emit("server.needs_auth", server=server.name, text=failed.text)
        else:
            self.world.events.emit("server.failed", server=server.name, kind=failed.kind, text=failed.text)
        await self._tell(server, "failed", failed)
        variables = self.world.env.variables
        lines = [*failure_lines(server, failed, variables, self.profile)]
        if failure is not None:
            lines[:0] = server_lines(server, failure.stderr, variables)
            quoted = error_line(failure)
            if quoted is not None and shown(variables, TRANSPORT_TARGET, "error"):
                lines.append(quoted)
        await self.print_errors(lines)
        if failure is not None and failure.child is not None:
            await end_children(self.world, [failure.child], END_SIGNALS)

    async def _tell(self, server: LoadedServer, status: str, failed: NotStarted | None = None) -> None:
        if self._told is not None:
            await self._told(server.name, status, failed)

    async def refusal(self) -> str | None:
        """Wait for the required servers; the text with which the run ends when one did not start."""
        required = [server.name for server in self.held.servers if is_required(server)]
        if not required:
            return None
        await self.world.tasks.wait([self._tasks[name] for name in required])
        for name in required:
            self._tasks[name].result()
        lost = [f"{name}: {self.failures[name].cause}" for name in required if name in self.failures]
        return f"{REQUIRED_FAILED}{'; '.join(lost)}{INTERNAL_ERROR_SUFFIX}" if lost else None

    async def wait_for_first_request(self) -> None:
        """Wait for each server as long as the first model request does."""
        tasks, now = self.world.tasks, self.world.clock.now
        waits: dict[float | None, list[Task]] = {}
        for server in self.held.servers:
            seconds = first_request_wait_seconds(server, self.profile)
            waits.setdefault(seconds, []).append(self._tasks[server.name])
        await tasks.wait(waits.pop(None, []))
        for seconds in sorted(filter(None, waits)):
            left = self._started_seconds + seconds - now()
            await tasks.wait(waits[seconds], timeout_seconds=max(left, 0.0))

    async def settled(self) -> None:
        """Wait until every server has started or failed."""
        await self.world.tasks.wait(list(self._tasks.values()))

    async def end(self) -> None:
        """End every process that was started, those that are still starting among them."""
        self._ending = True
        await self.print_errors(shutdown_lines(tuple(self.failures.values()), self.world.env.variables))
        ended = 0
        while ended < len(self._children):  # one may still be spawned meanwhile
            batch = tuple(self._children[ended:])
            ended += len(batch)
            await end_children(self.world, batch, END_SIGNALS)
        for connection in self.connections.values():
            if connection.server.transport != "stdio":
                await connection.close()

    async def print_errors(self, lines: Sequence[str]) -> None:
        """Lines of the log on stderr, whether or not anybody reads them."""
        for line in lines:
            with suppress(BrokenPipeError):
                await self.world.processes.write_error(line)


def is_required(server: LoadedServer) -> bool:
    """Whether the run ends when this server does not start."""
    return server.raw.get("required") is True
