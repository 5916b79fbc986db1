"""What an entry's command fetches before its server can answer: a package, an environment or an image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.gate.container_commands import ContainerRun, container_run, image_floats
from harness.gate.npm_commands import package_runner, runner_arguments
from harness.gate.python_commands import PythonCommand, python_command, requirement_floats
from harness.gate.spec_versions import floats
from harness.reference.npx.specs import package_specs


class CommandLine(NamedTuple):
    """A stdio entry's command without blanks around it, and its arguments, all of which are texts."""

    command: str
    args: tuple[str, ...]


def command_line(entry: Mapping[str, Any]) -> CommandLine | None:
    """The command line of an entry; None where it is remote or holds something that is no text."""
    command, args = entry.get("command"), entry.get("args", [])
    if entry.get("type") != "stdio" or not isinstance(command, str) or not isinstance(args, list):
        return None
    if not all(isinstance(argument, str) for argument in args):
        return None
    return CommandLine(command.strip(), tuple(args))


def container(entry: Mapping[str, Any]) -> ContainerRun | None:
    """How an entry runs its server in a container, if it does."""
    line = command_line(entry)
    return container_run(*line) if line else None


def python(entry: Mapping[str, Any]) -> PythonCommand | None:
    """How an entry runs its server through uv or pipx, if it does."""
    line = command_line(entry)
    return python_command(*line) if line else None


def fetches_at_start(entry: Mapping[str, Any]) -> bool:
    """Whether a first start has to fetch something: an npm package, a Python environment, a container's image."""
    line = command_line(entry)
    if line is None:
        return False
    if package_runner((line.command, *line.args)) is not None or python_command(*line) is not None:
        return True
    run = container_run(*line)
    return run is not None and run.verb == "run"


def floating(entry: Mapping[str, Any]) -> bool:
    """Whether two starts of an entry may run different code, because what it fetches is named by a tag or a range."""
    line = command_line(entry)
    if line is None:
        return False
    npm = runner_arguments(*line)
    if npm is not None:
        return any(map(floats, package_specs(npm)))
    python_run = python_command(*line)
    if python_run is not None:
        return python_run.fetches and python_run.package is not None and requirement_floats(python_run.package)
    run = container_run(*line)
    return run is not None and run.verb == "run" and run.image_at is not None and image_floats(line.args[run.image_at])
