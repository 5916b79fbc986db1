"""Servers that are given on the command line, with `--mcp-config`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fake_runtimes.claude.config import server_members
from fake_runtimes.loaded import EntryError
from fake_runtimes.profile import ClaudeProfile
from harness.world import World

INVALID = "Error: Invalid MCP configuration:\n"


class Given(NamedTuple):
    """The texts of all configurations that were given; `strict` leaves no server but theirs."""

    texts: tuple[str, ...] = ()
    strict: bool = False


NOTHING_GIVEN = Given()


class GivenError(Exception):
    """A configuration with which no run begins; the message is what the program says."""


async def read_given(world: World, configs: Sequence[str], profile: ClaudeProfile, *, strict: bool) -> Given:
    """Each word is a file or JSON. Entries are as tolerated as in a file; a fault of the whole raises GivenError."""
    texts: list[str] = []
    for word in configs:
        text = word if word.lstrip().startswith("{") else await read_file(world, word)
        try:
            server_members(text, profile._replace(json_fault_names_place=False))
        except EntryError as error:
            raise GivenError(f"{INVALID}{error.text}") from None
        texts.append(text)
    return Given(tuple(texts), strict)


async def read_file(world: World, word: str) -> str:
    """A file's text. Raises GivenError."""
    path = word if word.startswith("/") else f"{world.env.directory.rstrip('/')}/{word}"
    try:
        return (await world.files.read(path)).decode("utf-8", "replace")
    except OSError:
        # not measured: the words behind the first line
        raise GivenError(f"{INVALID}MCP config file not found: {path}") from None
