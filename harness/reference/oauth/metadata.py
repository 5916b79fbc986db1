"""What discovery reads: where the well-known documents are, which of them count, what they and a challenge name.

Pure. A document comes from whoever answers, so nothing in it is believed to have a shape, and nothing here raises.
Source: RFC 9728, RFC 8414, RFC 8707; requirements flow-discovery-*, flow-resource-indicator, flow-scopes-source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.reference.oauth.challenges import challenges
from harness.reference.oauth.urls import Url, read_url
from harness.reference.secrets.blank import is_blank
from harness.world import Response

RESOURCE_PATH = "/.well-known/oauth-protected-resource"
SERVER_PATH = "/.well-known/oauth-authorization-server"
OPENID_PATH = "/.well-known/openid-configuration"

MAXIMUM_DOCUMENT_BYTES = 1024 * 1024
"""A longer document is none."""

Document = Mapping[str, Any]


def resource_document_urls(url: Url, *, path_forms: bool = False) -> tuple[str, ...]:
    """Where a server's resource document may be: at its origin.

    `path_forms` puts the form of RFC 9728 for a server with a path before it (flow-discovery-path-forms).
    """
    root = f"{url.origin}{RESOURCE_PATH}"
    path = url.path.removesuffix("/")
    return (f"{root}{path}", root) if path_forms and path else (root,)


def origin_server_urls(url: Url, *, path_forms: bool = False) -> tuple[str, ...]:
    """Where a server that is its own authorization server may have its document, the first usable one counting."""
    path = url.path.removesuffix("/")
    inserted = (f"{url.origin}{SERVER_PATH}{path}",) if path_forms and path else ()
    return (*inserted, f"{url.origin}{SERVER_PATH}", f"{url.origin}{OPENID_PATH}")


def issuer_server_urls(issuer: Url, *, path_forms: bool = False) -> tuple[str, ...]:
    """The documents of an issuer: RFC 8414 at its origin, then OpenID's behind its path as written."""
    path = issuer.path.removesuffix("/")
    openid = f"{issuer.origin}{issuer.path}{OPENID_PATH}"
    if not (path_forms and path):
        return (f"{issuer.origin}{SERVER_PATH}", openid)
    return (
        f"{issuer.origin}{SERVER_PATH}{path}",
        f"{issuer.origin}{SERVER_PATH}",
        f"{issuer.origin}{OPENID_PATH}{path}",
        openid,
    )


def read_document(response: Response) -> Document | None:
    """The JSON object of an answer; None for another status and for any body that is not one."""
    return read_object(response.body) if response.status == 200 else None


def read_object(body: bytes) -> dict[str, Any] | None:
    """A JSON object as RFC 8259 knows it; of a repeated key the last counts. None for anything else."""
    if len(body) > MAXIMUM_DOCUMENT_BYTES:
        return None
    try:
        value = json.loads(body.decode("utf-8-sig"), parse_constant=refused_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def refused_constant(name: str) -> Any:
    """NaN and the infinities are no JSON."""
    raise ValueError(name)


def names_an_endpoint(document: Document | None) -> bool:
    """Whether a document counts as that of an authorization server (flow-discovery-usable-document)."""
    if document is None:
        return False
    return any(text(document.get(name)) is not None for name in ("authorization_endpoint", "token_endpoint"))


def first_issuer(document: Document | None) -> Url | None:
    """The one authorization server of a resource document that is ever asked: the first it lists."""
    listed = None if document is None else document.get("authorization_servers")
    return read_url(listed[0]) if isinstance(listed, list) and listed else None


def has_bearer_challenge(header: str | None) -> bool:
    """Whether one of the challenges is of the scheme Bearer (requirement-bearer-scheme-case)."""
    return any(challenge.scheme.lower() == "bearer" for challenge in challenges(header))


def resource_metadata_url(header: str | None) -> str | None:
    """The resource document that a WWW-Authenticate value names: quoted, blanks around it left out, http(s) alone."""
    for challenge in challenges(header):
        named = challenge.quoted.get("resource_metadata")
        if named is not None:
            address = named.strip(" \t")
            return address if read_url(address) is not None else None
    return None


def resource_indicator(document: Document | None, server_url: str) -> str:
    """The resource document's `resource`, else the server's URL without query, fragment and one trailing slash.

    A URL that cannot be read is its own indicator.
    """
    named = None if document is None else text(document.get("resource"))
    if named is not None:
        return named
    url = read_url(server_url)
    return server_url if url is None else f"{url.origin}{url.path.removesuffix('/')}"


def names_another_host(resource: str, server_url: str) -> bool:
    """Whether an indicator is for another host than the server's: a token for it would not be for this server."""
    named, server = read_url(resource), read_url(server_url)
    return named is not None and server is not None and named.host.lower() != server.host.lower()


def listed_scopes(document: Document | None) -> tuple[str, ...] | None:
    """The scopes a document lists, as written; None where it has no list."""
    return None if document is None else texts(document.get("scopes_supported"))


def texts(value: object) -> tuple[str, ...] | None:
    """The texts of a list; None for anything that is no list."""
    if not isinstance(value, list):
        return None
    return tuple(item for item in map(text, value) if item is not None)


def text(value: object) -> str | None:
    """A text that is not blank and can be written down; None for anything else, a lone surrogate included."""
    if not isinstance(value, str) or is_blank(value):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return value
