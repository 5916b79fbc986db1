"""The servers of one run of Pi's adapter: which are started, what became of each, and what is remembered of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fake_runtimes.client import Connection, end_child
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.pi.connect import CLOSING, Refused, Surroundings, connect
from fake_runtimes.pi.metadata import FILE, cache_entry, cache_text, cached_tools, read_cache
from fake_runtimes.pi.offer import wants_direct_tools
from fake_runtimes.pi.startup import EAGER_LIFECYCLES, LAZY
from fake_runtimes.pi.texts import Status, startup_line

BACKOFF_SECONDS = 60.0


class Failed(NamedTuple):
    """A server's last failure and when it was."""

    at_seconds: float
    refused: Refused


class Servers:
    """All servers of a run by name. `known` holds the tool names of those that can be offered.

    `settled` is True once every server that was started at launch has its outcome: until then none is usable.
    """

    def __init__(self, around: Surroundings, servers: Sequence[LoadedServer], disabled: Sequence[str]) -> None:
        self.around, self.world = around, around.world
        self.by_name = {server.name: server for server in servers}
        self.disabled = tuple(disabled)
        self.connections: dict[str, Connection] = {}
        self.failures: dict[str, Failed] = {}
        self.needs_auth: dict[str, Refused] = {}
        self.known: dict[str, tuple[str, ...]] = {}
        self.settled = False
        self.first_run = False
        self.startup: tuple[str, ...] = ()
        self._entries: dict[str, Any] = {}

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that the adapter reads, as far as they were kept beside the servers."""
        return next((server.settings for server in self.by_name.values()), {})

    def remember(self, cache: str | None) -> None:
        """Take over `mcp-cache.json` (None: there is no such file) and decide who is started at launch."""
        self._entries = read_cache(cache)
        now = self.world.clock.now()
        for name, server in self.by_name.items():
            tools = cached_tools(self._entries, server, self.around.environment, now)
            if tools is not None:
                self.known[name] = tools
        self.first_run = cache is None
        self.startup = tuple(
            name
            for name, server in self.by_name.items()
            if starts_at_launch(server, first_run=self.first_run, cached=name in self.known)
        )

    async def connect(self, name: str) -> bool:
        """Connect one server and take down the outcome; whether it connected. What still runs is ended first."""
        events, server = self.world.events, self.by_name[name]
        events.emit("server.connecting", server=name)
        outcome = await connect(self.around, server)
        if isinstance(outcome, Refused):
            self.refuse(name, outcome)
            if outcome.child is not None:
                await end_child(outcome.child, CLOSING)
            return False
        self.connections[name] = outcome
        self.failures.pop(name, None)
        self.needs_auth.pop(name, None)
        events.emit("server.connected", server=name, seconds=self.world.clock.now() - outcome.started_seconds)
        return True

    def lose(self, name: str) -> None:
        """Take down that a connection is gone; what a version knows of a server goes with it, its file keeps that."""
        self.connections.pop(name, None)
        if self.around.profile.lost_server_is_forgotten:
            self.known.pop(name, None)

    def refuse(self, name: str, outcome: Refused) -> None:
        """Take down that a server did not connect."""
        if outcome.needs_auth:
            self.needs_auth[name] = outcome
            self.world.events.emit("server.needs_auth", server=name)
            return
        self.failures[name] = Failed(self.world.clock.now(), outcome)
        text = startup_line(name, outcome.text, outcome.status)
        self.world.events.emit("server.failed", server=name, kind=outcome.kind, text=text)

    def startup_lines(self) -> list[str]:
        """What is printed once all have settled: a line for each server that did not connect, in their order."""
        lines = []
        for name in self.startup:
            outcome = self.needs_auth.get(name) or (self.failures[name].refused if name in self.failures else None)
            if outcome is not None:
                lines.append(startup_line(name, outcome.text, outcome.status))
        return lines

    async def learn(self, names: Sequence[str]) -> None:
        """Offer these servers' tools, and keep them in the cache's file."""
        now, environment = self.world.clock.now(), self.around.environment
        learned = [name for name in names if name in self.connections]
        for name in learned:
            connection = self.connections[name]
            self.known[name] = connection.tools
            self._entries[name] = cache_entry(self.by_name[name], connection.tool_list, environment, now)
        if learned:
            await self.save()

    async def save(self) -> None:
        """Write the cache's file; a home that cannot be written is no failure of the run."""
        directory = self.around.home.agent
        try:
            await self.world.files.make_directory(directory)
            await self.world.files.write_atomic(f"{directory}/{FILE}", cache_text(self._entries).encode())
        except OSError:
            return

    def offered(self) -> dict[str, tuple[str, ...]]:
        """The tools by server that the model is offered now; a failed server's are not."""
        out = {*self.failures, *self.needs_auth}
        return {name: tools for name, tools in self.known.items() if name not in out}

    def failed_seconds_ago(self, name: str) -> float | None:
        """How long ago a server failed that is still left alone for it; None for any other."""
        failed = self.failures.get(name)
        if failed is None:
            return None
        ago = self.world.clock.now() - failed.at_seconds
        return ago if ago <= BACKOFF_SECONDS else None

    def statuses(self) -> list[Status]:
        """How each server stands, in the order of the configuration, disabled ones last."""
        return [*map(self._status, self.by_name), *(Status(name, "disabled") for name in self.disabled)]

    def _status(self, name: str) -> Status:
        tools = len(self.known.get(name, ()))
        if name in self.connections:
            return Status(name, "connected", len(self.connections[name].tools))
        if name in self.needs_auth:
            return Status(name, "needs-auth")
        ago = self.failed_seconds_ago(name)
        if ago is not None:
            return Status(name, "failed", failed_seconds_ago=ago, reason=self.failures[name].refused.text)
        return Status(name, "cached", tools) if name in self.known else Status(name, "not-connected")


def starts_at_launch(server: LoadedServer, *, first_run: bool, cached: bool) -> bool:
    """An eager server always; a lazy one where the cache's file is not there, or lacks what it offers directly.

    That an entry cannot work shows only when it is started.
    """
    if is_eager(server) or first_run:
        return True
    return wants_direct_tools(server) and not cached


def is_eager(server: LoadedServer) -> bool:
    """Whether it is started with every session."""
    return server.raw.get("lifecycle", LAZY) in EAGER_LIFECYCLES
