"""What one authorization server does, as data: a default one is strict and well-behaved, each field is one way to
differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import inf
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
    "expires_in_as": ("number", "text", "absent"),
    "refresh": ("always", "offline_access", "never"),
    "reuse": ("revokes-family", "refused"),
    "consent": ("given", "denied", "login"),
    "state": ("returned", "absent", "altered"),
    "says_scope": ("granted", "empty", "never"),
    "unknown_scopes": ("refused", "ignored"),
    "answers_as": ("json", "form-unless-asked"),
    "errors_as": ("status", "200", "ok-false"),
}
GRANTS = ("authorization_code", "refresh_token")
NEEDS_RESOURCE = ("authorize", *GRANTS)
PAGES = ("client", "redirect")


class Provider(NamedTuple):
    """One authorization server. Times are seconds.

    Metadata. `metadata_at` are the places where it is served: names of LOCATIONS, or paths. `metadata` replaces fields
    of it, None takes one away; `issuer_ending` stands behind the issuer there and nowhere else. `absent` are endpoints
    that are not there and not announced; `paths` puts one elsewhere than below the issuer.

    Clients. `auth_methods` are the authentication methods that are offered, in its order. With `demands_secret`
    whoever registers is given a secret and has to say it, whatever method was agreed on. `registers_names` are the
    client names that may register, all of them when it is empty; others get 403 with the text `registration_refused`.
    With `exact_redirects` not even the port of a loopback address is free.

    Consent. What `consent` says; `login` is a page that leads nowhere by itself. `hops` redirects of its own come
    first. `state` tells what becomes of the client's. `pages` are its own words for a `client` or a `redirect` that is
    not trusted. Scopes are asked for in the first of `scope_parameters` that is there; of what is not in `scopes` it is
    `unknown_scopes` that decides. `refuses` are parameters that no request may bring, `requires_resource` names the
    requests (NEEDS_RESOURCE) that must say the resource, `resources` are those that it knows, all when empty.

    Tokens. `access_seconds` None makes access tokens last, and says no `expires_in`. `refresh` tells when a refresh
    token is given; `refresh_needs` are parameters of the authorization request without which none is. Without `rotates`
    a refresh token stays good and is not repeated. A spent one that comes again within `grace_seconds` is borne; after
    that it is `reuse` that decides. With `rotation_revokes_access` a refresh ends the access tokens before it.

    Answers. `nests` puts the tokens of a grant type below a key, `token_fields` stand beside them. Scopes are said as
    `says_scope` says, with `scope_separator` between. `form-unless-asked` is JSON for whoever names it as accepted.
    `errors_as` is the status that errors have: their own, or 200, with `ok-false` as `{"ok": false, "error": ...}`.
    `errors`, `statuses`, `error_bodies` and `descriptions` are its own words, by the error's code of RFC 6749, or by
    grant type and code: `refresh_token.invalid_grant`. `skew_seconds` is how far its clock is ahead.
    """

    metadata_at: tuple[str, ...] = ("oauth-path",)
    metadata: Mapping[str, Any] = {}
    issuer_ending: str = ""
    absent: tuple[str, ...] = ()
    paths: Mapping[str, str] = {}
    scopes: tuple[str, ...] = ("read", "write")
    scope_parameters: tuple[str, ...] = ("scope",)
    scope_separator: str = " "
    says_scope: str = "granted"
    unknown_scopes: str = "refused"
    auth_methods: tuple[str, ...] = ("none", "client_secret_post", "client_secret_basic")
    demands_secret: bool = False
    registers_names: tuple[str, ...] = ()
    registration_refused: str = "Forbidden"
    exact_redirects: bool = False
    code_seconds: float = 600.0
    access_seconds: float | None = 3600.0
    expires_in_as: str = "number"
    refresh: str = "always"
    refresh_needs: Mapping[str, str] = {}
    rotates: bool = True
    grace_seconds: float = 0.0
    reuse: str = "revokes-family"
    rotation_revokes_access: bool = False
    consent: str = "given"
    hops: int = 0
    state: str = "returned"
    requires_pkce: bool = True
    requires_resource: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    sends_issuer: bool = False
    token_type: str = "Bearer"
    token_fields: Mapping[str, Any] = {}
    nests: Mapping[str, str] = {}
    answers_as: str = "json"
    errors_as: str = "status"
    errors: Mapping[str, str] = {}
    statuses: Mapping[str, int] = {}
    error_bodies: Mapping[str, Mapping[str, Any]] = {}
    descriptions: Mapping[str, str] = {}
    pages: Mapping[str, str] = {}
    skew_seconds: float = 0.0


NAMES: Mapping[str, tuple[str, ...]] = {
    "absent": tuple(ENDPOINTS),
    "paths": tuple(ENDPOINTS),
    "nests": GRANTS,
    "requires_resource": NEEDS_RESOURCE,
    "pages": PAGES,
}
"""What fields that name things may name."""


RANGES: Mapping[str, tuple[float, float]] = {
    "code_seconds": (0, inf),
    "access_seconds": (0, inf),
    "grace_seconds": (0, inf),
    "hops": (0, 100),
}
"""The smallest and the largest of what is a number; a clock may be behind as well."""
STATUSES = range(200, 600)
ITEMS: Mapping[str, tuple[type, str]] = {
    "tuple[str, ...]": (str, "texts"),
    "tuple[str, ...] | None": (str, "texts"),
    "Mapping[str, str]": (str, "texts"),
    "Mapping[str, int]": (int, "whole numbers"),
    "Mapping[str, Mapping[str, Any]]": (Mapping, "tables"),
}
"""What a list or a table holds, by its annotation."""


def require_items(record: NamedTuple) -> None:
    """Raises ValueError that names the field whose list or table holds something of another kind."""
    for field, kind, called in fields_with_items(type(record)):
        held = getattr(record, field)
        if held and isinstance(held, str):
            raise ValueError(f"{field} must be a list of {called}")
        items = held.values() if isinstance(held, Mapping) else held or ()
        if not all(isinstance(each, kind) and not isinstance(each, bool) for each in items):
            raise ValueError(f"{field} may hold {called} alone")


@cache
def fields_with_items(record: type[NamedTuple]) -> tuple[tuple[str, type, str], ...]:
    """The fields that are lists or tables, each with what it holds and how that is called."""
    annotated = {
        name: ITEMS.get(getattr(of, "__forward_arg__", str(of))) for name, of in record.__annotations__.items()
    }
    return tuple((name, *found) for name, found in annotated.items() if found is not None)


def require_known(provider: Provider) -> None:
    """Raises ValueError that names the field which holds what no provider can have."""
    require_items(provider)
    require_numbers(provider)
    for field, allowed in CHOICES.items():
        value = getattr(provider, field)
        if value not in allowed:
            raise ValueError(f"{field} must be one of {', '.join(allowed)}, not {value!r}")
    for field, allowed in NAMES.items():
        named = getattr(provider, field)
        if named and not set(allowed).issuperset(named):
            unknown = sorted(set(named).difference(allowed))
            raise ValueError(f"{field} may name {', '.join(allowed)}, not {unknown[0]!r}")
    for field in ("auth_methods", "scope_parameters"):
        if not getattr(provider, field):
            raise ValueError(f"{field} must not be empty")
    for place in provider.metadata_at:
        if place not in LOCATIONS and not place.startswith("/"):
            raise ValueError(f"metadata_at may hold {', '.join(LOCATIONS)} or a path, not {place!r}")


def require_numbers(provider: Provider) -> None:
    """Raises ValueError that names the number which no provider can have."""
    for field, (least, most) in RANGES.items():
        value = getattr(provider, field)
        if value is not None and not least <= value <= most:
            raise ValueError(f"{field} is {value:g}, and it must be {least:g} or more, {most:g} at most")
    for code, status in provider.statuses.items():
        if status not in STATUSES:
            raise ValueError(f"statuses: {code} is {status}, which must be from {STATUSES[0]} to {STATUSES[-1]}")


def metadata_paths(provider: Provider, issuer_path: str) -> Mapping[str, bool]:
    """Where metadata is served, by path, and whether it is an OpenID provider's there."""
    places = [LOCATIONS.get(place, place).replace("{path}", issuer_path) for place in provider.metadata_at]
    return {place: OPENID in place for place in places}


def metadata(provider: Provider, issuer: str, endpoints: Mapping[str, str], *, openid: bool) -> dict[str, Any]:
    """The document of RFC 8414; with `openid` it has what OpenID Connect Discovery demands besides."""
    document: dict[str, Any] = {"issuer": f"{issuer}{provider.issuer_ending}"}
    document |= {ENDPOINTS[name]: url for name, url in endpoints.items()}
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
