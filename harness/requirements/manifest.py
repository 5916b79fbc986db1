"""The manifest: every rule the harness answers for, one TOML file an area, and how far each area has come."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from importlib.resources import files
from typing import Any, NamedTuple

from harness.errors import HarnessFault

REQUIRED_KEYS = ("id", "statement", "level", "source", "check")
OPTIONAL_KEYS = ("mutant", "kind", "incidents", "note")
KINDS = ("example", "property", "race", "snapshot")


class Level(StrEnum):
    """How binding a rule is."""

    MUST = "must"
    SHOULD = "should"
    MAY = "may"


class Status(StrEnum):
    """How far an area is: only open and done bind; open may still wait for later parts."""

    PLANNED = "planned"
    OPEN = "open"
    DONE = "done"


class Requirement(NamedTuple):
    """One rule. `check` and `mutant` say in words how it is decided and which old bug that must catch."""

    id: str
    area: str
    level: Level
    statement: str
    source: str
    check: str
    mutant: str = ""
    kind: str = "example"
    incidents: tuple[str, ...] = ()
    note: str = ""


class Area(NamedTuple):
    """An area's standing. `deferred` and `pending` map an id to what is missing, or to what it waits for."""

    name: str
    status: Status
    deferred: Mapping[str, str] = {}
    pending: Mapping[str, str] = {}


class Manifest(NamedTuple):
    """All rules by id, in the order of the files, and the areas' standing by name."""

    requirements: Mapping[str, Requirement]
    areas: Mapping[str, Area]


@functools.cache
def load_manifest() -> Manifest:
    """The manifest that travels with the package; read once.

    Raises `HarnessFault` naming file and id where it is malformed.
    """
    requirements: dict[str, Requirement] = {}
    folder = files("harness.requirements") / "manifest"
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if not file.name.endswith(".toml"):
            continue
        for requirement in read_area(file.name.removesuffix(".toml"), file.read_text(encoding="utf-8")):
            if requirement.id in requirements:
                raise HarnessFault(f"{file.name}: {requirement.id} is also in {requirements[requirement.id].area}.toml")
            requirements[requirement.id] = requirement
    return Manifest(
        requirements, read_areas((files("harness.requirements") / "areas.toml").read_text(encoding="utf-8"))
    )


def read_area(area: str, text: str) -> tuple[Requirement, ...]:
    """The requirements in the text of one area's file."""
    document = _parse(f"{area}.toml", text)
    if set(document) != {"requirement"}:
        raise HarnessFault(f"{area}.toml: must hold [[requirement]] tables and nothing else")
    return tuple(_requirement(area, row) for row in document["requirement"])


def read_areas(text: str) -> dict[str, Area]:
    """The standing of every area from the text of areas.toml."""
    return {name: _area(name, table) for name, table in _parse("areas.toml", text).items()}


def _parse(file: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise HarnessFault(f"{file}: {error}") from error


def _requirement(area: str, row: dict[str, Any]) -> Requirement:
    place = f"{area}.toml: {row.get('id', 'a requirement without id')}"
    missing = [key for key in REQUIRED_KEYS if not row.get(key)]
    unknown = sorted(set(row) - {*REQUIRED_KEYS, *OPTIONAL_KEYS})
    if missing or unknown:
        raise HarnessFault(f"{place}: lacks {missing}, has unknown {unknown}")
    if not row["id"].startswith(area):
        raise HarnessFault(f"{place}: the id must begin with the area's name")
    if row["level"] not in tuple(Level) or row.get("kind", KINDS[0]) not in KINDS:
        raise HarnessFault(f"{place}: unknown level or kind")
    return Requirement(
        row["id"],
        area,
        Level(row["level"]),
        row["statement"],
        row["source"],
        row["check"],
        row.get("mutant", ""),
        row.get("kind", KINDS[0]),
        tuple(row.get("incidents", ())),
        row.get("note", ""),
    )


def _area(name: str, table: Any) -> Area:
    if not isinstance(table, dict) or set(table) - {"status", "deferred", "pending"}:
        raise HarnessFault(f"areas.toml: {name}: must hold status, deferred and pending, and nothing else")
    if table.get("status") not in tuple(Status):
        raise HarnessFault(f"areas.toml: {name}: status must be one of {', '.join(Status)}")
    reasons = {key: table.get(key, {}) for key in ("deferred", "pending")}
    for key, entries in reasons.items():
        if not isinstance(entries, dict) or not all(isinstance(reason, str) and reason for reason in entries.values()):
            raise HarnessFault(f"areas.toml: {name}: {key} must map an id to what is missing")
    return Area(name, Status(table["status"]), reasons["deferred"], reasons["pending"])
