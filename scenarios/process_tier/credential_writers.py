"""Writers of credentials as processes of this machine, for tests: who writes what, and where it is killed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from harness.reference.credentials.writers.claude import ClaudeWriter, write_account
from harness.reference.credentials.writers.codex import CodexWriter
from harness.reference.credentials.writers.pi import PiWriter
from harness.reference.credentials.writers.pi_store import PiStore
from harness.reference.credentials.writers.protocol import StagedCredential
from harness.world import World
from harness.world.live import run
from harness.world.live.forks import Fork
from harness.world.model import Fault, FaultPlan
from harness.world.outside.setting import Setting

PRELOAD = ("harness.world.live", "scenarios.process_tier.credential_writers")
HELPER = """
import sys
from fake_runtimes.pi.keyring_helper import program
from harness.world import blocking
sys.exit(blocking.run(program, ["keyctl"]))
"""
STORE = ".credentials.json"


def helper_runner() -> tuple[str, ...]:
    """The keyring's helper as a program of this machine."""
    return (sys.executable, "-c", HELPER)


def writer_of(runtime: str, directory: str) -> Any:
    """A runtime's writer in a directory."""
    if runtime == "pi":
        return PiWriter(directory, PiStore(helper_runner()))
    return ClaudeWriter(directory) if runtime == "claude" else CodexWriter(directory)


def named(name: str, access: str = "access") -> StagedCredential:
    """A credential of a server of that name, which never expires."""
    return StagedCredential(f"{name}|0123456789abcdef", name, f"https://{name}.test/mcp", "client", access)


def writes(control: str, actor: str, runtime: str, directory: str, names: Sequence[str], keyring: str = "") -> int:
    """A process that writes a credential of each name, one after another; `account` rotates Claude's account."""

    async def program(world: World, _argv: Sequence[str]) -> int:
        for name in names:
            if runtime == "account":
                await write_account(world, directory, {"accessToken": name})
            else:
                await writer_of(runtime, directory).write(world, [named(name)])
        return 0

    variables = {"HOME": directory, "PATH": "/usr/bin", "PYTHONPATH": ":".join(sys.path), "MCP_FAKE_KEYRING": keyring}
    return run(program, [], Setting(actor, control), variables=variables, directory="/")


def started(*arguments: Any) -> Fork:
    """Such a process."""
    return Fork(writes, arguments, PRELOAD, lambda _exit_code: None)


class KillAt(FaultPlan):
    """Kills an actor at one of its switch points, by number; `label` is that point's, where there was one."""

    def __init__(self, number: int) -> None:
        super().__init__([Fault("kill", actor="nobody")])
        self.left, self.label = number, ""

    def strike(self, port: str, actor: str, label: str, *_rest: Any, **_more: Any) -> Fault | None:
        """At the point of that number."""
        self.left -= 1
        if self.left != -1:
            return None
        self.label = label
        return Fault("kill")
