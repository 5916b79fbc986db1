"""Authorization requests and the codes they give (RFC 6749 section 4.1, RFC 7636)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from fake_servers.oauth.clients import Client, Refused, redirect_is_registered
from fake_servers.oauth.provider import Provider

METHOD = "S256"


class Code(NamedTuple):
    """What a code stands for. `family` is what it was redeemed for, None while it was not."""

    client_id: str
    redirect_uri: str
    challenge: str | None
    scope: str
    resource: str
    expires_at: float
    family: int | None = None
    may_refresh: bool = True


def untrusted(client: Client | None, fields: Mapping[str, str], provider: Provider) -> str | None:
    """Why a request may not even be answered by a redirect, in this server's words."""
    if client is None:
        return provider.pages.get("client", "Unknown client_id")
    if not fields.get("redirect_uri"):
        return "redirect_uri is missing"
    if not redirect_is_registered(client, fields["redirect_uri"], exact=provider.exact_redirects):
        return provider.pages.get("redirect", "redirect_uri is not registered for this client")
    return None


def refusal(provider: Provider, fields: Mapping[str, str]) -> Refused | None:
    """What is wrong with a request of a client that is known."""
    if fields.get("response_type") != "code":
        return Refused("unsupported_response_type", "response_type must be code")
    if fields.get("code_challenge") and fields.get("code_challenge_method") != METHOD:
        return Refused("invalid_request", f"code_challenge_method must be {METHOD}")
    if provider.requires_pkce and not fields.get("code_challenge"):
        return Refused("invalid_request", "code_challenge is missing")
    unknown = unknown_scope(wanted_scope(provider, fields), provider.scopes)
    if unknown is not None and provider.unknown_scopes == "refused":
        return Refused("invalid_scope", f"Unknown scope {unknown}")
    problem = parameter_problem(provider, fields, "authorize")
    if problem is not None:
        return problem
    if provider.consent == "denied":
        return Refused("access_denied", "The user has denied access")
    return None


def parameter_problem(provider: Provider, fields: Mapping[str, str], what: str) -> Refused | None:
    """What a request lacks or has too much, beside what the standards demand; `what` is one of NEEDS_RESOURCE."""
    unwanted = next((name for name in provider.refuses if name in fields), None)
    if unwanted is not None:
        return Refused("invalid_request", f"The parameter {unwanted} is not supported")
    resource = fields.get("resource", "")
    if what in provider.requires_resource and not resource:
        return Refused("invalid_request", "resource is missing")
    if "#" in resource:
        return Refused("invalid_target", "resource must have no fragment")
    if resource and provider.resources and resource not in provider.resources:
        return Refused("invalid_target", "Unknown resource")
    return None


def wanted_scope(provider: Provider, fields: Mapping[str, str]) -> str:
    """The scope that is asked for, in the first parameter for it that is there."""
    return split_scope(provider, next((fields[name] for name in provider.scope_parameters if fields.get(name)), ""))


def split_scope(provider: Provider, text: str) -> str:
    """Scopes as RFC 6749 separates them, whatever this server puts between."""
    return " ".join(text.replace(provider.scope_separator, " ").split())


def granted_scope(provider: Provider, fields: Mapping[str, str]) -> str:
    """The scope that is given: what was asked for and is known; all there is where nothing was asked for."""
    wanted = wanted_scope(provider, fields).split()
    return " ".join(each for each in wanted if each in provider.scopes) if wanted else " ".join(provider.scopes)


def gets_refresh(provider: Provider, fields: Mapping[str, str]) -> bool:
    """Whether an authorization request leads to a refresh token."""
    if any(fields.get(name) != value for name, value in provider.refresh_needs.items()):
        return False
    return provider.refresh == "always" or provider.refresh in granted_scope(provider, fields).split()


def told_state(provider: Provider, fields: Mapping[str, str]) -> str | None:
    """The state in the redirect."""
    given = fields.get("state")
    if given is None or provider.state == "absent":
        return None
    return f"{given}x" if provider.state == "altered" else given


def unknown_scope(scope: str, allowed: tuple[str, ...]) -> str | None:
    """The first scope that is not among those."""
    return next((each for each in scope.split() if each not in allowed), None)


def redirected(redirect_uri: str, answer: Mapping[str, str | None]) -> str:
    """The redirect URI with an answer in its query; what is None is left out."""
    parts = urlsplit(redirect_uri)
    added = urlencode({key: value for key, value in answer.items() if value is not None})
    return parts._replace(query=f"{parts.query}&{added}" if parts.query else added).geturl()


def mismatch(code: Code, fields: Mapping[str, str], client_id: str, now: float) -> Refused | None:
    """Why a code is not good for who presents it."""
    if code.client_id != client_id:
        return Refused("invalid_grant", "The code was given to another client")
    if now >= code.expires_at:
        return Refused("invalid_grant", "The code has expired")
    if fields.get("redirect_uri") != code.redirect_uri:
        return Refused("invalid_grant", "redirect_uri differs from that of the authorization request")
    if not is_verified(code.challenge, fields.get("code_verifier")):
        return Refused("invalid_grant", "code_verifier does not fit")
    if fields.get("resource", code.resource) != code.resource:
        return Refused("invalid_target", "resource differs from that of the authorization request")
    return None


def is_verified(challenge: str | None, verifier: str | None) -> bool:
    """PKCE: the verifier gives the challenge, and there is neither without the other."""
    if challenge is None or verifier is None:
        return challenge is verifier
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=") == challenge
