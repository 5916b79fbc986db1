"""HTTP/1.1 as a client speaks it: one request on a connection, its answer piece by piece.

`http.client` would load the e-mail package, which takes longer than a fake server needs to answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, quote

from harness.world.blocking.baton import Deadline
from harness.world.blocking.sockets import Connection
from harness.world.ports import Request, header
from harness.world.values import is_sendable

HEAD_BYTES = 262_144
"""More than any server sends as head of an answer."""
OWN_HEADERS = frozenset({"connection", "content-length", "transfer-encoding"})
"""They say how a body is cut, which is for the client to say."""
BLANKS = " \t"
"""Around a value they are no part of it."""
_BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})
_TARGET_SAFE = "/?:@!$&'()*+,;=%-._~[]|^`{}\\\""


class Broken(Exception):  # noqa: N818 - a state of an answer
    """The connection broke off, or what came is no HTTP."""


class Head(NamedTuple):
    """The beginning of an answer."""

    status: int
    headers: Mapping[str, str]


def encoded(request: Request, url: SplitResult, own: Mapping[str, str]) -> bytes | None:
    """A request as it is sent; None when it cannot be (a name that is none, a value with a line break)."""
    if not is_sendable(request.method, request.headers):
        return None
    given = {**request.headers, **own}
    headers = {name: value for name, value in given.items() if name.lower() not in OWN_HEADERS}
    if header(headers, "host") is None:
        headers = {"Host": _host(url), **headers}
    if request.body or request.method.upper() in _BODY_METHODS:
        headers["Content-Length"] = str(len(request.body))
    headers["Connection"] = "close"
    target = quote(url.path or "/", safe=_TARGET_SAFE) + (
        f"?{quote(url.query, safe=_TARGET_SAFE)}" if url.query else ""
    )
    lines = [
        f"{request.method} {target} HTTP/1.1",
        *(f"{name}: {value.strip(BLANKS)}" for name, value in headers.items()),
    ]
    return b"".join(_octets(line) + b"\r\n" for line in (*lines, "")) + request.body


def _host(url: SplitResult) -> str:
    host = url.hostname or ""
    name = f"[{host}]" if ":" in host else host
    return name if url.port in (None, {"https": 443, "http": 80}.get(url.scheme)) else f"{name}:{url.port}"


def _octets(line: str) -> bytes:
    try:
        return line.encode("latin-1")
    except UnicodeEncodeError:
        return line.encode(errors="surrogatepass")


class Answer:
    """What comes back. A wait that took too long can be taken up again: what has come is kept."""

    def __init__(self, connection: Connection, method: str) -> None:
        self._connection, self._method = connection, method.upper()
        self._buffer = bytearray()
        self._left: int | None = 0
        self._is_chunked = self._is_in_chunk = False
        self.is_over = False

    def head(self, deadline: Deadline) -> Head:
        """Its status and headers, when informative answers have gone by. Raises TimeIsOver, Broken and OSError."""
        while True:
            found = self._head(deadline)
            if found.status >= 200 or found.status == 101:
                break
        self._measure(found)
        return found

    def _head(self, deadline: Deadline) -> Head:
        while (end := _end_of_head(self._buffer)) < 0:
            if len(self._buffer) > HEAD_BYTES:
                raise Broken("an endless head")
            self._fill(deadline)
        text = bytes(self._buffer[:end]).decode("latin-1")
        del self._buffer[:end]
        first, *lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
        protocol, _, rest = first.partition(" ")
        status = rest[:3]
        if not protocol.startswith("HTTP/1.") or not (status.isdigit() and len(status) == 3):
            raise Broken("no HTTP")
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            value = value.strip(BLANKS)
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return Head(int(status), headers)

    def _measure(self, head: Head) -> None:
        """How long the body is."""
        length = header(head.headers, "content-length")
        if self._method == "HEAD" or head.status in (101, 204, 304):
            self.is_over = True
        elif "chunked" in (header(head.headers, "transfer-encoding") or "").lower():
            self._is_chunked = True
        elif length is None:
            self._left = None
        elif length.isdigit() and length.isascii():
            self._left = int(length)
            self.is_over = not self._left
        else:
            raise Broken("a body without a length")

    def piece(self, deadline: Deadline) -> bytes:
        """Some of the body, nothing at its end. Raises TimeIsOver, Broken and OSError."""
        if self._is_chunked and not self._left and not self.is_over:
            self._next_chunk(deadline)
        if self.is_over:
            return b""
        if not self._buffer:
            if self._left is None:
                return self._until_closed(deadline)
            self._fill(deadline)
        size = len(self._buffer) if self._left is None else min(self._left, len(self._buffer))
        found = bytes(self._buffer[:size])
        del self._buffer[:size]
        if self._left is not None:
            self._left -= size
            self.is_over = not self._left and not self._is_chunked
        return found

    def _until_closed(self, deadline: Deadline) -> bytes:
        found = self._connection.receive(deadline)
        self.is_over = not found
        return found

    def _next_chunk(self, deadline: Deadline) -> None:
        if self._is_in_chunk:
            if self._line(deadline):
                raise Broken("a chunk that is longer than it says")
            self._is_in_chunk = False
        size = self._line(deadline).partition(b";")[0].strip()
        try:
            self._left = int(size, 16)
        except ValueError:
            raise Broken("a chunk without a size") from None
        if self._left < 0:
            raise Broken("a chunk without a size")
        self._is_in_chunk = True
        if not self._left:
            self.is_over = True  # trailers tell nothing that anybody here asks for

    def _line(self, deadline: Deadline) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > HEAD_BYTES:
                raise Broken("an endless line")
            self._fill(deadline)
        line = bytes(self._buffer[:end]).rstrip(b"\r")
        del self._buffer[: end + 1]
        return line

    def _fill(self, deadline: Deadline) -> None:
        part = self._connection.receive(deadline)
        if not part:
            raise Broken("ends in the middle")
        self._buffer += part


def _end_of_head(buffer: bytearray) -> int:
    """Where the body begins; -1 while it does not."""
    ends = [found + len(blank) for blank in (b"\r\n\r\n", b"\n\n") if (found := buffer.find(blank)) >= 0]
    return min(ends, default=-1)
