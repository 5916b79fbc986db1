"""What stands at one origin where a real program comes: the servers, and beside those that want a token of their own
the authorization server that they name. Without that a program takes one that wants a sign-in for a broken one.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from fake_servers.mcp.http import HttpServer
from fake_servers.oauth import AuthorizationServer, Protected, Resource
from harness.scenario.cast import Site
from harness.world.ports import Request, Response

BROKEN = Response(0)
"""No answer: the connection is broken."""
WELL_KNOWN = "/.well-known/"
ELSEWHERE = (WELL_KNOWN, "/register", "/token", "/authorize")
"""Where programs look for an authorization server beside any that refuses them, whether or not it names one."""


class Place:
    """Servers by path. One whose behaviour is to break its connections does so here; it cannot by itself."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.authorization = AuthorizationServer()
        self.protected = [
            Protected(server, self.authorization, Resource(path))
            for path, server in site.by_path.items()
            if server.behaviour.requires_bearer and server.behaviour.challenge is None
        ]

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer of whoever is meant."""
        if any(place.serves(request.url) for place in self.site.places):
            return self.site.handle(request, now, who)
        path = urlsplit(request.url).path
        server = self.site.by_path.get(path)
        if server is None and (self.protected or path.startswith(ELSEWHERE)):
            return self._beside(request, now, who)
        breaks = server.breaks if isinstance(server, HttpServer) else None
        if breaks == "reset-before":
            return BROKEN
        response = self.site.handle(request, now, who)
        return BROKEN if breaks else response

    def _beside(self, request: Request, now: float, who: str) -> Response:
        """What is on no server's path: metadata of one, or the authorization server of all."""
        if not self.protected:
            return Response(404)
        if self.authorization.serves(request.url):
            return self.authorization.handle(request, now, who)
        for protected in self.protected:
            if protected.serves(request.url):
                return protected.handle(request, now, who)
        return Response(404)
