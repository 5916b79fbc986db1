"""How long Pi's adapter waits: for each request to a server, for all servers, for an installation."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_servers.mcp.behaviour import Behaviour, Tool
from fake_servers.mcp.http import HttpServer
from harness.canary.claims import Claim, probe
from harness.canary.probes.pi.ground import configure, results, session, told_of
from harness.canary.probes.witnesses import notes, witness
from harness.canary.script import Call, Script, Turn
from harness.canary.trial import PATH, Trial

GLOBAL_MS = 1500
SLOWLY = 0.4
"""How fast the fake's time passes where tenths of a second are told apart."""
IN_TIME, TIMED_OUT = "connected", "timed out"


class Case(NamedTuple):
    """An entry's budget and after how many seconds the server answers what is slow."""

    says: str
    assumes: str
    entry: Mapping[str, Any] = {}
    initialize: float = 0.0
    listing: float = 0.0


CASES: Mapping[str, Case] = {
    "global": Case("the setting is in force where an entry says nothing", TIMED_OUT, initialize=2.6),
    "global-in-time": Case("an answer within the setting's time comes in time", IN_TIME, initialize=0.4),
    "entry-longer": Case("an entry's longer time goes over it", IN_TIME, {"requestTimeoutMs": 5000}, initialize=2.6),
    "entry-shorter": Case("an entry's shorter time goes over it", TIMED_OUT, {"requestTimeoutMs": 400}, initialize=0.9),
    "zero": Case("an entry's 0 is the default and not the setting", IN_TIME, {"requestTimeoutMs": 0}, initialize=2.6),
    "negative": Case("a negative number is the default too", IN_TIME, {"requestTimeoutMs": -1}, initialize=2.6),
    "text": Case("a text is the default and not the setting", IN_TIME, {"requestTimeoutMs": "5000"}, initialize=2.6),
    "null": Case("null is the default and not the setting", IN_TIME, {"requestTimeoutMs": None}, initialize=2.6),
    "fraction": Case("a fraction of milliseconds counts", TIMED_OUT, {"requestTimeoutMs": 400.5}, initialize=0.9),
    "huge": Case("a number beyond any timer is over at once", TIMED_OUT, {"requestTimeoutMs": 10**12}, initialize=2.6),
    "listing": Case("the list of tools has a time of its own", TIMED_OUT, listing=2.6),
    "each": Case("each request has the whole time", IN_TIME, initialize=0.8, listing=0.8),
}  # fmt: skip


@probe(
    *(
        Claim(
            f"pi.budget.{name}",
            case.says,
            "seed 000",
            assumes=case.assumes,
            relied_on=(
                "prepare-canary-budgets",
                "prepare-pi-budget-covers-calls",
                "prepare-pi-no-global-setting",
                "prepare-fake-pi-own-default",
            ),
            affects="entries with `requestTimeoutMs`",
        )
        for name, case in CASES.items()
    ),
    Claim(
        "pi.budget.call",
        "a call has the same time as the handshake",
        "seed 000",
        assumes=["Failed to call tool: Request timed out", "ok"],
        relied_on=("prepare-canary-budgets", "prepare-pi-budget-covers-calls", "startup-timeout-pi-covers-tool-calls"),
        affects="entries with `requestTimeoutMs`",
    ),
    seconds=6.0,
)
def request_budgets(trial: Trial) -> Mapping[str, Any]:
    """Servers that answer late, each within or beyond its time; then two slow calls."""
    servers = {
        name: HttpServer(Behaviour(initialize_after_seconds=case.initialize, list_after_seconds=case.listing))
        for name, case in CASES.items()
    }
    slow = HttpServer(Behaviour(tools=(Tool("slow", answers_after_seconds=2.6),)))
    calls = [Turn((Call("", "mcp", {"server": name, "tool": "slow"}),)) for name in ("slow", "patient")]
    trial.hurry(SLOWLY)
    with trial.serving(**servers, slow=slow) as urls, trial.modelled(Script((*calls, Turn(text="done")))):
        entries = {name: {"url": urls[name], "headers": {"X-A": "1"}, **case.entry} for name, case in CASES.items()}
        entries["slow"] = {"url": urls["slow"], "headers": {"X-A": "1"}}
        entries["patient"] = {**entries["slow"], "requestTimeoutMs": 5000}
        configure(trial, entries, requestTimeoutMs=GLOBAL_MS)
        run = session(trial)
    seen: dict[str, Any] = {}
    for name in CASES:
        line = told_of(trial, run, name)
        seen[f"pi.budget.{name}"] = TIMED_OUT if line and "Request timed out" in line else line or IN_TIME
    seen["pi.budget.call"] = [each["text"].partition("\n")[0] for each in results(run)]
    return seen


HANGING_NPM = """#!/bin/sh
echo "$0 $*" >> "$NPM_NOTES"
case "$1" in exec) exec sleep 100;; esac
echo "$HOME/.npm"
"""
NPX = """#!/bin/sh
exec "$WITNESS_PYTHON" -IS "$WITNESS" "$NPX_NOTES" '{}'
"""
TURN_SECONDS = 36.0
SCALE = 4
"""So that a tick of the rounding is more than a second of a machine that is busy."""


@probe(
    Claim(
        "pi.wait.default-budget",
        "a silent server with no budget of its own is given up after 60 s",
        "seed 000",
        assumes=60,
        relied_on=("prepare-fake-pi-own-default",),
        affects="entries without `requestTimeoutMs`",
        reads=("default_request_timeout_ms",),
        derive={"default_request_timeout_ms": lambda seen: int(seen * 1000)},
    ),
    Claim(
        "pi.wait.first-request",
        "the first request to the model waits 30 s for servers, and not longer",
        assumes=30,
        affects="headless sessions with a slow server",
        reads=("first_request_wait_ms",),
        derive={"first_request_wait_ms": lambda seen: int(seen * 1000)},
    ),
    Claim(
        "pi.wait.resolver",
        "an installation by the npx resolver is given up after 30 s, and npx started instead",
        "seed 000",
        assumes=30,
        relied_on=("npx-pi-resolver-30s-cap", "npx-pi-budget-covers-fallback"),
        affects="npx servers",
        reads=("resolver_limit_ms",),
        derive={"resolver_limit_ms": lambda seen: int(seen * 1000)},
    ),
    seconds=70.0,
    limit_seconds=120.0,
)
def long_waits(trial: Trial) -> Mapping[str, Any]:
    """One session that lasts as long as it must: a silent server, an npm that hangs, a model that takes its time.

    Seconds are counted from the moment the servers are started, and told to the nearest ten: a machine is busy.
    """
    programs = trial.home / "programs"
    for name, text in (("npm", HANGING_NPM), ("npx", NPX)):
        path = trial.write(f"~/programs/{name}", text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    clock = witness(trial, "clock")
    environment = {
        "PATH": f"{programs}:{PATH}",
        "NPM_NOTES": str(trial.folder / "npm.txt"),
        "NPX_NOTES": str(trial.folder / "notes-npx.jsonl"),
        "WITNESS": clock["args"][1],
        "WITNESS_PYTHON": clock["command"],
    }
    silent = Told()
    trial.hurry(SCALE)
    with trial.serving(silent=silent) as urls, trial.modelled(Script((Turn(text="done", seconds=TURN_SECONDS),))):
        configure(
            trial,
            {
                "silent": {"url": urls["silent"], "headers": {"X-A": "1"}},
                "npx": {"command": "npx", "args": ["-y", "no-such-package-here"]},
                "clock": clock,
            },
        )
        session(trial, env=environment, limit_seconds=115)
    waits = fake_waits(trial, urls["silent"]) if trial.subject.is_fake else real_waits(trial, silent)
    return {f"pi.wait.{name}": None if seconds is None else rough(seconds) for name, seconds in waits.items()}


class Told(HttpServer):
    """A server that never answers the handshake, and knows when it is told that nobody waits any more."""

    def __init__(self) -> None:
        super().__init__(Behaviour(initialize="never"))

    @property
    def given_up_after(self) -> float | None:
        """From the first request to the next one, by which the client finds out what there is at all."""
        return self.requests[1].at - self.requests[0].at if len(self.requests) > 1 else None


def real_waits(trial: Trial, silent: Told) -> Mapping[str, float | None]:
    """How long each wait was, by what the real program was seen to do."""
    began = notes(trial, "clock", "start")[0]["at"]
    npx, requests = notes(trial, "npx", "start"), trial.models[-1].requests
    return {
        "default-budget": silent.given_up_after,
        "first-request": requests[0].at - began if requests else None,
        "resolver": npx[0]["at"] - began if npx else None,
    }


def fake_waits(trial: Trial, silent: str) -> Mapping[str, float | None]:
    """The same of the fake, by its own clock: its seconds are short here, and those who watch it may come late."""
    moments = {
        "default-budget": moment(trial, "request", at=f"POST {silent}"),
        "first-request": moment(trial, "model.request"),
        "resolver": moment(trial, "resolver.killed", server="npx"),
    }
    began = moment(trial, "server.connecting") or 0.0
    return {name: None if at is None else at - began for name, at in moments.items()}


def moment(trial: Trial, event: str, **details: str) -> float | None:
    """When the first such event of the fake was over, in seconds of its time."""
    found = [each for each in trial.events(event) if details.items() <= each["details"].items()]
    return float(found[0]["at_seconds"]) if found else None


def rough(seconds: float) -> int:
    """Seconds to the nearest ten."""
    return 10 * round(seconds / 10)
