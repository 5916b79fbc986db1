"""The one way by which the reference's client reaches servers that speak plain HTTP: as if somebody in front of them
spoke TLS for them.

The suite serves everything at `http://localhost`, and the client posts to https alone, with no exception. A `Seam`
around a world makes each port of localhost two places: `https://localhost:PORT`, which the client sees and speaks to,
and `http://localhost:PORT`, which is told the same. Every other URL is refused, those in clear above all. It is made
here and nowhere else: nothing of the harness or of the reference can name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from harness.world import NotSent, Request, Response, World
from harness.world.ports import Http, Stream

OUTSIDE, INSIDE = "https://localhost:", "http://localhost:"
ESCAPED = {":": "%3A", "/": "%2F"}


def secured(text: str) -> str:
    """What a server says of itself, as its client is to read it."""
    return replaced(text, INSIDE, OUTSIDE)


def plain(text: str) -> str:
    """What a client says to a server, as the server knows itself."""
    return replaced(text, OUTSIDE, INSIDE)


def replaced(text: str, old: str, new: str) -> str:
    """An origin exchanged for another, as it stands and as a form or a query encodes it."""
    return text.replace(old, new).replace(escaped(old), escaped(new))


def escaped(text: str) -> str:
    """A text as a form encodes it."""
    return "".join(ESCAPED.get(each, each) for each in text)


def behind(world: World) -> World:
    """The world with a seam in place of its network."""
    return cast(World, Seam(world))


class Seam:
    """All ports of a world but the network, which is that of a `SeamHttp`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.http = SeamHttp(world.http)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)


class SeamHttp:
    """Requests to `https://localhost`, which arrive at `http://localhost`."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def send(self, request: Request, *, open_timeout_seconds: float, read_timeout_seconds: float) -> Response:
        """The answer, with each place in it as the client knows it. Raises NotSent for every other URL."""
        if not request.url.startswith(OUTSIDE):
            raise NotSent("refused")
        body = plain(request.body.decode()).encode()
        inside = request._replace(url=plain(request.url), body=body)
        response = await self._http.send(
            inside, open_timeout_seconds=open_timeout_seconds, read_timeout_seconds=read_timeout_seconds
        )
        return response._replace(headers=told(response.headers), body=secured(response.body.decode()).encode())

    async def open(self, request: Request, *, open_timeout_seconds: float, read_timeout_seconds: float) -> Stream:
        """No client that goes through here listens to a stream."""
        raise NotSent("refused")


def told(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of an answer, but for what was true of its body as it came."""
    return {name: secured(value) for name, value in headers.items() if name.lower() != "content-length"}
