"""The runs of a session, read from what happened: the one place that tells which run is meant, and which is the last.

Each step that starts a session begins a run, and so does the orchestrator each time that it starts the runtime again.
A run whose runtime was never started (parked for a sign-in, not to be prepared, killed before) is a run as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.scenario.happenings import RUNTIMES
from harness.scenario.naming import OPERATOR, plain
from harness.world.model import Event

PARKED = "the orchestrator's own check blocked it (session.blocked)"
NEVER_STARTED = "the runtime was never started"


class SessionRun(NamedTuple):
    """`process` is the orchestrator's own process of the session, `runtime` the actor that it started; empty: none.

    `why` says why there is none, as far as anything tells. `event` is the number of the event that tells it, or of the
    launch. `parked` is that of the block by which it waits for a sign-in, before its runtime was started or after.
    """

    process: str
    runtime: str = ""
    why: str = ""
    event: int | None = None
    parked: int | None = None

    @property
    def is_blocked(self) -> bool:
        """Whether it waits for a sign-in that the orchestrator's check before the start asks for."""
        return self.why == PARKED

    @property
    def unstarted(self) -> str:
        """That the runtime was never started, and why."""
        return f"{NEVER_STARTED}: {self.why}" if self.why else NEVER_STARTED


def last_runs(events: Sequence[Event]) -> dict[str, SessionRun]:
    """The last run of every session that was started, by its name."""
    started = (event for event in events if event.name == "step.start" and event.actor == OPERATOR)
    sessions = dict.fromkeys(str(event.details["session"]) for event in started)
    return {session: session_runs(events, session)[-1] for session in sessions}


def session_runs(events: Sequence[Event], session: str) -> list[SessionRun]:
    """All runs so far, in the order in which they began."""
    found: list[SessionRun] = []
    current: dict[str, int] = {}
    for number, event in enumerate(events):
        if event.name == "step.start":
            if event.actor == OPERATOR and event.details["session"] == session:
                process = f"{session}#{len(current) + 1}" if current else session
                current[process] = len(found)
                found.append(SessionRun(process))
            continue
        at = current.get(event.actor)
        if at is None:
            continue
        if found[at].runtime and event.name in ("session.prepared", "session.failed"):  # the runtime, once more
            at = current[event.actor] = len(found)
            found.append(SessionRun(event.actor))
        if event.name == "session.blocked":
            found[at] = found[at]._replace(parked=number)
        if not found[at].runtime:
            found[at] = told_by(found[at], number, event)
    return found


def told_by(run: SessionRun, number: int, event: Event) -> SessionRun:
    """A run that has no runtime so far, after one more event of its own process."""
    match event.name:
        case "spawn" if is_launch(event):
            return SessionRun(run.process, str(event.details["child"]), event=number)
        case "session.blocked":
            return run._replace(why=PARKED, event=number)
        case "session.failed":
            return run._replace(why=str(event.details["text"]), event=number)
        case "killed" if not run.why:
            return run._replace(why=f"its session was ended by {event.details['signal']}", event=number)
    return run


def is_launch(event: Event) -> bool:
    """Whether a session starts its runtime; what it starts besides is a tool of its own."""
    _, slash, program = plain(str(event.details["child"])).rpartition("/")
    return "/" not in event.actor and bool(slash) and program in RUNTIMES


def chosen(runs: Sequence[SessionRun], number: int | None) -> SessionRun | None:
    """The run of that number, from 1; without one the last. None: there is no such run."""
    if number is None:
        return runs[-1] if runs else None
    return runs[number - 1] if 0 < number <= len(runs) else None
