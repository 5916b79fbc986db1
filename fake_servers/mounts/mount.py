"""Pure servers behind real sockets of this machine, all in one thread or in the loop that is there."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

from fake_servers.mounts.authority import TestAuthority
from fake_servers.mounts.connection import Connection, Place
from harness.world.errors import WorldFault
from harness.world.outside.setting import Pace
from harness.world.ports import Request, Response
from harness.world.sites import origin

HOST = "127.0.0.1"
FULL_SECONDS = 0.05
REAL_TIME = Pace()


class Server(Protocol):
    """A pure server. One that has `breaks` ("reset-before", "reset-after") breaks every connection there."""

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer; `who` is the actor that asks, empty where nobody says."""


class Mount:
    """Serves several origins, each on a port of its own, between enter and exit (`with` or `async with`).

    `servers` are by origin. An https origin needs the `authority` and is served with a certificate for its host
    name. An origin whose port is 0 is its own address, as in `http://127.0.0.1:0`. `ports` asks for certain ports.
    `pace` tells how long the world's seconds are and what `now` a server is given. With `with` a thread serves; with
    `async with` the running loop. At the exit every connection is cut, and what a server raised is raised as
    WorldFault unless something else is.

    >>> class Hello:
    ...     def handle(self, request, now, who):
    ...         return Response(200, body=b"hello")
    >>> with Mount({"http://hello.test": Hello()}) as mount:
    ...     import urllib.request
    ...     urllib.request.urlopen(mount.url("http://hello.test/")).read()
    b'hello'
    """

    def __init__(
        self,
        servers: Mapping[str, Server],
        *,
        pace: Pace = REAL_TIME,
        authority: TestAuthority | None = None,
        ports: Mapping[str, int] | None = None,
    ) -> None:
        self.servers = {origin(url): server for url, server in servers.items()}
        self.pace, self.authority = pace, authority
        self.addresses: dict[str, tuple[str, int]] = {}
        self.errors: list[WorldFault] = []
        self._ports = {origin(url): port for url, port in (ports or {}).items()}
        self._sockets: dict[str, socket.socket] = {}
        self._places: list[Place] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()

    def url(self, url: str) -> str:
        """Where a URL of one of the origins is really served: same scheme and path, the address of this machine."""
        parts = urlsplit(url)
        host, port = self.addresses[origin(url)]
        return parts._replace(netloc=f"{host}:{port}").geturl()

    def __enter__(self) -> Self:
        self._bind()
        started: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(started)), name="mount", daemon=True)
        self._thread.start()
        try:
            started.result()
        except BaseException:
            self._thread.join()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
        self._raise_unless(error)

    async def __aenter__(self) -> Self:
        self._bind()
        await self._listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()
        self._raise_unless(error)

    async def _run(self, started: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            try:
                await self._listen()
            except BaseException as error:  # noqa: BLE001 - whoever waits for the start raises it
                started.set_exception(error)
                return
            started.set_result(None)
            await self._stop.wait()
        finally:
            await self._close()

    def _bind(self) -> None:
        """Take a port for each origin. Raises OSError when a certain one is taken."""
        try:
            for place in self.servers:
                listening = socket.create_server((HOST, self._ports.get(place, 0)))
                listening.settimeout(0)
                self._sockets[place] = listening
                self.addresses[place] = listening.getsockname()[:2]
        except BaseException:
            self._close_sockets()
            raise

    async def _listen(self) -> None:
        for name, listening in self._sockets.items():
            parts = urlsplit(name)
            context = None
            if parts.scheme == "https":
                if self.authority is None:
                    raise ValueError(f"{name} needs an authority")
                context = self.authority.server_context(parts.hostname or "")
            place = self._place(name)
            self._places.append(place)
            self._begin(self._accept(place, listening, context))

    async def _accept(self, place: Place, listening: socket.socket, context: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError:  # this process has no room for another file: whoever connects waits until it has
                await asyncio.sleep(FULL_SECONDS)
                continue
            self._begin(self._connect(place, accepted, context))

    async def _connect(self, place: Place, accepted: socket.socket, context: ssl.SSLContext | None) -> None:
        """Shake hands; a client that will not is no concern of ours."""
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(lambda: Connection(place), accepted, ssl=context)
        except (OSError, asyncio.CancelledError) as left:
            accepted.close()
            if isinstance(left, asyncio.CancelledError):
                raise

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _place(self, name: str) -> Place:
        server = self.servers[name]
        own = name
        if urlsplit(name).port == 0:
            own = f"{urlsplit(name).scheme}://{HOST}:{self.addresses[name][1]}"

        def handle(request: Request, who: str) -> Response:
            try:
                response = server.handle(request, self.pace.now(), who)
            except Exception as error:
                fault = WorldFault(f"the server {own} raised {error!r}")
                fault.__cause__ = error
                self.errors.append(fault)
                raise
            for each in self._places:
                for connection in each.connections:
                    connection.grow()
            return response

        return Place(own, handle, self.pace, getattr(server, "breaks", None))

    async def _close(self) -> None:
        """Cut every connection, wait for whoever answers, and give the ports back."""
        waited = list(self._tasks)
        for task in waited:
            task.cancel()
        for place in self._places:
            waited += place.state.tasks
            for connection in place.connections:
                connection.transport.abort()
        if waited:
            await asyncio.wait(waited)
        while any(place.connections for place in self._places):
            await asyncio.sleep(0)
        self._close_sockets()

    def _close_sockets(self) -> None:
        for listening in self._sockets.values():
            listening.close()
        self._sockets.clear()

    def _raise_unless(self, error: BaseException | None) -> None:
        if error is None and self.errors:
            raise self.errors[0]
