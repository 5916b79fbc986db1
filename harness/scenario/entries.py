"""The catalog entries of a scenario file, held against what the gate holds a catalog against.

A scenario may show what a runtime makes of a bad entry, so what AIR's schema refuses is told as a warning: it is played
as it stands. Refused is what nothing can be made of: a table that is a text, an address that nobody can connect to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.inputs.document import pointer_parts
from harness.reference.catalog.catalog import is_server
from harness.reference.catalog.schema import SchemaFault, validate
from harness.reference.secrets.placeholders import ANY_BRACED, MissingVariableError, resolve_text
from harness.scenario import model
from harness.scenario.addresses import check_address
from harness.scenario.document import Document, called, kind
from harness.scenario.facts import specs
from harness.scenario.model import Step
from harness.scenario.positions import Path

SHAPED = ("type", "command", "args", "env", "url", "headers", "oauth")
"""Fields of whose wrong kind nothing can be made."""
ALIAS = "http"
"""A type that AIR's schema refuses, and that Zimmer and `air prepare` take."""
LONGEST_PACKAGE = 214
"""Longer names npm refuses."""
WORDS = {
    "must be string": "a text",
    "must be object": "a table",
    "must be array": "a list",
    "must be integer": "a whole number",
}
REFUSED = "so `air validate` refuses the catalog"
GATE = "mcp-harness gate tells what becomes of such an entry"


class Placed(NamedTuple):
    """An entry as the catalog has it, or as an edit leaves it: `path` is where it is written, `own` what is there."""

    name: str
    entry: Mapping[str, Any]
    path: Path
    own: Collection[str]


def check_entries(
    document: Document, catalog: Mapping[str, Any], steps: Sequence[Step], struck: Collection[str]
) -> list[tuple[Path, str]]:
    """Warnings with their places; none about those that are `struck` anyhow. Raises UserInputError."""
    warnings = []
    for placed in placed_entries(catalog, steps):
        faults = [fault for fault in validate({placed.name: placed.entry}) if is_of(placed, fault)]
        for fault in faults:
            check_kind(document, placed, fault)
        check_url(document, placed)
        check_packages(document, placed)
        if placed.name not in struck:
            warnings += [warning_of(placed, fault) for fault in faults if not is_taken(placed, fault)]
    return warnings


def placed_entries(catalog: Mapping[str, Any], steps: Sequence[Step]) -> Iterator[Placed]:
    """Every entry with its place."""
    for name, entry in catalog.items():
        if is_server(name, entry):
            yield Placed(name, entry, ("catalog", name), entry.keys())
    for index, step in enumerate(steps):
        if isinstance(step.action, model.Edit) and step.action.set:
            before = catalog.get(step.action.entry, {})
            entry = {**(before if isinstance(before, Mapping) else {}), **step.action.set}
            entry = {key: value for key, value in entry.items() if key not in step.action.unset}
            yield Placed(step.action.entry, entry, ("step", index, "set"), step.action.set.keys())


def steps_to(fault: SchemaFault) -> Path:
    """The keys from an entry to what a fault is about; list positions as numbers."""
    return tuple(int(part) if part.isdecimal() else part for part in map(str, pointer_parts(fault.at)[1:]))


def is_of(placed: Placed, fault: SchemaFault) -> bool:
    """Whether a fault is of what is written at that place; an edit is not blamed for the entry that it changes."""
    field = str(next(iter(steps_to(fault)), ""))
    return placed.path[0] == "catalog" or field in placed.own or (fault.rule == "required" and "type" in placed.own)


def is_taken(placed: Placed, fault: SchemaFault) -> bool:
    """Whether Zimmer and `air prepare` take what AIR's schema refuses: placeholders in addresses, the type `http`."""
    url = str(placed.entry.get("url", ""))
    return (fault.rule == "uri" and ANY_BRACED.search(url) is not None) or (
        fault.rule == "enum" and steps_to(fault) == ("type",) and placed.entry["type"] == ALIAS
    )


def check_kind(document: Document, placed: Placed, fault: SchemaFault) -> None:
    """A field is of the kind that its readers need. Raises UserInputError."""
    path = steps_to(fault)
    if fault.rule == "type" and len(path) == 1 and path[0] in SHAPED:
        wanted = WORDS.get(fault.message, "of that kind")
        what = f"{called((*placed.path, *path))} is {kind(placed.entry[str(path[0])])}, not {wanted}"
        document.fail((*placed.path, *path), what, f"Make it {wanted}; {GATE}.")


def check_url(document: Document, placed: Placed) -> None:
    """With its secrets in place the address is one. What no secret is there for is left to the preparation."""
    secrets: Mapping[str, str] = document.tree.get("secrets", {})
    url = placed.entry.get("url")
    if not isinstance(url, str) or not url.strip() or ("url" not in placed.own):
        return
    try:
        whole = resolve_text(url, secrets.get)
    except MissingVariableError:
        return
    if not ANY_BRACED.search(whole):
        path = (*placed.path, "url")
        check_address(document, whole, path, called(path))


def check_packages(document: Document, placed: Placed) -> None:
    """What an entry starts has a name that a registry can have. Raises UserInputError."""
    if any(len(name) > LONGEST_PACKAGE for name in specs(placed.entry)):
        path = (*placed.path, "args")
        document.fail(
            path, f"{called(path)} names a package with more than {LONGEST_PACKAGE} characters", "Shorten it."
        )


def warning_of(placed: Placed, fault: SchemaFault) -> tuple[Path, str]:
    """What AIR's schema finds, with no value in it: that may be a secret."""
    path = (*placed.path, *steps_to(fault))
    if fault.rule == "required":
        return path[:-1], f"{called(path[:-1])} lacks `{path[-1]}`, {REFUSED}"
    if fault.rule == "type":
        return path, f"{called(path)} is not {WORDS.get(fault.message, 'of the kind that it has to be')}, {REFUSED}"
    words = {
        "enum": "is no value that AIR knows",
        "forbidden": "does not go with the entry's type",
        "name": "is a name with characters other than letters, digits, - and _",
        "uri": "is no valid address",
    }
    return path, f"{called(path)} {words.get(fault.rule, f'is refused ({fault.rule})')}, {REFUSED}"
