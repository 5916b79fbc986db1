"""Vectors of the area `gate`: the one predicate that says whether OAuth can apply."""

from __future__ import annotations

from typing import Any

from harness.reference.oauth.capability import has_static_credential, is_credential_header, oauth_capable
from harness.vectors.registry import operation


@operation(
    "gate.oauth_capable",
    requirements=(
        "gate-capable-needs-catalog",
        "gate-capable-needs-remote",
        "gate-capable-no-static-header",
        "gate-header-blank-value",
        "readiness-oauth-capability",
    ),
)
def _oauth_capable(given: dict[str, Any]) -> Any:
    return oauth_capable(given["entry"])


@operation(
    "gate.credential_header",
    requirements=(
        "gate-header-words",
        "gate-header-whole-parts",
        "gate-header-key-only-in-api-key",
        "gate-header-case-insensitive",
        "gate-header-vendor-spellings",
        "gate-header-name-decides",
        "gate-header-blank-value",
    ),
)
def _credential_header(given: dict[str, Any]) -> Any:
    return is_credential_header(given["name"], given["value"])


@operation("gate.static_header", requirements=("gate-header-any-of-several", "gate-header-blank-value"))
def _static_header(given: dict[str, Any]) -> Any:
    return has_static_credential(given["headers"])
