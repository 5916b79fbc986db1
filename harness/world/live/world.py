"""The world of one live actor, and its smaller ports; files, http, processes, store and tasks have modules."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from harness.world.live.driver import Driver, LivePort
from harness.world.live.file_port import LiveFiles
from harness.world.live.http_port import LiveHttp
from harness.world.live.process_port import LiveProcesses
from harness.world.live.store_port import LiveStore
from harness.world.live.tasks import LiveTasks


class LiveWorld:
    """One actor's world."""

    def __init__(self, driver: Driver, store: str) -> None:
        self.name = driver.name
        self.clock = LiveClock(driver)
        self.entropy = LiveEntropy()
        self.env = LiveEnvironment(driver)
        self.files = LiveFiles(driver)
        self.http = LiveHttp(driver)
        self.processes = LiveProcesses(driver)
        self.store = LiveStore(driver, store)
        self.events = LiveEvents(driver)
        self.tasks = LiveTasks(driver)


class LiveClock(LivePort):
    """Time at the pace of the setting."""

    __slots__ = ()

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._driver.pace.now()

    async def sleep(self, seconds: float) -> None:
        """Until that much later."""
        self._driver.require_life()
        await self._driver.sleep(max(seconds, 0.0))


class LiveEntropy:
    """The operating system's entropy."""

    __slots__ = ()

    def token(self, characters: int) -> str:
        """Hex digits."""
        return secrets.token_hex((characters + 1) // 2)[:characters]


class LiveEnvironment:
    """The actor's variables and directory."""

    __slots__ = ("_driver",)

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    @property
    def variables(self) -> Mapping[str, str]:
        """Names to values."""
        return MappingProxyType(dict(self._driver.variables))

    @property
    def directory(self) -> str:
        """The current directory."""
        return self._driver.directory


class LiveEvents(LivePort):
    """Emitting events."""

    __slots__ = ()

    def emit(self, event: str, /, **details: Any) -> None:
        """Tell that something happened."""
        self._driver.emit(event, details)
