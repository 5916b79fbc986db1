"""The world of one live actor, and its smaller ports; files, http, processes, store and tasks have modules."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness.world.live.driver import Driver, LivePort
from harness.world.live.file_port import LiveFiles
from harness.world.live.process_port import LiveProcesses
from harness.world.live.store_port import LiveStore
from harness.world.live.tasks import LiveTasks

if TYPE_CHECKING:
    from harness.world.live.http_port import LiveHttp


class LiveWorld:
    """One actor's world."""

    def __init__(self, driver: Driver, store: str) -> None:
        self._driver, self.name = driver, driver.name
        self.clock = LiveClock(driver)
        self.entropy = LiveEntropy()
        self.env = LiveEnvironment(driver)
        self.files = LiveFiles(driver)
        self.processes = LiveProcesses(driver)
        self.store = LiveStore(driver, store)
        self.events = LiveEvents(driver)
        self.tasks = LiveTasks(driver)

    @cached_property
    def http(self) -> LiveHttp:
        """The network. It is loaded when it is used first: that takes as long as all the rest."""
        from harness.world.live.http_port import LiveHttp

        return LiveHttp(self._driver)

    async def close(self) -> None:
        """Close every connection."""
        if "http" in self.__dict__:
            await self.http.close()


class LiveClock(LivePort):
    """Time at the pace of the setting."""

    __slots__ = ()

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._driver.pace.now()

    async def sleep(self, seconds: float) -> None:
        """Until that much later."""
        self._driver.require_life()
        self._require_time(seconds)
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
