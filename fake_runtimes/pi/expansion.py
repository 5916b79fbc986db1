"""The three spellings of a variable in Pi's configuration, and values that are commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

NAME = "[A-Za-z_][A-Za-z0-9_]*"
PLACEHOLDER = re.compile(rf"\$\{{({NAME})\}}|\$env:({NAME})|\{{env:({NAME})\}}")
COMMAND_MARK = "!"


class Expanded(NamedTuple):
    """The text after expansion, and the variables that were not set (their places are empty)."""

    text: str
    unset: tuple[str, ...]


def expand(text: str, environment: Mapping[str, str]) -> Expanded:
    """`${VAR}`, `$env:VAR` and `{env:VAR}`; a default (`${VAR:-x}`) or a bare `$VAR` is no variable here."""
    names = [found[found.lastindex or 0] for found in PLACEHOLDER.finditer(text)]
    expanded = PLACEHOLDER.sub(lambda found: environment.get(found[found.lastindex or 0], ""), text)
    return Expanded(expanded, tuple(name for name in dict.fromkeys(names) if name not in environment))


def is_command(text: str) -> bool:
    """Whether a value of env, a header or a bearer token is a shell command to be run for its output."""
    return text.startswith(COMMAND_MARK) and not text.startswith(COMMAND_MARK * 2)


def literal(text: str) -> str:
    """A doubled mark stands for one that is meant."""
    return text.removeprefix(COMMAND_MARK) if text.startswith(COMMAND_MARK * 2) else text
