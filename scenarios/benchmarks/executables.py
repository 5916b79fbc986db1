"""What a fake runtime costs as an executable: a whole run without a server, and with one over stdio."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parents[2]
BIN, SERVERS = REPOSITORY / "fake_runtimes" / "bin", REPOSITORY / "fake_servers" / "bin"
RUNS = 21
TARGETS_MS = {"no server": 80, "one stdio server": 150}
COMMANDS = {
    "claude": ("-p", "go on", "--output-format", "stream-json", "--verbose"),
    "codex": ("exec", "--json", "go on"),
    "pi": ("-p", "--mode", "json", "go on"),
}


class Spread(NamedTuple):
    """Wall times of the runs in milliseconds."""

    milliseconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the runs."""
        return statistics.median(self.milliseconds)

    def __str__(self) -> str:
        return f"{self.median:6.0f} ms  ({min(self.milliseconds):.0f} to {max(self.milliseconds):.0f})"


def measure(runtime: str, *, with_server: bool, runs: int = RUNS) -> Spread:
    """Run a fake that often in a new home, after one run that warms the disk. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as name:
        home, project = Path(name, "home"), Path(name, "project")
        project.mkdir()
        (home / ".codex").mkdir(parents=True)
        if with_server:
            command = str(SERVERS / "mcp-fake-server")
            (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"files": {"command": command}}}))
            (home / ".codex" / "config.toml").write_text(f'[mcp_servers.files]\ncommand = "{command}"\n')
        # The interpreter itself, not a version manager's way to it.
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        times = []
        for _ in range(runs + 1):
            (home / ".pi" / "agent" / "mcp-cache.json").unlink(missing_ok=True)  # else Pi starts no server
            began = time.perf_counter()
            subprocess.run(
                [BIN / runtime, *COMMANDS[runtime]],
                cwd=project,
                env={"HOME": str(home), "PATH": path},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=True,
            )
            times.append((time.perf_counter() - began) * 1000)
        return Spread(tuple(times[1:]))


def main() -> None:
    """One line a runtime and case."""
    for runtime in COMMANDS:
        for case, target in TARGETS_MS.items():
            spread = measure(runtime, with_server=case != "no server")
            print(f"{f'{runtime}, {case}':32} {spread}  target {target} ms", flush=True)


if __name__ == "__main__":
    main()
