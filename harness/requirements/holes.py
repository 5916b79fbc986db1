"""The accepted holes, as data: races that are known, told and counted, and fail nothing."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Hole(NamedTuple):
    """A race that no rule of the orchestrator's closes: what happens, who loses what, what would close it."""

    what: str
    loses: str
    closes: str


@cache
def load_holes() -> Mapping[str, Hole]:
    """All of them by their names, in the order of their file."""
    tree = tomllib.loads((files("harness.requirements") / "holes.toml").read_text(encoding="utf-8"))
    return {name: Hole(**table) for name, table in tree.items()}
