"""Load every operation module, the table of operations, and the project's own vectors."""

from __future__ import annotations

import functools
import json
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator

from harness.requirements.source_tree import BrokenModule, import_all
from harness.vectors.reading import Read, Vector, read_vectors
from harness.vectors.registry import OPERATIONS, Operation

TABLE_FILE = "OPS.toml"


class Shape(NamedTuple):
    """A row of the table: what the operation decides, for which areas, the schemas of input and answer."""

    name: str
    decides: str
    areas: tuple[str, ...]
    input: dict[str, Any]
    output: dict[str, Any]


def load_operations() -> tuple[BrokenModule, ...]:
    """Register all operations; returns the modules that cannot be imported."""
    return import_all("harness.vectors.operations")


def registered() -> dict[str, Operation]:
    """All registered operations by name, in the order of their names."""
    return dict(sorted(OPERATIONS.items()))


@functools.cache
def table() -> dict[str, Shape]:
    """The table of operations by name."""
    rows = tomllib.loads((files("harness.vectors") / TABLE_FILE).read_text(encoding="utf-8"))["op"]
    return {
        row["name"]: Shape(
            row["name"],
            row["decides"],
            tuple(row["areas"]),
            json.loads(row["input"]),
            json.loads(row["output"]),
        )
        for row in rows
    }


@functools.cache
def input_validator(name: str) -> Draft202012Validator:
    """The validator of an operation's input."""
    return Draft202012Validator(table()[name].input)


@functools.cache
def output_validator(name: str) -> Draft202012Validator:
    """The validator of an operation's answer."""
    return Draft202012Validator(table()[name].output)


def case_files() -> list[Path]:
    """The files of the project's own vectors, one an area."""
    folder = Path(str(files("harness.vectors"))) / "cases"
    return sorted(folder.glob("*.jsonl"))


def own_vectors() -> list[Read]:
    """Every line of the project's own vectors."""
    return [read for file in case_files() for read in read_vectors(f"{file.name}", file.read_bytes())]


def operations_with_cases() -> list[Operation]:
    """The registered operations that at least one own vector asks: only these check anything."""
    asked = {read.op for read in own_vectors() if isinstance(read, Vector)}
    return [operation for name, operation in registered().items() if name in asked]
