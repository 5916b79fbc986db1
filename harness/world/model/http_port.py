"""Requests of one actor to the servers of a simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from math import inf

from harness.world.errors import Ambiguous, NotSent, ReadTimeout
from harness.world.model.actors import Actor
from harness.world.model.port import Port
from harness.world.model.scheduler import Condition, Wait
from harness.world.model.simulation import Simulation
from harness.world.ports import Request, Response, StreamEvent
from harness.world.sites import HTTP_ACTIONS, NEVER_SENT, STREAM_ACTIONS, origin
from harness.world.values import NO_TIME, USUAL_METHODS, is_sendable, is_time, octets

FINAL_STATUS = 200
"""An answer below it is none: the connection breaks."""


class ModelStream(Port):
    """An open answer. Events wait here by the time at which they are due, whoever reads and when."""

    __slots__ = ("_broken", "_changed", "_closed", "_coming", "_count", "_given", "_label", "_live", "_response")
    kind = "http"

    def __init__(self, simulation: Simulation, actor: Actor, label: str) -> None:
        super().__init__(simulation, actor)
        self._label = f"event of {label}"
        self._response = Response(0)
        self._live: list[StreamEvent] = []
        self._given: int | None = None
        self._count = 0
        self._coming: list[tuple[float, int, str]] = []
        self._broken = self._closed = False
        self._changed = Condition()

    def follow(self, events: Sequence[StreamEvent]) -> None:
        """See what a server adds to what it has just given, from now on."""
        if isinstance(events, list):
            self._live, self._given, self._count = events, len(events), len(events)
            self._simulation.streams.append(self)

    def begin(self, response: Response) -> None:
        """The answer is there: what it brings counts from now."""
        self._response = response
        self._add((response.events or ())[: self._given], 0)

    def take(self) -> bool:
        """Look for what was added to the list; False when nobody will read it."""
        if self._closed or self._broken or not self._actor.alive:
            return False
        if len(self._live) > self._count:
            first, self._count = self._count, len(self._live)
            self._add(self._live[first:], first)
            self._simulation.scheduler.notify(self._changed)
        return True

    def _add(self, events: Sequence[StreamEvent], first: int) -> None:
        due = self._simulation.now
        for number, event in enumerate(events, first):
            due += event.after_seconds
            heappush(self._coming, (due, number, event.data))

    @property
    def status(self) -> int:
        """The answer's status."""
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The answer's headers."""
        return self._response.headers

    async def read_event(self, timeout_seconds: float) -> str | None:
        """The next event's data, None at the end."""
        if not timeout_seconds > -inf:
            await self._misused(NO_TIME)
        fault = await self._reach(self._label, STREAM_ACTIONS)
        simulation = self._simulation
        if fault is not None:
            self._broken = True
            simulation.scheduler.notify(self._changed)
        until = simulation.now + timeout_seconds
        while not self._broken and not self._closed and (self._coming or not self._response.ends):
            due = self._coming[0][0] if self._coming else until
            if self._coming and due <= simulation.now:
                return heappop(self._coming)[2]
            if simulation.now >= until:
                raise ReadTimeout
            await self._changed.wait(min(due, until))
        if self._broken:
            raise Ambiguous("reset")
        return None

    async def close(self) -> None:
        """Read no more: whoever reads, now or later, gets the end."""
        await self._reach(f"close {self._label}")
        self._closed = True
        self._simulation.scheduler.notify(self._changed)


class ModelHttp(Port):
    """Requests to the servers of the simulation, by origin."""

    __slots__ = ()
    kind = "http"

    async def send(self, request: Request, *, open_timeout_seconds: float, read_timeout_seconds: float) -> Response:
        """The whole answer; a stream is read to its end."""
        response = await self._exchange(request, open_timeout_seconds, read_timeout_seconds)
        if response.events is None:
            return response
        for event in response.events:
            await self._wait_for_answer(event.after_seconds, read_timeout_seconds)
        if not response.ends:
            await self._wait_for_answer(float("inf"), read_timeout_seconds)
        return response._replace(body="".join(event.encoded() for event in response.events).encode(), events=None)

    async def open(self, request: Request, *, open_timeout_seconds: float, read_timeout_seconds: float) -> ModelStream:
        """The answer as a stream."""
        stream = ModelStream(self._simulation, self._actor, f"{request.method} {request.url}")
        response = await self._exchange(request, open_timeout_seconds, read_timeout_seconds, stream)
        if response.events is None:
            events = (StreamEvent(response.body.decode(errors="replace")),) if response.body else ()
            response = response._replace(events=events)
        stream.begin(response)
        return stream

    async def _exchange(
        self, request: Request, open_timeout: float, read_timeout: float, stream: ModelStream | None = None
    ) -> Response:
        simulation = self._simulation
        label = f"{request.method} {request.url}"
        if request.body.__class__ is not bytes or not open_timeout + read_timeout > -inf:
            await self._require_possible(request.body, open_timeout + read_timeout)
        fault = await self._reach(label, HTTP_ACTIONS, request.body)
        action = fault.action if fault is not None else ""
        if action:
            await self._strike_before(action, open_timeout)
        place = origin(request.url)
        server = simulation.servers.get(place)
        if server is None:
            raise NotSent("dns")
        if action != "answer":
            if request.headers or request.method not in USUAL_METHODS:
                require_sendable(request)
            if action == "reset-before":
                raise Ambiguous("reset")
            try:
                response = server.handle(request, simulation.now, self._actor.name)
            except BaseException as error:  # noqa: BLE001 - a server may end the run with anything
                await self._failed(error, f"the server {place}")
            if simulation.streams:
                simulation.streams = [each for each in simulation.streams if each.take()]
        if fault is not None and fault.answer is not None:
            response = fault.answer
        if stream is not None and response.events is not None and not response.ends:
            stream.follow(response.events)
        simulation.emit(self._actor.name, "request", {"at": label, "status": response.status})
        answered_at = simulation.now + response.after_seconds + (fault.seconds if fault is not None else 0.0)
        until = simulation.now + read_timeout
        await self._reach(f"processed {label}")
        await self._wait_until(answered_at, until)
        if action == "reset-after" or response.status < FINAL_STATUS:
            raise Ambiguous("reset")
        return response

    async def _require_possible(self, body: bytes, seconds: float) -> None:
        octets(body)
        if not is_time(seconds):
            await self._misused(NO_TIME)

    async def _strike_before(self, action: str, open_timeout: float) -> None:
        """The faults by which nothing is ever sent."""
        if action == "open-timeout":
            await Wait((), self._simulation.now + open_timeout)
            raise NotSent("timeout")
        if action in NEVER_SENT:
            raise NotSent(action)

    async def _wait_for_answer(self, seconds: float, read_timeout: float) -> None:
        now = self._simulation.now
        await self._wait_until(now + seconds, now + read_timeout)

    async def _wait_until(self, answered_at: float, until: float) -> None:
        if answered_at > until:
            await Wait((), until)
            raise Ambiguous("timeout")
        if answered_at > self._simulation.now:
            await Wait((), answered_at)


def require_sendable(request: Request) -> None:
    """Raise NotSent where it cannot be written."""
    if not is_sendable(request.method, request.headers):
        raise NotSent("refused")
