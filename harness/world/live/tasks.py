"""Tasks of a live actor: children of one task group that cancels nobody before the actor's end."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from types import CoroutineType
from typing import Any

import anyio

from harness.world.errors import WorldFault
from harness.world.live.driver import Driver, Gone, LivePort
from harness.world.live.waiting import Bell
from harness.world.ports import Task


class LiveTask:
    """A running coroutine. What it raises is kept until somebody asks for it."""

    __slots__ = ("_driver", "_error", "_result", "done", "name")

    def __init__(self, driver: Driver, name: str) -> None:
        self._driver, self.name = driver, name
        self.done = False
        self._result: Any = None
        self._error: BaseException | None = None

    def result(self) -> Any:
        """What it returned or raised."""
        if not self.done:
            raise WorldFault(f"{self.name} still runs")
        self._driver.lost.pop(self, None)
        if self._error is not None:
            raise self._error
        return self._result

    async def run(self, work: Coroutine[Any, Any, Any]) -> None:
        """To its end, whatever that is."""
        try:
            self._result = await work
        except (Gone, anyio.get_cancelled_exc_class()):
            raise
        except BaseException as error:  # noqa: BLE001 - an error of a task is its result
            self._error = error
            self._driver.lost[self] = (self.name, error)
        self.done = True


class LiveTasks(LivePort):
    """Concurrency inside the actor."""

    __slots__ = ("_change",)
    kind = "tasks"

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._change = Bell()

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> LiveTask:
        """Run a coroutine beside this one."""
        driver = self._driver
        if not isinstance(work, CoroutineType):
            raise driver.misused(f"{name} is no coroutine: {type(work).__qualname__}")
        if not driver.alive:
            work.close()
            driver.require_life()
        task = LiveTask(driver, name)
        driver.closers[task] = work.close
        driver.tasks.start_soon(self._run, task, work, name=name)
        return task

    async def _run(self, task: LiveTask, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await task.run(work)
        except Gone:
            return
        finally:
            work.close()
            self._driver.closers.pop(task, None)
            self._change.ring()

    async def wait(self, tasks: Sequence[Task], *, timeout_seconds: float | None = None, first: bool = False) -> None:
        """Until all, or one, are done, or the time is over."""
        self._require_time(timeout_seconds)
        await self._reach("wait")
        if not all(isinstance(task, LiveTask) for task in tasks):
            raise self._driver.misused("waits for a task that another driver started")
        enough = any if first and tasks else all
        with self._driver.patience(timeout_seconds):
            while not enough(task.done for task in tasks):
                await self._change.wait()
