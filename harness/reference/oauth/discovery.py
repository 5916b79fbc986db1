"""Discovery: from an MCP server's URL to its authorization server (RFC 9728, RFC 8414).

Bounded whatever is answered: a fixed list of documents, no redirects, no URL but http(s), nothing twice as deep as one
resource document and its first authorization server. An error of a request is an absent document.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness.reference.oauth import metadata, transport
from harness.reference.oauth.endpoints import shown_endpoint
from harness.reference.oauth.metadata import Document
from harness.reference.oauth.urls import Url, read_url
from harness.world import Ambiguous, NotSent, World

MAXIMUM_REQUESTS = 5
"""Of one discovery: the resource document, two documents at the origin, two of the named authorization server."""


class Discovered(NamedTuple):
    """An authorization server. The token and registration endpoints are as advertised, acceptable or not.

    `authorization_endpoint` is None where it is no http(s) URL. `lists_scopes`: whether a list of scopes was there at
    all. `foreign_resource`: the resource document speaks for another host than the server's.
    """

    authorization_endpoint: str | None
    token_endpoint: str | None
    registration_endpoint: str | None
    issuer: str | None
    scopes: tuple[str, ...]
    resource: str
    auth_methods: tuple[str, ...]
    lists_scopes: bool = False
    foreign_resource: bool = False

    def __repr__(self) -> str:
        return f"Discovered(token_endpoint={shown_endpoint(self.token_endpoint)!r})"


async def discover(world: World, url: str, *, path_forms: bool = False) -> Discovered | None:
    """What the well-known documents of an MCP server's origin lead to; None where they lead nowhere.

    The resource document is asked for first, the origin's own authorization server is preferred. Never raises.
    """
    server = read_url(url)
    if server is None:
        return None
    resource = await first_document(world, metadata.resource_document_urls(server, path_forms=path_forms))
    own = await first_usable(world, metadata.origin_server_urls(server, path_forms=path_forms))
    if own is not None:
        return discovered(own, url, resource, scopes=metadata.listed_scopes(own))
    return await named_server(world, resource, url, path_forms=path_forms)


async def discover_named(world: World, document_url: str, url: str, *, path_forms: bool = False) -> Discovered | None:
    """What the resource document leads to that a challenge named."""
    return await named_server(world, await document_at(world, document_url), url, path_forms=path_forms)


async def named_server(
    world: World, resource: Document | None, url: str, *, path_forms: bool = False
) -> Discovered | None:
    """The first authorization server that a resource document lists; later ones are never asked."""
    issuer = metadata.first_issuer(resource)
    if issuer is None:
        return None
    document = await first_usable(world, issuer_server_urls(issuer, path_forms=path_forms))
    if document is None:
        return None
    listed = metadata.listed_scopes(resource)
    scopes = metadata.listed_scopes(document) if listed is None else listed
    return discovered(document, url, resource, scopes=scopes, issuer=issuer_as_listed(resource))


def issuer_server_urls(issuer: Url, *, path_forms: bool) -> tuple[str, ...]:
    """The documents that are asked for of an issuer."""
    return metadata.issuer_server_urls(issuer, path_forms=path_forms)


def issuer_as_listed(resource: Document | None) -> str | None:
    """The text of the authorization server that was asked."""
    return None if resource is None else metadata.text(resource["authorization_servers"][0])


def discovered(
    document: Document,
    url: str,
    resource: Document | None,
    *,
    scopes: tuple[str, ...] | None,
    issuer: str | None = None,
) -> Discovered:
    """What a usable document says, members of another shape left out."""
    indicator = metadata.resource_indicator(resource, url)
    return Discovered(
        authorization_endpoint=openable(document.get("authorization_endpoint")),
        token_endpoint=metadata.text(document.get("token_endpoint")),
        registration_endpoint=metadata.text(document.get("registration_endpoint")),
        issuer=metadata.text(document.get("issuer")) or issuer,
        scopes=scopes or (),
        resource=indicator,
        auth_methods=metadata.texts(document.get("token_endpoint_auth_methods_supported")) or (),
        lists_scopes=scopes is not None,
        foreign_resource=metadata.names_another_host(indicator, url),
    )


def openable(endpoint: object) -> str | None:
    """An endpoint that a browser may be sent to: http or https, never a script."""
    return metadata.text(endpoint) if read_url(endpoint) is not None else None


async def first_usable(world: World, urls: Iterable[str]) -> Document | None:
    """The first document that names an endpoint; those after it are not asked for."""
    for url in urls:
        document = await document_at(world, url)
        if metadata.names_an_endpoint(document):
            return document
    return None


async def first_document(world: World, urls: Iterable[str]) -> Document | None:
    """The first document that is there at all."""
    for url in urls:
        document = await document_at(world, url)
        if document is not None:
            return document
    return None


async def document_at(world: World, url: str) -> Document | None:
    """The document at a URL; None where none can be had."""
    try:
        response = await transport.get(world, url)
    except (NotSent, Ambiguous):
        return None
    return metadata.read_document(response)
