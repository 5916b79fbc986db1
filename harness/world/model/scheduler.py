"""The small deterministic scheduler: it drives coroutines itself, in virtual time, by somebody's decisions.

A coroutine suspends by awaiting a `Point` (somebody else may run now) or a `Wait` (until notified, or until a
time). Anything else that it awaits is a fault of the code over the world. Rules: decision 0 lets the one that
just ran go on; timers of equal time become ready together, in the order in which they were set; a stalled
task stays away until the next timer; nothing ready and no timer is a deadlock.

Mostly the one that just ran goes on. A `Switch`, which is a point that knows its scheduler, finds that out before
anything is suspended: the same is asked in the same order, and where the task goes on, it never stopped.

What is nobody's outcome but the run's (a fault of the harness, a divergence) ends the run past the subject:
a port awaits a `Halt`, and nothing that the subject catches or finally does can hide it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Generator
from heapq import heappop, heappush
from math import inf
from opcode import opmap
from types import CoroutineType
from typing import Any, NoReturn, cast

from harness.world.errors import WorldFault
from harness.world.model.decisions import RUN, STALL, Decisions
from harness.world.suspended import innermost, where
from harness.world.values import NO_TIME

STEP_LIMIT = 2_000_000
WATCHDOG_SECONDS = 60.0
_WATCHDOG_STEPS = 4_096
_RAISE = opmap["RAISE_VARARGS"]


class Gone(GeneratorExit):
    """Raised by the ports of an actor that has ended, so that what its code still does has no effect.

    No outcome of anybody, and no Exception: a retry loop in a `finally` must not spin on it.
    """


class Halt:
    """Awaiting it ends the run with an error. The task that awaits is never resumed."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __await__(self) -> Generator[Halt, Any, NoReturn]:
        yield self
        raise Gone


class Point:
    """A switch point: awaiting it lets others run. `label` says where, to whoever looks at a task."""

    __slots__ = ("label",)

    def __init__(self, label: str) -> None:
        self.label = label

    def __await__(self) -> Generator[Point, Any, None]:
        yield self


class Switched:
    """Yielded at a switch point by a task that has been put where it is to wait."""

    __slots__ = ()


SWITCHED = Switched()
GOES_ON = cast("Generator[Any, Any, None]", iter(()))
"""To be awaited where there is nothing to wait for. It is at its end, for everybody and for ever."""


def suspended() -> Generator[Switched, Any, None]:
    """The await of a task that has been put away."""
    yield SWITCHED


class Switch:
    """The switch point of all ports: asks what the scheduler would ask if the task were suspended.

    That is who of those that are ready goes on, then whether that one stalls.
    """

    __slots__ = ("_point", "_scheduler")

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._point = scheduler, Point("port")

    def __await__(self) -> Generator[Any, Any, None]:
        scheduler = self._scheduler
        if scheduler.steps >= scheduler.check_at:
            return self._point.__await__()
        scheduler.steps += 1
        choose = scheduler.choose
        if choose is None:
            return GOES_ON
        try:
            ready = scheduler.ready
            chosen = choose(RUN, len(ready) + 1) if ready else 0
            if chosen:
                scheduler.let_go_first(chosen)
                return suspended()
            return suspended() if scheduler.stalls(choose) else GOES_ON
        except BaseException as error:  # noqa: BLE001 - a source may end the run with anything, past the subject
            return Halt(error).__await__()


class Condition:
    """Something to wait for; `notify` wakes whoever waits."""

    __slots__ = ("waiters",)

    def __init__(self) -> None:
        self.waiters: list[ScheduledTask] = []

    def wait(self, until_seconds: float | None = None) -> Wait:
        """Await the result: True when notified, False when the time came first."""
        return Wait((self,), until_seconds)


class Wait:
    """Suspended until one of the conditions is notified or a time has come (None: never)."""

    __slots__ = ("conditions", "until_seconds")

    def __init__(self, conditions: tuple[Condition, ...], until_seconds: float | None) -> None:
        self.conditions, self.until_seconds = conditions, until_seconds

    def __await__(self) -> Generator[Wait, Any, bool]:
        notified: bool = yield self
        return notified


class Patience(Wait):
    """A wait whose time is a limit of the harness, not an event of the world: nobody stalls until then."""

    __slots__ = ()


class ScheduledTask:
    """A coroutine with its owner. `owner.alive` False means that it is never resumed."""

    __slots__ = (
        "answer",
        "conditions",
        "coroutine",
        "done",
        "error",
        "finished",
        "name",
        "observed",
        "owner",
        "result",
        "stalled",
        "timer",
    )

    def __init__(self, coroutine: Coroutine[Any, Any, Any], owner: Any, name: str) -> None:
        self.coroutine, self.owner, self.name = coroutine, owner, name
        self.answer: Any = None
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.finished = Condition()
        self.conditions: tuple[Condition, ...] = ()
        self.timer = 0
        self.stalled = False
        self.observed = False


Timer = tuple[float, int, ScheduledTask]
"""At which time, set as the how-manieth, for whom; void when its task's `timer` is another number."""


class Deadlock(Exception):  # noqa: N818 - a verdict
    """Tasks wait for each other and no timer is set."""


class StepLimit(Exception):  # noqa: N818 - a verdict
    """The run took more steps, or more real time, than it may."""


class Scheduler:
    """Runs tasks until all are done. `now` is virtual time in seconds."""

    def __init__(
        self,
        decisions: Decisions,
        *,
        now: float = 0.0,
        step_limit: int = STEP_LIMIT,
        watchdog_seconds: float = WATCHDOG_SECONDS,
        longest_stall_seconds: float = inf,
    ) -> None:
        self.decisions, self.now = decisions, now
        self.choose = None if decisions.calm else decisions.choose
        self.switch = Switch(self)
        self.steps = self.check_at = 0
        self.current: ScheduledTask
        self.tasks: list[ScheduledTask] = []
        self.ready: list[ScheduledTask] = []
        self._next: ScheduledTask | None = None
        self._timers: list[Timer] = []
        self._limits: list[Timer] = []
        self._sequence = 0
        self._step_limit, self._watchdog_seconds = step_limit, watchdog_seconds
        self._longest_stall_seconds = longest_stall_seconds

    def start(self, coroutine: Coroutine[Any, Any, Any], owner: Any, name: str) -> ScheduledTask:
        """Make a task ready, behind all that are. Raises WorldFault when it is no coroutine."""
        if not isinstance(coroutine, CoroutineType):
            raise WorldFault(f"{name} is no coroutine: {where(coroutine)}")
        task = ScheduledTask(coroutine, owner, name)
        self.tasks.append(task)
        self.ready.append(task)
        return task

    def notify(self, condition: Condition, *, everybody: bool = True) -> None:
        """Wake whoever waits for it (or the first), in the order of waiting."""
        waiters = condition.waiters
        while waiters:
            task = waiters.pop(0)
            if not task.done and task.owner.alive:
                self._wake(task, notified=True)
                if not everybody:
                    return

    def discard(self, owner: Any) -> None:
        """Forget an owner's tasks: none of them is resumed any more."""
        self.ready = [task for task in self.ready if task.owner is not owner]

    def run(self) -> None:
        """Run until nothing is left to do. Raises Deadlock, StepLimit and WorldFault."""
        began = time.monotonic()
        choose = self.choose
        while True:
            task, self._next = self._next, None
            if task is None:
                ready = self.ready
                if not ready:
                    if self._next_timers():
                        continue
                    self._check_deadlock()
                    return
                if self.steps >= self.check_at:
                    self.check_at = self._check_limits(began)
                self.steps += 1
                task = ready.pop(choose(RUN, len(ready)) if choose and len(ready) > 1 else 0)
            self.current = task
            if not choose or not self.stalls(choose):
                self._resume(task)

    def let_go_first(self, chosen: int) -> None:
        """Put the current task behind the `chosen`-th of those that are ready with it, itself being the 0th."""
        self._next = self.ready.pop(chosen - 1)
        self.ready.insert(0, self.current)

    def stalls(self, choose: Callable[[str, int], int]) -> bool:
        """Whether the current task is put away until the next timer."""
        timers = self._timers
        while timers and timers[0][1] != timers[0][2].timer:
            heappop(timers)  # its task was notified: no time at which anything happens
        if not timers or timers[0][0] - self.now > self._longest_stall_seconds or not choose(STALL, 2):
            return False
        self.current.stalled = True
        self._set_timer(timers, self.current, timers[0][0])
        return True

    def _resume(self, task: ScheduledTask) -> None:
        try:
            point = task.coroutine.send(task.answer)
        except StopIteration as stop:
            task.result = stop.value
            self._finish(task)
        except BaseException as error:
            if not is_outcome(error):
                raise
            task.error = None if isinstance(error, Gone) else error
            self._finish(task)
        else:
            task.answer = None
            if point.__class__ is Point:
                self.ready.insert(0, task)
            elif point is SWITCHED:
                pass
            elif point.__class__ is Wait:
                self._suspend(task, point, self._timers)
            elif point.__class__ is Patience:
                self._suspend(task, point, self._limits)
            elif isinstance(point, Halt):
                raise point.error
            else:
                raise WorldFault(f"{task.name} awaits {innermost(task.coroutine)}, which is no port's")

    def _suspend(self, task: ScheduledTask, wait: Wait, timers: list[Timer]) -> None:
        conditions = task.conditions = wait.conditions
        for condition in conditions:
            condition.waiters.append(task)
        until = wait.until_seconds
        if until is None or until == inf:
            return
        if not until > -inf:
            raise WorldFault(f"{task.name} {NO_TIME}")
        self._set_timer(timers, task, until if until > self.now else self.now)

    def _set_timer(self, timers: list[Timer], task: ScheduledTask, at_seconds: float) -> None:
        self._sequence += 1
        task.timer = self._sequence
        heappush(timers, (at_seconds, self._sequence, task))

    def _wake(self, task: ScheduledTask, *, notified: bool) -> None:
        if task.conditions:
            for condition in task.conditions:
                if task in condition.waiters:
                    condition.waiters.remove(task)
            task.conditions = ()
        task.timer = 0
        task.answer = notified
        self.ready.append(task)

    def _next_timers(self) -> bool:
        """Make the tasks of the earliest time ready together; False when there is none."""
        timers, limits = self._timers, self._limits
        while timers or limits:
            at_seconds = min(heap[0][0] for heap in (timers, limits) if heap) if limits else timers[0][0]
            self._timers_are_over(timers, at_seconds)
            self._timers_are_over(limits, at_seconds)
            if self.ready:
                self.now = at_seconds
                return True
        return False

    def _timers_are_over(self, timers: list[Timer], at_seconds: float) -> None:
        while timers and timers[0][0] == at_seconds:
            _, sequence, task = heappop(timers)
            if task.timer == sequence and not task.done and task.owner.alive:
                self._timer_is_over(task)

    def _timer_is_over(self, task: ScheduledTask) -> None:
        if task.stalled:  # it was ready before and keeps the answer that it had
            task.stalled = False
            task.timer = 0
            self.ready.append(task)
            return
        self._wake(task, notified=False)

    def _finish(self, task: ScheduledTask) -> None:
        task.done = True
        if task.finished.waiters:
            self.notify(task.finished)

    def _check_limits(self, began: float) -> int:
        """Raise StepLimit, or tell at which step to look again."""
        if self.steps >= self._step_limit:
            raise StepLimit(f"{self.steps:,} steps without an end")
        if time.monotonic() - began > self._watchdog_seconds:
            raise StepLimit(f"{self._watchdog_seconds:g} s of real time without an end")
        return min(self._step_limit, self.steps + _WATCHDOG_STEPS)

    def _check_deadlock(self) -> None:
        stuck = [task for task in self.tasks if not task.done and task.owner.alive]
        if stuck:
            names = ", ".join(f"{task.name} of {task.owner.name}" for task in stuck[:5])
            raise Deadlock(f"nothing can go on: {names}")


def is_outcome(error: BaseException) -> bool:
    """Whether it ends a task and no more: whatever a subject raises is told as its outcome."""
    if isinstance(error, KeyboardInterrupt):
        return _is_raised_by_code(error)
    return isinstance(error, (Exception, Gone, SystemExit)) and not isinstance(error, WorldFault)


def _is_raised_by_code(error: BaseException) -> bool:
    """Whether a `raise` did it. If not, whoever runs all this has pressed Ctrl-C, which no subject may swallow."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and last.tb_frame.f_code.co_code[last.tb_lasti] == _RAISE
