"""Short ways to run a program in a model world, for tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from harness.world import World
from harness.world.model import Actor, Decisions, Ended, Outcome, Simulation
from harness.world.ports import Program

Body = Callable[[World], Awaitable[Any]]


class Ran(NamedTuple):
    """A finished run, and what each program returned by its actor's name."""

    simulation: Simulation
    outcome: Outcome
    actors: dict[str, Actor]
    results: dict[str, Any]

    def ended(self, name: str) -> Ended:
        """How an actor ended."""
        return self.simulation.ended(self.actors[name])

    def events(self, *names: str) -> list[tuple[str, str]]:
        """Who did what, of the events of these names (of all without any), in order."""
        return [(event.actor, event.name) for event in self.outcome.events if not names or event.name in names]


def ran(decisions: Decisions | None = None, /, *, build: Callable[[Simulation], None] | None = None,
        bodies: dict[str, Body] | None = None, **options: Any) -> Ran:  # fmt: skip
    """Run bodies as actors of these names; a body's result is kept and its actor ends with 0."""
    simulation = Simulation(decisions, **options)
    if build is not None:
        build(simulation)
    results: dict[str, Any] = {}
    actors = {name: simulation.start(name, program(body, results)) for name, body in (bodies or {}).items()}
    return Ran(simulation, simulation.run(), actors, results)


def program(body: Body, results: dict[str, Any] | None = None) -> Program:
    """A program that runs a body, keeps its result under the actor's name, and ends with 0."""

    async def run(world: World, argv: Sequence[str]) -> int:
        result = await body(world)
        if results is not None:
            results[world.name] = result
        return 0

    return run


def alone(body: Body, decisions: Decisions | None = None, /, **options: Any) -> Any:
    """What one body returns; raises what it raised, and fails unless the run was done."""
    finished = ran(decisions, bodies={"alone": body}, **options)
    error = finished.ended("alone").error
    if error is not None:
        raise error
    assert finished.outcome.verdict == "done", finished.outcome.detail
    return finished.results["alone"]
