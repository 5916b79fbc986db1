"""The operations of the area `catalog`."""

from __future__ import annotations

from typing import Any

from harness.reference.catalog.schema import validate
from harness.vectors.registry import operation


@operation(
    "catalog.validate",
    requirements=(
        "catalog-schema-type-required",
        "catalog-schema-type-enum",
        "catalog-schema-stdio-shape",
        "catalog-schema-remote-shape",
        "catalog-schema-lengths",
        "catalog-schema-string-maps",
        "catalog-schema-url-format",
        "catalog-schema-open-world",
        "catalog-schema-oauth-open",
        "catalog-schema-name-pattern",
        "catalog-schema-entry-object",
        "catalog-schema-wrapper-misread",
    ),
)
def catalog_validate(given: dict[str, Any]) -> Any:
    """The faults of a catalog by the published schema."""
    faults = validate(given["catalog"])
    return {"valid": not faults, "errors": [{"at": fault.at, "rule": fault.rule} for fault in faults]}
