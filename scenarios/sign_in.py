"""A server that wants a sign-in, with an authorization server of its own at the same origin, for tests of the fakes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from fake_servers.mcp import Behaviour, HttpServer
from harness.world.ports import Request, Response


class SignInServer(HttpServer):
    """`asked` are the forms that came to its token endpoint, `grants` its answers in order, after which it refuses.

    It registers whoever asks, and `registered` counts them.
    """

    def __init__(self, behaviour: Behaviour, *, grants: Sequence[Response] = ()) -> None:
        super().__init__(behaviour)
        self.asked: list[dict[str, str]] = []
        self.grants = list(grants)
        self.registered = 0

    def handle(self, request: Request, now: float, who: str) -> Response:
        """Answer for the authorization server, or as the server."""
        parts = urlsplit(request.url)
        origin, path = f"{parts.scheme}://{parts.netloc}", parts.path
        if path.startswith("/.well-known/oauth-protected-resource"):
            return as_json({"resource": f"{origin}/mcp", "authorization_servers": [f"{origin}/as"]})
        if path == "/.well-known/oauth-authorization-server/as":
            endpoints = {
                f"{name}_endpoint": f"{origin}/as/{name}" for name in ("authorization", "token", "registration")
            }
            return as_json({"issuer": f"{origin}/as", "response_types_supported": ["code"], **endpoints})
        if path == "/as/registration":
            self.registered += 1
            return as_json({"client_id": "registered"}, 201)
        if path == "/as/token":
            self.asked.append(dict(parse_qsl(request.body.decode())))
            return self.grants.pop(0) if self.grants else as_json({"error": "invalid_grant"}, 400)
        return super().handle(request, now, who)


def as_json(value: Mapping[str, Any], status: int = 200) -> Response:
    """A JSON answer."""
    return Response(status, {"Content-Type": "application/json"}, json.dumps(value).encode())


def granted(token: str, **more: Any) -> Response:
    """An answer of the token endpoint with a new token."""
    return as_json({"access_token": token, "token_type": "Bearer", **more})
