"""What a click on Authorize leads to: the flow that is to be started, or why there is none. Stores nothing.

Source: seed 002 "Authorizing from the Connectors page", "client_id resolution order"; requirements
flow-initiate-refusals-order, authorize-url-from-catalog, authorize-client-id-order, https-initiate-*.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.reference.catalog.entry import Entry, read_entry
from harness.reference.credentials import table
from harness.reference.credentials.authorized import authorized
from harness.reference.credentials.key import credential_key
from harness.reference.oauth.capability import oauth_capable
from harness.reference.oauth.check import check_oauth_requirement
from harness.reference.oauth.clients import (
    Client,
    RegisteredClient,
    catalog_client,
    configured_redirect,
    registered_client,
)
from harness.reference.oauth.consent import is_consent_page, is_manual, joined_scopes, redirect_uri_for
from harness.reference.oauth.deps import OAuthDeps
from harness.reference.oauth.endpoints import acceptable_endpoint, shown_endpoint
from harness.reference.oauth.flows import PendingFlow
from harness.reference.oauth.metadata import resource_indicator
from harness.reference.oauth.server import RemoteServer, remote_server
from harness.reference.oauth.urls import read_url
from harness.reference.secrets.blank import is_blank
from harness.reference.secrets.loader import StoreUnavailableError
from harness.reference.secrets.placeholders import MissingVariableError
from harness.world import World

UNKNOWN_NAME = "That server"


class Refused(NamedTuple):
    """No flow, and the flash that says why. `authorized`: none is needed, as the credential of that key is good."""

    text: str
    authorized: bool = False
    credential_key: str = ""


class Grounds(NamedTuple):
    """What a flow stands on: endpoints, client, scopes and resource, found in one of two ways.

    `client` None: the server wanted one registered, and that failed.
    """

    authorization_endpoint: str | None
    token_endpoint: str | None
    client: Client | None
    scopes: str | None
    resource: str | None
    registration_endpoint: str | None = None
    issuer: str | None = None

    def __repr__(self) -> str:
        return f"Grounds(token_endpoint={shown_endpoint(self.token_endpoint)!r}, client={self.client!r})"


async def planned_flow(
    world: World, deps: OAuthDeps, name: str, session: str | None, server_url: str | None
) -> PendingFlow | Refused:
    """The flow for a server, without state and verifier; or the first refusal of flow-initiate-refusals-order."""
    entry = entry_for(deps, name, session, server_url)
    if entry is None:
        return not_a_connector(name) if session is None else undetermined(name)
    if await is_authorized(world, entry):
        return already_authorized(entry)
    server = resolved_server(deps, entry)
    if server is None or is_blank(server.url):
        return undetermined(name)
    registered = registered_client(deps.settings, name)
    redirect_uri = redirect_uri_for(configured_redirect(entry, registered), deps.settings.app_host)
    if registered is not None:
        grounds: Grounds | None = registered_grounds(registered, server.url)
    else:
        grounds = await discovered_grounds(world, server, redirect_uri, path_forms=deps.settings.path_forms)
    problem = undetermined(name) if grounds is None else refusal_of(name, grounds)
    if problem is not None or grounds is None:
        return problem or undetermined(name)
    forced = registered is not None and registered.manual
    manual = is_manual(redirect_uri, deps.settings.app_host, forced=forced)
    return flow_on(grounds, server, session, redirect_uri, manual=manual)


# --- which server


def entry_for(deps: OAuthDeps, name: str, session: str | None, server_url: str | None) -> Entry | None:
    """The entry whose server is authorized; None where there is none to be.

    The catalog's, whatever was submitted. Without a session it must be one that OAuth can apply to; in a session a
    server that the catalog does not have is taken at the submitted address.
    """
    entry = deps.catalog.find(name)
    if session is None:
        return entry if entry is not None and oauth_capable(entry.raw) else None
    return entry if entry is not None else off_catalog_entry(name, server_url)


def off_catalog_entry(name: str, server_url: str | None) -> Entry | None:
    """An entry for an address that came with the request, if that is http or https."""
    if is_blank(name) or read_url(server_url) is None:
        return None
    return read_entry(name, {"type": "http", "url": server_url, "headers": {}})


def resolved_server(deps: OAuthDeps, entry: Entry) -> RemoteServer | None:
    """The server as a runtime would reach it; None where a variable has no value or cannot be read.

    Placeholders are those of the catalog alone: an address from a request gets no secret put in.
    """
    lookup = deps.lookup if deps.catalog.find(entry.name) is entry else no_value
    try:
        return remote_server(entry, lookup)
    except (MissingVariableError, StoreUnavailableError):
        return None


def no_value(_name: str) -> str | None:
    """A lookup that knows nothing."""
    return None


async def is_authorized(world: World, entry: Entry) -> bool:
    """Whether a credential of this server is active now: one that has lapsed, or was retired, stops no flow."""
    row = await table.find(world, credential_key(entry.name, entry.credential_config()))
    return authorized(row, world.clock.now())


# --- on what grounds


def registered_grounds(client: RegisteredClient, server_url: str) -> Grounds:
    """A client that was registered by hand brings its endpoints, so nothing is asked."""
    return Grounds(
        client.authorization_endpoint,
        client.token_endpoint,
        Client(client.client_id, client.client_secret),
        client.scopes,
        registered_resource(client, server_url),
    )


def registered_resource(client: RegisteredClient, server_url: str) -> str | None:
    """The resource indicator: the configured one, none where that is blank, else derived from the server's URL."""
    return resource_indicator(None, server_url) if client.resource is None else client.resource or None


async def discovered_grounds(
    world: World, server: RemoteServer, redirect_uri: str, *, path_forms: bool
) -> Grounds | None:
    """What the server advertises, now; None where it asks for no authorization, or says not of whom.

    A resource of another host is not taken: the token would be good there, and would be sent here (RFC 9728).
    """
    check = await check_oauth_requirement(
        world,
        server,
        configured=catalog_client(server.entry),
        redirect_uri=redirect_uri,
        path_forms=path_forms,
    )
    found = check.discovered
    if not check.required or found is None or found.foreign_resource:
        return None
    return Grounds(
        found.authorization_endpoint,
        found.token_endpoint,
        check.client,
        configured_scopes(server.entry.flow_client.raw) or joined_scopes(found.scopes),
        found.resource,
        found.registration_endpoint,
        found.issuer,
    )


def configured_scopes(block: Mapping[str, Any]) -> str | None:
    """The scopes of a catalog's oauth block, joined; None where it names none."""
    scopes = block.get("scopes")
    if not isinstance(scopes, list | tuple):
        return None
    return joined_scopes(tuple(scope for scope in scopes if isinstance(scope, str) and not is_blank(scope)))


def flow_on(
    grounds: Grounds, server: RemoteServer, session: str | None, redirect_uri: str, *, manual: bool
) -> PendingFlow:
    """The flow on grounds that nothing speaks against."""
    client = grounds.client or Client("")
    return PendingFlow(
        state="",
        server_name=server.name,
        server_url=server.url,
        code_verifier="",
        authorization_endpoint=grounds.authorization_endpoint or "",
        token_endpoint=grounds.token_endpoint or "",
        client_id=client.client_id,
        redirect_uri=redirect_uri,
        expires_at=0.0,
        mcp_server_config=server.entry.credential_config(),
        credential_key=server.credential_key,
        runtime_keys=server.runtime_keys,
        session=session,
        client_secret=client.client_secret,
        registration_endpoint=grounds.registration_endpoint,
        scopes=grounds.scopes,
        resource=grounds.resource,
        issuer=grounds.issuer,
        manual=manual,
    )


# --- why not


def already_authorized(entry: Entry) -> Refused:
    """Its credential is good as it is."""
    key = credential_key(entry.name, entry.credential_config())
    return Refused(f"{entry.name} is already authorized.", authorized=True, credential_key=key)


def not_a_connector(name: str) -> Refused:
    """A server that the Connectors page would not offer."""
    return Refused(f"{UNKNOWN_NAME if is_blank(name) else name} is not an OAuth connector in the catalog.")


def undetermined(name: str) -> Refused:
    """Nothing says that, or at whom, this server is to be authorized."""
    return Refused(f"Could not determine OAuth requirements for {name}")


def refusal_of(name: str, grounds: Grounds) -> Refused | None:
    """What speaks against a flow on these grounds, before anybody consents to anything; the first of several."""
    no_endpoints = Refused(f"Could not determine OAuth endpoints for {name}")
    if not is_consent_page(grounds.authorization_endpoint):
        return no_endpoints
    if grounds.client is None or is_blank(grounds.client.client_id):
        return registration_failed(name)
    if is_blank(grounds.token_endpoint):
        return no_endpoints
    return None if acceptable_endpoint(grounds.token_endpoint) else insecure(name, str(grounds.token_endpoint))


def registration_failed(name: str) -> Refused:
    """No client, whatever it was that failed: the answer, or the endpoint itself (https-registration-degrades)."""
    return Refused(
        f"Dynamic Client Registration failed for {name}. The OAuth provider may be temporarily unavailable."
        " Please try again."
    )


def insecure(name: str, token_endpoint: str) -> Refused:
    """The cleartext endpoint by name, its userinfo masked (https-initiate-flash-names-endpoint)."""
    return Refused(
        f"{name} cannot be authorized: its token endpoint {shown_endpoint(token_endpoint)} is not https, and secrets"
        " and tokens are sent over https alone."
    )
