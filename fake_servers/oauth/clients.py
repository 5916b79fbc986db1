"""The clients of an authorization server: how they register (RFC 7591) and say who they are (RFC 6749 section 2.3)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote_plus, urlsplit

from harness.world.ports import Request, header

NONE, POST, BASIC = "none", "client_secret_post", "client_secret_basic"
GRANT_TYPES = ("authorization_code", "refresh_token")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Client(NamedTuple):
    """A registered client. One without a secret is public; `redirect_uris` empty lets it name any."""

    client_id: str
    secret: str | None = None
    redirect_uris: tuple[str, ...] = ()
    auth_method: str = NONE
    grant_types: tuple[str, ...] = GRANT_TYPES
    metadata: Mapping[str, Any] = {}


class Presented(NamedTuple):
    """Who a request says it is from, by which method; `client_id` None when it does not say."""

    client_id: str | None
    secret: str | None
    method: str


class Refused(NamedTuple):
    """An error code and its description."""

    error: str
    description: str


def presented(request: Request, fields: Mapping[str, str]) -> Presented:
    """The client authentication of a request to the token or revocation endpoint. A broken one is nobody's."""
    scheme, _, encoded = (header(request.headers, "Authorization") or "").partition(" ")
    if scheme.lower() == "basic":
        try:
            name, _, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            return Presented(None, None, BASIC)
        return Presented(unquote_plus(name), unquote_plus(password), BASIC)
    secret = fields.get("client_secret")
    return Presented(fields.get("client_id"), secret, NONE if secret is None else POST)


def is_authentic(client: Client | None, who: Presented) -> bool:
    """Whether a request is from that client: a confidential one says its secret in the way it has registered.

    One that has a secret although it registered without any has to say it, in either way.
    """
    if client is None:
        return False
    if client.secret is None:
        return True
    fits = who.method == client.auth_method or (client.auth_method == NONE and who.method != NONE)
    return fits and who.secret == client.secret


def may_register(document: Mapping[str, Any] | None, names: tuple[str, ...]) -> bool:
    """Whether a client of its name may register; everybody may where no names are listed."""
    return not names or (document or {}).get("client_name") in names


def redirect_is_registered(client: Client, redirect_uri: str, *, exact: bool = False) -> bool:
    """Compared as text; of a loopback address the port is free (RFC 8252 section 7.3), unless `exact`."""
    if not is_redirect(redirect_uri):
        return False
    if not client.redirect_uris:
        return True
    if redirect_uri in client.redirect_uris:
        return True
    return not exact and _portless(redirect_uri) in map(_portless, client.redirect_uris)


def _portless(uri: str) -> tuple[str, str] | str:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    if parts.scheme != "http" or parts.hostname not in LOOPBACK or parts.username is not None:
        return uri
    return parts.hostname, parts._replace(netloc="").geturl()


def registration(
    document: Mapping[str, Any] | None, auth_methods: tuple[str, ...], client_id: str, secret: str
) -> Client | Refused:
    """The client that a registration (None: no JSON object) asks for.

    It gets the authentication method it wants where that is offered, else the first that is.
    """
    if document is None:
        return Refused("invalid_client_metadata", "The body must be a JSON object")
    uris = document.get("redirect_uris")
    if not isinstance(uris, list) or not uris or not all(isinstance(uri, str) and is_redirect(uri) for uri in uris):
        return Refused("invalid_redirect_uri", "redirect_uris must list absolute URIs without fragment")
    grants = document.get("grant_types", ["authorization_code"])
    grants = [grant for grant in GRANT_TYPES if isinstance(grants, list) and grant in grants]
    if not grants:
        return Refused("invalid_client_metadata", f"grant_types must hold one of {', '.join(GRANT_TYPES)}")
    wanted = document.get("token_endpoint_auth_method", BASIC)
    method = wanted if wanted in auth_methods else auth_methods[0]
    metadata = {**document, "grant_types": grants, "token_endpoint_auth_method": method}
    return Client(client_id, None if method == NONE else secret, tuple(uris), method, tuple(grants), metadata)


def is_redirect(uri: str) -> bool:
    """Whether one can be sent there: an absolute URI without fragment, in the characters of a header."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return False
    return bool(parts.scheme) and "#" not in uri and uri.isascii() and uri.isprintable() and " " not in uri


def information(client: Client, now: float) -> dict[str, Any]:
    """What a registration is answered with (RFC 7591 section 3.2.1)."""
    document = {**client.metadata, "client_id": client.client_id, "client_id_issued_at": int(now)}
    if client.secret is not None:
        document |= {"client_secret": client.secret, "client_secret_expires_at": 0}
    return document
