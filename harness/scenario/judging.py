"""Whether what was expected is seen. Looks at what happened so far, changes nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from fake_runtimes import runtimes as fakes
from harness.reference.credentials.row import TABLE as CREDENTIALS
from harness.reference.credentials.row import credential_of
from harness.reference.credentials.state import CredentialState, state_at
from harness.scenario import model
from harness.scenario.model import Match, Often
from harness.scenario.naming import is_like, numbered
from harness.scenario.sentences import matched
from harness.scenario.session_runs import SessionRun, chosen, session_runs
from harness.scenario.sessions import Job
from harness.scenario.theatre import Evidence, Party
from harness.world.model import Event

STATES = {
    "server.connecting": "pending",
    "server.connected": "connected",
    "server.failed": "failed",
    "server.needs_auth": "needs-auth",
    "server.skipped": "skipped",
}
NOT_STARTED = "not-started"
SHOWN_NAMES = 6
NO_CREDENTIAL = "none"


class Seen(NamedTuple):
    """Whether an expectation is met, and what was seen instead. `events` are the numbers of those that tell.

    `of_run` is the run that was looked at where a session had several and the check did not say which; else 0.
    """

    met: bool
    instead: str = ""
    events: tuple[int, ...] = ()
    of_run: int = 0


class Scene(NamedTuple):
    """What the judge may look at. `place` gives a path's absolute form, `default` the session that is meant."""

    stage: Evidence
    place: Callable[[str, str | None], str]
    default: str

    @property
    def events(self) -> Sequence[Event]:
        """All events so far."""
        return self.stage.events

    def at(self, event: Event) -> float:
        """Seconds since the start of the run."""
        return event.at_seconds - self.stage.started_seconds


def look(scene: Scene, check: model.Check) -> Seen:
    """Whether a check holds now. Invariants are judged elsewhere."""
    return _look(scene, check)._replace(of_run=_last_run(scene, check))


def is_settled(check: model.Check) -> bool:
    """Whether a check that was met once stays so whatever happens later: what has happened has happened."""
    match check:
        case model.EventHappens(often=often, between=between):
            return often.at_most is None and between is None
        case model.Received(often=often):
            return often.at_most is None
        case model.ExitIs(run=run) | model.RequestOffers(run=run):
            return run is not None
    return False


OF_A_RUN = model.ExitIs | model.RequestOffers | model.ServerIs | model.OutputHas


def _last_run(scene: Scene, check: model.Check) -> int:
    if not isinstance(check, OF_A_RUN) or check.run is not None:
        return 0
    count = len(session_runs(scene.events, check.session or scene.default))
    return count if count > 1 else 0


def _look(scene: Scene, check: model.Check) -> Seen:
    match check:
        case model.ExitIs():
            return _exit(scene, check)
        case model.EventHappens():
            return _event(scene, check)
        case model.RequestOffers():
            return _request(scene, check)
        case model.ServerIs():
            return _server(scene, check)
        case model.FileIs():
            return _file(scene, check)
        case model.RowIs():
            return _row(scene, check)
        case model.Received():
            return _received(scene, check)
        case model.CredentialIs():
            return _credential(scene, check)
        case model.OutputHas():
            return _output(scene, check)
    return Seen(met=False, instead=f"{check.name} is an invariant")


def run_of(scene: Scene, check: OF_A_RUN) -> SessionRun | Seen:
    """The run that a check is about; where there is none so far, what was seen instead."""
    runs = session_runs(scene.events, check.session or scene.default)
    run = chosen(runs, check.run)
    if run is not None:
        return run
    return Seen(met=False, instead=f"there is no run {check.run}: it has {len(runs)}" if runs else "it was not started")


def _party(scene: Scene, name: str) -> Party:
    return next(actor for actor in scene.stage.actors if actor.name == name)


def _unstarted(run: SessionRun) -> Seen:
    return Seen(met=False, instead=run.unstarted, events=_telling(run))


def _telling(run: SessionRun) -> tuple[int, ...]:
    """What tells why a runtime was never started."""
    return () if run.runtime or run.event is None else (run.event,)


def _exit(scene: Scene, check: model.ExitIs) -> Seen:
    """Of a runtime that was never started nothing exits but the session's own process."""
    run = run_of(scene, check)
    if isinstance(run, Seen):
        return run
    code = _party(scene, run.runtime or run.process).exit_code
    if code is None:
        return Seen(met=False, instead="it still runs")
    why = "" if run.runtime else f"; {run.unstarted}"
    return Seen(code == check.exit, f"it exits {code}{why}", _telling(run))


def _event(scene: Scene, check: model.EventHappens) -> Seen:
    found = list(_matching(scene, check.match))
    times = [scene.at(scene.events[number]) for number in found]
    if not check.often.holds(len(found)):
        at = f" at {', '.join(f'{time:.1f}' for time in times[:SHOWN_NAMES])} s" if times else ""
        return Seen(met=False, instead=f"it happens {len(found)}x{at}", events=tuple(found))
    if check.between is not None:
        low, high = check.between
        outside = [(number, time) for number, time in zip(found, times, strict=True) if not low <= time <= high]
        if outside:
            return Seen(met=False, instead=f"it happens at {outside[0][1]:.1f} s", events=(outside[0][0],))
    if check.before is not None and found:
        other = next(_matching(scene, check.before), None)
        if other is None:
            return Seen(met=False, instead=f"{matched(check.before)} never happens", events=tuple(found[:1]))
        return Seen(found[0] < other, f"{matched(check.before)} comes first", (other, found[0]))
    return Seen(met=True, events=tuple(found))


def _matching(scene: Scene, match: Match) -> Iterator[int]:
    return (number for number, _ in numbered(match, scene.events))


def _request(scene: Scene, check: model.RequestOffers) -> Seen:
    run = run_of(scene, check)
    if isinstance(run, Seen):
        return run
    if not run.runtime:
        return _unstarted(run)
    number, event = next(
        (
            (index, event)
            for index, event in enumerate(scene.events)
            if event.name == "model.request" and event.actor == run.runtime and event.details["number"] == check.number
        ),
        (-1, None),
    )
    if event is None:
        return Seen(met=False, instead="there is no such request")
    names = tool_names(scene, _party(scene, run.runtime))
    tools, pending = set(event.details["tools"]), set(event.details.get("pending", ()))
    wrong = [f"lacks {each}" for each in check.offers if not offered(each, names, tools, every=True)]
    wrong += [f"offers {each}" for each in check.lacks if offered(each, names, tools, every=False)]
    wrong += [f"{each} is not pending" for each in check.pending if each not in pending]
    at = scene.at(event)
    if check.between is not None and not check.between[0] <= at <= check.between[1]:
        wrong.append(f"leaves at {at:.1f} s")
    return Seen(not wrong, ", ".join(wrong), (number,))


def tool_names(scene: Scene, run: Party) -> dict[tuple[str, str], str]:
    """The runtime's names of all tools by (server, tool), as its version makes them."""
    job = scene.stage.jobs[run.parent.name if run.parent else run.name]
    return offered_names(scene.stage, job, run.variables)


def offered_names(stage: Evidence, job: Job, variables: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """The names that a run of this job gives all tools, by what stands in its clone now."""
    profile = job.runtime.profile
    text = stage.text(f"{job.clone}/{fakes.config_path(profile)}")
    servers = fakes.read(profile, text, variables).servers
    tools = {
        server.name: tuple(tool.name for tool in stage.cast.behaviour(server.name).tools)
        for server in servers
        if server.name in stage.cast.names
    }
    return dict(fakes.offered(profile, tools, servers).names)


def offered(wanted: str, names: dict[tuple[str, str], str], tools: set[str], *, every: bool) -> bool:
    """Whether a server's tools (all, or any), or one `server/tool`, are among those of a request."""
    server, _, tool = wanted.partition("/")
    meant = [name for (of, each), name in names.items() if of == server and (not tool or each == tool)]
    there = [name in tools for name in meant]
    return bool(there) and (all(there) if every else any(there))


def _server(scene: Scene, check: model.ServerIs) -> Seen:
    """By the account of the run's own runtime: what an earlier run said of a server is none of it."""
    run = run_of(scene, check)
    if isinstance(run, Seen):
        return run
    state, text = NOT_STARTED, ""
    told = _telling(run)
    for number, event in enumerate(scene.events):
        if run.runtime == event.actor and event.name in STATES and event.details.get("server") == check.server:
            state, text, told = STATES[event.name], str(event.details.get("text", "")), (number,)
    if state != check.state:
        return Seen(met=False, instead=_state_instead(check, run, state, text), events=told)
    return Seen(fnmatchcase(text, check.text), f"it says {text!r}", told)


def _state_instead(check: model.ServerIs, run: SessionRun, state: str, text: str) -> str:
    """A server's state in words; a session that is parked is told from a runtime that wants a sign-in."""
    if run.is_blocked and check.state == STATES["server.needs_auth"]:
        return f'it is {state}: the orchestrator\'s own check blocked it; expect event = "session.blocked"'
    words = text if run.runtime else run.why
    return f"it is {state}{f': {words}' if words else ''}"


def _file(scene: Scene, check: model.FileIs) -> Seen:
    path = scene.place(check.path, check.session)
    status = scene.stage.stat(path)
    if check.absent or status is None:
        return Seen(check.absent == (status is None), "nothing is there" if status is None else "it is there")
    if check.mode is not None and status.mode != check.mode:
        return Seen(met=False, instead=f"its mode is {status.mode:04o}")
    text = scene.stage.text(path) or ""
    if check.contains is not None and check.contains not in text:
        return Seen(met=False, instead="it does not")
    if check.lacks is not None and check.lacks in text:
        return Seen(met=False, instead="it has it")
    if check.matches is not None and re.search(check.matches, text, re.MULTILINE) is None:
        return Seen(met=False, instead="it does not")
    return Seen(met=True)


def _row(scene: Scene, check: model.RowIs) -> Seen:
    values = scene.stage.row(check.table, check.key)
    if check.absent or values is None:
        return Seen(check.absent == (values is None), "there is no such row" if values is None else "it is there")
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=str)
    if check.contains is not None and check.contains not in text:
        return Seen(met=False, instead=f"it is {text}")
    return Seen(check.lacks is None or check.lacks not in text, f"it is {text}")


def _received(scene: Scene, check: model.Received) -> Seen:
    authorization = scene.stage.cast.authorizations.servers.get(check.server)
    if authorization is not None:
        number = sum(
            any(is_like(word or "", check.method) for word in (seen.endpoint, seen.method, seen.grant_type))
            for seen in authorization.requests
        )
        return Seen(check.often.holds(number), f"{Often(number, number)}" if number else "it received none")
    server = scene.stage.cast.remote.get(check.server)
    if server is None:
        return Seen(met=False, instead=f"{check.server} is no remote server")
    number = sum(
        is_like(seen.method, check.method) or is_like(seen.rpc_method or "", check.method) for seen in server.requests
    )
    return Seen(check.often.holds(number), f"{Often(number, number)}" if number else "it received none")


def _credential(scene: Scene, check: model.CredentialIs) -> Seen:
    """By the orchestrator's row of that server; of several (an entry was edited) the one that was changed last."""
    found = [each for each in scene.stage.rows(CREDENTIALS).values() if each["server_name"] == check.server]
    if not found:
        return Seen(check.state == NO_CREDENTIAL, "there is none")
    row = credential_of(max(found, key=lambda each: float(each.get("updated_at") or 0.0)))
    told = state_at(row, scene.stage.now)
    state = _state(told)
    if check.state is not None and check.state != state:
        return Seen(met=False, instead=f"it is {state}")
    if check.one_shot not in (None, told.requires_periodic_reauth):
        return Seen(met=False, instead=f"it is{'' if told.requires_periodic_reauth else ' not'} noted as one-shot")
    return _generation(scene, check, row.access_token)


def _state(state: CredentialState) -> str:
    if state.active:
        return "active"
    return "needs-reauth" if state.requires_reauth else "expired"


def _generation(scene: Scene, check: model.CredentialIs, token: str) -> Seen:
    """Which of the tokens that were given out it is."""
    if check.generation is None and check.newest is None:
        return Seen(met=True)
    servers = scene.stage.cast.authorizations.servers.values()
    held = next(((server, each) for server in servers if (each := server.generation(token)) is not None), None)
    if held is None:
        return Seen(met=False, instead="its token is no authorization server's")
    server, generation = held
    newest = max(each.number for each in server.tokens if each.family == generation.family)
    told = f"it is generation {generation.number} of {newest}"
    right = check.generation in (None, generation.number) and check.newest in (None, generation.number == newest)
    return Seen(right, told)


def _output(scene: Scene, check: model.OutputHas) -> Seen:
    run = run_of(scene, check)
    if isinstance(run, Seen):
        return run
    if not run.runtime:
        return _unstarted(run)
    text = scene.stage.printed(_party(scene, run.runtime))[check.stream]
    if check.contains is not None and check.contains not in text:
        return Seen(met=False, instead="it does not" if text else "it is empty")
    return Seen(check.lacks is None or check.lacks not in text, "it has it")
