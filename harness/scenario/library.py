"""Scenario files by id: those of the source tree, or of the installed package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from harness.errors import UserInputError
from harness.gate.nearness import did_you_mean
from harness.inputs.files import is_there
from harness.requirements.source_tree import find_source_root
from harness.scenario.hints import few
from harness.scenario.model import Scenario
from harness.scenario.reading import load_scenario

HERE = (".", "..")
FOLDER = "scenarios/incidents"
PACKAGED = "incidents"


def folder() -> Path:
    """Where the shipped scenarios are."""
    root = find_source_root()
    if root is not None:
        return root / FOLDER
    return Path(str(files("harness.scenario") / PACKAGED))


def shipped() -> dict[str, Path]:
    """The shipped scenario files by id, in the order of their names. Nothing of them is read."""
    return {path.stem: path for path in sorted(folder().glob("*.toml"))}


def find(text: str) -> Path:
    """The file that a user means: a path, or the id of a shipped scenario (`#702` is 702). Raises UserInputError."""
    path = Path(text)
    if path.suffix == ".toml" or "/" in text or text in HERE or is_there(path):
        return path
    known = shipped()
    name = text.removeprefix("#")
    matches = [each for each in known if each == name or each.startswith(f"{name}-")]
    if name in known or len(matches) == 1:
        return known[name if name in known else matches[0]]
    if matches:
        raise UserInputError(f"{text} may be any of {few(matches)}", fix="Write one of them out.")
    if is_there(path, is_folder=True):
        return path
    near = did_you_mean(name, known, 0.5)
    hint = f"Did you mean {near}?" if near else "mcp-harness scenarios lists them; a file's name ends in .toml."
    raise UserInputError(f"no scenario is called {text!r}", fix=hint)


def load_all() -> list[Scenario]:
    """All shipped scenarios."""
    return [load_scenario(path) for path in shipped().values()]
