"""The command line of `pi`, as far as it governs what a headless run reads and prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MODES = ("text", "json", "rpc")
TEXT, JSON, RPC = MODES
SHORT = {"-p": "--print", "-c": "--continue", "-r": "--resume", "-e": "--extension", "-v": "--version", "-h": "--help",
         "-ne": "--no-extensions", "-ns": "--no-skills", "-nt": "--no-tools", "-t": "--tools"}  # fmt: skip
SWITCHES = (
    "--print",
    "--continue",
    "--resume",
    "--no-session",
    "--no-extensions",
    "--no-skills",
    "--no-tools",
    "--no-context-files",
    "--no-prompt-templates",
    "--no-themes",
    "--offline",
    "--verbose",
)
VALUED = (
    "--mode",
    "--mcp-config",
    "--extension",
    "--model",
    "--models",
    "--provider",
    "--api-key",
    "--thinking",
    "--tools",
    "--session",
    "--session-dir",
    "--session-id",
    "--fork",
    "--skill",
    "--prompt-template",
    "--theme",
    "--system-prompt",
    "--append-system-prompt",
)


class Arguments(NamedTuple):
    """What was asked for. `error` is what the program says of arguments that it does not take."""

    mode: str = TEXT
    prompt: str = ""
    version: bool = False
    help: bool = False
    error: str | None = None


def read_arguments(words: Sequence[str]) -> Arguments:
    """The words behind the program's name; several without an option are one prompt."""
    left, found, prompt = list(words), Arguments(), list[str]()
    while left:
        word = left.pop(0)
        name = SHORT.get(word, word)
        if not word.startswith("-") or word == "-":
            prompt.append(word)
        elif name in ("--version", "--help"):
            return found._replace(version=name == "--version", help=name == "--help")
        elif name in VALUED and left:
            value = left.pop(0)
            if name == "--mode" and value not in MODES:
                # not measured
                return found._replace(error=f"Error: Invalid mode: {value}. Valid modes: {', '.join(MODES)}")
            found = found._replace(mode=value) if name == "--mode" else found
        elif name not in SWITCHES:
            return found._replace(error=f"Error: Unknown option: {word}")
    return found._replace(prompt=" ".join(prompt))
