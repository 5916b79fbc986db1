"""How rules word what they found: names of runtimes, values that may be shown, lists that stay short."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from harness.gate.context import Context

LISTED = 5
"""So many names are listed before `and N more`."""

SHOWN_CHARACTERS = 40
"""Longer texts are not shown: they may hold anything."""

PLAIN_PLACEHOLDER = re.compile(r"\$\{(?:env:|input:)?\w+\}")
OPERATOR = re.compile(r"\$\{\w+(?::[-?+=]|[-?+=:])")

KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}


def labels(context: Context, *families: str) -> tuple[str, ...]:
    """The runtimes of these families among those that are judged, e.g. `codex@0.146.0`."""
    return tuple(runtime.label for runtime in context.runtimes if runtime.family in families)


def joined(names: Iterable[str]) -> str:
    """`a, b and c`; a long list ends in `and N more`."""
    listed = list(names)
    if len(listed) > LISTED:
        listed = [*listed[:LISTED], f"{len(listed) - LISTED} more"]
    return " and ".join(filter(None, [", ".join(listed[:-1]), listed[-1] if listed else ""]))


def shown(value: Any) -> str:
    """A value as JSON where it is short and flat, else what kind of value it is."""
    if isinstance(value, dict | list):
        return KINDS[type(value)]
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARACTERS else KINDS[type(value)]


def placeholder_shown(braced: str) -> str:
    """A braced text with what stands behind the name left out: a default may be a secret."""
    if len(braced) <= SHOWN_CHARACTERS and PLAIN_PLACEHOLDER.fullmatch(braced):
        return braced
    head = OPERATOR.match(braced)
    return f"{head[0]}…}}" if head and len(head[0]) <= SHOWN_CHARACTERS else "${…}"


def named(context: Context, runtimes: Iterable[str]) -> str:
    """The runtimes in words: `every runtime` where it is all that are judged, and more than one."""
    listed = list(runtimes)
    everywhere = len(listed) > 1 and len(listed) == len(context.runtimes)
    return "every runtime" if everywhere else joined(listed)
