"""Running probes on subjects, as many at a time as there are cores; nothing of it is left, also after an interrupt."""

from __future__ import annotations

import json
import os
import queue
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from harness.canary.claims import Probe
from harness.canary.subject import Subject
from harness.canary.trial import MARK_VARIABLE, Trial, TrialError
from harness.world.outside.janitor import Janitor
from harness.world.outside.reaping import marked

TICK_SECONDS = 0.1
TELL_SECONDS = 5.0
PATIENCE_SECONDS = 5.0
"""How long a probe that was given up has to come back."""
LONGEST_REASON = 300
TIMED_OUT = "timed out"
"""The kind of a problem that is no answer in time; all others are `not measurable`."""
NOT_MEASURABLE = "not measurable"

Tell = Callable[[str], None]


class Problem(NamedTuple):
    """Why a probe said nothing of its claims, in a line."""

    kind: str
    reason: str


class Measured(NamedTuple):
    """What a subject was seen to do.

    `observations` and `problems` are by the ids of claims, `seconds` by the names of probes; `wall_seconds` is from the
    first probe's start to the last one's end. `alone` are the probes that were tried again with nothing beside them.
    `left` is what was still there of its trials, which must be nothing.
    """

    subject: Subject
    observations: Mapping[str, Any]
    problems: Mapping[str, Problem]
    seconds: Mapping[str, float]
    wall_seconds: float
    alone: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """As profiles spell it."""
        return self.subject.label

    @property
    def kind(self) -> str:
        """Real or fake."""
        return self.subject.kind


def updated(first: Measured, again: Measured) -> Measured:
    """What was measured, with what was measured again alone in its place."""
    asked = set(again.observations) | set(again.problems)
    return first._replace(
        observations={k: v for k, v in first.observations.items() if k not in asked} | dict(again.observations),
        problems={k: v for k, v in first.problems.items() if k not in asked} | dict(again.problems),
        seconds={**first.seconds, **again.seconds},
        wall_seconds=round(first.wall_seconds + again.wall_seconds, 3),
        alone=tuple(dict.fromkeys((*first.alone, *again.seconds))),
        left=(*first.left, *again.left),
    )


class Job(NamedTuple):
    """One probe on one subject, by the place of that in the list."""

    number: int
    subject: Subject
    probe: Probe


class Outcome:
    """Catches whatever a probe raises, as `problem`; `observed` is what it answered."""

    def __init__(self) -> None:
        self.observed: Mapping[str, Any] = {}
        self.problem: Problem | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if raised is not None:
            self.problem = Problem(NOT_MEASURABLE, reason_of(raised))
        return True


def reason_of(raised: BaseException) -> str:
    """What was raised, in a line."""
    said = " ".join(str(raised).split())
    if isinstance(raised, TrialError) and said:
        return said[:LONGEST_REASON]
    return f"{type(raised).__name__}{f': {said}' if said else ''}"[:LONGEST_REASON]


class Attempt:
    """A probe that runs, in a thread of its own."""

    def __init__(self, job: Job, below: Path, done: queue.SimpleQueue[Attempt]) -> None:
        self.job, self.done = job, done
        self.trial = Trial(job.subject, below)
        self.outcome = Outcome()
        self.began = self.ended = time.monotonic()
        self.is_late = False
        self.left: tuple[str, ...] = ()
        self.thread = threading.Thread(target=self._run, name=f"probe {job.probe.name}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        with self.outcome, self.trial:
            self.outcome.observed = json.loads(json.dumps(dict(self.job.probe.ask(self.trial))))
        self.ended = time.monotonic()
        self.left = self.remains()
        self.done.put(self)

    @property
    def deadline(self) -> float:
        """When it is given up."""
        return self.began + self.job.probe.limit_seconds

    def give_up(self) -> None:
        """It is too late for an answer."""
        self.is_late = True
        self.trial.abandon()

    def clear(self) -> None:
        """Take away what there is of it, though its thread may still not have come back."""
        self.ended = time.monotonic()
        self.trial.__exit__()
        self.left = self.remains()

    def remains(self) -> tuple[str, ...]:
        """What is still there of its trial."""
        processes = [f"process {pid} of {self.job.probe.name}" for pid in sorted(marked(self.trial.mark))]
        return (*processes, *([f"files of {self.job.probe.name}"] if self.trial.folder.exists() else []))


def cores() -> int:
    """How many probes run at a time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def untold(_: str) -> None:
    """For those who do not want to hear how far it is."""


def measure(
    wanted: Iterable[tuple[Subject, Sequence[Probe]]], *, workers: int | None = None, tell: Tell = untold
) -> list[Measured]:
    """What each subject does, by its probes. The longest begin first; `tell` hears now and then how far it is.

    A probe that is not over in its time is tried once more when nothing else runs. An interrupt ends everything that
    was started before it is raised here.
    """
    subjects = [(subject, tuple(probes)) for subject, probes in wanted]
    jobs = [
        Job(number, subject, each)
        for number, (subject, probes) in enumerate(subjects)
        for each in sorted(probes, key=lambda each: -each.seconds)
    ]
    folder = Path(tempfile.mkdtemp(prefix="mcp-canary-")).resolve()
    with Janitor(folder, mark=f"{MARK_VARIABLE}={folder}/"):
        try:
            first = _run_all(jobs, folder, workers or cores(), tell)
            late = [attempt.job for attempt in first if attempt.is_late]
            again = _run_all(late, folder, 1, tell)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    retried = {(attempt.job.number, attempt.job.probe.name): attempt for attempt in again}
    return [
        _measured(subject, [attempt for attempt in first if attempt.job.number == number], retried)
        for number, (subject, _) in enumerate(subjects)
    ]


def _run_all(jobs: Sequence[Job], folder: Path, workers: int, tell: Tell) -> list[Attempt]:
    """Every job once, in an order of their ends. On the way out nothing runs any more."""
    waiting, running, over = deque(jobs), list[Attempt](), list[Attempt]()
    done: queue.SimpleQueue[Attempt] = queue.SimpleQueue()
    told = time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                running.append(Attempt(waiting.popleft(), folder, done))
            over += _over(running, done)
            now = time.monotonic()
            if now - told >= TELL_SECONDS and (waiting or running):
                told = now
                names = ", ".join(f"{each.job.subject.label} {each.job.probe.name}" for each in running)
                tell(f"{len(over)} of {len(jobs)} probes{f'; now {names}' if names else ''}")
    finally:
        _end(running)
    return over


def _over(running: list[Attempt], done: queue.SimpleQueue[Attempt]) -> list[Attempt]:
    """Those that are over within a tick or are too late; they run no more."""
    over = []
    with suppress(queue.Empty):
        over.append(done.get(timeout=TICK_SECONDS))
    over = [attempt for attempt in over if attempt in running]  # one that was given up may come back later
    now = time.monotonic()
    for attempt in running:
        if attempt not in over and now >= attempt.deadline:
            attempt.give_up()
            attempt.thread.join(PATIENCE_SECONDS)
            attempt.clear()
            over.append(attempt)
    for attempt in over:
        running.remove(attempt)
    return over


def _end(running: Sequence[Attempt]) -> None:
    """Nothing of these may go on."""
    for attempt in running:
        attempt.give_up()
    deadline = time.monotonic() + PATIENCE_SECONDS
    for attempt in running:
        attempt.thread.join(max(0.0, deadline - time.monotonic()))
        attempt.clear()


def _measured(subject: Subject, attempts: Sequence[Attempt], retried: Mapping[tuple[int, str], Attempt]) -> Measured:
    observations: dict[str, Any] = {}
    problems: dict[str, Problem] = {}
    seconds: dict[str, float] = {}
    final, left = [], list[str]()
    for attempt in attempts:
        last = retried.get((attempt.job.number, attempt.job.probe.name), attempt)
        left += attempt.left if last is attempt else (*attempt.left, *last.left)
        final.append(last)
        name = attempt.job.probe.name
        seconds[name] = round(last.ended - last.began, 3)
        for claim in last.job.probe.claims:
            problem = _problem(last, claim.id)
            if problem is None:
                observations[claim.id] = last.outcome.observed[claim.id]
            else:
                problems[claim.id] = problem
    began = min((attempt.began for attempt in attempts), default=0.0)
    ended = max((attempt.ended for attempt in final), default=0.0)
    alone = tuple(attempt.job.probe.name for attempt in final if attempt not in attempts)
    return Measured(subject, observations, problems, seconds, round(ended - began, 3), alone, tuple(left))


def _problem(attempt: Attempt, claim: str) -> Problem | None:
    if attempt.is_late:
        limit = attempt.job.probe.limit_seconds
        return Problem(TIMED_OUT, f"no answer in {limit:g} s, tried again alone")
    if attempt.outcome.problem is not None:
        return attempt.outcome.problem
    if claim not in attempt.outcome.observed:
        return Problem(NOT_MEASURABLE, f"the probe {attempt.job.probe.name} says nothing of it")
    return None
