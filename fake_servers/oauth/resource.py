"""A protected resource: its metadata (RFC 9728), its challenges (RFC 6750), and the server behind them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fake_servers.mcp.http import bearer
from fake_servers.oauth.answers import BROKEN, Answer, Script, json_response
from fake_servers.oauth.authorization import AuthorizationServer
from fake_servers.oauth.site import Server, breaks_next, carried
from harness.world.ports import Request, Response
from harness.world.sites import origin

WELL_KNOWN = "/.well-known/"
METADATA = f"{WELL_KNOWN}oauth-protected-resource"
LOCATIONS: Mapping[str, str] = {"path": f"{METADATA}{{path}}", "root": METADATA}
PARTS = ("metadata", "resource")
CHALLENGES = ("metadata", "plain", "none")


class Resource(NamedTuple):
    """What a resource says of itself. `url` is where it is: a URL, or a path of whatever origin is asked.

    `metadata_at` are the places where metadata is served: names of LOCATIONS, or paths; the first is what a challenge
    names. `resource` and `authorization_servers` stand in for the true ones, `issuer_ending` stands behind the true
    issuer; `metadata` replaces further fields, None takes one away. `challenge` tells what comes with a refusal, under
    `status`: the place of the metadata, no more than the scheme, or no header. `names_error` adds invalid_token where a
    token was presented. `scopes` are told and, with `requires_scopes`, demanded: a token without them gets 403
    insufficient_scope. With `checks_audience` a token is good only where it was asked for this resource.
    `skew_seconds` is how far its clock is ahead, by which a token ends earlier.
    """

    url: str = ""
    metadata_at: tuple[str, ...] = ("path",)
    resource: str | None = None
    authorization_servers: tuple[str, ...] | None = None
    metadata: Mapping[str, Any] = {}
    challenge: str = "metadata"
    names_error: bool = True
    scopes: tuple[str, ...] = ()
    requires_scopes: bool = False
    issuer_ending: str = ""
    checks_audience: bool = False
    skew_seconds: float = 0.0
    status: int = 401


GOOD = Resource()


class Knocked(NamedTuple):
    """A request to what is protected: who came with which token, and what it got. `generation` is the token's."""

    at: float
    who: str
    method: str
    url: str
    token: str | None
    family: int | None
    generation: int | None
    status: int


class Protected:
    """Lets through to `server` who bears an access token that is good now, or one of `tokens`.

    `requests` holds all that came to the resource itself. Its metadata is there for everybody.
    """

    def __init__(self, server: Server, authorization: AuthorizationServer, resource: Resource = GOOD,
                 *, tokens: tuple[str, ...] = ()) -> None:  # fmt: skip
        if resource.challenge not in CHALLENGES:
            raise ValueError(f"challenge must be one of {', '.join(CHALLENGES)}, not {resource.challenge!r}")
        for place in resource.metadata_at:
            if place not in LOCATIONS and not place.startswith("/"):
                raise ValueError(f"metadata_at may hold {', '.join(LOCATIONS)} or a path, not {place!r}")
        self.server, self.authorization, self.resource, self.tokens = server, authorization, resource, tokens
        self.requests: list[Knocked] = []
        self._script = Script(PARTS)

    def answer_next(self, part: str, *answers: str | Answer) -> None:
        """Script what the next requests to the "metadata" or to the "resource" get, behind what is scripted.

        Raises ValueError.
        """
        self._script.add(part, *answers)

    def answer_always(self, part: str, answer: str | Answer) -> None:
        """Script what they get from when `answer_next` is used up. Raises ValueError."""
        self._script.go_on(part, answer)

    def serves(self, url: str) -> bool:
        """Whether a request to that URL is for this resource or for its metadata."""
        path = urlsplit(url).path
        own = own_path(self.resource.url)
        return path in self._places() or path == own or path.startswith(f"{own}/")

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer to one request."""
        path = urlsplit(request.url).path
        if path in self._places():
            if request.method != "GET":
                return Response(405, {"Allow": "GET"})
            return self._script.take("metadata").replaced(json_response(200, self._metadata(request.url), {}))
        if path.startswith(WELL_KNOWN):
            return Response(404)
        token = bearer(request)
        answer = self._script.take("resource")
        response = answer.replaced(self._answer(request, token, now, who) if answer.follows_rules else BROKEN)
        found = self.authorization.generation(token)
        family, number = (found.family, found.number) if found is not None else (None, None)
        self.requests.append(Knocked(now, who, request.method, request.url, token, family, number, response.status))
        return response

    def breaks_next(self, method: str, url: str) -> str | None:
        """What a fault of the network is to do to this request if it is the next to be handled."""
        path = urlsplit(url).path
        part = "metadata" if path in self._places() else "resource"
        if (path in self._places() or not path.startswith(WELL_KNOWN)) and self._script.upcoming(part).drops != "never":
            return "reset-after"
        return None if path.startswith(WELL_KNOWN) else breaks_next(self.server, method, url)

    def _answer(self, request: Request, token: str | None, now: float, who: str) -> Response:
        """A server that breaks its connections does so to whoever comes."""
        refusal = self._refusal(request, token, now)
        if refusal is None:
            return carried(self.server, request, now, who)
        return BROKEN if getattr(self.server, "breaks", None) else refusal

    def _refusal(self, request: Request, token: str | None, now: float) -> Response | None:
        if token in self.tokens:
            return None
        if token is None or not self.authorization.accepts(token, now + self.resource.skew_seconds):
            return self._challenged(self.resource.status, request.url, "invalid_token" if token is not None else None)
        found = self.authorization.generation(token)
        if self.resource.checks_audience and found is not None and found.resource != self._name(request.url):
            return self._challenged(self.resource.status, request.url, "invalid_token")
        missing = set(self.resource.scopes) - set(found.scope.split() if found is not None else ())
        if self.resource.requires_scopes and missing:
            return self._challenged(403, request.url, "insufficient_scope")
        return None

    def _challenged(self, status: int, url: str, error: str | None) -> Response:
        fields: dict[str, str | None] = {}
        if self.resource.names_error:
            fields["error"] = error
        if self.resource.challenge == "metadata" and self._places():
            fields["resource_metadata"] = f"{origin(self._absolute(self.resource.url, url))}{self._places()[0]}"
        if self.resource.scopes:
            fields["scope"] = " ".join(self.resource.scopes)
        words = ", ".join(f'{name}="{value}"' for name, value in fields.items() if value is not None)
        headers = {} if self.resource.challenge == "none" else {"WWW-Authenticate": f"Bearer {words}".rstrip()}
        return json_response(status, {"error": error or "unauthorized"}, headers)

    def _metadata(self, url: str) -> dict[str, Any]:
        told = self.resource
        servers = told.authorization_servers
        issuer = f"{self.authorization.issuer_at(url)}{told.issuer_ending}"
        document: dict[str, Any] = {
            "resource": self._name(url),
            "authorization_servers": [issuer] if servers is None else list(servers),
            "bearer_methods_supported": ["header"],
        }
        if told.scopes:
            document["scopes_supported"] = list(told.scopes)
        document |= told.metadata
        return {key: value for key, value in document.items() if value is not None}

    def _places(self) -> tuple[str, ...]:
        return metadata_places(self.resource.url, self.resource.metadata_at)

    def _name(self, url: str) -> str:
        told = self.resource
        return self._absolute(told.url, url) if told.resource is None else told.resource

    @staticmethod
    def _absolute(place: str, url: str) -> str:
        return place if urlsplit(place).scheme else f"{origin(url)}{place}"


@lru_cache(maxsize=256)
def own_path(url: str) -> str:
    """The path of a resource, without a slash at its end."""
    return urlsplit(url).path.rstrip("/")


@lru_cache(maxsize=256)
def metadata_places(url: str, metadata_at: tuple[str, ...]) -> tuple[str, ...]:
    """The paths of a resource's metadata: every request is compared with them."""
    return tuple(LOCATIONS.get(place, place).replace("{path}", own_path(url)) for place in metadata_at)
