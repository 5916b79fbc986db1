"""Dynamic client registration (RFC 7591): only where no client is configured and the server offers it.

Source: seed 002 "client_id resolution order"; requirements flow-registration-*, https-registration-degrades.
"""

from __future__ import annotations

from typing import Any

from harness.reference.oauth import metadata, transport
from harness.reference.oauth.clients import Client
from harness.reference.oauth.discovery import Discovered
from harness.reference.oauth.transport import InsecureEndpointError, reason
from harness.world import Ambiguous, NotSent, Response, World

CLIENT_NAME = "Claude Code (Zimmer)"
FALLBACK_CLIENT_ID = "zimmer"
"""The client of a server that offers no registration (flow-client-id-fallback)."""
PUBLIC = "none"
SECRET_IN_FORM = "client_secret_post"
CREATED = (200, 201)


async def flow_client(
    world: World, discovered: Discovered, redirect_uri: str, configured: Client | None
) -> Client | None:
    """The client of a flow: the configured one, else a registered one, else the literal; None: it was refused."""
    if configured is not None:
        return configured
    if discovered.registration_endpoint is None:
        return Client(FALLBACK_CLIENT_ID)
    return await register(world, discovered, redirect_uri)


async def register(world: World, discovered: Discovered, redirect_uri: str) -> Client | None:
    """A client registered for one redirect URI; None where that fails, for whatever reason. Never raises."""
    try:
        response = await transport.post_json(
            world, discovered.registration_endpoint, registration_body(redirect_uri, discovered)
        )
    except InsecureEndpointError as error:
        client, why = None, str(error)
    except (NotSent, Ambiguous) as error:
        client, why = None, reason(error)
    else:
        client, why = registered(response), f"HTTP {response.status}"
    if client is None:
        world.events.emit("log", level="warn", text=f"Dynamic Client Registration failed: {why}")
    return client


def registered(response: Response) -> Client | None:
    """The client in a registration answer: status 200 or 201 and a client_id."""
    answer = metadata.read_object(response.body) if response.status in CREATED else None
    client_id = None if answer is None else metadata.text(answer.get("client_id"))
    if answer is None or client_id is None:
        return None
    return Client(client_id, metadata.text(answer.get("client_secret")))


def registration_body(redirect_uri: str, discovered: Discovered) -> dict[str, Any]:
    """The body of a registration. `scope` only for a list that holds something."""
    body: dict[str, Any] = {
        "redirect_uris": [redirect_uri],
        "client_name": CLIENT_NAME,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": auth_method(discovered.auth_methods),
    }
    return {**body, "scope": " ".join(discovered.scopes)} if discovered.scopes else body


def auth_method(offered: tuple[str, ...]) -> str:
    """How the client will authenticate: not at all where that is offered, else in the form, else the first offered."""
    preferred = [method for method in (PUBLIC, SECRET_IN_FORM) if method in offered]
    return next(iter((*preferred, *offered)), PUBLIC)
