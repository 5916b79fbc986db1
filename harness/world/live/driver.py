"""What all ports of a live actor share: where it is, who steers it, what it holds, and what its end does."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from harness.world.errors import Unsteered, WorldFault
from harness.world.live.steering import Steering
from harness.world.outside.control import Struck, event_message, point_message, struck
from harness.world.outside.setting import Setting
from harness.world.sites import ANY_ACTIONS
from harness.world.values import NO_DETAIL, NO_TIME, is_plain, is_time


class Gone(GeneratorExit):
    """Raised by the ports of an actor that has ended, so that what its code still does has no effect."""


class Driver:
    """One actor in the event loop.

    `closers` free what the operating system would free if the process ended: locks, pipes, connections.
    `lost` are the errors of tasks that nobody has asked for yet, by their task; `misuses` are told in any case.
    """

    def __init__(
        self,
        setting: Setting,
        tasks: TaskGroup,
        variables: Mapping[str, str],
        directory: str,
        steering: Steering | None = None,
    ) -> None:
        self.setting, self.pace, self.name = setting, setting.pace, setting.name
        self.tasks, self.variables, self.directory = tasks, variables, directory
        self.steering = steering
        self.alive = True
        self.closers: dict[object, Callable[[], None]] = {}
        self.lost: dict[object, tuple[str, BaseException]] = {}
        self.misuses: list[WorldFault] = []

    def require_life(self) -> None:
        """Raise unless this actor still lives."""
        if not self.alive:
            raise Gone(f"{self.name} has ended")

    def misused(self, message: str) -> WorldFault:
        """The code over the world broke its rules: to be raised, and told at the end whatever the subject catches."""
        fault = WorldFault(f"{self.name}: {message}")
        self.misuses.append(fault)
        return fault

    def require_times(self, *seconds: float | None) -> None:
        """Nobody can wait for a time that is none."""
        if not all(map(is_time, seconds)):
            raise self.misused(NO_TIME)

    def emit(self, event: str, details: Mapping[str, Any]) -> None:
        """Tell whoever steers, or write it to the events file."""
        if not self.alive:
            return
        if not is_plain(details.values()):
            raise self.misused(f"{NO_DETAIL}, unlike those of {event}: {details!r}")
        if self.steering is not None:
            self.steering.tell(event_message(self.name, event, details))
        else:
            self._write(event, details)

    def _write(self, event: str, details: Mapping[str, Any]) -> None:
        if self.setting.events:
            told = {"at_seconds": self.pace.now(), "actor": self.name, "event": event, "details": dict(details)}
            append_line(self.absolute(self.setting.events), json.dumps(told, default=str))

    async def ask(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """What whoever steers answers."""
        if self.steering is None:
            raise WorldFault("nobody steers this world")
        return await self.steering.ask(message)

    async def sleep(self, seconds: float) -> None:
        """That many seconds of the world, or a little more."""
        until = self.pace.now() + seconds
        while (rest := until - self.pace.now()) > 0:
            await anyio.sleep(self.pace.real(rest))

    def patience(self, seconds: float | None) -> anyio.CancelScope:
        """A scope around a wait for the operating system (never around a subject) that ends after that long."""
        return anyio.move_on_after(None if seconds is None else self.pace.real(max(seconds, 0.0)))

    def absolute(self, path: str) -> str:
        """A path as it stands in labels; a relative one starts at the current directory."""
        return path if path.startswith("/") else f"{self.directory.rstrip('/')}/{path}"

    def printed(self, stream: str, text: str) -> None:
        """Whoever steers sees what is printed, whether somebody reads it or not."""
        if self.steering is not None and self.alive:
            self.steering.print(stream, text)

    def free(self) -> None:
        """Give up what the operating system would take from a process that ends."""
        while self.closers:
            self.closers.popitem()[1]()

    def tell_lost(self) -> None:
        """The errors that nobody has asked for, on stderr."""
        for name, error in self.lost.values():
            self.complain(f"task {name} of {self.name}", error)
        for fault in self.misuses:
            self.complain(self.name, fault)

    def complain(self, whose: str, error: BaseException) -> None:
        """An error that is nobody's answer, on stderr."""
        if isinstance(error, Unsteered):
            text = f"{whose}: {error}\n"
        else:
            text = f"{whose}:\n" + "".join(traceback.format_exception(error))
        if self.steering is not None:
            with suppress(WorldFault):
                self.steering.print("stderr", text.rstrip("\n"))
        with suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()

    async def finish(self, exit_code: int) -> None:
        """Tell whoever steers how it ended; then nobody is asked any more."""
        if self.steering is None:
            self._write("ended", {"exit_code": exit_code})
            return
        with suppress(WorldFault):  # whoever steers may have gone before
            await self.steering.finish(exit_code)
        self.steering.close()


class LivePort:
    """A port of one actor. `kind` is what a fault's `port` is compared with."""

    __slots__ = ("_driver",)
    kind: ClassVar[str] = ""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def _require_time(self, seconds: float | None) -> None:
        self._driver.require_times(seconds)

    async def _reach(
        self, label: str, actions: frozenset[str] = ANY_ACTIONS, content: bytes | None = None
    ) -> Struck | None:
        """A switch point: other tasks may run, holds keep this one here, then a fault may strike.

        A fault that kills never comes back; any other is answered, for the port to give it its effect.
        """
        driver = self._driver
        driver.require_life()
        if driver.steering is None:
            await anyio.lowlevel.checkpoint()
            return None
        text = "" if content is None else content.decode(errors="replace")
        return struck(await driver.steering.ask(point_message(driver.name, self.kind, label, actions, text)))


def append_line(path: str, line: str) -> None:
    """One write, so that lines of several processes do not mix."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, line.encode() + b"\n")
    finally:
        os.close(descriptor)
