"""Vectors of the area `failure`: what the text of a failed connection says of credentials."""

from __future__ import annotations

from typing import Any

from harness.reference.session.refusals import auth_text
from harness.vectors.registry import operation


@operation(
    "failure.auth_text",
    requirements=(
        "gate-auth-error-pattern",
        "gate-rejected-pattern-refresh-failed",
        "gate-rejected-pattern-invalid-token-text",
        "gate-rejected-pattern-not-bare-grant",
        "gate-rejected-pattern-per-segment",
        "gate-auth-text-corpus",
    ),
)
def _auth_text(given: dict[str, Any]) -> Any:
    return auth_text(given["error"], given.get("server_name"), given.get("url"))._asdict()
