"""What a model world costs: scheduler steps a second, calm and seeded, over the ports that code uses most."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.world import Request, Response, World
from harness.world.model import Calm, Decisions, Seeded, Simulation

RUNS = 5
ACTORS = 4
ROUNDS = 2_500


class Rate(NamedTuple):
    """Steps a second of each run."""

    steps_a_second: tuple[float, ...]

    def __str__(self) -> str:
        median = statistics.median(self.steps_a_second)
        return f"{median:10,.0f} steps/s  ({min(self.steps_a_second):,.0f} to {max(self.steps_a_second):,.0f})"


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


def measure(decisions: Callable[[], Decisions]) -> Rate:
    """Run the same world that often, after one run to warm up."""
    rates = []
    for number in range(RUNS + 1):
        simulation = Simulation(decisions(), servers={"https://echo.test": Echo()})
        for index in range(ACTORS):
            simulation.start(f"worker-{index}", worker)
        began = time.perf_counter()
        outcome = simulation.run()
        if number:
            rates.append(outcome.steps / (time.perf_counter() - began))
    return Rate(tuple(rates))


def main() -> None:
    """One line a source of decisions."""
    print(f"{'world, calm':32} {measure(Calm)}", flush=True)
    print(f"{'world, seeded':32} {measure(lambda: Seeded(7))}", flush=True)


if __name__ == "__main__":
    main()
