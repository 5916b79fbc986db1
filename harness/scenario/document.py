"""A scenario's text as a tree that fits the schema, with a line for every key. Errors are one line each."""

from __future__ import annotations

import functools
import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, NamedTuple, NoReturn

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from harness.errors import UserInputError
from harness.gate.nearness import did_you_mean
from harness.scenario.hints import few, nearest
from harness.scenario.positions import Path, Positions, positions

SCHEMA_NAME = "scenario.schema.json"
DOCS = "harness/scenario/README.md"
TIMED = ("step", "server", "package", "credential", "fault", "hold", "authorization")
"""Tables in which a key that ends with `seconds` is a time of the run."""
NOT_TIMED = ("args", "where", "environment")
"""What stands below these is somebody else's."""
LONGEST_SECONDS = 10 * 365 * 24 * 60 * 60
LIMITS = {
    "minimum": "at least",
    "maximum": "at most",
    "minLength": "a text of a length of at least",
    "minItems": "a list of a length of at least",
    "maxItems": "a list of a length of at most",
}
TYPES = {
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a table",
}
PUBLIC_TYPES = frozenset({"number", "integer", "boolean"})
"""What can be no secret, whoever writes it."""
_LONG_NUMBER = re.compile(r"[0-9_]{1000,}")
_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")


class Document(NamedTuple):
    """A text that fits the schema. `name` is shown to the user."""

    name: str
    text: str
    tree: dict[str, Any]
    places: Positions

    def fail(self, path: Path, what: str, fix: str = "") -> NoReturn:
        """End with one line that names the file and the line of a key."""
        raise UserInputError(what, file=self.name, line=self.places.line(path), fix=fix)


@functools.cache
def schema() -> dict[str, Any]:
    """The schema of scenario files as it travels with the package."""
    text = (files("harness.scenario") / "schemas" / SCHEMA_NAME).read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@functools.cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(schema())


def parse(name: str, text: str) -> Document:
    """Read and check a text. Raises UserInputError for the first fault, in the order of the lines."""
    try:
        tree = tomllib.loads(text)
        document = Document(name, text, tree, positions(text))
        _check_values(document, tree, ())
        faults = [found for error in _validator().iter_errors(tree) for found in _of_one_kind(error)]
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(name, text, error) from None
    except ValueError:
        # Python reads no integer of more than some thousand digits, and does not say where it stands.
        line = next((number for number, each in enumerate(text.split("\n"), 1) if _LONG_NUMBER.search(each)), 1)
        raise UserInputError(
            "holds a number that is too long to be read", file=name, line=line, fix="Write a smaller one."
        ) from None
    except RecursionError:
        raise UserInputError("is nested too deeply", file=name, fix="Flatten it.") from None
    if faults:
        # What is missing is often there under a misspelt name, so that is told last.
        told = [(fault.validator == "required", *_told(fault)) for fault in faults]
        _, path, what, fix = min(told, key=lambda each: (each[0], document.places.line(each[1])))
        document.fail(path, what, fix)
    for rows in TIMED:
        _check_times(document, tree.get(rows, ()), (rows,))
    return document


def _check_times(document: Document, value: Any, path: Path) -> None:
    """No wait is longer than clocks go, which end with the year 9999."""
    if isinstance(value, dict):
        free = NOT_TIMED if "edit" not in value else (*NOT_TIMED, "set")
        for key, item in value.items():
            if key not in free:
                _check_times(document, item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_times(document, item, (*path, index))
    elif isinstance(value, int | float) and abs(value) > LONGEST_SECONDS and is_time(path):
        what = f"{called(path)} is {_shown(value)}, more than ten years"
        document.fail(path, what, f"Write at most {LONGEST_SECONDS}.")


def is_time(path: Path) -> bool:
    """Whether a place holds a number of seconds."""
    key = next(str(part) for part in reversed(path) if isinstance(part, str))
    return key == "advance" or key.endswith("seconds")


def _not_toml(name: str, text: str, error: tomllib.TOMLDecodeError) -> UserInputError:
    place = _PLACE.search(str(error))
    line, column = (int(place[1]), int(place[2])) if place else (text.count("\n") + 1, None)
    what = _PLACE.sub("", str(error)).replace("(at end of document)", "").strip()
    return UserInputError(
        f"is no TOML: {what}", file=name, line=line, column=column, fix=f"{DOCS} has complete examples."
    )


def _check_values(document: Document, value: Any, path: Path) -> None:
    """Only what JSON knows: dates and infinite numbers have no meaning here."""
    if isinstance(value, dict):
        for key, item in value.items():
            _check_values(document, item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_values(document, item, (*path, index))
    elif not isinstance(value, (str, bool, int, float)):
        document.fail(path, f"{called(path)} is a {type(value).__name__}", "Write it as a text, in quotes.")
    elif isinstance(value, float) and not math.isfinite(value):
        fix = "Write a number; where the key is a limit, leave it out for none."
        document.fail(path, f"{called(path)} is {value}", fix)


def _of_one_kind(error: ValidationError) -> Iterable[ValidationError]:
    """A step or an expectation is of the kind that its key tells: judge it as that kind alone."""
    if error.validator != "oneOf" or len(error.absolute_path) != 2:
        return (error,)
    what, instance = str(error.absolute_path[0]), error.instance
    kind = kind_of(what, instance) if isinstance(instance, Mapping) else None
    if kind is None:
        return (error,)
    part = _validator().evolve(schema={"$ref": f"#/$defs/{what}_{kind}", "$defs": schema()["$defs"]})
    inner = list(part.iter_errors(instance))
    for each in inner:
        each.parent = error
    return inner


@functools.cache
def kinds(what: str) -> tuple[str, ...]:
    """The kinds of steps (`step`) or expectations (`expect`), each named by the key that tells it."""
    prefix = f"{what}_"
    return tuple(name.removeprefix(prefix) for name in schema()["$defs"] if name.startswith(prefix))


def kind_of(what: str, table: Mapping[str, Any]) -> str | None:
    """The kind of a step or an expectation; None when no key tells it, or more than one does."""
    found = [kind for kind in kinds(what) if kind in table]
    return found[0] if len(found) == 1 else None


def _told(error: Any) -> tuple[Path, str, str]:
    """Where, what, and what to do. The fields of an error of the validator may be anything."""
    path: Path = tuple(error.absolute_path)
    match error.validator:
        case "additionalProperties":
            known = list(error.schema.get("properties", ()))
            key = next(key for key in error.instance if key not in known)
            return (*path, key), f"{called(path)} has no key `{key}`", nearest(key, known)
        case "required":
            missing = next(key for key in error.validator_value if key not in error.instance)
            return path, f"{called(path)} lacks `{missing}`", f"Add {missing} = ...; see {DOCS}."
        case "oneOf":
            return path, *_kind_fault(path, error.instance)
        case "uniqueItems":
            return path, f"{called(path)} says something twice", "Say each once."
        case "type":
            names = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
            wanted = " or ".join(TYPES[name] for name in names)
            return path, f"{called(path)} is {_seen(error)}, not {wanted}", f"Make it {wanted}."
        case "enum":
            return path, f"{called(path)} is {_seen(error)}", nearest(error.instance, error.validator_value)
        case "const":
            return path, f"{called(path)} is {_seen(error)}", f"It must be {_shown(error.validator_value)}."
        case "anyOf":
            inner = _of_its_form(error)
            return (path, f"{called(path)} is {_seen(error)}", _allowed(error)) if inner is None else _told(inner)
        case "pattern":
            return path, f"{called(path)} is {_seen(error)}", f"It must match {error.validator_value}."
    limit = LIMITS.get(error.validator, error.validator)
    what = f"{called(path)} is {_seen(error)}, which must be {limit} {error.validator_value}"
    return path, what, f"See {DOCS}."


def _seen(error: Any) -> str:
    """A value as an error may show it: as written where it can be no secret, else only of what kind it is.

    No secret is what stands for a number, a switch, one of some words or a text of a set form. Every free text may be
    one, whatever else was written in its place: a list that holds it, a number.
    """
    return _shown(error.instance) if is_public(error.schema, error.instance) else kind(error.instance)


def is_public(part: Mapping[str, Any], value: Any) -> bool:
    """Whether a value that stands where this part of the schema is meant can be shown."""
    if not isinstance(value, str | bool | int | float):
        return False
    if "anyOf" in part:
        return all(is_public(each, value) for each in part["anyOf"] if each.get("type") not in ("array", "object"))
    named = part.get("type", ())
    types = {named} if isinstance(named, str) else {*named}
    return "enum" in part or "const" in part or "pattern" in part or (bool(types) and types <= PUBLIC_TYPES)


def kind(value: Any) -> str:
    """What a value is, in words."""
    if isinstance(value, bool):
        return TYPES["boolean"]
    names = {str: "string", list: "array", tuple: "array", dict: "object"}
    return TYPES[next((name for of, name in names.items() if isinstance(value, of)), "number")]


def _of_its_form(error: Any) -> Any:
    """Of several forms the first fault in the one that the value has by its type; None where it has none of them."""
    for number in range(len(error.validator_value)):
        faults = [each for each in error.context if each.relative_schema_path[0] == number]
        if all(each.relative_path or each.validator != "type" for each in faults):
            within = [each for each in faults if each.relative_path or each.validator == "additionalProperties"]
            return within[0] if within else None
    return None


def _allowed(error: Any) -> str:
    """What one of several forms would be."""
    kinds_allowed = [TYPES[each["type"]] for each in error.validator_value if each.get("type") in TYPES]
    patterns = [each["pattern"] for each in error.validator_value if "pattern" in each]
    if patterns:
        return f"It must match {patterns[0]}, or be a list of such."
    return f"It must be {' or '.join([*dict.fromkeys(kinds_allowed), 'as ' + DOCS + ' tells'])}."


def _kind_fault(path: Path, table: Any) -> tuple[str, str]:
    known = kinds(str(path[0]))
    found = [kind for kind in known if kind in table] if isinstance(table, Mapping) else []
    if len(found) > 1:
        return f"{called(path)} has both `{found[0]}` and `{found[1]}`", "Make two of it."
    if not isinstance(table, Mapping):
        return f"{called(path)} is {kind(table)}, not a table", f"See {DOCS}."
    near = next((near for key in table if (near := did_you_mean(key, known))), None)
    hint = f"Did you mean {near}?" if near else f"It needs one of {few(known)}."
    return f"{called(path)} has no key that tells what it is", hint


def called(path: Path) -> str:
    """A path in words: `[[step]] 2 turns`, `[server.a] status`, `runtime`."""
    if not path:
        return "the file"
    head, *rest = path
    if rest and isinstance(rest[0], int):
        return " ".join([f"[[{head}]]", str(rest[0] + 1), *_rest(rest[1:])])
    if rest and head in ("server", "package", "catalog"):
        return " ".join([f"[{head}.{rest[0]}]", *_rest(rest[1:])])
    return " ".join(_rest(list(path)))


def _rest(path: Iterable[str | int]) -> list[str]:
    return [f"`{part}`" if isinstance(part, str) else str(part + 1) for part in path]


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
