"""Running a program of the reference over a world in memory, with servers that answer by method and URL."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.world import Request, Response, World
from harness.world.model import Decisions, Event, Fault, Hold, Simulation
from harness.world.sites import origin

START_SECONDS = 1_800_000_000.0
Answering = Response | Callable[[Request], Response]


@dataclass
class Answers:
    """Servers of all origins at once: what is not listed answers 404. `requests` holds all that arrived."""

    by_request: Mapping[str, Answering]
    requests: list[Request] = field(default_factory=list)

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer that is listed for "METHOD URL"."""
        self.requests.append(request)
        answer = self.by_request.get(f"{request.method} {request.url}", Response(404))
        return answer if isinstance(answer, Response) else answer(request)

    @property
    def asked(self) -> list[str]:
        """All requests as "METHOD URL", in order."""
        return [f"{request.method} {request.url}" for request in self.requests]

    def origins(self, *more: str) -> dict[str, Answers]:
        """This server at every origin that it lists, and at others."""
        places = [*more, *(listed.partition(" ")[2] for listed in self.by_request)]
        return {origin(place): self for place in places}


@dataclass
class Ran:
    """What a run gave: the program's result, its events, the rows afterwards."""

    result: Any
    simulation: Simulation
    events: list[Event]

    def named(self, name: str) -> list[Mapping[str, Any]]:
        """The details of the events of a name."""
        return [event.details for event in self.events if event.name == name]

    def row(self, table: str, key: str) -> Mapping[str, Any] | None:
        """A committed row."""
        return self.simulation.table.committed.get((table, key))

    def rows(self, table: str) -> dict[str, Mapping[str, Any]]:
        """The committed rows of a table by key."""
        return {key: values for (name, key), values in self.simulation.table.committed.items() if name == table}

    @property
    def lost(self) -> list[BaseException]:
        """What tasks of any actor raised that nobody asked for: each would have ended its process."""
        return [error for actor in self.simulation.actors for error in self.simulation.ended(actor).lost]

    @property
    def told(self) -> str:
        """All that events say, as one text: where secrets are hunted."""
        return "\n".join(f"{event.name} {event.details!r}" for event in self.events)


def run_world(
    program: Callable[[World], Awaitable[Any]],
    *,
    servers: Mapping[str, Any] | None = None,
    rows: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
    files: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    faults: Sequence[Fault] = (),
    holds: Sequence[Hold] = (),
    decisions: Decisions | None = None,
    launcher: Any = None,
    others: Mapping[str, Callable[[World], Awaitable[Any]]] | None = None,
) -> Ran:
    """Run it as the actor `zimmer`, beside `others`; what it raises is raised here. Files are 0600 and root's."""
    simulation = Simulation(
        decisions, servers=dict(servers or {}), faults=list(faults), holds=list(holds), start_seconds=START_SECONDS,
        **({} if launcher is None else {"launcher": launcher}),
    )  # fmt: skip
    for (table, key), values in (rows or {}).items():
        simulation.table.committed[table, key] = dict(values)
    for path, text in (files or {}).items():
        simulation.tree.make_directory(path.rpartition("/")[0] or "/", 0o700, 0, START_SECONDS)
        simulation.tree.write(path, text.encode(), 0o600, 0, START_SECONDS)
    results: list[Any] = []

    def actor_of(run: Callable[[World], Awaitable[Any]], *, keep: bool) -> Any:
        async def actor(world: World, _argv: Sequence[str]) -> int:
            result = await run(world)
            if keep:
                results.append(result)
            return 0

        return actor

    variables = {"HOME": "/home/zimmer", **(env or {})}
    started = simulation.start("zimmer", actor_of(program, keep=True), env=variables, directory="/")
    for name, other in (others or {}).items():
        simulation.start(name, actor_of(other, keep=False), env=variables, directory="/")
    outcome = simulation.run()
    error = simulation.ended(started).error
    if error is not None:
        raise error
    return Ran(results[0] if results else None, simulation, list(outcome.events))
