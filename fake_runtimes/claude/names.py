"""How Claude Code names the tools that it offers to the model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fake_runtimes.text import utf16_length

OUTSIDE = re.compile(r"[^A-Za-z0-9_-]")


def sanitise(text: str) -> str:
    """Everything but ASCII letters, digits, `_` and `-` becomes `_`, one for each UTF-16 unit."""
    return OUTSIDE.sub(lambda found: "_" * utf16_length(found[0]), text)


def tool_name(server: str, tool: str) -> str:
    """The full name; it is neither cut nor hashed, and a `__` inside a part is not protected."""
    return f"mcp__{sanitise(server)}__{sanitise(tool)}"


def offered(
    tools: Mapping[str, Sequence[str]],
) -> tuple[dict[tuple[str, str], str], tuple[tuple[str, str], ...]]:
    """The offered names by (server, tool), and the tools dropped because their name was taken.

    One of two colliding tools is dropped without a word; which one was not measured, here it is the later.
    """
    names: dict[tuple[str, str], str] = {}
    dropped: list[tuple[str, str]] = []
    taken: set[str] = set()
    for tool in ((server, tool) for server, listed in tools.items() for tool in dict.fromkeys(listed)):
        name = tool_name(*tool)
        if name in taken:
            dropped.append(tool)
        else:
            taken.add(name)
            names[tool] = name
    return names, tuple(dropped)
