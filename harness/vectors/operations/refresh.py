"""Vectors of the area `refresh` that are rules of a stored row alone."""

from __future__ import annotations

from typing import Any

from harness.reference.credentials.state import credential_state
from harness.vectors.registry import operation


@operation(
    "refresh.credential_state",
    requirements=("https-can-refresh-false-for-cleartext", "readiness-oauth-ready", "readiness-needs-reauth"),
)
def _credential_state(given: dict[str, Any]) -> Any:
    return credential_state(
        given["expires_in_s"],
        given["refresh_token"],
        given["token_endpoint"],
        given["refresh_token_unsupported"],
    )._asdict()
