"""Which command lines run an npm package, and in what words. Source: requirements npx-catalog-bare-form,
npx-pin-scope-exact.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

NPX = "npx"
RUNNERS = frozenset({NPX, "pnpx", "bunx"})
SUBCOMMANDS = {"npm": ("exec", "x"), "pnpm": ("dlx",), "yarn": ("dlx",), "bun": ("x",)}
NPX_SCRIPT = "npx-cli.js"
SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ash", "ksh", "fish"})
WINDOWS_SHELLS = frozenset({"cmd", "powershell", "pwsh"})
WRAPPERS = frozenset(
    {"env", "exec", "command", "nohup", "nice", "time", "timeout", "sudo", "setsid", "stdbuf", "xvfb-run"}
    | {"corepack", "cross-env", "if", "then", "else", "do", "while", "until", "!", "{"}
)
"""Programs, and words of a shell, that run the command behind them."""

VALUE_FLAGS = frozenset(
    {"-p", "--package", "--prefix", "--userconfig", "--cache", "--registry", "--loglevel", "-w", "--workspace"}
    | {"-C", "--dir", "--cwd", "--filter", "-u", "-n", "-s", "-k", "-o", "-e", "-i"}
)
"""Flags of package managers and wrappers that take the next word."""

_EXTENSION = re.compile(r"\.(?:cmd|exe|ps1|bat)$")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_DURATION = re.compile(r"\d+(?:\.\d+)?[smhd]?")
_SHELL_SCRIPT_FLAG = re.compile(r"-[a-z]*c[a-z]*")
_ENV_SPLIT_FLAGS = ("-S", "--split-string")
_SEPARATOR = re.compile(r"[();<>|&]+")


def package_runner(words: Sequence[str]) -> str | None:
    """How a command line runs an npm package, in its own words up to the package, e.g. `sh -c npx`; else None."""
    if not words:
        return None
    word, rest = words[0], words[1:]
    name = program(word)
    if name in RUNNERS:
        return word
    inner: str | None = None
    if name in SUBCOMMANDS:
        subcommand = first_positional(rest)
        return f"{word} {subcommand}" if subcommand in SUBCOMMANDS[name] else None
    if name == "node":
        script = first_positional(rest)
        return f"{word} {script}" if script is not None and program(script) == NPX_SCRIPT else None
    if name in SHELLS:
        inner, word = script_runner(shell_script(rest)), f"{word} -c"
    elif name in WINDOWS_SHELLS:
        inner = script_runner(" ".join(item for item in rest if not item.startswith(("/", "-"))))
    elif name == "eval":
        inner = script_runner(" ".join(rest))
    elif name in WRAPPERS:
        inner = wrapped_runner(rest)
    elif "--" in rest:  # secret managers and the like: `op run -- npx pkg`
        inner = package_runner(rest[list(rest).index("--") + 1 :])
    return None if inner is None else f"{word} {inner}"


def runner_arguments(command: str, args: Sequence[str]) -> tuple[str, ...] | None:
    """The arguments of a command that runs an npm package without a shell or wrapper; None for any other command."""
    name = program(command)
    if name in RUNNERS:
        return tuple(args)
    subcommand = first_positional(args)
    if name not in SUBCOMMANDS or subcommand not in SUBCOMMANDS[name]:
        return None
    position = list(args).index(subcommand)
    return (*args[:position], *args[position + 1 :])


def program(word: str) -> str:
    """The program that a word names: no folder, no Windows extension, lower case."""
    return _EXTENSION.sub("", re.split(r"[/\\]", word.strip())[-1].lower())


def first_positional(words: Sequence[str]) -> str | None:
    """The first word that is neither a flag nor a flag's value."""
    position = 0
    while position < len(words):
        if not words[position].startswith("-"):
            return words[position]
        position += 2 if words[position] in VALUE_FLAGS else 1
    return None


def wrapped_runner(words: Sequence[str]) -> str | None:
    """The same for what stands behind a wrapper's own flags, assignments and durations."""
    position = 0
    while position < len(words):
        word = words[position]
        if word in _ENV_SPLIT_FLAGS:
            return script_runner(" ".join(words[position + 1 :]))
        if word in VALUE_FLAGS:
            position += 2
        elif word.startswith("-") or _ASSIGNMENT.match(word) or _DURATION.fullmatch(word):
            position += 1
        else:
            return package_runner(words[position:])
    return None


def shell_script(words: Sequence[str]) -> str:
    """The text that a shell gets with `-c`; empty where it runs a file."""
    flags = [position for position, word in enumerate(words) if _SHELL_SCRIPT_FLAG.fullmatch(word)]
    if not flags:
        return ""
    return next((word for word in words[flags[0] + 1 :] if not word.startswith("-")), "")


def script_runner(script: str) -> str | None:
    """The first command of a shell script that runs an npm package."""
    return next(filter(None, map(wrapped_runner, simple_commands(script))), None)


def simple_commands(script: str) -> list[list[str]]:
    """The commands of a script, one list of words each; a script that cannot be parsed is split at blanks."""
    lexer = shlex.shlex(script.replace("\n", " ; ").replace("`", " ; "), posix=True, punctuation_chars=True)
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        words = script.split()
    commands: list[list[str]] = [[]]
    for word in words:
        if _SEPARATOR.fullmatch(word):
            commands.append([])
        else:
            commands[-1].append(word)
    return commands
