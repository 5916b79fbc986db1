"""When Pi's adapter starts a server, what it remembers of it, and what it tells a host of all that."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from typing import Any

from fake_servers.mcp.behaviour import Behaviour
from fake_servers.mcp.http import HttpServer
from harness.canary.claims import Claim, probe
from harness.canary.probes.doors import Doors
from harness.canary.probes.pi.ground import CACHE, configure, plain, session, words
from harness.canary.probes.witnesses import notes, witness
from harness.canary.trial import Trial, end_group

LAZY: Mapping[str, Mapping[str, Any]] = {
    "lazy": {},
    "said-lazy": {"lifecycle": "lazy"},
    "lazy-keep-alive": {"lifecycle": "lazy-keep-alive"},
}
EAGER: Mapping[str, Mapping[str, Any]] = {
    "eager": {"lifecycle": "eager"},
    "keep-alive": {"lifecycle": "keep-alive"},
}
KINDS = {**LAZY, **EAGER}
CHANGES: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "nothing": ({}, {}),
    "budget": ({"requestTimeoutMs": 5000}, {"requestTimeoutMs": 6000}),
    "lifecycle": ({}, {"lifecycle": "lazy"}),
    "headers": ({"headers": {"X-A": "1"}}, {"headers": {"X-A": "2"}}),
    "variable": ({"headers": {"X-A": "${TURN}"}}, {"headers": {"X-A": "${TURN}"}}),
    "url": ({}, {"url": "URL/other"}),
    "auth": ({}, {"auth": False}),
    "unknown": ({}, {"title": "x"}),
}
"""What an entry says in the first session, and what in the second."""


@probe(
    Claim(
        "pi.start.first",
        "without a memory of tools every server is started with the session",
        assumes=dict.fromkeys(LAZY, True),
        affects="the first session of an agent directory",
        relied_on=("status-pi-lazy-is-healthy",),
    ),
    Claim(
        "pi.start.later",
        "with one only eager servers are, by `eager` and `keep-alive`",
        assumes={name: name in ("eager", "keep-alive") for name in KINDS},
        affects="every later session",
        relied_on=("status-pi-lazy-is-healthy",),
    ),
    Claim("pi.start.new", "a server that is new then is not started", assumes=False, affects="servers added later"),
    Claim(
        "pi.start.twice",
        "how often an eager server is greeted in a session, not counting what finds out why that failed",
        affects="eager servers",
    ),
    Claim(
        "pi.offer.remembered",
        "a server that is remembered and was not started is offered all the same",
        assumes=["mcp__lazy", "mcp__lazy_keep_alive", "mcp__said_lazy"],
        relied_on=("status-pi-needs-result",),
        affects="every later session",
    ),
    Claim("pi.offer.failed", "a server that fails is not offered", assumes=[], relied_on=("status-pi-needs-result",)),
    *(
        Claim(
            f"pi.memory.{name}",
            f"whether a server is still remembered after {name} changed",
            relied_on=("status-pi-needs-result",),
            affects="catalog changes between sessions",
        )
        for name in CHANGES
    ),
    Claim("pi.memory.old", "a memory of eight days is none, one of six is", assumes=[False, True]),
    Claim("pi.memory.file", "what `mcp-cache.json` holds", affects="the agent directory"),
    seconds=7.0,
)
def lifecycles(trial: Trial) -> Mapping[str, Any]:
    """Three sessions: without memory, with it and with eager servers, with an aged one."""
    doors = Doors({"failing": Behaviour(status=403, body="no")})

    def started() -> dict[str, int]:
        return {name: len(notes(trial, name, "start")) for name in KINDS}

    with trial.serving(doors=doors) as urls, trial.modelled():
        base = urls["doors"].removesuffix("/mcp")
        lazy: dict[str, Any] = {name: {**witness(trial, name), **kind} for name, kind in LAZY.items()}
        eager: dict[str, Any] = {name: {**witness(trial, name), **kind} for name, kind in EAGER.items()}
        remote = {"eager-remote": {"url": f"{base}/eager-remote", "lifecycle": "eager"}}
        lazy["failing"] = {"url": f"{base}/failing", "headers": {"X-A": "1"}}
        configure(trial, {**lazy, **changing(base, 0)})
        session(trial, env={"TURN": "1"})
        memory, first = trial.read_json(CACHE), started()
        configure(trial, {**lazy, **eager, **changing(base, 1), "new": witness(trial, "new"), **remote})
        session(trial, env={"TURN": "2"})
        later = started()
        asked = [visit.rpc_method for visit in doors.visits["eager-remote"]]
        greetings = asked.count("initialize") - asked.count("server/discover")  # each of these comes before one
        trial.write_json(CACHE, aged_memory(trial.read_json(CACHE), {"lazy": 8, "said-lazy": 6}))
        session(trial, env={"TURN": "2"})
        offered = trial.offered() + [[]] * 3
    entry = memory["servers"]["lazy"]
    return {
        "pi.start.first": {name: bool(first[name]) for name in LAZY},
        "pi.start.later": {name: later[name] > first[name] for name in KINDS},
        "pi.start.new": bool(notes(trial, "new", "start")),
        "pi.start.twice": greetings,
        "pi.offer.remembered": [name for name in offered[1] if name.startswith(("mcp__lazy", "mcp__said"))],
        "pi.offer.failed": [name for name in offered[0] if name == "mcp__failing"],
        **{f"pi.memory.{name}": f"mcp__c_{name}" in offered[1] for name in CHANGES},
        "pi.memory.old": ["mcp__lazy" in offered[2], "mcp__said_lazy" in offered[2]],
        "pi.memory.file": [sorted(memory), sorted(entry), len(entry["configHash"]), sorted(entry["tools"][0])],
    }


def changing(base: str, number: int) -> dict[str, Any]:
    """The entries that change, as they are in that session."""
    return {
        f"c-{name}": {"url": f"{base}/{name}", **json.loads(json.dumps(pair[number]).replace("URL", base))}
        for name, pair in CHANGES.items()
    }


def aged_memory(memory: Any, days: Mapping[str, int]) -> Any:
    """The memory with some entries that many days old."""
    now_ms = int(time.time() * 1000)
    for name, age in days.items():
        memory["servers"][name]["cachedAt"] = now_ms - age * 86_400_000
    return memory


@probe(
    Claim(
        "pi.rpc.start",
        "over RPC the adapter tells a host of its servers before any prompt",
        affects="hosts that speak RPC",
    ),
    Claim("pi.rpc.status", "what `/mcp status` answers, without asking the model", affects="hosts that speak RPC"),
    Claim("pi.rpc.exit", "the program ends with 0 when its stdin ends, and has asked no model", assumes=[0, 0]),
    seconds=3.0,
)
def over_rpc(trial: Trial) -> Mapping[str, Any]:
    """One talk: wait for the adapter's last word about the start, ask for the status, end stdin."""
    servers = {"good": HttpServer(), "locked": HttpServer(Behaviour(status=401, challenge="Bearer"))}
    with trial.serving(**servers) as urls, trial.modelled():
        configure(
            trial,
            {
                "good": {"url": urls["good"]},
                "failing": {"command": "/no/such-program"},
                "locked": {"url": urls["locked"], "oauth": {"clientId": "c"}},
                "off": {"url": urls["good"], "disabled": True},
            },
        )
        process = trial.start(*words(trial, "rpc"))
        over = threading.Timer(40.0, end_group, (process.pid,))
        over.daemon = True
        over.start()
        try:
            assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - they were asked for
            start = heard(trial, process.stdout, lambda said: "enabled (" in said[-1])
            process.stdin.write(json.dumps({"type": "prompt", "message": "/mcp status"}).encode() + b"\n")
            process.stdin.flush()
            answer = heard(trial, process.stdout, lambda said: "good" in said[-1])
            process.stdin.close()
            code = process.wait()
        finally:
            over.cancel()
            end_group(process.pid)
            process.wait()
    return {
        "pi.rpc.start": start,
        "pi.rpc.status": answer[-1:],
        "pi.rpc.exit": [code, len(trial.offered())],
    }


@probe(
    Claim(
        "pi.version",
        "`--version` prints the program's version, without the adapter's, on stdout",
        assumes=[0, True, ""],
        reads=("version",),
        affects="whoever asks which version it is",
    ),
    seconds=1.5,
)
def version(trial: Trial) -> Mapping[str, Any]:
    """Without the adapter nothing else is asked."""
    run = trial.run("--version")
    own = trial.subject.version.partition("+")[0]
    return {"pi.version": [run.exit_code, run.stdout.strip() == own, run.stderr.strip()]}


def heard(trial: Trial, stream: Any, is_last: Any) -> list[str]:
    """What the adapter asks its host to show, until that is the last of it or the stream ends."""
    said: list[str] = []
    for line in stream:
        try:
            request = json.loads(line)
        except ValueError:
            continue
        if request.get("type") == "extension_ui_request":
            kind = request.get("notifyType") or request.get("statusKey") or request.get("widgetKey") or ""
            text = request.get("message") or request.get("statusText") or ""
            if str(kind) in ("mcp", "info", "error", "warning"):
                said.append(f"{request['method']} {kind}: {plain(trial.normal(text))}")
                if is_last(said):
                    break
    return said
