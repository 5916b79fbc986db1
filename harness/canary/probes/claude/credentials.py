"""Which fields of a stored credential count, in which units, and where the store is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from harness.canary.claims import Claim, probe
from harness.canary.probes.claude.ground import SETTINGS, SETTLED, STORE, project, session, store
from harness.canary.probes.doors import Doors, Visit
from harness.canary.script import Call, Script, Turn
from harness.canary.trial import Trial
from harness.reference.credentials.key import runtime_key
from harness.world.ports import Request, Response

HOUR_SECONDS = 3600
PAST_SECONDS = 1_700_000_000
SENT, NOTHING, CONFIGURED = "stored token", "nothing", "configured header"


class Case(NamedTuple):
    """A stored entry, given the time in seconds, and which Authorization is sent for it."""

    says: str
    entry: Callable[[float], Mapping[str, Any]]
    assumes: str
    headers: Mapping[str, str] = {}
    relied_on: tuple[str, ...] = ()


def token(**more: Any) -> Callable[[float], Mapping[str, Any]]:
    """An entry that is the same at all times."""
    return lambda _: {"accessToken": "stored", **more}


CASES: Mapping[str, Case] = {
    "token-alone": Case("an accessToken alone is enough", token(), SENT),
    "empty-token": Case("an empty accessToken is none", token(accessToken=""), NOTHING),
    "milliseconds": Case(
        "expiresAt counts milliseconds",
        lambda now: {"accessToken": "stored", "expiresAt": int((now + HOUR_SECONDS) * 1000)},
        SENT,
        relied_on=("reconcile-claude-millis",),
    ),
    "seconds": Case(
        "an expiresAt in seconds is long past",
        lambda now: {"accessToken": "stored", "expiresAt": int(now + HOUR_SECONDS)},
        NOTHING,
        relied_on=("reconcile-claude-millis",),
    ),
    "number-as-text": Case(
        "an expiresAt that is a number in quotes counts", token(expiresAt=f"{PAST_SECONDS}000"), NOTHING
    ),
    "date-as-text": Case("an expiresAt that is a date never passes", token(expiresAt="2020-01-01T00:00:00Z"), SENT),
    "expired": Case(
        "an expired token without a refresh token is not sent", token(expiresAt=PAST_SECONDS * 1000), NOTHING
    ),
    "other-server": Case(
        "serverName and serverUrl of an entry are not compared",
        token(serverName="other", serverUrl="https://other.test/mcp"),
        SENT,
    ),
    "unknown-fields": Case("unknown fields of an entry do no harm", token(harness={"x": 1}), SENT),
    "own-authorization": Case(
        "a configured Authorization header is sent in place of a stored token",
        token(),
        CONFIGURED,
        {"Authorization": "Bearer configured"},
        ("failure-auth-static-header-degrades",),
    ),
    "own-authorization-lower-case": Case(
        "the same with the header's name in lower case", token(), CONFIGURED, {"authorization": "Bearer configured"}
    ),
    "api-key-header": Case(
        "another credential header is sent beside the stored token", token(), SENT, {"X-API-Key": "k"}
    ),
}


def claim(name: str, case: Case) -> Claim:
    """The claim of a case."""
    return Claim(
        f"claude.store.{name}",
        case.says,
        assumes=case.assumes,
        relied_on=case.relied_on,
        affects="OAuth credentials that are written into the store",
    )


@probe(*(claim(name, case) for name, case in CASES.items()), seconds=3.0)
def stored_fields(trial: Trial) -> Mapping[str, Any]:
    """All cases in one `claude mcp list`, each at a door of its own that lets everybody in."""
    doors, now = Doors(), time.time()
    with trial.serving(doors=doors) as urls:
        base = urls["doors"].removesuffix("/mcp")
        servers = {
            name: {"type": "http", "url": f"{base}/{name}", "headers": dict(case.headers)}
            for name, case in CASES.items()
        }
        project(trial, servers)
        store(trial, {name: case.entry(now) for name, case in CASES.items()}, servers)
        trial.run("mcp", "list")
    return {f"claude.store.{name}": sent(doors.visits.get(name, [])) for name in CASES}


def sent(visits: list[Visit]) -> str | None:
    """What a door's first visitor showed; None when nobody came."""
    if not visits:
        return None
    return {"stored": SENT, "configured": CONFIGURED, None: NOTHING}.get(visits[0].token, visits[0].token)


# --- where it is


@probe(
    Claim(
        "claude.store.config-dir",
        "CLAUDE_CONFIG_DIR moves the store, and the one of the home is not read at all",
        "seed 002",
        assumes={"home": NOTHING, "moved": SENT},
        relied_on=("reconcile-scoped-on-own-dir", "reconcile-scoped-reads-own-dir"),
        affects="sessions with a configuration directory of their own",
    ),
    Claim(
        "claude.store.config-dir-logs",
        "logs do not move with CLAUDE_CONFIG_DIR",
        assumes=["home"],
        relied_on=("status-claude-log-location",),
        affects="the status of servers in such sessions",
    ),
    seconds=1.5,
)
def moved_store(trial: Trial) -> Mapping[str, Any]:
    """One token in each of two stores."""
    doors, moved = Doors(), trial.home / "moved"
    with trial.serving(doors=doors) as urls:
        base = urls["doors"].removesuffix("/mcp")
        servers = {name: {"type": "http", "url": f"{base}/{name}"} for name in ("home", "moved")}
        project(trial, servers)
        for name, path in (("home", STORE), ("moved", "~/moved/.credentials.json")):
            key = runtime_key("claude", name, servers[name], {})
            trial.write_json(path, {"mcpOAuth": {key: {"accessToken": "stored"}}}, mode=0o600)
        trial.write("~/moved/settings.json", trial.read(SETTINGS) or "")
        trial.run("mcp", "list", env={"CLAUDE_CONFIG_DIR": str(moved)})
    places = {"home": trial.home / ".cache", "moved": moved}
    logs = [name for name, place in places.items() if list(place.rglob("mcp-logs-*"))]
    return {
        "claude.store.config-dir": {name: sent(doors.visits.get(name, [])) for name in ("home", "moved")},
        "claude.store.config-dir-logs": logs,
    }


# --- when it is read


class Rotating(Doors):
    """Doors behind the first of which the stored token is replaced as soon as a tool is called."""

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        self.trial, self.rotated = trial, False

    def handle(self, request: Request, now: float, who: str) -> Response:
        """Answer, then put another token into the store."""
        if b'"tools/call"' in request.body and not self.rotated:
            self.rotated = True
            text = (self.trial.read(STORE) or "").replace('"stored"', '"pushed"')
            self.trial.write(STORE, text, mode=0o600)
        return super().handle(request, now, who)


@probe(
    Claim(
        "claude.store.pushed",
        "a connected server gets a token that was put into the store meanwhile with its next call",
        assumes=["stored", "pushed"],
        relied_on=("reconcile-no-mid-session-push",),
        affects="credentials that are renewed while a session runs",
    ),
    seconds=2.5,
)
def pushed_token(trial: Trial) -> Mapping[str, Any]:
    """Two calls in one session."""
    doors = Rotating(trial)
    call = Turn((Call("one", "echo"),))
    with trial.serving(doors=doors) as urls, trial.modelled(Script((call, call, Turn(text="done")))):
        servers = {"one": {"type": "http", "url": urls["doors"].replace("/mcp", "/one")}}
        project(trial, servers)
        store(trial, {"one": {"accessToken": "stored"}}, servers)
        allow(trial)
        session(trial, env=SETTLED)
    return {"claude.store.pushed": [visit.token for visit in doors.visits["one"] if visit.rpc_method == "tools/call"]}


def allow(trial: Trial) -> None:
    """Let the model call every tool of the probes' servers."""
    settings = json.loads(trial.read(SETTINGS) or "{}")
    trial.write_json(SETTINGS, {**settings, "permissions": {"allow": ["mcp__one__*", "mcp__two__*"]}})
