"""What AIR's published schema says of an mcp.json, and how the local convenience copy differs from it.

Source: seed 000, "startup_timeout_sec" (the published schema) and "The local schema copy is only a
convenience snapshot". The bundled copy is read from the package; nothing is fetched, neither `$schema` nor
an `$id`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from jsonschema import Draft7Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from rfc3986_validator import validate_rfc3986  # type: ignore[import-untyped]  # it ships no types

SCHEMA_URL = "https://pulsemcp.github.io/air/schemas/mcp.schema.json"
"""Where AIR publishes the schema; the value of a catalog's own `$schema`."""

PUBLISHED_FILE = "air.mcp.schema.json"
SNAPSHOT_FILE = "zimmer.mcp.schema.json"

BANNED = "false schema"
"""Stands for the keyword where a member's schema is `false`."""

SCHEME_ALONE = re.compile(r"[^:/?#]*:(?:[?#]|\Z)")
"""A scheme with neither authority nor path behind it."""

RULES = {
    "type": "type",
    "enum": "enum",
    "required": "required",
    "minLength": "too_short",
    "maxLength": "too_long",
    "format": "uri",
    "propertyNames": "name",
    BANNED: "forbidden",
}
"""Keyword to the rule that a fault names."""


class SchemaFault(NamedTuple):
    """One fault: `at` is a JSON pointer into the catalog (RFC 6901); a missing member's is where it would be.

    `rule` is one of enum, forbidden, name, required, too_long, too_short, type, uri. `message` is
    worded as AIR's own validator words it.
    """

    at: str
    rule: str
    message: str


def validate(catalog: Mapping[str, Any]) -> tuple[SchemaFault, ...]:
    """The faults of a parsed mcp.json by the published schema, sorted by pointer, then rule; none: valid."""
    faults = {(fault.at, fault.rule): fault for fault in map(fault_of, validator().iter_errors(catalog))}
    return tuple(faults[key] for key in sorted(faults))


@cache
def validator() -> Any:
    """The validator of the published schema, built once: it costs more than the entries it judges."""
    return build_validator(published_schema())


def published_schema() -> dict[str, Any]:
    """The bundled copy of AIR's published schema: the authority (catalog-snapshot-not-authority)."""
    return parsed(bundled_text(PUBLISHED_FILE))


def snapshot_schema() -> dict[str, Any]:
    """The local convenience copy."""
    return parsed(bundled_text(SNAPSHOT_FILE))


def snapshot_text() -> str:
    """The text that the site serves at /mcp.schema.json (catalog-snapshot-served)."""
    return bundled_text(SNAPSHOT_FILE)


def bundled_text(name: str) -> str:
    """A schema file of this package."""
    return files(__package__ or "harness.reference.catalog").joinpath(name).read_text(encoding="utf-8")


def parsed(text: str) -> dict[str, Any]:
    """A schema's text as an object."""
    schema: dict[str, Any] = json.loads(text)
    return schema


def build_validator(schema: Mapping[str, Any]) -> Any:
    """A draft-07 validator that checks `uri`, and places each fault at the member that it is about."""
    formats = FormatChecker(formats=())
    formats.checks("uri")(is_uri)
    return VALIDATOR_CLASS(schema, format_checker=formats)


def is_uri(value: object) -> bool:
    """Is a text an absolute URI: a scheme and something behind it? Other types are the matter of `type`.

    A placeholder in it makes it none, for its braces (catalog-schema-url-format). RFC 3986 lets a scheme stand
    alone, AIR's validator does not.
    """
    if not isinstance(value, str):
        return True
    return not value.endswith("\n") and not SCHEME_ALONE.match(value) and bool(validate_rfc3986(value, rule="URI"))


def name_faults(_: Any, names: Mapping[str, Any], instance: Any, __: Any) -> Iterator[ValidationError]:
    """`propertyNames` with the fault placed at the member that bears the name."""
    if not isinstance(instance, dict):
        return
    for name in instance:
        if not matches_names(names["pattern"], name):
            yield ValidationError(f"property name {name!r} does not match", path=[name])


def required_faults(_: Any, required: list[str], instance: Any, __: Any) -> Iterator[ValidationError]:
    """`required` with each fault placed where the missing member would be."""
    if not isinstance(instance, dict):
        return
    for name in required:
        if name not in instance:
            yield ValidationError(f"{name!r} is required", path=[name])


def matches_names(pattern: str, name: str) -> bool:
    """Search as JavaScript does: its `$` is the very end, Python's also stands before a last line break."""
    return re.search(pattern.removesuffix("$") + r"\Z", name) is not None


def member_faults(validator: Any, properties: Mapping[str, Any], instance: Any, _: Any) -> Iterator[ValidationError]:
    """`properties` with a banned member's fault placed at it (jsonschema names the object around)."""
    if not isinstance(instance, dict):
        return
    for name, schema in properties.items():
        if name not in instance:
            continue
        if schema is False:
            yield ValidationError(f"{name!r} is banned", validator=BANNED, path=[name])
        else:
            yield from validator.descend(instance[name], schema, path=name, schema_path=name)


# The stubs leave `extend` untyped.
VALIDATOR_CLASS: Any = extend(  # type: ignore[no-untyped-call]
    Draft7Validator,
    {"properties": member_faults, "propertyNames": name_faults, "required": required_faults},
)


def fault_of(error: ValidationError) -> SchemaFault:
    """A validator's error as one of our faults."""
    path = tuple(error.absolute_path)
    return SchemaFault(pointer(path), rule_of(error), message_of(error, str(path[-1]) if path else ""))


def rule_of(error: ValidationError) -> str:
    """The rule that an error breaks, by the keyword that reported it."""
    return RULES[str(error.validator)]


def message_of(error: ValidationError, member: str) -> str:
    """What AIR's validator says: `member` is the name of the missing one."""
    limit = error.validator_value
    return {
        "type": f"must be {limit}",
        "enum": "must be equal to one of the allowed values",
        "required": f"must have required property '{member}'",
        "too_short": f"must NOT have fewer than {limit} characters",
        "too_long": f"must NOT have more than {limit} characters",
        "uri": f'must match format "{limit}"',
        "name": "property name must be valid",
        "forbidden": "boolean schema is false",
    }[rule_of(error)]


def pointer(path: Iterable[str | int]) -> str:
    """A path of member names and positions as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in path)


class Difference(NamedTuple):
    """One place where two schemas rule otherwise: a pointer, and what each says there (None: nothing)."""

    at: str
    published: Any
    other: Any


def drift(other: Mapping[str, Any] | None = None) -> tuple[Difference, ...]:
    """Where `other` (the local copy, if None) differs from the bundled published schema, sorted by pointer.

    Texts for people (title, description, ...) do not count: what they say changes no verdict.
    """
    found = differences(published_schema(), snapshot_schema() if other is None else other, ())
    return tuple(sorted(found, key=lambda difference: difference.at))


ANNOTATIONS = frozenset({"title", "description", "$comment", "default", "examples"})
MAPS_OF_SCHEMAS = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependencies"})


def differences(published: Any, other: Any, path: tuple[str | int, ...]) -> Iterator[Difference]:
    """The outermost places where two parts of a schema differ."""
    if isinstance(published, dict) and isinstance(other, dict):
        names_are_keywords = not path or path[-1] not in MAPS_OF_SCHEMAS
        for key in dict.fromkeys([*published, *other]):
            if not (names_are_keywords and key in ANNOTATIONS):
                yield from differences(published.get(key), other.get(key), (*path, key))
    elif isinstance(published, list) and isinstance(other, list) and len(published) == len(other):
        for position, (left, right) in enumerate(zip(published, other, strict=True)):
            yield from differences(left, right, (*path, position))
    elif published != other:
        yield Difference(pointer(path), published, other)
