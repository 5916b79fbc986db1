"""The one way out: a request over a connection of its own, and what became of it.

No proxy, cookie, redirect or kept connection: what is sent is the request. A failure says whether it can have been
processed: until its first byte is sent, it cannot.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

import anyio
import httpx
from anyio.abc import AsyncResource

from harness.world.errors import Ambiguous, NotSent
from harness.world.ports import Request, header
from harness.world.values import is_sendable

SCHEMES = ("http", "https")
_OPENED = "send_request_headers.started"
_CONNECTED = "connect_tcp.complete"
_SECURING = "start_tls.started"


class Place(NamedTuple):
    """Where somebody listens instead of the host that a URL names."""

    host: str
    port: int


class Progress:
    """How far a request has come: it may be told to wait no longer for the connection, which is then there."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope
        self._stream: AsyncResource | None = None
        self.is_securing = self.is_sent = False

    async def note(self, step: str, details: Mapping[str, Any]) -> None:
        """Something that the connection is doing now."""
        if step.endswith(_CONNECTED):
            self._stream = details["return_value"]
        elif step.endswith(_SECURING):
            self.is_securing = True
        elif step.endswith(_OPENED):
            self.is_sent = True
            self._scope.deadline = inf

    async def abandon(self) -> None:
        """Close a connection that was not finished: who is called back in a handshake leaves it open."""
        if self._stream is not None and not self.is_sent:
            with anyio.CancelScope(shield=True):
                await self._stream.aclose()


class Network:
    """Connections of one actor. `certificates` is a file of authorities to trust besides the system's.

    Where somebody steers, no other host is ever asked: the system's are not even read there, as that takes long.
    """

    def __init__(self, certificates: str = "", *, trusts_system: bool = True) -> None:
        self._certificates = certificates
        self._trusts_system = trusts_system or not certificates
        self._transports: dict[str, httpx.AsyncHTTPTransport] = {}

    async def deliver(
        self,
        request: Request,
        place: Place | None,
        own_headers: Mapping[str, str],
        *,
        open_seconds: float,
        read_seconds: float,
    ) -> httpx.Response:
        """The answer, its body unread; times are real ones. Raises NotSent or Ambiguous."""
        message = written(request, place, own_headers)
        with anyio.CancelScope(deadline=anyio.current_time() + open_seconds) as scope:
            progress = Progress(scope)
            message.extensions |= {
                "trace": progress.note,
                "timeout": {"connect": None, "read": read_seconds, "write": read_seconds, "pool": None},
            }
            try:
                response = await self._transport(message.url.scheme).handle_async_request(message)
            except (httpx.LocalProtocolError, UnicodeError) as error:
                raise NotSent("refused" if progress.is_sent else "dns") from error
            except httpx.TransportError as error:
                if progress.is_sent:
                    raise ambiguous(error) from error
                raise NotSent(never_sent(error, is_securing=progress.is_securing)) from error
            except BaseException:
                await progress.abandon()
                raise
            response.request = message
            return response
        if progress.is_sent:
            raise Ambiguous("timeout")
        raise NotSent("timeout")

    async def refuse(self, port: int) -> None:
        """Connect to a port of this machine where nobody listens."""
        if port:
            try:
                stream = await anyio.connect_tcp("127.0.0.1", port)
            except OSError:
                return
            await stream.aclose()

    async def close(self) -> None:
        """Close every connection."""
        for transport in self._transports.values():
            await transport.aclose()

    def _transport(self, scheme: str) -> httpx.AsyncHTTPTransport:
        """One for each scheme: the system's certificates are read when https is first asked for."""
        if scheme not in self._transports:
            context = self._context() if scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            limits = httpx.Limits(max_keepalive_connections=0)
            self._transports[scheme] = httpx.AsyncHTTPTransport(verify=context, limits=limits, trust_env=False)
        return self._transports[scheme]

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context() if self._trusts_system else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self._certificates:
            context.load_verify_locations(self._certificates)
        return context


def written(request: Request, place: Place | None, own_headers: Mapping[str, str]) -> httpx.Request:
    """The request as it goes out. At another place it is still for the host of its URL, whose certificate counts.

    Raises NotSent where the URL names no host that could be asked.
    """
    try:
        url = httpx.URL(request.url)
        is_place = url.scheme in SCHEMES and bool(url.host)
    except (httpx.InvalidURL, UnicodeError) as error:  # the host is only decoded when it is asked for
        raise NotSent("dns") from error
    if not is_place:
        raise NotSent("dns")
    if not is_sendable(request.method, request.headers):
        raise NotSent("refused")
    headers = [(encoded(name), encoded(value)) for name, value in {**request.headers, **own_headers}.items()]
    if header(request.headers, "Host") is None:
        headers.append((b"Host", url.netloc))
    target = url if place is None else url.copy_with(host=place.host, port=place.port)
    extensions = {"sni_hostname": url.raw_host.decode("ascii")}
    try:
        return httpx.Request(request.method, target, headers=headers, content=request.body, extensions=extensions)
    except UnicodeError as error:
        raise NotSent("refused") from error


def encoded(text: str) -> bytes:
    """A header's name or value. Blanks around a value are no part of it."""
    text = text.strip(" \t")
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def never_sent(error: BaseException, *, is_securing: bool) -> str:
    """Why there is no connection: dns, tls, timeout or refused."""
    if isinstance(error, httpx.TimeoutException):
        return "timeout"
    if is_securing:
        return "tls"
    return "dns" if any(isinstance(cause, socket.gaierror) for cause in causes(error)) else "refused"


def ambiguous(error: httpx.RequestError) -> Ambiguous:
    """It was sent, and no whole answer came."""
    return Ambiguous("timeout" if isinstance(error, httpx.TimeoutException) else "reset")


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what led to it."""
    pending: list[BaseException | None] = [error]
    while pending:
        cause = pending.pop()
        if cause is not None:
            yield cause
            pending += [cause.__cause__, cause.__context__]
            if isinstance(cause, BaseExceptionGroup):
                pending += cause.exceptions
