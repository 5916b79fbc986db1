"""Requests of one actor to real servers, or to what stands in for them where somebody steers."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import anyio
import httpx

from harness.world.blocking.event_stream import EventParser, is_event_stream
from harness.world.errors import Ambiguous, NotSent, ReadTimeout, WorldFault
from harness.world.live.driver import Driver, LivePort
from harness.world.live.network import SCHEMES, Network, Place, ambiguous
from harness.world.live.waiting import Bell
from harness.world.outside.control import ACTOR_HEADER, FAULT_HEADER, Struck, resolve_message
from harness.world.ports import Request, Response
from harness.world.sites import HTTP_ACTIONS, NEVER_SENT, STREAM_ACTIONS, origin
from harness.world.values import octets

RESETS = ("reset-before", "reset-after")
INSTEAD = (*RESETS, "answer-after")
"""Faults by which the answer of the server is lost."""
Outcome = httpx.Response | Response | Ambiguous
"""What became of a request that was sent: an answer whose body is still to be read, one that replaces it, or none."""


class LiveStream(LivePort):
    """An open answer. A task of the driver reads it as it comes."""

    __slots__ = ("_broken", "_changed", "_ended", "_events", "_label", "_scope", "headers", "status")
    kind = "http"

    def __init__(self, driver: Driver, status: int, headers: Mapping[str, str], label: str) -> None:
        super().__init__(driver)
        self.status, self.headers = status, headers
        self._label = f"event of {label}"
        self._events: deque[str] = deque()
        self._broken: Ambiguous | None = None
        self._ended = False
        self._changed = Bell()
        self._scope = anyio.CancelScope()

    async def read_event(self, timeout_seconds: float) -> str | None:
        """The next event's data, None at the end."""
        self._require_time(timeout_seconds)
        fault = await self._reach(self._label, STREAM_ACTIONS)
        if fault is not None:
            self._events.clear()
            self._stop(Ambiguous("reset"))
        with self._driver.patience(timeout_seconds):
            while not self._events and not self._ended:
                await self._changed.wait()
        if self._events:
            return self._events.popleft()
        if not self._ended:
            raise ReadTimeout
        if self._broken is not None:
            raise Ambiguous(self._broken.reason)
        return None

    async def close(self) -> None:
        """Read no more: whoever reads, now or later, gets the end."""
        await self._reach(f"close {self._label}")
        self._events.clear()
        self._stop(self._broken)

    def give(self, parser: EventParser) -> None:
        """Take what has come."""
        if not self._ended:
            self._events += parser.events
            parser.events.clear()
            self._changed.ring()

    def _stop(self, broken: Ambiguous | None) -> None:
        self._broken, self._ended = broken, True
        self._scope.cancel()
        self._changed.ring()

    async def follow(self, response: httpx.Response) -> None:
        """Read a stream to its end, or until nobody wants it."""
        parser = EventParser()
        try:
            with self._scope:
                async for piece in response.aiter_bytes():
                    parser.feed(piece)
                    self.give(parser)
                parser.end()
                self.give(parser)
            if not self._ended:
                self._stop(None)
        except httpx.RequestError as error:
            if not self._ended:
                self._stop(ambiguous(error))
        finally:
            await discard(response)

    def hold(self, body: bytes) -> None:
        """An answer that is no stream: its body is one event, if there is any."""
        if body:
            self._events.append(body.decode(errors="replace"))
        self._stop(None)


class LiveHttp(LivePort):
    """Requests over the network."""

    __slots__ = ("_network",)
    kind = "http"

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        certificates = driver.setting.certificates
        self._network = Network(
            driver.absolute(certificates) if certificates else "", trusts_system=driver.steering is None
        )

    async def send(self, request: Request, *, open_timeout_seconds: float, read_timeout_seconds: float) -> Response:
        """The whole answer; a stream is read to its end."""
        answer = await self._exchange(request, open_timeout_seconds, read_timeout_seconds)
        if isinstance(answer, Response):
            return answer
        return Response(answer.status_code, dict(answer.headers), await whole(answer))

    async def open(self, request: Request, *, open_timeout_seconds: float, read_timeout_seconds: float) -> LiveStream:
        """The answer as a stream."""
        answer = await self._exchange(request, open_timeout_seconds, read_timeout_seconds)
        stream = LiveStream(self._driver, status(answer), dict(answer.headers), f"{request.method} {request.url}")
        if isinstance(answer, Response):
            stream.hold(answer.body)
        elif is_event_stream(answer.headers.get("Content-Type")):
            borne_silence(answer)
            self._driver.tasks.start_soon(stream.follow, answer)
        else:
            stream.hold(await whole(answer))
        return stream

    async def close(self) -> None:
        """Close every connection."""
        await self._network.close()

    async def _exchange(self, request: Request, open_timeout: float, read_timeout: float) -> httpx.Response | Response:
        driver, label = self._driver, f"{request.method} {request.url}"
        driver.require_times(open_timeout, read_timeout)
        struck = await self._reach(label, HTTP_ACTIONS, octets(request.body)) or Struck("")
        await self._strike_before(struck, open_timeout)
        place = await self._place(request.url)
        began = driver.pace.now()
        outcome = await self._outcome(request, place, struck, open_timeout, read_timeout)
        came = began if isinstance(outcome, Response) else driver.pace.now()
        try:
            if not isinstance(outcome, Ambiguous):
                driver.emit("request", {"at": label, "status": status(outcome)})
            await self._reach(f"processed {label}")
            outcome = answered(outcome)
            await self._delay(came + struck.seconds, began + read_timeout)
        except BaseException:
            if isinstance(outcome, httpx.Response):
                await discard(outcome)
            raise
        return outcome

    async def _strike_before(self, struck: Struck, open_timeout: float) -> None:
        """The faults by which nothing is ever sent."""
        if struck.action == "open-timeout":
            await self._driver.sleep(open_timeout)
            raise NotSent("timeout")
        if struck.action == "refused":
            await self._network.refuse(struck.port)
        if struck.action in NEVER_SENT:
            raise NotSent(struck.action)

    async def _place(self, url: str) -> Place | None:
        """Where to connect: where the host is, or where whoever steers says. Raises NotSent."""
        where = origin(url)
        if where.partition(":")[0] not in SCHEMES:
            raise NotSent("dns")
        if self._driver.steering is None:
            return None
        answer = await self._driver.ask(resolve_message(self._driver.name, where))
        if "port" not in answer:
            raise NotSent("dns")
        return Place(answer["host"], answer["port"])

    async def _outcome(
        self, request: Request, place: Place | None, struck: Struck, open_timeout: float, read_timeout: float
    ) -> Outcome:
        """Send it, and let the fault have its effect. Raises NotSent, and Ambiguous where nothing was processed."""
        if struck.action == "answer":
            return replacement(struck)
        driver, outcome = self._driver, Ambiguous("reset")
        opens, reads = driver.pace.real(open_timeout), driver.pace.real(read_timeout)
        try:
            arrived = await self._network.deliver(
                request, place, self._own_headers(struck), open_seconds=opens, read_seconds=reads
            )
        except Ambiguous as error:
            outcome = error
        else:
            if struck.action not in INSTEAD:
                return arrived
            await discard(arrived)
        if struck.action == "reset-before":
            raise outcome
        return replacement(struck) if struck.action == "answer-after" else outcome

    def _own_headers(self, struck: Struck) -> dict[str, str]:
        """What is told to the mount of a fake server; nothing where nobody steers."""
        if self._driver.steering is None:
            return {}
        told = {ACTOR_HEADER: self._driver.name}
        return told | {FAULT_HEADER: struck.action} if struck.action in RESETS else told

    async def _delay(self, due: float, until: float) -> None:
        """Let an answer come when it is due, unless that is more silence than is borne."""
        now = self._driver.pace.now()
        await self._driver.sleep(max(min(due, until) - now, 0.0))
        if due > until:
            raise Ambiguous("timeout")


def status(answer: httpx.Response | Response) -> int:
    """Its status."""
    return answer.status if isinstance(answer, Response) else answer.status_code


def answered(outcome: Outcome) -> httpx.Response | Response:
    """The answer, or what was raised instead of one."""
    if isinstance(outcome, Ambiguous):
        raise outcome
    return outcome


def replacement(struck: Struck) -> Response:
    """The answer that a fault gives."""
    if struck.answer is None:
        raise WorldFault(f"a fault {struck.action!r} needs its answer")
    return struck.answer


def borne_silence(answer: httpx.Response) -> None:
    """From now on any silence is borne: whoever reads an event says how long."""
    answer.request.extensions["timeout"]["read"] = None


async def whole(answer: httpx.Response) -> bytes:
    """The body of an answer."""
    try:
        return await answer.aread()
    except httpx.RequestError as error:
        raise ambiguous(error) from error
    finally:
        await discard(answer)


async def discard(answer: httpx.Response) -> None:
    """Close its connection, whatever else happens."""
    with anyio.CancelScope(shield=True):
        await answer.aclose()
