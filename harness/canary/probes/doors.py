"""Many servers on one port, for the probes of every runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fake_servers.mcp.behaviour import Behaviour
from fake_servers.mcp.http import HttpServer, bearer
from harness.world.ports import Request, Response

NOWHERE = (".well-known", "register", "token", "authorize")
"""Where an authorization server would be: there is none."""


class Visit(NamedTuple):
    """A request at a door."""

    at: float
    method: str
    rpc_method: str | None
    token: str | None
    headers: Mapping[str, str]
    path: str


class Doors:
    """Many servers on one port: the first part of the path says which, and every request is kept under it.

    A door that is not named is that of a good server.
    """

    def __init__(self, behaviours: Mapping[str, Behaviour] | None = None, *, sse: Sequence[str] = ()) -> None:
        self.servers: dict[str, HttpServer] = {
            name: HttpServer(behaviour, transport="sse" if name in sse else "http")
            for name, behaviour in (behaviours or {}).items()
        }
        self.visits: dict[str, list[Visit]] = {}

    def handle(self, request: Request, now: float, who: str) -> Response:
        """Keep the request, then answer as the server behind the door."""
        path = request.url.partition("://")[2].partition("/")[2]
        door = path.partition("/")[0].partition("?")[0]
        if door in NOWHERE:
            return Response(404)
        server = self.servers.setdefault(door, HttpServer())
        response = server.handle(request, now, who)
        seen = server.requests[-1]
        self.visits.setdefault(door, []).append(
            Visit(now, request.method, seen.rpc_method, bearer(request), dict(request.headers), path)
        )
        return response

    def shown(self, door: str) -> str | None:
        """The first token that was shown at a door."""
        return next((visit.token for visit in self.visits.get(door, ()) if visit.token), None)

    def visited(self, door: str) -> bool:
        """Whether anybody came."""
        return bool(self.visits.get(door))
