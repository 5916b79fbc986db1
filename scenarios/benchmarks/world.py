"""What the model tier costs: scheduler steps, spawns of the fake runtimes, campaign runs; and how fast time passes."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import tomlkit

from fake_runtimes.plan import Plan
from fake_servers.mcp import Behaviour
from fake_servers.mcp import program as server_program
from harness.gate.spawn import runtime_named
from harness.preparation import RUNTIMES, written_config
from harness.reference.prepare.request import Runtime
from harness.reference.selection.zimmer import SELF_SESSION
from harness.scenario.campaign import run_one, run_seed
from harness.scenario.families import Family, families
from harness.scenario.library import find
from harness.scenario.production import play
from harness.scenario.reading import load_scenario
from harness.scenario.runtimes import runtime_programs
from harness.scenario.sessions import argv
from harness.scenario.trees import scenario_from
from harness.world import Request, Response, World
from harness.world.model import Calm, Decisions, Seeded, Simulation
from harness.world.ports import Program

RUNS = 5
ACTORS = 4
ROUNDS = 2_500
SERVERS = (1, 6, 16)
SPAWNS = 100
CAMPAIGN_SEED = 11
CAMPAIGN_RUNS = 100
INCIDENT, INCIDENT_RUNTIME, INCIDENT_RUNS = "702", "codex", 50
CLONE, HOME = "/clones/bench", "/home/bench"
TRUSTED = f'sandbox_mode = "danger-full-access"\n[projects."{CLONE}"]\ntrust_level = "trusted"\n'


class Rate(NamedTuple):
    """How many of a unit a second, in each of the runs."""

    a_second: tuple[float, ...]
    unit: str

    def __str__(self) -> str:
        median = statistics.median(self.a_second)
        return f"{median:10,.0f} {self.unit}  ({min(self.a_second):,.0f} to {max(self.a_second):,.0f})"


def measure(work: Callable[[], float], unit: str) -> Rate:
    """Do the work that often, after one time to warm up; it answers how many units it did.

    Taken is the time on the CPU: what else the machine does makes less of a difference then.
    """
    rates = []
    for number in range(RUNS + 1):
        began = time.process_time()
        count = work()
        if number:
            rates.append(count / (time.process_time() - began))
    return Rate(tuple(rates), unit)


class Echo:
    """A server that answers at once."""

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The request's body."""
        return Response(200, body=request.body)


async def worker(world: World, argv: Sequence[str]) -> int:
    """Files, a request, a sleep and a row in turn."""
    path = f"/{world.name}"
    request = Request("POST", "https://echo.test/", body=b"x")
    for number in range(ROUNDS):
        await world.files.write_atomic(path, b"x")
        await world.files.read(path)
        await world.http.send(request, open_timeout_seconds=1, read_timeout_seconds=1)
        if not number % 10:
            await world.clock.sleep(1)
            transaction = await world.store.begin()
            await transaction.put("rows", world.name, {"number": number})
            await transaction.commit()
    return 0


def bare_steps(decisions: Callable[[], Decisions]) -> int:
    """One run over the ports that code uses most, without any fake; its steps."""
    simulation = Simulation(decisions(), servers={"https://echo.test": Echo()})
    for index in range(ACTORS):
        simulation.start(f"worker-{index}", worker)
    return simulation.run().steps


class Spawn:
    """Runs of a fake runtime over what one preparation wrote for so many good stdio servers."""

    def __init__(self, runtime: Runtime, servers: int) -> None:
        tree = {f"server-{number}": {"type": "stdio", "command": f"server-{number}"} for number in range(servers)}
        written = written_config(runtime, list(tree), tree, values={}, clone=CLONE)
        text = without_own(runtime, written.text or "")
        self.files = {f"{CLONE}/{written.path}": text, f"{HOME}/.codex/config.toml": TRUSTED}
        self.runtime, self.servers = runtime, servers
        named = runtime_named(runtime)
        self.argv, self.program = argv(named), runtime_programs()[runtime](named.profile, Plan())
        self.server = server_program(Behaviour())

    def launch(self, _argv: Sequence[str], env: Mapping[str, str], directory: str) -> Program | None:
        """Every command is a good server."""
        return self.server

    def once(self) -> Simulation:
        """One world with one run."""
        simulation = Simulation(launcher=self.launch)
        for path, text in self.files.items():
            simulation.tree.make_directory(path.rpartition("/")[0], 0o755, 0, simulation.now)
            simulation.tree.write(path, text.encode(), 0o600, 0, simulation.now)
        simulation.start(self.runtime, self.program, self.argv, env={"HOME": HOME, "PATH": "/bin"}, directory=CLONE)
        simulation.run()
        return simulation

    def connected(self) -> int:
        """How many servers come up in such a run."""
        return sum(event.name == "server.connected" for event in self.once().events)

    def often(self) -> int:
        """Many of them; how many."""
        for _ in range(SPAWNS):
            self.once()
        return SPAWNS


def without_own(runtime: Runtime, text: str) -> str:
    """A written config without the server that is injected into every session, so that as many start as counted."""
    if runtime == "codex":
        document = tomlkit.parse(text)
        del document["mcp_servers"][SELF_SESSION]
        return tomlkit.dumps(document)
    tree = json.loads(text)
    del tree["mcpServers"][SELF_SESSION]
    return json.dumps(tree, indent=2)


def campaign_steps(family: Family, *, calm: bool) -> int:
    """Runs of a family as a campaign makes them, judged; or the same scenarios in their calmest order. Their steps."""
    if not calm:
        return sum(run_one(family, CAMPAIGN_SEED, number).steps for number in range(CAMPAIGN_RUNS))
    scenarios = [
        scenario_from(family.tree(run_seed(CAMPAIGN_SEED, family.name, number)), family.name)
        for number in range(CAMPAIGN_RUNS)
    ]
    return sum(play(scenario, scenario.runtimes[0]).steps for scenario in scenarios)


def simulated_seconds() -> float:
    """Virtual time of some runs of one incident."""
    scenario = load_scenario(find(INCIDENT))
    return sum(play(scenario, INCIDENT_RUNTIME).seconds for _ in range(INCIDENT_RUNS))


def main() -> None:
    """One line a case."""
    show("world, calm", partial(bare_steps, Calm))
    show("world, seeded", partial(bare_steps, partial(Seeded, 7)))
    for runtime in RUNTIMES:
        for servers in SERVERS:
            spawn = Spawn(runtime, servers)
            show(f"{runtime}, {spawn.connected()} servers", spawn.often, "spawns/s")
    for family in families().values():
        show(f"{family.name}, calm", partial(campaign_steps, family, calm=True))
        show(f"{family.name}, seeded", partial(campaign_steps, family, calm=False))
    show(f"{INCIDENT} on {INCIDENT_RUNTIME}", simulated_seconds, "virtual s/s")


def show(title: str, work: Callable[[], Any], unit: str = "steps/s") -> None:
    """One line, at once, so that a long run shows its progress."""
    print(f"{title:32} {measure(work, unit)}", flush=True)


if __name__ == "__main__":
    main()
