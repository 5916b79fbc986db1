"""What a fake runtime costs as an executable: a whole run without a server, with one over stdio, with one over https.

A refresh of its token comes with the token chain, and so does that figure.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from fake_servers.mcp.http import HttpServer
from fake_servers.mounts import Mount, TestAuthority
from harness.world.outside.setting import CERTIFICATES_VARIABLE

REPOSITORY = Path(__file__).parents[2]
BIN, SERVERS = REPOSITORY / "fake_runtimes" / "bin", REPOSITORY / "fake_servers" / "bin"
RUNS = 21
NONE, STDIO, HTTPS = "no server", "one stdio server", "one https server"
TARGETS_MS = {NONE: 80, STDIO: 150, HTTPS: 350}
ORIGIN = "https://127.0.0.1:0"
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


def measure(runtime: str, case: str, *, runs: int = RUNS) -> Spread:
    """Run a fake that often in a new home, after one run that warms the disk. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as name:
        authority = TestAuthority(Path(name))
        with Mount({ORIGIN: HttpServer()}, authority=authority) as mount:
            given = {STDIO: {"command": str(SERVERS / "mcp-fake-server")}, HTTPS: {"url": mount.url(f"{ORIGIN}/mcp")}}
            return measured(runtime, given.get(case), Path(name), authority.path, runs)


def measured(runtime: str, server: dict[str, str] | None, folder: Path, certificates: Path, runs: int) -> Spread:
    """The runs, with this server in the configuration of each runtime."""
    home, project = folder / "home", folder / "project"
    project.mkdir()
    (home / ".codex").mkdir(parents=True)
    if server is not None:
        of_claude = {**server, **({"type": "http"} if "url" in server else {})}
        (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"files": of_claude}}))
        lines = [f"{key} = {json.dumps(value)}" for key, value in server.items()]
        (home / ".codex" / "config.toml").write_text("\n".join(["[mcp_servers.files]", *lines, ""]))
    # The interpreter itself, not a version manager's way to it.
    environment = {"HOME": str(home), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    times = []
    for _ in range(runs + 1):
        (home / ".pi" / "agent" / "mcp-cache.json").unlink(missing_ok=True)  # else Pi starts no server
        began = time.perf_counter()
        subprocess.run(
            [BIN / runtime, *COMMANDS[runtime]],
            cwd=project,
            env={**environment, CERTIFICATES_VARIABLE: str(certificates)},
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
            spread = measure(runtime, case)
            print(f"{f'{runtime}, {case}':32} {spread}  target {target} ms", flush=True)


if __name__ == "__main__":
    main()
