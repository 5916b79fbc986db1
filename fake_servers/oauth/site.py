"""Several pure servers that share one origin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit

from fake_servers.oauth.answers import BROKEN
from harness.world.ports import Request, Response


class Server(Protocol):
    """A pure server. One that has `breaks` ("reset-before", "reset-after") breaks every connection there."""

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer; `who` is the actor that asks."""


class Place(Server, Protocol):
    """A server that knows what it serves."""

    def serves(self, url: str) -> bool:
        """Whether a request to that URL is for it."""


class Site:
    """Gives each request to the first of `servers` that serves it, else to that of `paths` (prefixes) whose path is
    the longest; what nobody serves is not found. `requests` holds when who asked for what, and what it got.
    """

    def __init__(self, *servers: Place, paths: Mapping[str, Server] | None = None) -> None:
        self.servers = servers
        self.paths = {path.rstrip("/"): server for path, server in (paths or {}).items()}
        self.requests: list[tuple[float, str, str, str, int]] = []

    def serves(self, url: str) -> bool:
        """Whether anybody does."""
        return self._server(url) is not None

    def breaks_next(self, method: str, url: str) -> str | None:
        """What a fault of the network is to do to this request if it is the next to be handled."""
        return breaks_next(self._server(url), method, url)

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer to one request."""
        server = self._server(request.url)
        response = Response(404) if server is None else carried(server, request, now, who)
        self.requests.append((now, who, request.method, request.url, response.status))
        return response

    def _server(self, url: str) -> Server | None:
        path = urlsplit(url).path
        found: Server | None = next((server for server in self.servers if server.serves(url)), None)
        if found is not None:
            return found
        fitting = [prefix for prefix in self.paths if path == prefix or path.startswith(f"{prefix}/")]
        return self.paths[max(fitting, key=len)] if fitting else None


def carried(server: Server, request: Request, now: float, who: str) -> Response:
    """The answer of a server behind another one, its connection broken as it wants it."""
    breaks = getattr(server, "breaks", None)
    if breaks == "reset-before":
        return BROKEN
    response = server.handle(request, now, who)
    return BROKEN._replace(after_seconds=response.after_seconds) if breaks else response


def breaks_next(server: object, method: str, url: str) -> str | None:
    """What a fault is to do to the next request to a server, whichever way it tells."""
    told = getattr(server, "breaks_next", None)
    if told is not None:
        action: str | None = told(method, url)
        return action
    return "reset-after" if getattr(server, "breaks", None) else None
