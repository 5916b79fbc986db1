"""Requests over real sockets: to the hosts of their URLs, or to what whoever steers puts in their place."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import SplitResult, urlsplit

from harness.world.blocking.baton import Deadline
from harness.world.blocking.event_stream import EventParser, is_event_stream
from harness.world.blocking.http1 import Answer, Broken, Head, encoded
from harness.world.blocking.port import Port
from harness.world.blocking.process import Process
from harness.world.blocking.sockets import Connection, TimeIsOver, connected
from harness.world.errors import Ambiguous, NotSent, ReadTimeout
from harness.world.outside.control import ACTOR_HEADER, FAULT_HEADER, Struck, resolve_message
from harness.world.ports import Request, Response, StreamEvent, header
from harness.world.sites import HTTP_ACTIONS, NEVER_SENT, STREAM_ACTIONS, origin
from harness.world.values import octets

if TYPE_CHECKING:
    import ssl

LOOPBACK = "127.0.0.1"
PORTS: Mapping[str, int] = {"http": 80, "https": 443}
NO_FAULT = Struck("")
RESETS = ("reset-before", "reset-after")


class Exchange:
    """An answer that has begun: its head, and where its body comes from (None: from nowhere, `body` is all)."""

    __slots__ = ("answer", "body", "connection", "head")

    def __init__(
        self, head: Head, *, answer: Answer | None = None, connection: Connection | None = None, body: bytes = b""
    ) -> None:
        self.head, self.answer, self.connection, self.body = head, answer, connection, body

    def close(self) -> None:
        """Read no more."""
        if self.connection is not None:
            self.connection.close()


class BlockingStream(Port):
    """An open answer, read when somebody wants its next event."""

    __slots__ = ("_exchange", "_is_broken", "_is_closed", "_label", "_parser")
    kind = "http"

    def __init__(self, process: Process, exchange: Exchange, label: str) -> None:
        super().__init__(process)
        self._exchange, self._label = exchange, f"event of {label}"
        self._parser = EventParser()
        if exchange.answer is None and exchange.body:
            self._parser.events.append(exchange.body.decode(errors="replace"))
        self._is_broken = self._is_closed = False

    @property
    def status(self) -> int:
        """The answer's status."""
        return self._exchange.head.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The answer's headers."""
        return self._exchange.head.headers

    async def read_event(self, timeout_seconds: float) -> str | None:
        """The next event's data, None at the end."""
        self._process.require_times(timeout_seconds)
        if self._reach(self._label, STREAM_ACTIONS) is not None:
            self._break()
        deadline = self._process.deadline(timeout_seconds)
        while not self._is_broken and not self._is_closed:
            if self._parser.events:
                return self._parser.events.popleft()
            if not self._read(deadline):
                break
        if self._is_broken:
            raise Ambiguous("reset")
        return None

    def _read(self, deadline: Deadline) -> bool:
        """Take what has come; False at the end."""
        answer = self._exchange.answer
        if answer is None:
            return False
        try:
            piece = answer.piece(deadline)
        except TimeIsOver:
            raise ReadTimeout from None
        except (Broken, OSError):
            if not self._is_closed:
                self._break()
            return False
        self._parser.feed(piece)
        if not piece:
            self._parser.end()
            self._exchange.close()
        return bool(piece or self._parser.events)

    def _break(self) -> None:
        self._is_broken = True
        self._exchange.close()

    async def close(self) -> None:
        """Read no more: whoever reads, now or later, gets the end."""
        self._reach(f"close {self._label}")
        self._is_closed = True
        self._exchange.close()


class BlockingHttp(Port):
    """Requests to servers: a connection for each, no proxy, no redirect, no cookie."""

    __slots__ = ("_context",)
    kind = "http"

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._context: ssl.SSLContext | None = None

    async def send(self, request: Request, *, open_timeout_seconds: float, read_timeout_seconds: float) -> Response:
        """The whole answer; a stream is read to its end."""
        exchange = self._exchange(request, open_timeout_seconds, read_timeout_seconds)
        return Response(exchange.head.status, exchange.head.headers, self._whole(exchange, read_timeout_seconds))

    async def open(
        self, request: Request, *, open_timeout_seconds: float, read_timeout_seconds: float
    ) -> BlockingStream:
        """The answer as a stream."""
        exchange = self._exchange(request, open_timeout_seconds, read_timeout_seconds)
        if not is_event_stream(header(exchange.head.headers, "content-type")):
            exchange = Exchange(exchange.head, body=self._whole(exchange, read_timeout_seconds))
        return BlockingStream(self._process, exchange, f"{request.method} {request.url}")

    def _whole(self, exchange: Exchange, read_timeout: float) -> bytes:
        """The rest of an answer; no silence in it is longer than the timeout."""
        if exchange.answer is None:
            return exchange.body
        pieces = []
        try:
            while piece := exchange.answer.piece(self._process.deadline(read_timeout)):
                pieces.append(piece)
        except TimeIsOver:
            raise Ambiguous("timeout") from None
        except (Broken, OSError):
            raise Ambiguous("reset") from None
        finally:
            exchange.close()
        return b"".join(pieces)

    def _exchange(self, request: Request, open_timeout: float, read_timeout: float) -> Exchange:
        """Up to the head of the answer, with what strikes on the way."""
        process, label = self._process, f"{request.method} {request.url}"
        process.require_times(open_timeout, read_timeout)
        fault = self._reach(label, HTTP_ACTIONS, octets(request.body)) or NO_FAULT
        if fault.action == "open-timeout" or fault.action in NEVER_SENT:
            self._never_sent(fault, open_timeout)
        url, host, port = self._place(request.url)
        began = process.pace.now()
        if fault.action == "answer":
            exchange = _given(fault)
        else:
            message = encoded(request, url, self._own_headers(fault))
            if message is None:
                raise NotSent("refused")
            connection = self._connection(url, host, port, process.deadline(open_timeout))
            try:
                exchange = self._asked(connection, Answer(connection, request.method), message, fault, read_timeout)
            except Ambiguous:
                connection.close()
                if fault.action != "reset-before":
                    self._reach(f"processed {label}")
                raise
        process.emit("request", {"at": label, "status": exchange.head.status})
        self._reach(f"processed {label}")
        self._delay(exchange, fault, began, read_timeout)
        return exchange

    def _never_sent(self, fault: Struck, open_timeout: float) -> NoReturn:
        process = self._process
        if fault.action == "open-timeout":
            process.sleep(open_timeout)
            raise NotSent("timeout")
        if fault.action == "refused" and fault.port:
            connected(process.baton, LOOPBACK, fault.port, process.deadline(open_timeout)).close()
        raise NotSent(fault.action)

    def _place(self, text: str) -> tuple[SplitResult, str, int]:
        """Where to connect. Raises NotSent when nobody knows."""
        process = self._process
        if not origin(text):
            raise NotSent("dns")
        url = urlsplit(text)
        host, port = url.hostname or "", PORTS.get(url.scheme)
        if not host or port is None:
            raise NotSent("dns")
        port = port if url.port is None else url.port
        if process.control is None:
            return url, host, port
        found = process.ask(resolve_message(process.name, origin(text)))
        if "port" not in found:
            raise NotSent("dns")
        return url, found["host"], found["port"]

    def _connection(self, url: SplitResult, host: str, port: int, deadline: Deadline) -> Connection:
        connection = connected(self._process.baton, host, port, deadline)
        if url.scheme == "https":
            try:
                connection.encrypt(self._trust(), url.hostname or "", deadline)
            except NotSent:
                connection.close()
                raise
        return connection

    def _trust(self) -> ssl.SSLContext:
        """Whom to trust: the system's authorities and those of the setting.

        Where somebody steers, no host but theirs is ever asked, and the system's are not even read: it takes long.
        """
        if self._context is None:
            import ssl

            process = self._process
            certificates = process.setting.certificates
            is_alone = process.control is not None and certificates
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_alone else ssl.create_default_context()
            self._context.set_alpn_protocols(["http/1.1"])
            try:
                if certificates:
                    self._context.load_verify_locations(process.absolute(certificates))
            except OSError as error:
                process.halt(f"no certificates in {certificates}: {error}")
        return self._context

    def _own_headers(self, fault: Struck) -> Mapping[str, str]:
        """What a fake server is told, where somebody steers."""
        if self._process.control is None:
            return {}
        told = {ACTOR_HEADER: self._process.name}
        return {**told, FAULT_HEADER: fault.action} if fault.action in RESETS else told

    def _asked(
        self, connection: Connection, answer: Answer, message: bytes, fault: Struck, read_timeout: float
    ) -> Exchange:
        """Send it and wait for the head of the answer. Raises Ambiguous."""
        try:
            connection.send(message, partial(self._process.deadline, read_timeout))
            head = answer.head(self._process.deadline(read_timeout))
        except TimeIsOver:
            raise Ambiguous("timeout") from None
        except (Broken, OSError):
            raise Ambiguous("reset") from None
        if fault.action in RESETS:  # whoever was asked has not obeyed
            raise Ambiguous("reset")
        if fault.action == "answer-after":
            connection.close()
            return _given(fault)
        return Exchange(head, answer=answer, connection=connection)

    def _delay(self, exchange: Exchange, fault: Struck, began: float, read_timeout: float) -> None:
        """Let the answer come later. Silence that is longer than what is borne is not waited for."""
        late = fault.seconds + (fault.answer.after_seconds if fault.answer is not None else 0.0)
        if not late:
            return
        process = self._process
        now = process.pace.now()
        at = (began if exchange.answer is None else now) + late
        until = began + read_timeout
        process.sleep(max(min(at, until) - now, 0.0))
        if at > until:
            exchange.close()
            raise Ambiguous("timeout")


def _given(fault: Struck) -> Exchange:
    """The answer that a fault brings."""
    response = fault.answer or Response(500)
    events: tuple[StreamEvent, ...] = tuple(response.events or ())
    body = "".join(event.encoded() for event in events).encode() if response.events is not None else response.body
    return Exchange(Head(response.status, response.headers), body=body)
