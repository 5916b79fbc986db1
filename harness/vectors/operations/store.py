"""Vectors of the area `store`: Claude's needs-auth cache, and whether a redirect points at loopback."""

from __future__ import annotations

from typing import Any

from harness.reference.credentials.writers import needs_auth
from harness.reference.credentials.writers.store_file import document_of, parse
from harness.reference.oauth.loopback import localhost_flow
from harness.vectors.registry import operation


@operation(
    "store.loopback_redirect",
    requirements=(
        "store-loopback-exact-hosts",
        "store-loopback-host-not-substring",
        "store-loopback-malformed-false",
        "store-loopback-case-and-userinfo",
    ),
)
def _loopback_redirect(given: dict[str, Any]) -> Any:
    return localhost_flow(given["redirect_uri"])


@operation(
    "store.clear_needs_auth",
    requirements=("store-clear-only-named", "store-clear-tolerant", "gate-needs-auth-clear-by-name"),
)
def _clear_needs_auth(given: dict[str, Any]) -> Any:
    removed = needs_auth.without_names(document_of(given["file_text"]), given["names"])
    unreadable = parse(given["file_text"]) is None
    return {"cleared": list(removed.keys), "left": None if unreadable else removed.document}
