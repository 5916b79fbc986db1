"""A server behind a URL: streamable HTTP, and the older transport with a stream of events and a second address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin

from fake_runtimes.connections.connection import DEFAULT_SIGNALS, Connection
from fake_runtimes.connections.messages import Message, answers, decode, encode, is_answer, routing_headers
from fake_runtimes.connections.results import Access, Closed, Failure, Identity, OverTimeError, Signals
from fake_runtimes.loaded import LoadedServer
from harness.world import Ambiguous, NotSent, ReadTimeout, Request, Stream, Task, World, header

JSON, EVENTS = "application/json", "text/event-stream"
FIRST_FAULT_STATUS = 400
UNAUTHORIZED = 401
# How long the stream of server messages may take to open; nothing waits for it.
STREAM_OPEN_SECONDS = 60.0
# `tls` and a connect timeout were not measured apart: a client that cannot open a connection says so.
NOT_SENT_KINDS = {"dns": "dns", "timeout": "timeout"}


async def connect_http(
    world: World,
    server: LoadedServer,
    headers: Mapping[str, str],
    identity: Identity,
    budget_seconds: float,
    list_budget_seconds: float | None = None,
    *,
    lists_tools: bool = True,
    access: Access | None = None,
) -> Connection | Failure:
    """Shake hands with a remote server within the budget; `headers` are all that go along, and the token of `access`.

    The list of tools has a budget of its own, or None what is left of the first; without `lists_tools` it is
    left to the caller.
    """
    started = world.clock.now()
    until = started + budget_seconds
    made: Connection
    if server.transport == "sse":
        made = older = EventsConnection(world, server, identity, started, headers, access)
        failure = await older.open(until) or await older.shake_hands(until, probing=identity.probe)
    else:
        made = StreamableConnection(world, server, identity, started, headers, access)
        failure = await made.shake_hands(until, probing=identity.probe)
        if failure is not None and failure.status in identity.fallback_statuses:
            made = older = EventsConnection(world, server, identity, started, headers, access)
            refused = await older.open(until)
            failure = (
                failure._replace(fallback_status=refused.status)
                if refused is not None
                else await older.shake_hands(until, probing=False)
            )
    if failure is None and lists_tools:
        left = until - world.clock.now() if list_budget_seconds is None else list_budget_seconds
        failure = await made.list_tools(left)
    if failure is not None:
        await made.close()
        return failure
    return made


class HttpConnection(Connection):
    """What both transports share: posting messages. `headers` may be changed between requests."""

    def __init__(
        self,
        world: World,
        server: LoadedServer,
        identity: Identity,
        started_seconds: float,
        headers: Mapping[str, str],
        access: Access | None = None,
    ) -> None:
        super().__init__(world, server, identity, started_seconds)
        self.headers, self.access = headers, access
        self.address = server.url or ""
        self.session_id: str | None = None
        self.stream: Stream | None = None
        self.closed = False

    def all_headers(self, accept: str) -> dict[str, str]:
        """The headers of one request: the client's own, the session's, then what was configured."""
        own = {"Accept": accept, "Content-Type": JSON, "User-Agent": self.identity.user_agent}
        if self.session_id is not None:
            own["Mcp-Session-Id"] = self.session_id
        if self.protocol_version:
            own["Mcp-Protocol-Version"] = self.protocol_version
        return {**{name: value for name, value in own.items() if value}, **self.headers}

    async def open_answer(self, request: Request, until_seconds: float, stage: str) -> Stream | Failure:
        """The answer to one request, which goes out once more where a refusal could be mended."""
        access = self.access
        if access is None:
            return await self.answered(request, until_seconds, stage)
        try:
            answer = await self.answered(await self.with_token(access, request, until_seconds), until_seconds, stage)
            if not isinstance(answer, Failure) or answer.status != UNAUTHORIZED:
                return answer
            settled = await access.refused(answer, until_seconds)
            if settled is not None:
                return settled._replace(after_seconds=self.world.clock.now() - self.started_seconds)
            return await self.answered(await self.with_token(access, request, until_seconds), until_seconds, stage)
        except OverTimeError:
            return self.failed("timeout", stage, detail="timeout")

    async def with_token(self, access: Access, request: Request, until_seconds: float) -> Request:
        """The request with the token that goes along now."""
        token = await access.token(until_seconds)
        if token is None:
            return request
        return request._replace(headers={**request.headers, "Authorization": f"Bearer {token}"})

    async def answered(self, request: Request, until_seconds: float, stage: str) -> Stream | Failure:
        """The answer to a request as it is; an error status is a failure with its body."""
        left = max(until_seconds - self.world.clock.now(), 0.0)
        try:
            answer = await self.world.http.open(request, open_timeout_seconds=left, read_timeout_seconds=left)
            if answer.status < FIRST_FAULT_STATUS:
                return answer
            body = await answer.read_event(max(until_seconds - self.world.clock.now(), 0.0)) or ""
        except NotSent as error:
            return self.failed(NOT_SENT_KINDS.get(error.reason, "refused"), stage, detail=error.reason)
        except Ambiguous as error:
            return self.failed("timeout" if error.reason == "timeout" else "reset", stage, detail=error.reason)
        except ReadTimeout:
            return self.failed("timeout", stage, detail="timeout")
        challenge = header(answer.headers, "WWW-Authenticate")
        return self.failed("status", stage, status=answer.status, challenge=challenge, body=body)

    async def post(self, message: Message, until_seconds: float, stage: str) -> Stream | Failure:
        """Post one message."""
        headers = {**routing_headers(message), **self.all_headers(f"{JSON}, {EVENTS}")}
        request = Request("POST", self.address, headers, encode(message).encode())
        answer = await self.open_answer(request, until_seconds, stage)
        if not isinstance(answer, Failure):
            self.session_id = header(answer.headers, "Mcp-Session-Id") or self.session_id
        return answer

    async def tell(self, message: Message, until_seconds: float, stage: str) -> Failure | None:
        """Post a notification; whatever is answered but an error will do."""
        answer = await self.post(message, until_seconds, stage)
        return answer if isinstance(answer, Failure) else None

    async def read(self, stream: Stream, until_seconds: float, stage: str) -> str | Failure:
        """What comes next. The end is a failure: whoever reads still waits for something."""
        try:
            data = await stream.read_event(max(until_seconds - self.world.clock.now(), 0.0))
        except ReadTimeout:
            return self.failed("timeout", stage, detail="timeout")
        except Ambiguous as error:
            return self.failed("reset", stage, detail=error.reason)
        return self.failed("reset", stage, detail="the end") if data is None else data

    async def read_answer(
        self, stream: Stream, message_id: int | str, until_seconds: float, stage: str
    ) -> Message | Failure:
        """Events until the one that answers; a stream that ends before is as broken as one that breaks off."""
        while True:
            data = await self.read(stream, until_seconds, stage)
            if isinstance(data, Failure):
                return data
            received = decode(data)
            if received is not None and answers(received, message_id):
                return received
            if self.world.clock.now() > until_seconds:
                return self.failed("timeout", stage, detail="timeout")

    async def close(self, signals: Signals = DEFAULT_SIGNALS) -> Closed:  # noqa: ARG002 - there is no process
        """Let go of the open stream; the server is told nothing."""
        self.closed = True
        if self.stream is not None:
            await self.stream.close()
        return Closed()


class StreamableConnection(HttpConnection):
    """One address: each message is a POST, answered by JSON or by a stream."""

    async def exchange(self, message: Message, until_seconds: float, stage: str) -> Message | Failure:
        """Post and read the answer."""
        answer = await self.post(message, until_seconds, stage)
        if isinstance(answer, Failure):
            return answer
        kind = media_type(answer.headers)
        if kind == EVENTS:
            return await self.read_answer(answer, message["id"], until_seconds, stage)
        if kind != JSON:
            page = await self.read(answer, until_seconds, stage)
            shown = "" if isinstance(page, Failure) else page
            return self.failed("content", stage, status=answer.status, detail=kind, body=shown)
        body = await self.read(answer, until_seconds, stage)
        if isinstance(body, Failure):
            return body
        received = decode(body)
        if received is None or not answers(received, message["id"]):
            return self.failed("protocol", stage, detail="invalid message", body=body)
        return received

    async def after_handshake(self) -> None:
        """Ask for the stream of server messages beside everything else; a server may refuse it."""
        if self.identity.opens_stream:
            self.world.tasks.start(self._listen(), f"stream of {self.server.name}")

    async def _listen(self) -> None:
        request = Request("GET", self.address, self.all_headers(EVENTS))
        until = self.world.clock.now() + STREAM_OPEN_SECONDS
        answer = await self.open_answer(request, until, "initialize")
        if isinstance(answer, Failure):
            return
        if self.closed:
            await answer.close()
        else:
            self.stream = answer


class EventsConnection(HttpConnection):
    """The older transport: a stream names the address to post to, and carries the answers."""

    def __init__(
        self,
        world: World,
        server: LoadedServer,
        identity: Identity,
        started_seconds: float,
        headers: Mapping[str, str],
        access: Access | None = None,
    ) -> None:
        super().__init__(world, server, identity, started_seconds, headers, access)
        self._arrived: dict[int | str, Message] = {}
        self._reading: Task | None = None

    async def open(self, until_seconds: float) -> Failure | None:
        """Open the stream and learn the address; None when it worked."""
        request = Request("GET", self.address, self.all_headers(EVENTS))
        answer = await self.open_answer(request, until_seconds, "initialize")
        if isinstance(answer, Failure):
            return answer
        self.stream = answer
        kind = media_type(answer.headers)
        if kind != EVENTS:
            return self.failed("content", "initialize", status=answer.status, detail=kind)
        endpoint = await self.read(answer, until_seconds, "initialize")
        if isinstance(endpoint, Failure):
            return endpoint
        self.address = urljoin(self.address, endpoint)
        return None

    async def exchange(self, message: Message, until_seconds: float, stage: str) -> Message | Failure:
        """Post; the answer comes in the stream, whatever stands in the body."""
        answer = await self.post(message, until_seconds, stage)
        if isinstance(answer, Failure):
            return answer
        return await self.awaited(message["id"], until_seconds, stage)

    async def awaited(self, message_id: int | str, until_seconds: float, stage: str) -> Message | Failure:
        """The message of the stream that answers. Several may wait: one reads, and puts down what the others want."""
        if self.stream is None:
            return self.failed("reset", stage, detail="no stream")
        while message_id not in self._arrived:
            reading = self._reading
            if reading is None or reading.done:
                work = self._receive(self.stream, until_seconds, stage)
                reading = self._reading = self.world.tasks.start(work, f"events of {self.server.name}")
            left = max(until_seconds - self.world.clock.now(), 0.0)
            await self.world.tasks.wait([reading], timeout_seconds=left)
            if not reading.done or (message_id not in self._arrived and self.world.clock.now() > until_seconds):
                return self.failed("timeout", stage, detail="timeout")
            failure: Failure | None = reading.result()
            if failure is not None and (failure.kind != "timeout" or self.world.clock.now() >= until_seconds):
                return failure
        return self._arrived.pop(message_id)

    async def _receive(self, stream: Stream, until_seconds: float, stage: str) -> Failure | None:
        """Put down the next event's message, if it is an answer."""
        data = await self.read(stream, until_seconds, stage)
        if isinstance(data, Failure):
            return data
        received = decode(data)
        if received is not None and is_answer(received):
            self._arrived[received["id"]] = received
        return None


def media_type(headers: Mapping[str, Any]) -> str:
    """The content type without its parameters, in lower case; empty when there is none."""
    return str(header(headers, "Content-Type") or "").partition(";")[0].strip().lower()
