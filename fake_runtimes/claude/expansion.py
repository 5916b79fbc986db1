"""Claude Code's `${NAME}` and `${NAME:-default}`, as it expands them in the values of `.mcp.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

# No nesting and no escape: a default ends at the first closing brace.
PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class Expanded(NamedTuple):
    """The text after expansion, and the variables that had neither a value nor a default."""

    text: str
    unset: tuple[str, ...]


def expand(text: str, environment: Mapping[str, str]) -> Expanded:
    """One pass over the text. An empty value counts as set; an unset variable without a default stays literal."""
    unset: list[str] = []

    def value(found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        if name in environment:
            return environment[name]
        if default is not None:
            return str(default)
        unset.append(name)
        return found[0]

    return Expanded(PLACEHOLDER.sub(value, text), tuple(dict.fromkeys(unset)))
