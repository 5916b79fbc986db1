"""Whether everybody comes to an end that somebody can do something about, once nothing goes wrong any more.

Judged are launches that come so long after the last thing that went wrong that every access token of then is over: what
is revoked looks good in a row until its time is up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from fake_servers.oauth.answers import OK
from harness.reference.credentials.row import Credential, credential_of
from harness.reference.credentials.state import state_at
from harness.reference.session.rows import degraded
from harness.scenario.desk import tabs
from harness.scenario.model import Provide
from harness.scenario.session_runs import last_runs
from harness.scenario.theatre import Evidence

WRONG = ("fault", "killed", "step.kill", "step.write", "step.remove", "step.edit", "step.provider")
STATES = ("server.connected", "server.failed", "server.needs_auth", "server.skipped")
SESSIONS = "sessions"
SAME_SECONDS = 60.0
"""An answer is on its way for so long at most: its lifetime counts from when it comes."""
REQUIRED = "oauth_required_servers"
GOES_ON_WAITING = "it was authorized, and the session goes on waiting"


Rows = Sequence[Credential]


class Launch(NamedTuple):
    """The last run of a session, if its runtime was started or it waits for a sign-in: when that was, by which event.

    `runtime` is empty where servers block it; `blocked` are these.
    """

    session: str
    at: float
    event: int
    runtime: str
    blocked: tuple[str, ...] = ()


class End(NamedTuple):
    """What is wrong with the end of a server, empty where nothing is; `event` is the number of the event that tells."""

    wrong: str
    event: int


def stuck(stage: Evidence, bad: Collection[str] = ()) -> tuple[bool, End | None]:
    """Whether any launch could be judged, and the first that is no good end; None where all are. `bad` servers fail by
    themselves.
    """
    tested = False
    until = quiet_from(stage)
    for launch in launches(stage) if until is not None else ():
        if until is None or launch.at < until:
            continue
        for server in stage.cast.protected:
            end = None if server in bad else end_of(stage, launch, server)
            if end is None:
                continue
            tested = True
            if end.wrong:
                return True, end._replace(wrong=f"{server} in {launch.session}: {end.wrong}")
    return tested, None


def quiet_from(stage: Evidence) -> float | None:
    """From when on nothing of what went wrong is felt; None where something goes on for ever."""
    scenario, monitor = stage.cast.scenario, stage.monitor
    steps = (step.action for step in scenario.steps)
    endless = any(each.always for each in scenario.authorizations.values())
    if endless or any(isinstance(step, Provide) and step.always for step in steps):
        return None
    times = [event.at_seconds for event in stage.events if event.name in WRONG]
    times += [attempt.at for attempt in monitor.attempts if attempt.hole or attempt.wrong or attempt.reuse]
    for server in monitor.servers.values():
        times += [each.at for each in server.requests if each.answer != OK]
    return max(times, default=stage.started_seconds) + longest_life(stage)


def longest_life(stage: Evidence) -> float:
    """How long an access token of any of the servers is good."""
    lives = [server.provider.access_seconds for server in stage.monitor.servers.values()]
    return max((float("inf") if life is None else life for life in lives), default=0.0)


def launches(stage: Evidence) -> Iterator[Launch]:
    """The last of each session; none of one whose last run came neither to its runtime nor to a sign-in.

    A session that was parked after its start, for what its runtime said, waits like one that was not started.
    """
    for session, run in last_runs(stage.events).items():
        if run.parked is not None:
            event = stage.events[run.parked]
            yield Launch(session, event.at_seconds, run.parked, "", tuple(event.details["servers"]))
        elif run.runtime and run.event is not None:
            yield Launch(session, stage.events[run.event].at_seconds, run.event, run.runtime)


def end_of(stage: Evidence, launch: Launch, server: str) -> End | None:
    """How a server ended in a launch; None where it was not tried."""
    pasts = rows_since(stage, launch.event, server)
    if any(is_told_too_long(stage, row) for row in pasts[0]):
        return None  # a lifetime that nobody told, or an untrue one: such a row looks good when it is not (seed 002)
    if launch.runtime:
        told = [
            number
            for number, event in enumerate(stage.events)
            if event.actor == launch.runtime and event.name in STATES and event.details.get("server") == server
        ]
        if not told:
            return None
        is_connected = stage.events[told[-1]].name == STATES[0]
        is_good = is_connected or is_left_out_for_good(stage, launch.session, server, pasts)
        return End("" if is_good else "it is not connected, and nobody is asked for it", told[-1])
    return End(wrong_with_offer(stage, launch, server, pasts[0]), launch.event) if server in launch.blocked else None


def wrong_with_offer(stage: Evidence, launch: Launch, server: str, rows: Rows) -> str:
    """What keeps a person from authorizing a server that blocks a session, whose rows were these when it did; or from
    having done so.

    A row that somebody else makes good later is no obstacle: who clicks then retries the session. One that was
    authorized is offered no more while the session waits for others.
    """
    waits_for = required(stage, launch.session)
    offered = [each for each in waits_for if each.get("server_name") == server]
    is_authorized = is_authorized_since(stage, launch, server)
    if is_authorized and not offered:
        return "" if waits_for else GOES_ON_WAITING
    if len(offered) != 1:
        return f"it is offered {len(offered)} times"
    key = offered[0].get("credential_key")  # another config of the same server has another row
    if any(state_at(row, launch.at).active for row in rows if key in (None, row.credential_key)):
        return "a sign-in is offered that its stored credential keeps from being started"
    return GOES_ON_WAITING if is_authorized else ""


def is_authorized_since(stage: Evidence, launch: Launch, server: str) -> bool:
    """Whether a person has authorized a server from the page of the session since that launch."""
    page = {"session": launch.session, "server": server}
    opened = {
        tab for tab, (at, told) in tabs(stage.events).items() if at >= launch.event and page.items() <= told.items()
    }
    return any(
        event.name == "oauth.completed" and event.actor in opened and event.details.get("server") == server
        for event in stage.events
    )


def is_told_too_long(stage: Evidence, row: Credential) -> bool:
    """Whether a row takes its access token for good for longer than its server does."""
    if row.expires_at is None:
        return True
    found = (server.generation(row.access_token) for server in stage.monitor.servers.values())
    ends = [each.expires_at for each in found if each is not None and each.expires_at is not None]
    return any(row.expires_at > end + SAME_SECONDS for end in ends)


def is_left_out_for_good(stage: Evidence, session: str, server: str, pasts: Sequence[Rows]) -> bool:
    """Whether a session goes on without a server whose grant had ended: of what is left out nobody is asked before the
    next spawn, which finds no credential that could be renewed and blocks.
    """
    now = stage.monitor.stage.now
    was_dead = any(rows and not any(state_at(row, now).can_refresh for row in rows) for rows in pasts)
    return was_dead and server in degraded(stage.row(SESSIONS, session) or {})


def rows_since(stage: Evidence, event: int, server: str) -> list[Rows]:
    """The rows of a server as they were at an event, and as they became after it."""
    return [
        [credential_of(row) for row in rows.values() if row.get("server_name") == server]
        for rows in stage.monitor.rows_since(event)
    ]


def required(stage: Evidence, session: str) -> list[Any]:
    """What the session's row says must be authorized."""
    row = stage.row(SESSIONS, session) or {}
    metadata = row.get("metadata") or {}
    return [each for each in metadata.get(REQUIRED) or () if isinstance(each, dict)]
