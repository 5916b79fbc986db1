"""Runs of the fake Pi in a model world, for tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fake_runtimes.pi.command import program
from fake_runtimes.plan import Plan, ToolCall, Turn
from fake_runtimes.profile import load_profile
from fake_servers.mcp import Behaviour
from fake_servers.mcp import program as server_program
from harness.world import World
from harness.world.model import Decisions, Event, Outcome, Simulation
from harness.world.ports import Program

OLDER: Any = load_profile("pi-0.84.1+2.32.1")
NEWER: Any = load_profile("pi-0.86.1+2.36.0")
BOTH = (OLDER, NEWER)
HOME, CLONE = "/home/pi", "/clone"
CACHE = f"{HOME}/.pi/agent/mcp-cache.json"
GOOD = Behaviour()
HANGS = Behaviour(initialize="never")
NOTHING_CACHED = '{"version":1,"servers":{}}'
ONE_TURN = Plan()
Programs = Mapping[str, Behaviour | Program]


class Ran(NamedTuple):
    """A finished run of Pi."""

    simulation: Simulation
    outcome: Outcome
    pi: Any

    def events(self, name: str) -> list[Event]:
        return [event for event in self.outcome.events if event.name == name and event.actor == "pi"]

    def at(self, event: Event) -> float:
        """Seconds after the start."""
        return event.at_seconds - self.simulation.started_seconds

    def requests(self) -> list[tuple[float, list[str]]]:
        """When each model request left, and what it offered."""
        return [(self.at(event), event.details["tools"]) for event in self.events("model.request")]

    def calls(self) -> list[str]:
        return [event.details["text"] for event in self.events("tool.call")]

    def failures(self) -> list[tuple[str, float]]:
        return [(event.details["server"], self.at(event)) for event in self.events("server.failed")]

    def spawned(self) -> list[list[str]]:
        return [event.details["argv"] for event in self.events("spawn")]

    @property
    def stderr(self) -> list[str]:
        return list(self.pi.stderr.lines)

    @property
    def stdout(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.pi.stdout.lines]

    def file(self, path: str) -> str | None:
        try:
            return self.simulation.tree.read(path, 0).decode()
        except OSError:
            return None


def run_pi(
    entries: Mapping[str, Any],
    programs: Programs | None = None,
    *,
    profile: Any = OLDER,
    plan: Plan = ONE_TURN,
    settings: Mapping[str, Any] | None = None,
    files: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    servers: Mapping[str, Any] | None = None,
    argv: Sequence[str] = ("pi", "-p", "--mode", "json", "go on"),
    decisions: Decisions | None = None,
    launcher: Callable[..., Program | None] | None = None,
    **options: Any,
) -> Ran:
    """A run over `entries` in the clone's `.mcp.json`; `programs` are behaviours by command."""

    def launched(words: Sequence[str], environment: Mapping[str, str], directory: str) -> Program | None:
        found = (programs or {}).get(words[0])
        return server_program(found) if isinstance(found, Behaviour) else found

    simulation = Simulation(decisions, servers=servers, launcher=launcher or launched, **options)
    config = json.dumps({"mcpServers": entries, "settings": settings or {}})
    written = {f"{CLONE}/.mcp.json": config, **(files or {})}
    simulation.tree.make_directory(CLONE, 0o755, 0, simulation.now)
    for path, text in written.items():
        simulation.tree.make_directory(path.rpartition("/")[0], 0o755, 0, simulation.now)
        simulation.tree.write(path, text.encode(), 0o644, 0, simulation.now)
    pi = simulation.start("pi", program(profile, plan), argv, env={"HOME": HOME, **(env or {})}, directory=CLONE)
    outcome = simulation.run()
    error = simulation.ended(pi).error
    if error is not None:
        raise error
    assert simulation.ended(pi) == (0, None, ())
    return Ran(simulation, outcome, pi)


def turn(*calls: tuple[str, str] | ToolCall, seconds: float = 1.0) -> Turn:
    """A turn with these calls, each a server and a tool."""
    return Turn(tuple(call if isinstance(call, ToolCall) else ToolCall(*call) for call in calls), seconds)


def stdio(command: str = "good", **fields: Any) -> dict[str, Any]:
    return {"command": command, **fields}


def printing_environment(*names: str) -> Program:
    """A program that emits some of its variables, then ends."""

    async def run(world: World, argv: Sequence[str]) -> int:
        world.events.emit("environment", **{name: world.env.variables.get(name) for name in names})
        return 0

    return run
