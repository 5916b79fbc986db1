"""Where the credential of X differs from an MCP credential, and where it must not.

Source: seed 002 "The token endpoint must be https", "Refresh"; requirements https-differs-from-x,
refresh-splits-like-x.
"""

from __future__ import annotations

from typing import Literal

from harness.reference.credentials.refresh_answer import status_class
from harness.reference.oauth.endpoints import read_endpoint

XFailure = Literal["rate_limited", "server_error", "permanent"]

TOO_MANY_REQUESTS = 429


def acceptable_x_endpoint(endpoint: str | None) -> bool:
    """An https URL with a host, and no userinfo.

    X's transport sets the Authorization header itself, so userinfo, which an MCP token endpoint may have, would
    silently count for nothing.
    """
    match = read_endpoint(endpoint)
    return match is not None and match["userinfo"] is None


def x_failure(status: int) -> XFailure | None:
    """What a refused refresh means for X: the two transient kinds keep the token, a permanent one drops it.

    None where the status says nothing of either.
    """
    if status == TOO_MANY_REQUESTS:
        return "rate_limited"
    split = status_class(status)
    if split == "transient":
        return "server_error"
    return "permanent" if split == "permanent" else None
