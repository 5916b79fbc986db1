"""How long Codex gives a server to start, and how long its first request to the model waits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fake_servers.mcp.behaviour import Behaviour
from fake_servers.mcp.http import HttpServer
from harness.canary.claims import Claim, probe
from harness.canary.probes.codex.asking import FULL_ACCESS, configure, executed, python, statuses
from harness.canary.trial import Trial

SILENT = python("import time; time.sleep(90)")
GRACE = "mcp_optional_startup_grace_ms"
QUICK, SLOW = 0.0, 2.2
"""Seconds: within a grace of one second, and well behind it."""
SLOWLY, TO_SOME_TENTHS = 0.5, 0.25
"""How fast the fake's time passes where seconds and where tenths are told apart: two real seconds are between them."""
GRACE_MS = 1000
"""The one grace that was seen; what is observed is that it lies between the two."""
LONGER_THAN_DEFAULT_SECONDS = 45.0


def wait_claim(name: str, says: str, assumes: Any = ..., reads: Sequence[str] = ()) -> Claim:
    """A claim about what the first request waits for."""
    assumed = {} if assumes is ... else {"assumes": assumes}
    return Claim(
        f"codex.wait.{name}",
        says,
        relied_on=("prepare-canary-budgets", "prepare-hang-costs-whole-budget") if assumed else (),
        affects="entries with a budget",
        reads=("optional_grace_ms", "grace_key", *reads),
        derive={"optional_grace_ms": lambda seen: 0 if "slow" in seen else GRACE_MS} if name == "optional" else {},
        **assumed,
    )


Arrangement = tuple[Mapping[str, Any], Mapping[str, Any]]
"""What is added to the entry of the slow server, and the settings."""


@probe(
    wait_claim("optional", "the first request waits for a server that needs 2 seconds and has 10", ["quick", "slow"]),
    wait_claim("required", "it waits for a server that is required", ["quick", "slow"]),
    seconds=5.0,
)
def required_first(trial: Trial) -> Mapping[str, Any]:
    """One run for each."""
    return first_requests(trial, {"optional": ({}, {}), "required": ({"required": True}, {})})


@probe(
    wait_claim("no-grace", "with a grace of 0 it waits for each server's own budget", ["quick", "slow"]),
    wait_claim("long-grace", "with a grace of 4 seconds it waits for a server that needs 2", ["quick", "slow"]),
    seconds=6.0,
)
def long_grace(trial: Trial) -> Mapping[str, Any]:
    """One run for each."""
    return first_requests(trial, {"no-grace": ({}, {GRACE: 0}), "long-grace": ({}, {GRACE: 4000})})


@probe(
    wait_claim("short-grace", "with a grace of 0.1 seconds it does not wait for a server that needs 2"),
    wait_claim("hang", "a silent server with a budget of 3 seconds holds it back for so long", assumes=True),
    seconds=5.0,
)
def short_grace(trial: Trial) -> Mapping[str, Any]:
    """Two servers that are both late, then one that says nothing."""
    seen = first_requests(trial, {"short-grace": ({}, {GRACE: 100})}, quick_seconds=SLOW)
    with trial.modelled():
        configure(trial, {"silent": {**SILENT, "startup_timeout_sec": 3}}, **FULL_ACCESS)
        return {**seen, "codex.wait.hang": executed(trial).seconds * trial.pace.scale > 2.5}


def first_requests(
    trial: Trial, arrangements: Mapping[str, Arrangement], quick_seconds: float = QUICK
) -> dict[str, Any]:
    """One run for each arrangement: whose tools the first request offers."""
    seen: dict[str, Any] = {}
    servers = {
        "quick": HttpServer(Behaviour(initialize_after_seconds=quick_seconds)),
        "slow": HttpServer(Behaviour(initialize_after_seconds=SLOW)),
    }
    trial.hurry(SLOWLY)
    with trial.serving(**servers) as urls, trial.modelled():
        entries = {name: {"url": urls[name], "startup_timeout_sec": 10} for name in servers}
        for name, (fields, settings) in arrangements.items():
            configure(trial, {**entries, "slow": {**entries["slow"], **fields}}, **FULL_ACCESS, **settings)
            done = len(trial.offered())
            executed(trial)
            seen[f"codex.wait.{name}"] = namespaces(trial.offered()[done:][:1])
    return seen


def namespaces(requests: Sequence[Sequence[str]]) -> list[str]:
    """The servers whose tools a request offers."""
    return sorted({name.partition("/")[0].removeprefix("mcp__") for request in requests for name in request})


BUDGETS: Mapping[str, tuple[str, Behaviour, Mapping[str, Any], Any]] = {
    "each-request": (
        "the handshake and the list of tools have the budget each",
        Behaviour(initialize_after_seconds=1.0, list_after_seconds=1.0),
        {"startup_timeout_sec": 1.6},
        "ready",
    ),
    "kept": (
        "a server within its budget starts",
        Behaviour(initialize_after_seconds=0.8),
        {"startup_timeout_sec": 1.6},
        "ready",
    ),
    "missed": (
        "a server behind its budget does not",
        Behaviour(initialize_after_seconds=1.5),
        {"startup_timeout_sec": 0.8},
        "failed",
    ),
    "milliseconds": (
        "`startup_timeout_ms` counts milliseconds",
        Behaviour(initialize_after_seconds=1.5),
        {"startup_timeout_ms": 800},
        "failed",
    ),
    "seconds-win": (
        "beside `startup_timeout_sec` it does not count",
        Behaviour(initialize_after_seconds=1.0),
        {"startup_timeout_sec": 2, "startup_timeout_ms": 300},
        "ready",
    ),
    "tool-timeout": (
        "`tool_timeout_sec` does not count at the start",
        Behaviour(initialize_after_seconds=0.8, list_after_seconds=0.8),
        {"tool_timeout_sec": 0.3},
        "ready",
    ),
}


@probe(
    *(
        Claim(
            f"codex.budget.{name}",
            says,
            assumes=assumes,
            relied_on=("prepare-canary-budgets", "startup-timeout-codex-startup-scoped"),
            affects="entries with a budget",
        )
        for name, (says, _, _, assumes) in BUDGETS.items()
    ),
    seconds=3.0,
)
def start_budgets(trial: Trial) -> Mapping[str, Any]:
    """All in one talk."""
    trial.hurry(TO_SOME_TENTHS)
    servers = {name: HttpServer(behaviour) for name, (_, behaviour, _, _) in BUDGETS.items()}
    with trial.serving(**servers) as urls:
        configure(trial, {name: {"url": urls[name], **fields} for name, (_, _, fields, _) in BUDGETS.items()})
        told = statuses(trial, *BUDGETS)
    return {f"codex.budget.{name}": told[name].status for name in BUDGETS}


@probe(
    Claim(
        "codex.budget.default",
        "without a key a silent server has 30 seconds",
        assumes="30",
        relied_on=("prepare-fake-codex-own-default", "prepare-canary-budgets"),
        affects="remote entries, and whoever writes no budget",
        reads=("default_startup_timeout_sec",),
        derive={"default_startup_timeout_sec": float},
    ),
    seconds=31.0,
    limit_seconds=90.0,
)
def default_budget(trial: Trial) -> Mapping[str, Any]:
    """One silent server, waited for; the fake's seconds are shorter."""
    configure(trial, {"silent": SILENT})
    fast = {"WORLD_TIME_SCALE": "20"} if trial.subject.is_fake else {}
    told = statuses(trial, "silent", seconds=LONGER_THAN_DEFAULT_SECONDS, env=fast)["silent"]
    found = re.search(r"timed out after ([\d.]+) seconds", told.error or "")
    return {"codex.budget.default": found[1] if found else [told.status, told.error]}


@probe(
    *(
        Claim(
            f"codex.required.{name}",
            f"a required server that {says} ends the run before the model is asked, with these words",
            assumes=lambda seen: seen[:2] == [1, 0],
            affects="entries with `required`",
            reads=("timeout_repeats_cause",) if name != "no-program" else (),
            derive={"timeout_repeats_cause": lambda seen: "elapsed" in seen[2][0]} if name == "timeout" else {},
            parts=("exit code", "requests to the model", "what is said"),
        )
        for name, says in (("crash", "crashes"), ("timeout", "is silent"), ("no-program", "is not there"))
    ),
    Claim("codex.required.off", "a required server that is switched off ends nothing", assumes=[0, 1, []]),
    seconds=4.0,
)
def required_servers(trial: Trial) -> Mapping[str, Any]:
    """One run for each."""
    servers: Mapping[str, Mapping[str, Any]] = {
        "crash": python("import sys; sys.stdin.readline(); sys.exit(3)"),
        "timeout": {**SILENT, "startup_timeout_sec": 1},
        "no-program": {"command": "no-such-program"},
        "off": {"command": "no-such-program", "enabled": False},
    }
    seen = {}
    with trial.modelled():
        for name, server in servers.items():
            configure(trial, {"bad": {**server, "required": True}}, **FULL_ACCESS)
            asked = len(trial.offered())
            run = executed(trial)
            words = [DURATION.sub("N s", line) for line in run.stderr.splitlines() if line.startswith("Error")]
            seen[f"codex.required.{name}"] = [run.exit_code, len(trial.offered()) - asked, words]
    return seen


DURATION = re.compile(r"\b\d+(?:\.\d+)?m?s\b")
