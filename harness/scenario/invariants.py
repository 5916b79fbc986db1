"""What must hold in every run, whatever a scenario expects. Each can say that it was not put to the test."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from fake_servers.mcp.behaviour import Behaviour
from harness.reference.prepare.request import CONFIG_FILES
from harness.scenario import chain_invariants, liveness
from harness.scenario.cast import SPAWN_ACTIONS
from harness.scenario.model import HOME, PackageFacts
from harness.scenario.naming import OPERATOR, plain, session_of
from harness.scenario.stores import KEYRING, STORE_FILES
from harness.scenario.theatre import Evidence, Party, is_runtime
from harness.world.model import Event
from harness.world.sites import origin

SESSIONS = "sessions"
SHORTEST_SECRET = 6
"""A shorter value turns up by chance."""
ENCODER = json.JSONEncoder(default=str, ensure_ascii=False)
SECRET_FILE = re.compile(
    r"(?:(?:credentials|tokens)\.json(?:\.unreadable)?"
    + "".join(f"|/{re.escape(path)}" for path in CONFIG_FILES.values())
    + r")(?:\.\d+-[0-9a-f]{8}\.tmp)?$"
)
"""What is made for secrets, with what a killed writer leaves of it, which is private too (store-atomic-replace)."""
OWN_EVENTS = ("spawn", "request")
"""What the simulation writes down for itself: command lines and addresses as they were used."""
FAILURES = ("server.failed", "server.needs_auth", "server.skipped")
RUNTIME_DEPTH = 2
"""Parts of a runtime's name: session and program. What has more is a server, or started by one."""
LEAKING_PROFILES = ("claude-2.1.268",)
"""Measured: a server that never connected gets no signal when the run ends (0.13 of the measurements)."""


Broken = Callable[[Evidence], chain_invariants.Broken | None]
"""Looks for what breaks a rule."""


class Finding(NamedTuple):
    """What came of an invariant: `holds` None means that nothing put it to the test. `events` are those that tell."""

    name: str
    holds: bool | None
    detail: str = ""
    events: tuple[int, ...] = ()


class Run(NamedTuple):
    """What the invariants look at: the stage after the run, and who was still alive when everything had settled."""

    stage: Evidence
    left_behind: tuple[Party, ...]

    @property
    def events(self) -> Sequence[Event]:
        """All that happened."""
        return self.stage.events


def no_secret_shown(run: Run) -> Finding:
    """No secret's value in what a session or a runtime prints or logs, nor in a file that is not made for it."""
    name = "no-secret-shown"
    forms = secret_forms(run)
    if not forms:
        return Finding(name, None)
    together = "\n".join(shown_at_once(run))  # mostly there is none, and one search tells so
    if not any(form in together for _, form in forms):
        return Finding(name, holds=True)
    for where, text, told in shown_texts(run):
        found = next((secret for secret, form in forms if form in text), None)
        if found is not None:
            return Finding(name, holds=False, detail=f"the value of {found} is in {where}", events=told)
    return Finding(name, holds=True)


def secret_forms(run: Run) -> list[tuple[str, str]]:
    """Each secret's name with its value raw, in a URL, in base64 and in JSON."""
    scenario = run.stage.cast.scenario
    values = list(scenario.secrets.items())
    for credential in scenario.credentials:
        if credential.access_token:
            values.append((f"{credential.server}'s access token", credential.access_token))
        if credential.refresh_token:
            values.append((f"{credential.server}'s refresh token", credential.refresh_token))
    values += run.stage.cast.authorizations.secrets()
    forms = []
    for name, value in values:
        if len(value) >= SHORTEST_SECRET:
            encoded = base64.b64encode(value.encode()).decode().rstrip("=")
            forms += [
                (name, form) for form in dict.fromkeys((value, quote(value, safe=""), encoded, json.dumps(value)[1:-1]))
            ]
    return forms


def shown_at_once(run: Run) -> Iterator[str]:
    """Everything in which no secret may stand: the details of all events as one text."""
    events = [event.details for event in run.events if event.name not in OWN_EVENTS]
    yield ENCODER.encode(events)
    for _, text in (*printed_texts(run), *stored_texts(run)):
        yield text


def shown_texts(run: Run) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """The same piece by piece, with where it is, and by which event it came to be there, if by one."""
    yield from ((where, text, ()) for where, text in printed_texts(run))
    for number, event in enumerate(run.events):
        if event.name not in OWN_EVENTS:
            yield f"event {number} ({event.name})", ENCODER.encode(event.details), (number,)
    yield from ((where, text, ()) for where, text in stored_texts(run))


def printed_texts(run: Run) -> Iterator[tuple[str, str]]:
    """What sessions and runtimes printed."""
    stage = run.stage
    for actor in stage.actors:
        if actor.parent is None or is_runtime(actor):
            for stream, text in stage.printed(actor).items():
                yield f"{stream} of {actor.name}", text


def stored_texts(run: Run) -> Iterator[tuple[str, str]]:
    """The rows of sessions, and the files that are not made for secrets."""
    stage = run.stage
    for key, values in stage.rows(SESSIONS).items():
        yield f"the row of session {key}", ENCODER.encode(values)
    for path, content in stage.files():
        made_for_secrets = SECRET_FILE.search(path) or path.startswith(KEYRING)
        if not made_for_secrets and path not in stage.given_files:
            yield path, content.decode("utf-8", "replace")


def only_struck_servers_fail(run: Run) -> Finding:
    """A server that nothing was done to does not fail, is not refused and is not left out."""
    name = "only-struck-servers-fail"
    hurt = struck(run)
    for number, event in enumerate(run.events):
        if event.name in FAILURES and event.details.get("server") not in hurt:
            server, text = event.details.get("server"), event.details.get("text") or event.details.get("kind") or ""
            return Finding(name, holds=False, detail=f"{server} fails, unprovoked: {text}", events=(number,))
    connected = any(event.name == "server.connected" for event in run.events)
    return Finding(name, True if connected else None)


def struck(run: Run) -> set[str]:
    """The servers that something was done to: by their own behaviour, their package, a fault, or a step."""
    stage, scenario = run.stage, run.stage.cast.scenario
    hurt = {*scenario.struck}
    hurt |= {server for server, behaviour in scenario.servers.items() if misbehaves(behaviour)}
    for package in scenario.packages.values():
        if package._replace(server=None, version=None, bin_name="") != PackageFacts(package.name):
            hurt |= {server.name for server in stage.cast.known if stage.cast.runs_package(server, package.name)}
    for event in run.events:
        if event.name in ("fault", "step.kill"):
            hurt |= struck_by(stage, event)
    return hurt | struck_by_authorization(run)


def struck_by_authorization(run: Run) -> set[str]:
    """The servers whose authorization server was not itself, or could not be reached, or whose tokens were in a
    race.
    """
    scenario, monitor = run.stage.cast.scenario, run.stage.monitor
    odd = {name for name, each in scenario.authorizations.items() if each.answers or each.always}
    odd |= {attempt.chain[0] for attempt in monitor.attempts if attempt.hole or attempt.wrong or attempt.reuse}
    odd |= {each.chain[0] for each in monitor.overwrites}
    for event in run.events:
        if event.name == "step.provider":
            odd.add(str(event.details["authorization"]))
        elif event.name == "fault":
            at = str(event.details["at"])
            odd |= {
                name
                for name, each in scenario.authorizations.items()
                if origin(each.issuer) in at or any(part in at for part in (*STORE_FILES, KEYRING))
            }
    return {server for server, each in scenario.protections.items() if each.authorization in odd}


def misbehaves(behaviour: Behaviour) -> bool:
    """Whether a server does anything but answer well: its name, its version and its tools are no misbehaviour."""
    good = Behaviour(behaviour.name, behaviour.version, behaviour.tools)
    return behaviour._replace(supports_get=False, answers_as="json", stderr=()) != good


def struck_by(stage: Evidence, event: Event) -> set[str]:
    """The servers that a fault or a signal met: the actor itself, what it started, or whose URL it is.

    Whoever ends a session or a runtime ends what its servers were doing, an install for one.
    """
    action = event.details.get("action")
    actors = [event.actor] if event.name == "fault" else event.details["actors"]
    paths = [plain(actor).split("/") for actor in actors if actor != OPERATOR]
    if any(len(path) <= RUNTIME_DEPTH for path in paths) and (event.name != "fault" or action == "kill"):
        return {server.name for server in stage.cast.known}
    parts = {part for path in paths for part in path[RUNTIME_DEPTH:]}
    at = str(event.details.get("at", ""))
    for server in stage.cast.known:
        by_url = bool(server.url) and server.url in at
        by_command = action in SPAWN_ACTIONS and bool(server.argv) and at == f"spawn {server.argv[0]}"
        if by_url or by_command:
            parts.add(server.name)
    return parts


def installs_never_share_a_tree(run: Run) -> Finding:
    """No two npx installs are under way in one tree at the same time."""
    name = "installs-never-share-a-tree"
    under_way: dict[str, tuple[str, int]] = {}
    started = False
    for number, event in enumerate(run.events):
        tree = str(event.details.get("tree", ""))
        if event.name == "install.started":
            started = True
            if tree in under_way:
                other, earlier = under_way[tree]
                detail = f"{plain(other)} and {plain(event.actor)} install into {tree} at once"
                return Finding(name, holds=False, detail=detail, events=(earlier, number))
            under_way[tree] = (event.actor, number)
        elif event.name in ("install.finished", "install.failed"):
            under_way.pop(tree, None)
        elif event.name == "ended":
            under_way = {tree: each for tree, each in under_way.items() if each[0] != event.actor}
    return Finding(name, True if started else None)


def user_npm_untouched(run: Run) -> Finding:
    """Nothing is written to the user's own npm cache. Pi's adapter does so by itself: there it is not judged."""
    name = "user-npm-untouched"
    if any(job.runtime.family == "pi" for job in run.stage.jobs.values()):
        return Finding(name, None)
    installed = any(event.name in ("install.started", "install.reused") for event in run.events)
    if run.stage.stat(f"{HOME}/.npm") is None:
        return Finding(name, True if installed else None)
    told = tuple(
        number
        for number, event in enumerate(run.events)
        if event.name == "install.started" and str(event.details.get("tree", "")).startswith(f"{HOME}/.npm/")
    )
    return Finding(name, holds=False, detail=f"{HOME}/.npm was written", events=told[:1])


def no_orphans(run: Run) -> Finding:
    """When a session is over nothing of it runs on, save what the version was measured to leave, and a runtime at work
    whose session was killed.
    """
    name = "no-orphans"
    at_work = still_at_work(run)
    orphans = [actor for actor in run.left_behind if actor.name not in at_work and not is_measured_leak(run, actor)]
    if orphans:
        left = [number for number, event in enumerate(run.events) if event.name == "left.behind"]
        told = tuple(number for number in left if run.events[number].details["actor"] == orphans[0].name)
        return Finding(name, holds=False, detail=f"{plain(orphans[0].name)} still runs", events=told)
    return Finding(name, True if any(event.name == "spawn" for event in run.events) else None)


def still_at_work(run: Run) -> set[str]:
    """Runtimes that do what they were asked when their session's own process was killed, with all that they started:
    nobody was there any more who could end them.
    """
    killed = {event.actor for event in run.events if event.name == "killed" and event.details["signal"] == "SIGKILL"}
    parent = {str(event.details["child"]): event.actor for event in run.events if event.name == "spawn"}
    found = {actor.name for actor in run.left_behind if is_runtime(actor) and parent.get(actor.name) in killed}
    below = tuple(f"{name}/" for name in found)
    return found | {actor.name for actor in run.left_behind if actor.name.startswith(below)}


def is_measured_leak(run: Run, actor: Party) -> bool:
    """Whether the runtime's version is known to leave this process: a server that it never connected to."""
    session = session_of(actor.name)
    profiles = {job.runtime.profile.name for at, job in run.stage.jobs.items() if session_of(at) == session}
    server = plain(actor.name).rpartition("/")[2]
    connected = any(
        event.name == "server.connected"
        and event.details.get("server") == server
        and actor.name.startswith(f"{event.actor}/")
        for event in run.events
    )
    return bool(profiles & set(LEAKING_PROFILES)) and not connected


def no_spent_token_presented(run: Run) -> Finding:
    """Nobody presents a refresh token of which it could have known that a fresher one is there."""
    return of_chains(run, "no-spent-token-presented", chain_invariants.presented_wrongly)


def no_refresh_repeated(run: Run) -> Finding:
    """A refresh that may have been processed is not sent again by whoever sent it."""
    return of_chains(run, "no-refresh-repeated", chain_invariants.repeated)


def rows_move_forward(run: Run) -> Finding:
    """The orchestrator's row never goes back to older tokens of the same chain."""
    return of_chains(run, "rows-move-forward", chain_invariants.moved_backwards)


def stores_move_forward(run: Run) -> Finding:
    """The orchestrator puts no older tokens over newer ones in a runtime's store, where it could know of them."""
    return of_stores(run, "stores-move-forward", chain_invariants.overwritten)


def foreign_entries_untouched(run: Run) -> Finding:
    """The orchestrator changes no entry of a store that is of no server of the catalog."""
    return of_stores(run, "foreign-entries-untouched", chain_invariants.foreign_touched)


def retired_stays_retired(run: Run) -> Finding:
    """Tokens that were retired never come back into the orchestrator's row."""
    is_tested = any(event.name == "credential.retired" for event in run.events)
    return of_what_broke(run, "retired-stays-retired", chain_invariants.revived, is_tested=is_tested)


def every_end_is_good(run: Run) -> Finding:
    """Once nothing goes wrong any more, each server is connected or waits for exactly one sign-in, which works."""
    name = "every-end-is-good"
    bad = {server for server, behaviour in run.stage.cast.scenario.servers.items() if misbehaves(behaviour)}
    tested, end = liveness.stuck(run.stage, bad)
    if end is not None:
        return Finding(name, holds=False, detail=end.wrong, events=(end.event,))
    return Finding(name, True if tested else None)


def losses_are_named(run: Run) -> Finding:
    """A token chain that is lost is lost by an accepted hole, or by the provider's will."""
    return of_chains(run, "losses-are-named", chain_invariants.unnamed_loss)


def of_chains(run: Run, name: str, broken: Broken) -> Finding:
    """What came of a rule about token chains, which a run without any refresh does not put to the test."""
    return of_what_broke(run, name, broken, is_tested=bool(run.stage.monitor.attempts))


def of_stores(run: Run, name: str, broken: Broken) -> Finding:
    """What came of a rule about runtimes' stores, which a run without a change of one does not put to the test."""
    return of_what_broke(run, name, broken, is_tested=bool(run.stage.monitor.changes))


def of_what_broke(run: Run, name: str, broken: Broken, *, is_tested: bool) -> Finding:
    """It points at what broke the rule, not at all that could have."""
    found = broken(run.stage)
    if found is not None:
        return Finding(name, holds=False, detail=found.detail, events=found.events)
    return Finding(name, True if is_tested else None)


def names() -> tuple[str, ...]:
    """The names of all invariants, as scenario files write them."""
    return tuple(re.sub("_", "-", invariant.__name__) for invariant in invariants())


def invariants() -> tuple[Callable[[Run], Finding], ...]:
    """All of them. Looked up at each call, so that a known-bad variant takes effect."""
    return (
        no_secret_shown,
        only_struck_servers_fail,
        installs_never_share_a_tree,
        user_npm_untouched,
        no_orphans,
        no_spent_token_presented,
        no_refresh_repeated,
        rows_move_forward,
        stores_move_forward,
        foreign_entries_untouched,
        retired_stays_retired,
        every_end_is_good,
        losses_are_named,
    )


def judge(run: Run) -> dict[str, Finding]:
    """What came of each, by name."""
    return {finding.name: finding for finding in (invariant(run) for invariant in invariants())}


Findings = Mapping[str, Finding]
