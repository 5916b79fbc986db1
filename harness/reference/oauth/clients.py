"""Whose client a flow uses: one registered by hand, the catalog's, one that registers itself, or the literal `zimmer`.

Source: seed 002 "client_id resolution order", "Configuring the official Slack MCP".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.reference.catalog.entry import Entry
from harness.reference.oauth.endpoints import shown_endpoint
from harness.reference.oauth.settings import OAuthSettings
from harness.reference.secrets.blank import is_blank


class Client(NamedTuple):
    """The client of one flow. Public where it has no secret."""

    client_id: str
    client_secret: str | None = None

    def __repr__(self) -> str:
        return f"Client(client_id={self.client_id!r})"


@dataclass(frozen=True, slots=True)
class RegisteredClient:
    """A complete entry of `mcp_oauth_clients`: it bypasses discovery and registration.

    `resource` None: derived from the server's URL; "": no resource indicator. `scopes` is one text, sent verbatim.
    """

    client_id: str
    authorization_endpoint: str = field(repr=False)
    token_endpoint: str = field(repr=False)
    client_secret: str | None = field(default=None, repr=False)
    scopes: str | None = None
    redirect_uri: str | None = None
    manual: bool = False
    resource: str | None = None


def registered_client(settings: OAuthSettings, server_name: str | None) -> RegisteredClient | None:
    """The client registered by hand for exactly this server; None where the entry is missing or incomplete.

    The secret may be absent: then it is a public client (flow-public-client-allowed).
    """
    entry = registered_entry(settings.registered, server_name)
    needed = [text_member(entry, name) for name in ("client_id", "authorization_endpoint", "token_endpoint")]
    client_id, authorization_endpoint, token_endpoint = needed
    if client_id is None or authorization_endpoint is None or token_endpoint is None:
        return None
    return RegisteredClient(
        client_id,
        authorization_endpoint,
        token_endpoint,
        client_secret=text_member(entry, "client_secret"),
        scopes=text_member(entry, "scopes"),
        redirect_uri=text_member(entry, "redirect_uri"),
        manual=entry.get("manual") is True,
        resource=configured_resource(entry),
    )


def registered_entry(registered: Mapping[str, Any] | None, server_name: str | None) -> Mapping[str, Any]:
    """The section's entry of exactly this name; an absent section, or an entry that is no object, is an empty one."""
    if is_blank(server_name) or not isinstance(registered, Mapping):
        return {}
    entry = registered.get(str(server_name))
    return entry if isinstance(entry, Mapping) else {}


def text_member(entry: Mapping[str, Any], name: str) -> str | None:
    """A member that is a text and not blank."""
    value = entry.get(name)
    return value if isinstance(value, str) and not is_blank(value) else None


def configured_resource(entry: Mapping[str, Any]) -> str | None:
    """The resource indicator: None to derive it, "" (any blank text) to send none (flow-resource-empty-suppresses)."""
    value = entry.get("resource")
    if not isinstance(value, str):
        return None
    return "" if is_blank(value) else value


def public_view(client: RegisteredClient) -> dict[str, Any]:
    """What a page or a session's notes may hold of a client: no secret key at all (flow-preregistered-public-view)."""
    return {
        "client_id": client.client_id,
        "authorization_endpoint": shown_endpoint(client.authorization_endpoint),
        "token_endpoint": shown_endpoint(client.token_endpoint),
        "scopes": client.scopes,
        "redirect_uri": client.redirect_uri,
        "manual": client.manual,
        "resource": client.resource,
    }


def catalog_client(entry: Entry | None) -> Client | None:
    """The client that a remote entry's oauth block names, verbatim; None without a client id.

    One without a secret is public (flow-public-client-catalog-block, authorize-configured-secret-optional).
    """
    block = entry.flow_client if entry is not None else None
    if block is None or block.client_id is None:
        return None
    return Client(block.client_id, block.client_secret)


def configured_redirect(entry: Entry | None, registered: RegisteredClient | None) -> str | None:
    """The redirect URI of whatever configures the client: the one registered by hand, else the catalog's block."""
    if registered is not None:
        return registered.redirect_uri
    return entry.flow_client.redirect_uri if entry is not None else None
