"""Vectors of the area `https` about what is stored."""

from __future__ import annotations

from typing import Any

from harness.reference.credentials import row as credentials
from harness.reference.credentials.migration import repaired
from harness.reference.oauth import flows
from harness.vectors.registry import operation


@operation(
    "https.storable",
    requirements=("https-credential-refuses-save", "https-credential-blank-legal", "https-pending-flow-refuses"),
)
def _storable(given: dict[str, Any]) -> Any:
    if given["on"] == "credential":
        return credentials.storable_endpoint(given["endpoint"])
    return flows.storable_endpoint(given["endpoint"])


@operation("https.repair", requirements=("https-migration-clears-to-null",))
def _repair(given: dict[str, Any]) -> Any:
    return [repaired(endpoint) for endpoint in given["endpoints"]]
