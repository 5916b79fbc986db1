"""What is started in place of the programs that a scenario names: our own executables, told by their environment.

Nothing else is ever executed: a program that nobody in the cast stands in for does not exist.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fake_runtimes
import fake_servers
from fake_runtimes.executable import BUGS_VARIABLE, CODEX, PLAN_VARIABLE, PROFILE_VARIABLE
from fake_runtimes.plan import Plan
from fake_servers.command import BEHAVIOUR_VARIABLE, REGISTRY_VARIABLE
from fake_servers.mcp.behaviour import Behaviour, to_table
from fake_servers.npm.registry import Package
from harness.scenario.cast import KEYRING_HELPER, NPM, NPX, Cast
from harness.scenario.sessions import Job
from harness.world.outside.control import Launch
from harness.world.outside.controller import Steered

INTERPRETER = (sys.executable, "-IS")
"""Without the user's settings and without installed packages: the executables need the standard library alone."""


class StandIns:
    """Who is started when an actor starts a program. `jobs` are the sessions by the names of their actors.

    What an executable is told lies in files of `folder`: an environment has no room for many tools.
    """

    def __init__(self, cast: Cast, jobs: Mapping[str, Job], folder: Path) -> None:
        self.cast, self.jobs, self.folder = cast, jobs, folder
        self._told: dict[str, str] = {}

    def launch(self, parent: Steered, argv: Sequence[str], env: Mapping[str, str], directory: str) -> Launch | None:  # noqa: ARG002
        """What stands in for a program."""
        found = self.cast.stand_in(argv)
        if found is None:
            return None
        name = f"{parent.name}/{self.cast.label(parent.name, argv, env.get('NPM_CONFIG_CACHE', ''))}"
        if isinstance(found, Behaviour):
            told = {BEHAVIOUR_VARIABLE: self._file(to_table(found))}
            return Launch((*INTERPRETER, executable(fake_servers, "mcp-fake-server")), name, told)
        words = argv[1:]
        if found in (NPX, NPM):
            registry = {name: package_table(package) for name, package in self.cast.packages.items()}
            told = {REGISTRY_VARIABLE: self._file(registry)}
            return Launch((*INTERPRETER, executable(fake_servers, found), *words), name, told)
        if found == KEYRING_HELPER:
            return Launch((*INTERPRETER, executable(fake_runtimes, found), *argv), name, {})
        job = self.jobs[parent.name]
        told = {PROFILE_VARIABLE: job.runtime.profile.name, PLAN_VARIABLE: self._file(plan_table(job.plan))}
        if found == CODEX:
            told[BUGS_VARIABLE] = ",".join(job.bugs)
        return Launch((*INTERPRETER, executable(fake_runtimes, found), *words), name, told)

    def _file(self, table: Mapping[str, Any]) -> str:
        """A file that holds a table; one for each."""
        text = json.dumps(table)
        if text not in self._told:
            path = self.folder / f"told-{len(self._told)}.json"
            path.write_text(text, encoding="utf-8")
            self._told[text] = str(path)
        return self._told[text]


def executable(package: Any, name: str) -> str:
    """The path of one of our executables."""
    return str(Path(package.__file__).parent / "bin" / name)


def package_table(package: Package) -> dict[str, Any]:
    """A package as a registry file has it, under its name."""
    fields = package._asdict() | {"behaviour": to_table(package.behaviour)}
    del fields["name"]
    return fields


def plan_table(plan: Plan) -> dict[str, Any]:
    """A plan as `read_plan` reads it."""
    turns = [turn._asdict() | {"calls": [call._asdict() for call in turn.calls]} for turn in plan.turns]
    return {"turns": turns}
