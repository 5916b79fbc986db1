"""Requests of one actor to the servers of a simulation."""

from __future__ import annotations

from collections.abc import Mapping

from harness.world.errors import Ambiguous, NotSent, ReadTimeout
from harness.world.model.actors import Actor
from harness.world.model.port import Port
from harness.world.model.scheduler import Condition, Wait
from harness.world.model.simulation import Simulation
from harness.world.ports import Request, Response, StreamEvent
from harness.world.sites import HTTP_ACTIONS, NEVER_SENT, STREAM_ACTIONS, origin


class ModelStream(Port):
    """An open answer, its events timed from the moment it was opened."""

    __slots__ = ("_broken", "_changed", "_closed", "_events", "_label", "_next_at", "_response")
    kind = "http"

    def __init__(self, simulation: Simulation, actor: Actor, response: Response, label: str) -> None:
        super().__init__(simulation, actor)
        self._response, self._label = response, f"event of {label}"
        self._events: list[StreamEvent] = list(response.events or ())
        self._next_at = simulation.now
        self._broken = self._closed = False
        self._changed = Condition()

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
        fault = await self._reach(self._label, STREAM_ACTIONS)
        simulation = self._simulation
        if fault is not None:
            self._broken = True
            simulation.scheduler.notify(self._changed)
        until = simulation.now + timeout_seconds
        while not self._broken and not self._closed and (self._events or not self._response.ends):
            due = self._next_at + self._events[0].after_seconds if self._events else until + 1
            if due <= simulation.now:
                self._next_at = due
                return self._events.pop(0).data
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
        return response._replace(body="".join(map(event_text, response.events)).encode(), events=None)

    async def open(self, request: Request, *, open_timeout_seconds: float, read_timeout_seconds: float) -> ModelStream:
        """The answer as a stream."""
        response = await self._exchange(request, open_timeout_seconds, read_timeout_seconds)
        if response.events is None:
            events = (StreamEvent(response.body.decode(errors="replace")),) if response.body else ()
            response = response._replace(events=events)
        return ModelStream(self._simulation, self._actor, response, f"{request.method} {request.url}")

    async def _exchange(self, request: Request, open_timeout: float, read_timeout: float) -> Response:
        simulation = self._simulation
        label = f"{request.method} {request.url}"
        fault = await self._reach(label, HTTP_ACTIONS, request.body)
        action = fault.action if fault is not None else ""
        if action == "open-timeout":
            await Wait((), simulation.now + open_timeout)
            raise NotSent("timeout")
        if action in NEVER_SENT:
            raise NotSent(action)
        place = origin(request.url)
        server = simulation.servers.get(place)
        if server is None:
            raise NotSent("dns")
        if action == "reset-before":
            raise Ambiguous("reset")
        if fault is None or action != "answer":
            response: Response = await self._ask(
                server.handle, request, simulation.now, self._actor.name, whose=f"the server {place}"
            )
        if fault is not None and fault.answer is not None:
            response = fault.answer
        simulation.emit(self._actor.name, "request", {"at": label, "status": response.status})
        answered_at = simulation.now + response.after_seconds + (fault.seconds if fault is not None else 0.0)
        until = simulation.now + read_timeout
        await self._reach(f"processed {label}")
        await self._wait_until(answered_at, until)
        if action == "reset-after":
            raise Ambiguous("reset")
        return response

    async def _wait_for_answer(self, seconds: float, read_timeout: float) -> None:
        now = self._simulation.now
        await self._wait_until(now + seconds, now + read_timeout)

    async def _wait_until(self, answered_at: float, until: float) -> None:
        if answered_at > until:
            await Wait((), until)
            raise Ambiguous("timeout")
        if answered_at > self._simulation.now:
            await Wait((), answered_at)


def event_text(event: StreamEvent) -> str:
    """An event as it stands in the body of a stream."""
    lines = "".join(f"data: {line}\n" for line in event.data.split("\n"))
    return f"{lines}\n"
