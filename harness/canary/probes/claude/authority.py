"""A small authorization server for each door: it registers clients and answers refreshes as a case wants it to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from fake_servers.mcp.behaviour import Behaviour
from harness.canary.probes.doors import Doors
from harness.world.ports import Request, Response, header

JSON = {"Content-Type": "application/json"}
HTML = {"Content-Type": "text/html"}
RESOURCE, METADATA = "/.well-known/oauth-protected-resource/", "/.well-known/oauth-authorization-server/as/"
TOKEN, REGISTER = "/token/", "/register/"
SECRET = "nobody-has-stored-this"
CUT_PAIR = f'{{"access_token": "{SECRET}", "token_type": "Bearer", "client_secret": "{SECRET}'
"""The beginning of an answer with secrets in it."""


class Grant(NamedTuple):
    """What a refresh is answered with."""

    body: str
    status: int = 200
    headers: Mapping[str, str] = JSON


class Asked(NamedTuple):
    """A refresh as it came: its form, and the Authorization of its client."""

    form: Mapping[str, str]
    authorization: str | None


def granted(**fields: Any) -> Grant:
    """A new token."""
    return Grant(json.dumps({"access_token": "new", "token_type": "Bearer", **fields}))


def refused(error: str, status: int = 400, **fields: str) -> Grant:
    """An error in the form of OAuth."""
    return Grant(json.dumps({"error": error, **fields}), status)


GOOD = granted(expires_in=3600, refresh_token="next", scope="read write")
NO_BEHAVIOURS: Mapping[str, Behaviour] = {}
NO_GRANTS: Mapping[str, Grant] = {}


class GuardedDoors(Doors):
    """Doors each with an authorization server of its own; `token_urls` are endpoints that are elsewhere."""

    def __init__(
        self,
        behaviours: Mapping[str, Behaviour] = NO_BEHAVIOURS,
        grants: Mapping[str, Grant] = NO_GRANTS,
        *,
        sse: Sequence[str] = (),
        token_urls: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(behaviours, sse=sse)
        self.grants, self.token_urls = grants, token_urls or {}
        self.refreshes: dict[str, list[Asked]] = {}
        self.registrations: dict[str, list[Mapping[str, Any]]] = {}

    def handle(self, request: Request, now: float, who: str) -> Response:
        """Answer what is asked of an authorization server, leave the rest to the doors."""
        parts = urlsplit(request.url)
        base, door = f"{parts.scheme}://{parts.netloc}", parts.path.rpartition("/")[2]
        if parts.path.startswith(RESOURCE):
            return as_json({"resource": f"{base}/{door}", "authorization_servers": [f"{base}/as/{door}"]})
        if parts.path.startswith(METADATA):
            return as_json(self.metadata(base, door))
        if parts.path.startswith(TOKEN):
            return self.token(request, door)
        if parts.path.startswith(REGISTER):
            told = json.loads(request.body)
            self.registrations.setdefault(door, []).append(told)
            return as_json({**told, "client_id": f"client-of-{door}"}, 201)
        return super().handle(request, now, who)

    def metadata(self, base: str, door: str) -> Mapping[str, Any]:
        """What the authorization server of a door says of itself."""
        return {
            "issuer": f"{base}/as/{door}",
            "authorization_endpoint": f"{base}/authorize/{door}",
            "token_endpoint": self.token_urls.get(door, f"{base}{TOKEN}{door}"),
            "registration_endpoint": f"{base}{REGISTER}{door}",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_post", "client_secret_basic"],
        }

    def token(self, request: Request, door: str) -> Response:
        """A refresh."""
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        self.refreshes.setdefault(door, []).append(Asked(form, header(request.headers, "Authorization")))
        grant = self.grants.get(door, GOOD)
        return Response(grant.status, grant.headers, grant.body.encode())


class Closing(GuardedDoors):
    """A door `one` that behaves otherwise from the first tool call on.

    The stream of server messages is let in as before: whether a program asks for it before its first call or beside
    it is chance.
    """

    def __init__(self, before: Behaviour, after: Behaviour, grants: Mapping[str, Grant] = NO_GRANTS) -> None:
        super().__init__({"one": before}, grants)
        self.before, self.after, self._is_shut = before, after, False

    def handle(self, request: Request, now: float, who: str) -> Response:
        """Shut the door at a call, then look at who comes."""
        self._is_shut = self._is_shut or b'"tools/call"' in request.body
        self.servers["one"].behaviour = self.after if self._is_shut and request.method != "GET" else self.before
        return super().handle(request, now, who)


class Dropping:
    """An endpoint that breaks every connection behind the request."""

    breaks = "reset-after"

    def __init__(self) -> None:
        self.times: list[float] = []

    def handle(self, request: Request, now: float, who: str) -> Response:  # noqa: ARG002 - it only counts
        """Count; the answer never leaves."""
        self.times.append(now)
        return Response(503)

    def before(self, moment: float) -> int:
        """How many requests came before that."""
        return sum(each < moment for each in self.times)


def as_json(value: Mapping[str, Any], status: int = 200) -> Response:
    """A JSON answer."""
    return Response(status, JSON, json.dumps(value).encode())
