"""A digest of the code that takes part in a run, part by part, so that a failure file can tell what has changed."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import fake_runtimes
import fake_servers
import harness

DIGITS = 16
SUFFIXES = (".py", ".toml", ".json")
OUTSIDE_OF_RUNS = (
    "campaign", "draws", "failure", "families", "fingerprint", "holds", "library", "parts", "proposals", "reach",
    "rendering", "schemas", "shrinking", "signature", "timeline", "trees", "variants", "writing",
)  # fmt: skip
"""Modules of `harness.scenario` that no run passes through."""


@functools.cache
def fingerprint() -> Mapping[str, str]:
    """Parts (`world`, `reference`, `scenario`, `fake_runtimes`, ...) with the digest of their sources."""
    inside = Path(harness.__file__).parent
    parts = {
        "fake_runtimes": Path(fake_runtimes.__file__).parent,
        "fake_servers": Path(fake_servers.__file__).parent,
        "preparation": inside / "preparation.py",
        "reference": inside / "reference",
        "scenario": inside / "scenario",
        "world": inside / "world",
    }
    return {name: digest(place) for name, place in parts.items()}


def digest(place: Path) -> str:
    """Of a file or of a folder's sources, by their names and bytes."""
    total = hashlib.sha256()
    for name, path in sources(place):
        total.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return total.hexdigest()[:DIGITS]


def sources(place: Path) -> Iterator[tuple[str, Path]]:
    """Each source with its name in the folder, in order."""
    if place.is_file():
        yield place.name, place
        return
    for path in sorted(place.rglob("*")):
        head = path.relative_to(place).parts[0].removesuffix(".py")
        is_left_out = place.name == "scenario" and head in OUTSIDE_OF_RUNS
        if path.suffix in SUFFIXES and not is_left_out and path.is_file():
            yield path.relative_to(place).as_posix(), path


def changed(then: Mapping[str, str]) -> tuple[str, ...]:
    """The parts that are not what they were."""
    now = fingerprint()
    return tuple(name for name in sorted({*now, *then}) if now.get(name) != then.get(name))
