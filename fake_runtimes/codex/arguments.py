"""The command line of `codex exec` and `codex app-server`, as far as it governs MCP servers and what is printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fake_runtimes.profile import CodexProfile

BYPASS = "--dangerously-bypass-approvals-and-sandbox"
FULL_ACCESS = "danger-full-access"
SANDBOXES = ("read-only", "workspace-write", FULL_ACCESS)
SANDBOX_OPTIONS = ("--sandbox", "-s")
DIRECTORY_OPTIONS = ("--cd", "-C")
OVERRIDE_OPTIONS = ("--config", "-c")
LAST_MESSAGE_OPTIONS = ("--output-last-message", "-o")
OTHER_OPTIONS = ("--model", "-m", "--color", "--profile", "-p", "--output-schema", "--listen", *LAST_MESSAGE_OPTIONS)
SWITCHES = ("--json", "--strict-config", "--skip-git-repo-check", "--last", "--ephemeral", BYPASS)
VALUED = (*SANDBOX_OPTIONS, *DIRECTORY_OPTIONS, *OVERRIDE_OPTIONS, *OTHER_OPTIONS)
TRUST = "--trust"
RESUME = "resume"


class Arguments(NamedTuple):
    """What was asked for. `error` is what the program says of an argument that it does not know.

    `resumed` is the thread that a run goes on with, by its id; `last`: whichever was the last one.
    """

    command: str = "exec"
    json: bool = False
    trust: bool = False
    strict: bool = False
    sandbox: str | None = None
    directory: str | None = None
    prompt: str = ""
    last_message: str | None = None
    resumed: str = ""
    last: bool = False
    overrides: tuple[str, ...] = ()
    error: str | None = None


def read_arguments(argv: Sequence[str], profile: CodexProfile) -> Arguments:
    """The arguments behind the program's name."""
    words = list(argv[1:])
    found = Arguments()
    positional: list[str] = []
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if not word.startswith("-") or word == "-":
            positional.append(word)
        elif word in SWITCHES or (word == TRUST and profile.trust_flag):
            found = switched(found, word)
        elif name in VALUED and (equals or words):
            found = valued(found, name, value if equals else words.pop(0))
        else:
            return found._replace(error=f"error: unexpected argument '{name}' found")
        if found.error is not None:
            return found
    command, *rest = positional or [""]
    if command == "exec" and rest[:1] == [RESUME]:
        count = 1 if found.last else 2
        found, rest = found._replace(resumed=" ".join(rest[1:count])), rest[count:]
    return found._replace(command=command, prompt=" ".join(rest))


def switched(found: Arguments, word: str) -> Arguments:
    """With one option that takes no value."""
    if word == BYPASS:
        return found._replace(sandbox=FULL_ACCESS)
    if word == "--json":
        return found._replace(json=True)
    if word == "--last":
        return found._replace(last=True)
    if word == TRUST:
        return found._replace(trust=True)
    return found._replace(strict=True) if word == "--strict-config" else found


def valued(found: Arguments, name: str, value: str) -> Arguments:
    """With one option and its value."""
    if name in DIRECTORY_OPTIONS:
        return found._replace(directory=value)
    if name in OVERRIDE_OPTIONS:
        return found._replace(overrides=(*found.overrides, value))
    if name in LAST_MESSAGE_OPTIONS:
        return found._replace(last_message=value)
    if name not in SANDBOX_OPTIONS:
        return found
    if value not in SANDBOXES:
        return found._replace(error=f"error: invalid value '{value}' for '--sandbox <SANDBOX_MODE>'")
    return found._replace(sandbox=value)
