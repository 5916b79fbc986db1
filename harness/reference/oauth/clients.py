"""Whose client a flow uses: one registered by hand, the catalog's, one that registers itself, or the literal `zimmer`.

Source: seed 002 "client_id resolution order", "Configuring the official Slack MCP".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Client(NamedTuple):
    """The client of one flow. Public where it has no secret."""

    client_id: str
    client_secret: str | None = None


@dataclass(frozen=True, slots=True)
class RegisteredClient:
    """A complete entry of `mcp_oauth_clients`: it bypasses discovery and registration.

    `resource` None: derived from the server's URL; "": no resource indicator. `scopes` is one text, sent verbatim.
    """

    client_id: str
    authorization_endpoint: str
    token_endpoint: str
    client_secret: str | None = field(default=None, repr=False)
    scopes: str | None = None
    redirect_uri: str | None = None
    manual: bool = False
    resource: str | None = None
