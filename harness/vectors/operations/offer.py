"""Vectors of the area `offer`: the option payload and the order of a picker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.reference.catalog.catalog import Catalog, read_catalog
from harness.reference.credentials.key import credential_key
from harness.reference.readiness.probe import CredentialLookup, Status, judge_all
from harness.reference.surfaces.options import computed_statuses, options, picker
from harness.vectors.operations.readiness import resolution_of, stored
from harness.vectors.registry import operation


@operation(
    "offer.options",
    requirements=(
        "offer-rest-unavailable-bool",
        "offer-rest-reason",
        "offer-rest-reason-invariant",
        "offer-rest-shape",
        "offer-rest-all-listed",
        "offer-options-fallback",
        "startup-timeout-rest-reports-accepted",
    ),
)
def _options(given: dict[str, Any]) -> Any:
    catalog = read_catalog(given["catalog"])

    def compute() -> tuple[Status, ...]:
        if given.get("readiness_raises"):
            raise RuntimeError("readiness cannot run")
        rows = credentials_of(catalog, given.get("credentials", {}))
        return judge_all(catalog, resolution_of(given["variables"]), rows)

    return [option._asdict() for option in options(catalog, computed_statuses(compute))]


@operation("offer.picker", requirements=("offer-picker-sorted-last", "offer-picker-keeps-all"))
def _picker(given: dict[str, Any]) -> Any:
    shown = picker((server["name"], server["unavailable"]) for server in given["servers"])
    return {"order": list(shown.order), "badged": list(shown.badged)}


def credentials_of(catalog: Catalog, rows: Mapping[str, Mapping[str, Any] | None]) -> CredentialLookup:
    """A lookup over rows by server name, each filed under its `credential_key` or the entry's current key."""
    filed = {
        row.get("credential_key", credential_key(name, entry.credential_config())): stored(row)
        for name, entry in catalog.entries.items()
        if (row := rows.get(name)) is not None
    }
    return filed.get
