"""Scenarios as plain trees, whole: what failure files hold, what shrinking cuts and families build."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import UserInputError
from harness.scenario.document import Document, parse
from harness.scenario.model import Scenario
from harness.scenario.positions import Positions
from harness.scenario.reading import Reader
from harness.scenario.writing import toml_text

Tree = dict[str, Any]
NOWHERE = Positions({})
NEEDED = ("id", "title", "runtime", "step")


def tree_of(scenario: Scenario) -> Tree:
    """The tree of a scenario that was read from a text; a catalog that was a file stands in it."""
    tree = tomllib.loads(scenario.text)
    if isinstance(tree.get("catalog"), str):
        tree["catalog"] = plain(scenario.catalog)
    return tree


def plain(value: Any) -> Any:
    """The value with plain dicts and lists, so that it can be written and cut."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def scenario_from(tree: Tree, name: str = "scenario") -> Scenario:
    """The scenario of a tree that is known to fit the schema. Raises UserInputError for what does not fit together."""
    return Reader(Document(name, "", tree, NOWHERE), Path()).scenario()


def checked_scenario(tree: Tree, name: str) -> Scenario:
    """The scenario of a tree, with its text, held against the schema. Raises UserInputError."""
    text = toml_text(tree)
    return Reader(parse(name, text), Path()).scenario()


def fits(tree: Tree) -> Scenario | None:
    """The scenario of a tree; None where a part is missing or its parts do not fit together."""
    if not all(tree.get(key) for key in NEEDED):
        return None
    try:
        return scenario_from(tree)
    except UserInputError:
        return None
