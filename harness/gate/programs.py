"""What code an entry's command line runs: the package, image, module or script behind its launcher.

For people who review a change: who reads `uvx` wants to know which package. A command line that none of the known
launchers begins is a program of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness.gate.container_commands import container_run
from harness.gate.npm_commands import (
    NPX_SCRIPT,
    SHELLS,
    VALUE_FLAGS,
    WRAPPERS,
    first_positional,
    program,
    runner_arguments,
    shell_script,
    simple_commands,
)
from harness.gate.python_commands import python_command
from harness.reference.npx.specs import package_specs

NPM, PYTHON, IMAGE, CONTAINER = "npm package", "Python package", "container image", "running container"
MODULE, PROGRAM = "Python module", "program"
SHELL_SCRIPT, INLINE = "a script for the shell in args", "code in args"
INTERPRETERS = frozenset({"node", "deno", "bun", "tsx", "ts-node", "ruby", "perl", "php", "java", "dotnet"})

MAXIMUM_LAUNCHERS = 8
"""So many launchers in front of one another are looked through (`env timeout 5 sh -c ...`)."""

_PYTHON_PROGRAM = re.compile(r"(?:python|py|pypy)[\d.]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_DURATION = re.compile(r"\d+(?:\.\d+)?[smhd]?")
_INLINE_FLAGS = frozenset({"-e", "--eval", "-p", "--print", "-c", "-r"})
_SCRIPT_VALUE_FLAGS = frozenset({"--require", "--import", "--loader", "--env-file", "-W", "-X", "-I", "--config"})


class Code(NamedTuple):
    """Code that is run: `kind` says what its name is the name of (npm package, container image, node script, ...)."""

    kind: str
    names: tuple[str, ...]


def code_of(entry: Mapping[str, Any]) -> Code | None:
    """What the command of an entry runs; None without a command."""
    command, args = entry.get("command"), entry.get("args")
    if not isinstance(command, str) or not command.strip():
        return None
    words = [arg for arg in args if isinstance(arg, str)] if isinstance(args, list) else []
    return code_run([command.strip(), *words])


def is_other_code(before: Code | None, after: Code | None) -> bool:
    """Whether two sides run different code; the order in which several packages are named makes no difference."""
    return _unordered(before) != _unordered(after)


def _unordered(code: Code | None) -> tuple[str, list[str]] | None:
    return code and (code.kind, sorted(code.names))


def code_run(words: Sequence[str], depth: int = 0) -> Code:
    """What a command line of at least one word runs; `depth` counts the launchers in front of it."""
    word, rest = words[0], words[1:]
    found = _npm(word, rest) or _python(word, rest, depth) or _container(word, rest)
    if not found and depth < MAXIMUM_LAUNCHERS:
        found = _behind(program(word), rest, depth)
    return found or _script(program(word), rest) or Code(PROGRAM, (word,))


def _npm(word: str, rest: Sequence[str]) -> Code | None:
    args = runner_arguments(word, rest)
    if args is None and program(word) == "node":
        script = first_positional(rest)
        if script is not None and program(script) == NPX_SCRIPT:
            args = tuple(rest[list(rest).index(script) + 1 :])
    packages = package_specs(args)
    return Code(NPM, packages) if packages else None


def _python(word: str, rest: Sequence[str], depth: int) -> Code | None:
    """uvx PKG, uv tool run PKG, pipx run PKG; what `uv run` runs is a script or a command line of its own."""
    found = python_command(word, rest)
    if found is None or found.package is None:
        return None
    if found.fetches:
        return Code(PYTHON, (found.package,))
    if found.package.endswith(".py"):
        return Code("python script", (found.package,))
    behind = list(rest[list(rest).index(found.package, found.first) :]) if found.package in rest else [found.package]
    return code_run(behind, depth + 1) if depth < MAXIMUM_LAUNCHERS else None


def _container(word: str, rest: Sequence[str]) -> Code | None:
    found = container_run(word, rest)
    if found is None or found.image_at is None:
        return None
    return Code(IMAGE if found.verb == "run" else CONTAINER, (rest[found.image_at],))


def _behind(name: str, rest: Sequence[str], depth: int) -> Code | None:
    """What a shell's -c, a wrapper such as env, or a secret manager (`op run -- npx pkg`) runs."""
    if name in SHELLS:
        script = shell_script(rest)
        commands = [command for command in simple_commands(script) if command] if script else []
        if len(commands) == 1:
            return _behind("env", commands[0], depth)
        return Code(SHELL_SCRIPT, ()) if script else None
    if name in WRAPPERS:
        words = _behind_wrapper_flags(rest)
        return code_run(words, depth + 1) if words else None
    if "--" in rest and rest[-1] != "--" and name not in INTERPRETERS and not _PYTHON_PROGRAM.fullmatch(name):
        return code_run(rest[list(rest).index("--") + 1 :], depth + 1)
    return None


def _behind_wrapper_flags(words: Sequence[str]) -> Sequence[str]:
    position = 0
    while position < len(words):
        word = words[position]
        if not (word.startswith("-") or _ASSIGNMENT.match(word) or _DURATION.fullmatch(word)):
            break
        position += 2 if word in VALUE_FLAGS else 1
    return words[position:]


def _script(name: str, rest: Sequence[str]) -> Code | None:
    """A file or module that an interpreter runs."""
    is_python = _PYTHON_PROGRAM.fullmatch(name) is not None
    if name not in INTERPRETERS and not is_python and name not in SHELLS:
        return None
    position = 0
    while position < len(rest):
        word = rest[position]
        if is_python and word == "-m":
            return Code(MODULE, tuple(rest[position + 1 : position + 2]))
        if name == "java" and word == "-jar":
            return Code("java program", tuple(rest[position + 1 : position + 2]))
        if word in _INLINE_FLAGS and name not in SHELLS:
            return Code(f"{INLINE}, for {name}", ())
        if word.strip() and not word.startswith("-") and not (name in ("deno", "bun") and word == "run"):
            return Code(f"{name} script", (word,))
        position += 2 if word in _SCRIPT_VALUE_FLAGS else 1
    return None
