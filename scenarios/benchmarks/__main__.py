"""`make bench`: what the gate costs, as medians with spread and peak memory; the world; the executables."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from scenarios.benchmarks import chains, executables, processes, world
from scenarios.benchmarks.catalogs import catalog_text

REPOSITORY = Path(__file__).parents[2]
RUNS = 5


class Measured(NamedTuple):
    """Wall times of the runs in seconds, and the highest resident size in MiB."""

    seconds: tuple[float, ...]
    peak_mebibytes: float

    def __str__(self) -> str:
        low, high = min(self.seconds), max(self.seconds)
        median = statistics.median(self.seconds)
        return f"{median:7.3f} s  ({low:.3f} to {high:.3f})  {self.peak_mebibytes:6.0f} MiB"


def measure(*arguments: str, runs: int = RUNS) -> Measured:
    """Run `mcp-harness` with these arguments that often, after one run to warm the disk."""
    command = [sys.executable, "-m", "harness.cli", *arguments]
    seconds, peak = [], 0.0
    for number in range(runs + 1):
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, _, usage = os.wait4(process.pid, 0)
        if number:
            seconds.append(time.perf_counter() - began)
            peak = max(peak, usage.ru_maxrss / 1024)
    return Measured(tuple(seconds), peak)


def main() -> None:
    """Print one line a case."""
    show("--help", measure("--help"))
    show("gate on the shipped catalog", measure("gate", str(REPOSITORY / "mcp.json")))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for count in (250, 500, 1000, 2000):
            path = folder / f"{count}.json"
            path.write_text(catalog_text(count), encoding="utf-8")
            show(f"gate, {count} entries, no battery", measure("gate", str(path), "--battery", "off", runs=3))
        show("gate, 1000 entries", measure("gate", str(folder / "1000.json"), runs=1))
        base, head = folder / "500.json", folder / "changed.json"
        tree = json.loads(base.read_text(encoding="utf-8"))
        tree["server-2"]["url"] += "/v2"
        head.write_text(json.dumps(tree, indent=2), encoding="utf-8")
        show("gate --base, 1 of 500 changed", measure("gate", str(head), "--base", str(base)))
    world.main()
    chains.main()
    executables.main()
    processes.main()


def show(title: str, measured: Measured) -> None:
    """One line, at once, so that a long run shows its progress."""
    print(f"{title:32} {measured}", flush=True)


if __name__ == "__main__":
    main()
