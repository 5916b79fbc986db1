"""Tasks: threads of which one runs at a time."""

from __future__ import annotations

import threading
from collections.abc import Coroutine, Sequence
from typing import Any

from harness.world.blocking.baton import Condition, wait_for_any
from harness.world.blocking.port import Port
from harness.world.blocking.process import Process, require_coroutine
from harness.world.errors import WorldFault
from harness.world.ports import Task


class BlockingTask:
    """A task of this process."""

    __slots__ = ("_error", "_finished", "_observed", "_process", "_result", "_work", "done", "name")

    def __init__(self, process: Process, work: Coroutine[Any, Any, Any], name: str) -> None:
        self._process, self._work, self.name = process, work, name
        self.done = False
        self._finished = Condition(process.baton)
        self._result: Any = None
        self._error: BaseException | None = None
        self._observed = False

    @property
    def finished(self) -> Condition:
        """Notified at its end."""
        return self._finished

    @property
    def lost(self) -> BaseException | None:
        """What it raised, when nobody asked."""
        return None if self._observed else self._error

    def result(self) -> Any:
        """What it returned or raised."""
        if not self.done:
            raise WorldFault(f"{self.name} still runs")
        self._observed = True
        if self._error is not None:
            raise self._error
        return self._result

    def run(self) -> None:
        """In its thread, to its end."""
        process = self._process
        process.baton.take()
        try:
            self._result = process.drive(self._work, self.name)
        except WorldFault as fault:
            process.halt_with(fault)
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - it is for whoever asks
            self._error = error
        except BaseException as error:  # noqa: BLE001 - no task may end more than itself unseen
            process.halt_with(error)
        self.done = True
        self._finished.notify()
        process.baton.give()


class BlockingTasks(Port):
    """Concurrency inside this process."""

    __slots__ = ("_started",)
    kind = "tasks"

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._started: list[BlockingTask] = []

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> BlockingTask:
        """Run a coroutine beside this one; it begins when this one waits for something."""
        require_coroutine(work, name)
        task = BlockingTask(self._process, work, name)
        self._started = [one for one in self._started if not one.done or one.lost is not None]
        self._started.append(task)
        threading.Thread(target=task.run, name=name, daemon=True).start()
        return task

    async def wait(self, tasks: Sequence[Task], *, timeout_seconds: float | None = None, first: bool = False) -> None:
        """Until all, or one, are done, or the time is over."""
        self._process.require_times(timeout_seconds)
        self._reach("wait")
        deadline = self._process.deadline(timeout_seconds)
        own = [task for task in tasks if isinstance(task, BlockingTask)]
        if len(own) != len(tasks):
            self._process.halt("waits for a task that another driver started")
        running = [task for task in own if not task.done]
        enough = len(running) < len(own) if first else not running
        while running and not enough:
            if not wait_for_any(self._process.baton, [task.finished for task in running], deadline):
                return
            running = [task for task in running if not task.done]
            enough = first or not running

    def lost(self) -> list[BaseException]:
        """What tasks raised that nobody asked for."""
        return [task.lost for task in self._started if task.lost is not None]
