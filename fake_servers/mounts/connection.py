"""One connection of a client to a pure server: HTTP/1.1 as uvicorn speaks it, delays, streams and resets as data says.

The HTTP protocol of the ASGI server is used without its server object, which has no way to break a connection,
serves one address, and takes a tenth of a second to notice that it shall stop.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from math import inf
from typing import Any

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from harness.world.outside.control import ACTOR_HEADER, FAULT_HEADER
from harness.world.outside.setting import Pace
from harness.world.ports import Request, Response, StreamEvent, header

BROKEN = ("reset-before", "reset-after")
FINAL_STATUS = 200
WITHOUT_BODY = (204, 304)
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
Handler = Callable[[Request, str], Response]
"""From a request and who asks to the answer. What it raises breaks the connection."""


class Place:
    """What all connections to one origin share. `breaks` is what befalls every request: a value of BROKEN, or None."""

    def __init__(self, origin: str, handler: Handler, pace: Pace, breaks: str | None) -> None:
        self.origin, self.handler, self.pace, self.breaks = origin, handler, pace, breaks
        self.config = Config(_never, http="h11", ws="none", lifespan="off", log_config=None, access_log=False)
        self.config.load()
        self.config.timeout_keep_alive = 3600
        self.state = ServerState()

    @property
    def connections(self) -> list[Connection]:
        """Those that are open."""
        return [each for each in self.state.connections if isinstance(each, Connection)]


class Connection(H11Protocol):
    """One connection; it carries one request after the other."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.config, place.state, {})
        self.place = place
        self.app = self.answer
        self.gone = False
        self.stirred = asyncio.Event()
        self.feed: Feed | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Whoever waits to answer waits no more."""
        super().connection_lost(exc)
        self.gone = True
        self.stirred.set()

    async def answer(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """One request: the application that the protocol calls."""
        body = await whole(receive)
        if body is None:
            return
        request, told = request_of(self.place.origin, scope, body)
        breaks = self.place.breaks or header(told, FAULT_HEADER)
        if breaks == "reset-before":
            await self.reset()
            return
        response = self._handled(request, header(told, ACTOR_HEADER) or "")
        if response is None:
            await self.reset()
            return
        await self._until(self._after(response.after_seconds))
        if breaks == "reset-after" or response.status < FINAL_STATUS:
            await self.reset()
        elif not self.gone:
            await self._send(response, send)
        self.feed = None

    def _handled(self, request: Request, who: str) -> Response | None:
        try:
            response = self.place.handler(request, who)
        except Exception:  # noqa: BLE001 - the mount keeps it for whoever runs it
            return None
        if response.events is not None:
            self.feed = Feed(tuple(response.events) if response.ends else response.events)
        return response

    async def _send(self, response: Response, send: Any) -> None:
        headers = dict(response.headers)
        body = b"" if response.status in WITHOUT_BODY else response.body
        if self.feed is None and header(headers, "Content-Length") is None and response.status not in WITHOUT_BODY:
            headers["Content-Length"] = str(len(body))
        await send({"type": "http.response.start", "status": response.status, "headers": encoded(headers)})
        if self.feed is not None:
            await self._stream(self.feed, send, ends=response.ends)
        elif not self.gone:
            await send({"type": "http.response.body", "body": body})

    async def _stream(self, feed: Feed, send: Any, *, ends: bool) -> None:
        """Send each event when it is due, until the last one or until the client leaves."""
        await send({"type": "http.response.body", "body": b"", "more_body": True})  # the headers leave at once
        feed.begin(self._after)
        while not self.gone:
            due = feed.due
            if due == inf and ends and not feed.coming:
                await send({"type": "http.response.body", "body": b""})
                return
            if due <= self.loop.time():
                await send({"type": "http.response.body", "body": feed.pop(), "more_body": True})
            else:
                await self._until(due, once=True)

    def grow(self) -> None:
        """Look for what a server has added to the stream that is open here."""
        if self.feed is not None and self.feed.grow(self._after):
            self.stirred.set()

    def _after(self, seconds: float) -> float:
        """The loop's time so many seconds of the world from now."""
        return self.loop.time() + self.place.pace.real(seconds)

    async def _until(self, at: float, *, once: bool = False) -> None:
        """Wait until a time of the loop or until the client is gone; with `once`, until anything happens."""
        while not self.gone and self.loop.time() < at:
            try:
                async with asyncio.timeout_at(None if at == inf else at):
                    await self.stirred.wait()
            except TimeoutError:
                continue
            self.stirred.clear()
            if once:
                return

    async def reset(self) -> None:
        """Break the connection: the client sees a reset, not an end."""
        given: socket.socket | None = self.transport.get_extra_info("socket")
        if given is not None and not self.gone:
            given.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self.transport.abort()
        await self._until(inf)


class Feed:
    """The events of one open answer, by when they are due."""

    def __init__(self, events: Sequence[StreamEvent]) -> None:
        self._live = events
        self._first = tuple(events)
        self._count = len(events)
        self.coming: list[tuple[float, int, bytes]] = []

    @property
    def due(self) -> float:
        """When the next event is due; infinite when none is known."""
        return self.coming[0][0] if self.coming else inf

    def begin(self, after: Callable[[float], float]) -> None:
        """The answer has begun: what it brought counts from now."""
        self._add(self._first, 0, after)

    def grow(self, after: Callable[[float], float]) -> bool:
        """Take what was added since; True when there was something."""
        first, self._count = self._count, len(self._live)
        self._add(self._live[first:], first, after)
        return self._count > first

    def pop(self) -> bytes:
        """The next event as it is sent."""
        return heappop(self.coming)[2]

    def _add(self, events: Sequence[StreamEvent], first: int, after: Callable[[float], float]) -> None:
        seconds = 0.0
        for number, event in enumerate(events, first):
            seconds += event.after_seconds
            heappush(self.coming, (after(seconds), number, event.encoded().encode()))


async def whole(receive: Any) -> bytes | None:
    """The body of a request; None when the client left before its end."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def request_of(origin: str, scope: Mapping[str, Any], body: bytes) -> tuple[Request, dict[str, str]]:
    """The request as the server sees it, and the headers that were for the mount.

    Names of headers are capitalised word by word; one that comes several times is one list.
    """
    headers: dict[str, str] = {}
    told: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").title(), raw_value.decode("latin-1")
        kept = told if name.lower().startswith("x-world-") else headers
        kept[name] = f"{kept[name]}, {value}" if name in kept else value
    path = scope["raw_path"].decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    url = f"{origin}{path}?{query}" if query else f"{origin}{path}"
    return Request(scope["method"], url, headers, body), told


def encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Headers as they are sent."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


async def _never(_scope: Any, _receive: Any, _send: Any) -> None:
    """What the configuration names; each connection answers by itself."""
