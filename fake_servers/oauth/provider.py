"""What one authorization server does, as data: a default one is strict and well-behaved, each field is one way to
differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

ENDPOINTS: Mapping[str, str] = {
    "authorize": "authorization_endpoint",
    "token": "token_endpoint",
    "register": "registration_endpoint",
    "revoke": "revocation_endpoint",
}
"""The endpoints, and as what metadata announces them."""
OAUTH = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"
LOCATIONS: Mapping[str, str] = {
    "oauth-path": f"{OAUTH}{{path}}",
    "oauth-root": OAUTH,
    "openid-path": f"{OPENID}{{path}}",
    "openid-root": OPENID,
    "openid-appended": f"{{path}}{OPENID}",
}
"""Where metadata may be found, `{path}` being the issuer's: RFC 8414 section 3 and 5, OpenID Connect Discovery 4."""
CHOICES: Mapping[str, tuple[str, ...]] = {
    "expires_in_as": ("number", "text"),
    "refresh": ("always", "offline_access", "never"),
    "reuse": ("revokes-family", "refused"),
    "consent": ("given", "denied"),
}


class Provider(NamedTuple):
    """One authorization server. Times are seconds.

    `metadata_at` are the places where metadata is served: names of LOCATIONS, or paths. `metadata` replaces fields of
    it, None takes one away. `absent` are endpoints that are not there and not announced; `paths` puts one elsewhere
    than below the issuer. `auth_methods` are the client authentication methods it offers, in its order.
    `access_seconds` None makes access tokens last, and says no `expires_in`. `refresh` tells when a refresh token is
    given. Without `rotates` a refresh token stays good and is not repeated. A spent one that comes again within
    `grace_seconds` is borne; after that it is `reuse` that decides. With `rotation_revokes_access` a refresh ends the
    access tokens before it. `descriptions` are its own words for an error, by the error's code.
    """

    metadata_at: tuple[str, ...] = ("oauth-path",)
    metadata: Mapping[str, Any] = {}
    absent: tuple[str, ...] = ()
    paths: Mapping[str, str] = {}
    scopes: tuple[str, ...] = ("read", "write")
    auth_methods: tuple[str, ...] = ("none", "client_secret_post", "client_secret_basic")
    code_seconds: float = 600.0
    access_seconds: float | None = 3600.0
    expires_in_as: str = "number"
    refresh: str = "always"
    rotates: bool = True
    grace_seconds: float = 0.0
    reuse: str = "revokes-family"
    rotation_revokes_access: bool = False
    consent: str = "given"
    requires_pkce: bool = True
    sends_issuer: bool = False
    descriptions: Mapping[str, str] = {}


def require_known(provider: Provider) -> None:
    """Raises ValueError that names the field which holds what no provider can have."""
    for field, allowed in CHOICES.items():
        value = getattr(provider, field)
        if value not in allowed:
            raise ValueError(f"{field} must be one of {', '.join(allowed)}, not {value!r}")
    for field in ("absent", "paths"):
        unknown = sorted(set(getattr(provider, field)) - set(ENDPOINTS))
        if unknown:
            raise ValueError(f"{field} may name {', '.join(ENDPOINTS)}, not {unknown[0]!r}")
    for place in provider.metadata_at:
        if place not in LOCATIONS and not place.startswith("/"):
            raise ValueError(f"metadata_at may hold {', '.join(LOCATIONS)} or a path, not {place!r}")


def metadata_paths(provider: Provider, issuer_path: str) -> Mapping[str, bool]:
    """Where metadata is served, by path, and whether it is an OpenID provider's there."""
    places = [LOCATIONS.get(place, place).replace("{path}", issuer_path) for place in provider.metadata_at]
    return {place: OPENID in place for place in places}


def metadata(provider: Provider, issuer: str, endpoints: Mapping[str, str], *, openid: bool) -> dict[str, Any]:
    """The document of RFC 8414; with `openid` it has what OpenID Connect Discovery demands besides."""
    document: dict[str, Any] = {"issuer": issuer}
    names = {
        "authorize": "authorization_endpoint",
        "register": "registration_endpoint",
        "revoke": "revocation_endpoint",
    }
    document |= {names.get(name, f"{name}_endpoint"): url for name, url in endpoints.items()}
    document |= {
        "scopes_supported": list(provider.scopes),
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": list(provider.auth_methods),
        "code_challenge_methods_supported": ["S256"],
    }
    if provider.sends_issuer:
        document["authorization_response_iss_parameter_supported"] = True
    if openid:
        document |= {
            "jwks_uri": f"{issuer}/jwks",
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }
    document |= provider.metadata
    return {key: value for key, value in document.items() if value is not None}
