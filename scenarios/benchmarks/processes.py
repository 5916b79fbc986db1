"""What a scenario costs when real processes play it: one after the other, and how many a minute in two runners."""

from __future__ import annotations

import multiprocessing
import statistics
import time

from harness.scenario.production import play
from harness.scenario.reading import read_scenario
from harness.scenario.tiers import PROCESS
from scenarios.playing import short

RUNTIMES = ("claude", "codex", "pi")
RUNS = 5
RUNNERS, MINUTE = 2, 60.0
GOAL_A_MINUTE = 20


def seconds(runtime: str) -> float:
    """One run of the short scenario: a session, two servers, a call."""
    began = time.perf_counter()
    play(read_scenario(short()), runtime, tier=PROCESS)
    return time.perf_counter() - began


def several(runs: int) -> int:
    """That many runs in this process."""
    for number in range(runs):
        seconds(RUNTIMES[number % len(RUNTIMES)])
    return runs


def main() -> None:
    """One line a runtime, then the rate."""
    for runtime in RUNTIMES:
        times = [seconds(runtime) for _ in range(RUNS + 1)][1:]
        low, high = min(times), max(times)
        print(
            f"{f'tier process, {runtime}':32} {statistics.median(times):7.3f} s  ({low:.3f} to {high:.3f})", flush=True
        )
    began = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    runners = [context.Process(target=several, args=(2 * len(RUNTIMES),)) for _ in range(RUNNERS)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    rate = RUNNERS * 2 * len(RUNTIMES) / (time.perf_counter() - began) * MINUTE
    print(f"{'tier process, two runners':32} {rate:7.0f} scenarios a minute  goal {GOAL_A_MINUTE}", flush=True)


if __name__ == "__main__":
    main()
