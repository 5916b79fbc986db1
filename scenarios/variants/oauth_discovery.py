"""Known-bad variants of discovery and registration."""

from __future__ import annotations

import json
import re

from harness.reference.oauth import discovery, metadata, transport
from harness.reference.oauth.check import check_oauth_requirement as check_rule
from harness.reference.oauth.clients import Client
from harness.reference.oauth.discovery import discover as discover_rule
from harness.reference.oauth.discovery import discovered as discovered_rule
from harness.reference.oauth.metadata import issuer_server_urls as issuer_server_urls_rule
from harness.reference.oauth.metadata import origin_server_urls as origin_server_urls_rule
from harness.reference.oauth.metadata import read_document as read_document_rule
from harness.reference.oauth.metadata import resource_document_urls as resource_document_urls_rule
from harness.reference.oauth.registration import flow_client as flow_client_rule
from harness.reference.oauth.registration import register as register_rule
from harness.reference.oauth.registration import registration_body as registration_body_rule
from harness.reference.oauth.urls import read_url
from harness.requirements.variants import variant
from harness.world import Ambiguous, NotSent

METADATA = "harness.reference.oauth.metadata"
DISCOVERY = "harness.reference.oauth.discovery"
REGISTRATION = "harness.reference.oauth.registration"
CHECK = "harness.reference.oauth.check"


@variant(f"{METADATA}:resource_document_urls", catches=("flow-discovery-order",))
def the_port_is_lost(url, *, path_forms=False):
    """Asks at the host's default port."""
    return resource_document_urls_rule(url._replace(port=None), path_forms=path_forms)


@variant(f"{METADATA}:origin_server_urls", catches=("flow-discovery-order",))
def openid_comes_first(url, *, path_forms=False):
    """Asks for the OpenID document before the other."""
    return tuple(reversed(origin_server_urls_rule(url, path_forms=path_forms)))


@variant(f"{METADATA}:resource_document_urls", catches=("flow-discovery-path-forms",))
def only_the_root_form_is_asked(url, *, path_forms=False):
    """Knows no path-inserted form."""
    return resource_document_urls_rule(url)


@variant(f"{DISCOVERY}:named_server", catches=("flow-discovery-via-resource-document",))
async def every_listed_server_is_tried(world, resource, url, *, path_forms=False):
    """Goes through all entries until one answers."""
    listed = (resource or {}).get("authorization_servers")
    for entry in listed if isinstance(listed, list) else []:
        issuer = read_url(entry)
        found = None if issuer is None else await discovery.first_usable(world, issuer_server_urls_rule(issuer))
        if found is not None:
            return discovered_rule(found, url, resource, scopes=metadata.listed_scopes(resource))
    return None


@variant(f"{METADATA}:names_an_endpoint", catches=("flow-discovery-usable-document",))
def any_object_is_metadata(document):
    """Takes a document that names no endpoint."""
    return document is not None


@variant(f"{METADATA}:read_document", catches=("flow-discovery-usable-document",))
def the_status_is_not_looked_at(response):
    """Reads the body of an error page."""
    return read_document_rule(response._replace(status=200))


@variant(f"{METADATA}:resource_metadata_url", catches=("flow-discovery-challenge-metadata",))
def anything_after_the_name_is_the_url(header):
    """Takes an unquoted URL, and one of another scheme."""
    match = re.search(r'resource_metadata="?\s*([^", ]+)', header or "")
    return match[1] if match else None


@variant(f"{DISCOVERY}:document_at", catches=("flow-discovery-errors-contained",))
async def a_document_is_made_up_after_an_error(world, url):
    """Takes a failed request for an answer that names an endpoint."""
    try:
        response = await transport.get(world, url)
    except (NotSent, Ambiguous):
        return {"token_endpoint": url}
    return read_document_rule(response)


@variant(f"{METADATA}:resource_indicator", catches=("flow-resource-indicator",))
def the_raw_url_is_the_resource(document, server_url):
    """Sends the URL as it is, query and all."""
    return server_url


@variant(f"{METADATA}:listed_scopes", catches=("flow-scopes-source",))
def offline_access_is_always_asked_for(document):
    """Appends a scope that nobody advertised."""
    listed = None if document is None else metadata.texts(document.get("scopes_supported"))
    return (*(listed or ()), "offline_access")


@variant(f"{REGISTRATION}:flow_client", catches=("flow-registration-when",))
async def registers_although_a_client_is_configured(world, discovered, redirect_uri, configured):
    """Registers wherever that is offered."""
    if discovered.registration_endpoint is not None:
        await register_rule(world, discovered, redirect_uri)
    return await flow_client_rule(world, discovered, redirect_uri, configured)


@variant(f"{CHECK}:required", catches=("flow-registration-in-requirement-check",))
async def registration_is_left_to_initiate(world, found, status, configured, redirect_uri, *, registers):
    """Answers before there is a client."""
    from harness.reference.oauth.check import Check

    return Check(required=True, determination="advertised_required", discovered=found, client=configured, status=status)


@variant(f"{CHECK}:required", catches=("flow-registration-not-orphaned",))
async def a_judge_registers_too(world, found, status, configured, redirect_uri, *, registers):
    """Registers a client at every probe, which nobody uses."""
    from harness.reference.oauth.check import Check

    client = await flow_client_rule(world, found, redirect_uri, configured)
    return Check(required=True, determination="advertised_required", discovered=found, client=client, status=status)


@variant(f"{REGISTRATION}:register", catches=("flow-client-id-fallback", "https-registration-degrades"))
async def falls_back_after_a_failed_registration(world, discovered, redirect_uri):
    """Uses the literal where registering failed, too."""
    return await register_rule(world, discovered, redirect_uri) or Client("zimmer")


@variant(f"{REGISTRATION}:registered", catches=("flow-registration-success",))
def any_success_is_a_client(response):
    """Accepts any 2xx, with or without a client id."""
    if not 200 <= response.status < 300:
        return None
    try:
        answer = json.loads(response.body or b"{}")
    except ValueError:
        return None
    return Client(str(answer.get("client_id") if isinstance(answer, dict) else "?"))


@variant(f"{REGISTRATION}:registration_body", catches=("flow-registration-body",))
def no_refresh_grant_is_asked_for(redirect_uri, discovered):
    """Registers for codes alone, so that no refresh token is ever issued."""
    return {**registration_body_rule(redirect_uri, discovered), "grant_types": ["authorization_code"]}


@variant(f"{REGISTRATION}:auth_method", catches=("flow-registration-body",))
def the_first_offered_method_is_taken(offered):
    """Takes whatever is listed first."""
    return next(iter(offered), "none")


@variant(f"{CHECK}:check_oauth_requirement", catches=("flow-uses-resolved-url",))
async def the_raw_url_is_probed(world, server, *, configured, redirect_uri, registers=True, path_forms=False):
    """Asks the host that the catalog's text names."""
    from dataclasses import replace

    raw = replace(server, url=(server.entry.url or "").replace("${TENANT}", "tenant"))
    await discover_rule(world, raw.url)
    return await check_rule(
        world, raw, configured=configured, redirect_uri=redirect_uri, registers=registers, path_forms=path_forms
    )


@variant(f"{DISCOVERY}:discovered", catches=("https-applies-to-endpoint-not-server",))
def a_server_on_http_is_refused(document, url, resource, *, scopes, issuer=None):
    """Takes the rule about endpoints for one about servers."""
    found = discovered_rule(document, url, resource, scopes=scopes, issuer=issuer)
    return found if url.startswith("https:") else found._replace(token_endpoint=None, authorization_endpoint=None)
