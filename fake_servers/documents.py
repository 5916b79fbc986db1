"""What a fake is told: a JSON or TOML document, in a file or written out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.world.ports import World


class Refused(Exception):  # noqa: N818 - what the command line answers
    """What was said cannot be used; the text is one line for whoever said it."""


async def document(world: World, given: str, what: str) -> Mapping[str, Any]:
    """The table of a text that is JSON itself or the path of a file, `*.toml` or JSON. Raises Refused."""
    if given.lstrip().startswith(("{", "[")):
        return parsed(given, what, toml=False)
    path = given if given.startswith("/") else f"{world.env.directory.rstrip('/')}/{given}"
    try:
        text = (await world.files.read(path)).decode()
    except OSError as error:
        raise Refused(f"{what} {given}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Refused(f"{what} {given}: no UTF-8") from error
    return parsed(text, f"{what} {given}", toml=given.endswith(".toml"))


def parsed(text: str, what: str, *, toml: bool) -> Mapping[str, Any]:
    """The table that a text holds. Raises Refused."""
    try:
        if toml:
            import tomllib

            return tomllib.loads(text)
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{what}: {one_line(error)}") from error
    if not isinstance(table, dict):
        raise Refused(f"{what}: not a table of keys and values")
    return table


def one_line(error: BaseException) -> str:
    """An error's text without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__
