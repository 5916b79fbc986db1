"""Old and plausible bugs of validating a catalog by the published schema."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib import request

from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from harness.reference.catalog import schema
from harness.reference.catalog.catalog import read_catalog as read_catalog_rule
from harness.reference.catalog.schema import SchemaFault
from harness.reference.catalog.schema import published_schema as published_schema_rule
from harness.reference.catalog.schema import snapshot_schema as snapshot_schema_rule
from harness.reference.catalog.schema import validate as validate_rule
from harness.requirements.variants import variant

READ_CATALOG = "harness.reference.catalog.catalog:read_catalog"
SCHEMA = "harness.reference.catalog.schema:"

CLAIMED_FIELDS = frozenset(
    {"title", "description", "type", "command", "args", "env", "url", "headers", "oauth", "default_in_roots"}
)


def altered(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """The published schema after `change` has been at its server definition."""
    whole: dict[str, Any] = published_schema_rule()
    change(whole["$defs"]["ServerConfiguration"])
    return whole


@variant(SCHEMA + "validate", catches=("catalog-schema-validation-offline",))
def the_schema_is_fetched(catalog):
    """Loads the schema by its address each time (here from a data: URL, so that nothing leaves)."""
    with request.urlopen("data:application/json,{}") as answer:  # noqa: S310 - the address is this literal
        answer.read()
    return validate_rule(catalog)


@variant(SCHEMA + "published_schema", catches=("catalog-schema-type-required", "catalog-schema-wrapper-misread"))
def a_missing_type_is_fine():
    """Takes an entry without a type for a local one."""
    return altered(lambda server: server.pop("required"))


@variant(SCHEMA + "published_schema", catches=("catalog-schema-type-enum",))
def http_is_accepted():
    """Mirrors Zimmer's loader instead of the schema."""
    return altered(lambda server: server["properties"]["type"]["enum"].append("http"))


@variant(SCHEMA + "published_schema", catches=("catalog-schema-stdio-shape",))
def empty_headers_are_fine_on_stdio():
    """Forbids only what holds something."""
    return altered(lambda server: server["allOf"][0]["then"]["properties"].pop("headers"))


@variant(SCHEMA + "published_schema", catches=("catalog-schema-stdio-shape",))
def a_command_is_optional_on_stdio():
    """Does not ask a local entry for its command."""
    return altered(lambda server: server["allOf"][0]["then"].pop("required"))


@variant(SCHEMA + "published_schema", catches=("catalog-schema-remote-shape",))
def env_is_banned_on_remote_entries():
    """Forbids more than the schema does."""
    return altered(lambda server: server["allOf"][1]["then"]["properties"].update(env=False))


def byte_length_faults(_, limit, instance, __):
    """`maxLength` in bytes."""
    if isinstance(instance, str) and len(instance.encode()) > limit:
        yield ValidationError("too long")


@variant(SCHEMA + "build_validator", catches=("catalog-schema-lengths",))
def lengths_are_counted_in_bytes(schema_document):
    """Refuses a hundred letters with accents."""
    in_bytes: Any = extend(schema.VALIDATOR_CLASS, {"maxLength": byte_length_faults})
    return in_bytes(schema_document)


def without_item_types(server: dict[str, Any]) -> None:
    """Lists and maps may hold anything."""
    server["properties"]["args"].pop("items")
    server["properties"]["env"].pop("additionalProperties")
    server["properties"]["headers"].pop("additionalProperties")


@variant(SCHEMA + "published_schema", catches=("catalog-schema-string-maps",))
def scalars_are_taken_for_texts():
    """Numbers and booleans pass silently."""
    return altered(without_item_types)


@variant(SCHEMA + "is_uri", catches=("catalog-schema-url-format",))
def formats_are_not_checked(value):
    """What many validators do unless they are told to check."""
    return True


@variant(SCHEMA + "validate", catches=("catalog-schema-open-world",))
def unknown_fields_are_faults(catalog):
    """A strict validator."""
    strict = [
        SchemaFault(f"/{name}/{field}", "forbidden", "boolean schema is false")
        for name, entry in catalog.items()
        if isinstance(entry, dict)
        for field in entry
        if field not in CLAIMED_FIELDS
    ]
    return tuple(sorted([*validate_rule(catalog), *strict]))


@variant(SCHEMA + "validate", catches=("catalog-schema-oauth-open",))
def the_oauth_block_is_closed(catalog):
    """Refuses members that it does not know."""
    strict = [
        SchemaFault(f"/{name}/oauth/{member}", "forbidden", "boolean schema is false")
        for name, entry in catalog.items()
        if isinstance(entry, dict) and isinstance(entry.get("oauth"), dict)
        for member in entry["oauth"]
        if member not in ("clientId", "clientSecret", "redirectUri", "authServerMetadataUrl", "scopes")
    ]
    return tuple(sorted([*validate_rule(catalog), *strict]))


@variant(SCHEMA + "published_schema", catches=("catalog-schema-name-pattern",))
def brackets_are_banned_in_names():
    """Takes the pattern of root names."""
    return {**published_schema_rule(), "propertyNames": {"pattern": "^[$a-zA-Z0-9_-]+$"}}


@variant(SCHEMA + "matches_names", catches=("catalog-schema-name-pattern",))
def a_line_break_may_end_a_name(pattern, name):
    """Reads `$` as Python does."""
    return re.search(pattern, name) is not None


@variant(SCHEMA + "validate", catches=("catalog-schema-entry-object",))
def nulls_are_skipped(catalog):
    """An entry that is null is no entry."""
    return validate_rule({name: entry for name, entry in catalog.items() if entry is not None})


@variant(SCHEMA + "validate", catches=("catalog-schema-wrapper-misread",))
def a_wrapper_is_unwrapped_by_the_validator(catalog):
    """Hides that AIR will see one server."""
    return validate_rule(catalog.get("mcpServers", catalog))


@variant(READ_CATALOG, catches=("catalog-schema-wrapper-misread",))
def a_wrapper_is_unwrapped_by_the_loader(tree):
    """Lists servers that AIR does not see."""
    return read_catalog_rule(tree.get("mcpServers", tree))


@variant(SCHEMA + "published_schema", catches=("catalog-snapshot-not-authority",))
def the_nearest_copy_decides():
    """Validates against the local copy."""
    return snapshot_schema_rule()


@variant(SCHEMA + "differences", catches=("catalog-snapshot-drift-listed", "catalog-schema-validation-offline"))
def copies_are_compared_as_a_whole(published, other, path):
    """Says only that something differs."""
    if published != other:
        yield schema.Difference("", published, other)
