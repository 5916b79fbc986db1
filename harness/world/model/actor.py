"""The world of one actor of a simulation, and its smaller ports; files, http, processes and store have modules."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Any

from harness.world.errors import WorldFault
from harness.world.model.actors import Actor
from harness.world.model.file_port import ModelFiles
from harness.world.model.http_port import ModelHttp
from harness.world.model.port import Port
from harness.world.model.process_port import ModelProcesses
from harness.world.model.scheduler import ScheduledTask, Wait
from harness.world.model.simulation import Simulation
from harness.world.model.store_port import ModelStore
from harness.world.ports import Task
from harness.world.values import NO_DETAIL, NO_TIME, is_plain


class ModelWorld:
    """One actor's world."""

    def __init__(self, simulation: Simulation, actor: Actor) -> None:
        self.name = actor.name
        self.clock = ModelClock(simulation, actor)
        self.entropy = ModelEntropy(simulation, actor)
        self.env = ModelEnvironment(actor)
        self.files = ModelFiles(simulation, actor)
        self.http = ModelHttp(simulation, actor)
        self.processes = ModelProcesses(simulation, actor)
        self.store = ModelStore(simulation, actor)
        self.events = ModelEvents(simulation, actor)
        self.tasks = ModelTasks(simulation, actor)


class ModelClock(Port):
    """Virtual time."""

    __slots__ = ()

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._simulation.scheduler.now

    async def sleep(self, seconds: float) -> None:
        """Until that much later."""
        self._require_life()
        await Wait((), self._simulation.now + seconds)


class ModelEntropy(Port):
    """Reproducible entropy."""

    __slots__ = ()

    def token(self, characters: int) -> str:
        """Hex digits."""
        return self._simulation.token(self._actor, characters)


class ModelEnvironment:
    """The actor's variables and directory."""

    __slots__ = ("_actor",)

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    @property
    def variables(self) -> Mapping[str, str]:
        """Names to values."""
        return MappingProxyType(self._actor.variables)

    @property
    def directory(self) -> str:
        """The current directory."""
        return self._actor.directory


class ModelEvents(Port):
    """Emitting events."""

    __slots__ = ()

    def emit(self, event: str, /, **details: Any) -> None:
        """Write down that something happened."""
        if self._actor.alive:
            if not is_plain(details.values()):
                raise self._simulation.misused(f"{self._actor.name}: {NO_DETAIL}, unlike those of {event}: {details!r}")
            self._simulation.emit(self._actor.name, event, details)


class ModelTask:
    """A task of this actor."""

    __slots__ = ("scheduled",)

    def __init__(self, scheduled: ScheduledTask) -> None:
        self.scheduled = scheduled

    @property
    def name(self) -> str:
        """As it was started."""
        return self.scheduled.name

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self.scheduled.done

    def result(self) -> Any:
        """What it returned or raised."""
        if not self.scheduled.done:
            raise WorldFault(f"{self.name} still runs")
        self.scheduled.observed = True
        if self.scheduled.error is not None:
            raise self.scheduled.error
        return self.scheduled.result


class ModelTasks(Port):
    """Concurrency inside the actor."""

    __slots__ = ()
    kind = "tasks"

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> ModelTask:
        """Run a coroutine beside this one."""
        if not self._actor.alive:
            work.close()
            self._require_life()
        return ModelTask(self._simulation.add_task(self._actor, work, name))

    async def wait(self, tasks: Sequence[Task], *, timeout_seconds: float | None = None, first: bool = False) -> None:
        """Until all, or one, are done, or the time is over."""
        if timeout_seconds is not None and not timeout_seconds > -inf:
            await self._misused(NO_TIME)
        await self._reach("wait")
        until = None if timeout_seconds is None else self._simulation.now + timeout_seconds
        scheduled = [task.scheduled for task in tasks if isinstance(task, ModelTask)]
        if len(scheduled) != len(tasks):
            await self._misused("waits for a task that another driver started")
        running = [task for task in scheduled if not task.done]
        enough = len(running) < len(tasks) if first else not running
        while running and not enough:
            if not await Wait(tuple(task.finished for task in running), until):
                return
            running = [task for task in running if not task.done]
            enough = first or not running
