"""Whether everybody comes to an end that somebody can do something about, once nothing goes wrong any more.

Judged are launches that come so long after the last thing that went wrong that every access token of then is over: what
is revoked looks good in a row until its time is up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from fake_servers.oauth.answers import OK
from harness.reference.credentials.row import TABLE as CREDENTIALS
from harness.reference.credentials.row import Credential, credential_of
from harness.reference.credentials.state import state_at
from harness.reference.session.rows import degraded
from harness.scenario.model import Provide
from harness.scenario.naming import session_of
from harness.scenario.theatre import Evidence, is_runtime

WRONG = ("fault", "killed", "step.kill", "step.write", "step.remove", "step.edit", "step.provider")
STATES = ("server.connected", "server.failed", "server.needs_auth", "server.skipped")
SESSIONS = "sessions"
SAME_SECONDS = 60.0
"""An answer is on its way for so long at most: its lifetime counts from when it comes."""
REQUIRED = "oauth_required_servers"


class Launch(NamedTuple):
    """The last launch of a session: when, the runtime's name (empty where it was blocked), which servers block it."""

    session: str
    at: float
    runtime: str
    blocked: tuple[str, ...] = ()


def stuck(stage: Evidence, bad: Collection[str] = ()) -> tuple[bool, str]:
    """Whether any launch could be judged, and what of it is no good end; empty where all are. `bad` servers fail by
    themselves.
    """
    tested = False
    until = quiet_from(stage)
    for launch in launches(stage) if until is not None else ():
        if until is None or launch.at < until:
            continue
        for server in stage.cast.protected:
            judged = end_of(stage, launch, server)
            if judged is None or server in bad:
                continue
            tested = True
            if judged:
                return True, f"{server} in {launch.session}: {judged}"
    return tested, ""


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
    """The last of each session."""
    found: dict[str, Launch] = {}
    runtimes = {actor.name for actor in stage.actors if is_runtime(actor)}
    for event in stage.events:
        session = session_of(event.actor)
        if event.name == "session.blocked":
            found[session] = Launch(session, event.at_seconds, "", tuple(event.details["servers"]))
        elif event.name == "spawn" and event.details["child"] in runtimes:
            found[session] = Launch(session, event.at_seconds, str(event.details["child"]))
    yield from found.values()


def end_of(stage: Evidence, launch: Launch, server: str) -> str | None:
    """What is wrong with the end of a server; empty where nothing is, None where it was not tried."""
    rows = [credential_of(each) for each in stage.rows(CREDENTIALS).values() if each.get("server_name") == server]
    if any(is_told_too_long(stage, row) for row in rows):
        return None  # a lifetime that nobody told, or an untrue one: such a row looks good when it is not (seed 002)
    if launch.runtime:
        told = [
            event.name
            for event in stage.events
            if event.actor == launch.runtime and event.name in STATES and event.details.get("server") == server
        ]
        if not told:
            return None
        is_good = told[-1] == STATES[0] or is_left_out_for_good(stage, launch.session, server, rows)
        return "" if is_good else "it is not connected, and nobody is asked for it"
    if server not in launch.blocked:
        return None
    offered = [each for each in required(stage, launch.session) if each.get("server_name") == server]
    if len(offered) != 1:
        return f"it is offered {len(offered)} times"
    key = offered[0].get("credential_key")  # another config of the same server has another row
    if any(state_at(row, launch.at).active for row in rows if key in (None, row.credential_key)):
        return "a sign-in is offered that its stored credential keeps from being started"
    return ""


def is_told_too_long(stage: Evidence, row: Credential) -> bool:
    """Whether a row takes its access token for good for longer than its server does."""
    if row.expires_at is None:
        return True
    found = (server.generation(row.access_token) for server in stage.monitor.servers.values())
    ends = [each.expires_at for each in found if each is not None and each.expires_at is not None]
    return any(row.expires_at > end + SAME_SECONDS for end in ends)


def is_left_out_for_good(stage: Evidence, session: str, server: str, rows: Sequence[Credential]) -> bool:
    """Whether a session goes on without a server whose grant has ended: of what is left out nobody is asked before the
    next spawn, which finds no credential that could be renewed and blocks.
    """
    now = stage.monitor.stage.now
    is_dead = bool(rows) and not any(state_at(row, now).can_refresh for row in rows)
    return is_dead and server in degraded(stage.row(SESSIONS, session) or {})


def required(stage: Evidence, session: str) -> list[Any]:
    """What the session's row says must be authorized."""
    row = stage.row(SESSIONS, session) or {}
    metadata = row.get("metadata") or {}
    return [each for each in metadata.get(REQUIRED) or () if isinstance(each, dict)]
