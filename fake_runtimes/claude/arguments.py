"""The command line of `claude`, as far as it governs MCP servers and what a headless run prints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
# not measured
NO_UUID = "Error: Invalid session ID. Must be a valid UUID."
FORMATS = ("text", "json", "stream-json")
TEXT, JSON, STREAM = FORMATS
SWITCHES = (
    "--print",
    "--verbose",
    "--strict-mcp-config",
    "--continue",
    "--fork-session",
    "--dangerously-skip-permissions",
    "--allow-dangerously-skip-permissions",
    "--include-partial-messages",
    "--replay-user-messages",
    "--no-session-persistence",
    "--disable-slash-commands",
    "--debug",
)
SHORT = {"-p": "--print", "-c": "--continue", "-r": "--resume", "-d": "--debug", "-v": "--version", "-h": "--help"}
VALUED = (
    "--output-format",
    "--input-format",
    "--model",
    "--fallback-model",
    "--max-turns",
    "--max-budget-usd",
    "--permission-mode",
    "--permission-prompt-tool",
    "--system-prompt",
    "--append-system-prompt",
    "--resume",
    "--session-id",
    "--settings",
    "--setting-sources",
    "--agent",
    "--agents",
    "--json-schema",
    "--debug-file",
)
# Options that take every word up to the next option.
LISTED = ("--mcp-config", "--allowedTools", "--allowed-tools", "--disallowedTools", "--disallowed-tools", "--tools",
          "--add-dir", "--betas", "--plugin-dir")  # fmt: skip


class Arguments(NamedTuple):
    """What was asked for. `error` is what the program says of arguments that it does not take."""

    prints: bool = False
    output: str = TEXT
    verbose: bool = False
    configs: tuple[str, ...] = ()
    strict: bool = False
    session_id: str = ""
    resumed: str = ""
    prompt: str = ""
    version: bool = False
    help: bool = False
    error: str | None = None


def read_arguments(words: Sequence[str]) -> Arguments:
    """The words behind the program's name. The first fault ends the reading."""
    left, found, prompt = list(words), Arguments(), ""
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        name = SHORT.get(name, name)
        if word == "--":
            prompt = prompt or " ".join(left[:1])
            break
        if not word.startswith("-") or word == "-":
            prompt = prompt or word
        elif name in ("--version", "--help"):
            return found._replace(version=name == "--version", help=name == "--help")
        elif name in SWITCHES and not equals:
            found = switched(found, name)
        elif name in VALUED or name in LISTED:
            values = [value] if equals else taken(left, several=name in LISTED)
            if not values:
                return found._replace(error=f"error: option '{name} <value>' argument missing")
            found = valued(found, name, values)
        else:
            return found._replace(error=f"error: unknown option '{word}'")
        if found.error is not None:
            return found
    return found._replace(prompt=prompt)


def taken(left: list[str], *, several: bool) -> list[str]:
    """The values of an option, taken away from the words that are left."""
    values: list[str] = []
    while left and not left[0].startswith("--") and (several or not values):
        if several and left[0] in SHORT:
            break
        values.append(left.pop(0))
    return values


def switched(found: Arguments, name: str) -> Arguments:
    """With one option that takes no value."""
    if name == "--print":
        return found._replace(prints=True)
    if name == "--verbose":
        return found._replace(verbose=True)
    return found._replace(strict=True) if name == "--strict-mcp-config" else found


def valued(found: Arguments, name: str, values: Sequence[str]) -> Arguments:
    """With one option and its values."""
    if name == "--mcp-config":
        return found._replace(configs=(*found.configs, *values))
    if name == "--resume":
        return found._replace(resumed=values[0])
    if name == "--session-id":
        if UUID.fullmatch(values[0]) is None:
            return found._replace(error=NO_UUID)
        return found._replace(session_id=values[0])
    if name != "--output-format":
        return found
    if values[0] not in FORMATS:
        # not measured: the words of the library that the program reads its arguments with
        allowed = ", ".join(FORMATS)
        wrong = f"error: option '--output-format <format>' argument '{values[0]}' is invalid."
        return found._replace(error=f"{wrong} Allowed choices are {allowed}.")
    return found._replace(output=values[0])
