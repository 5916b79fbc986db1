"""What a session does with calls: a token that is refused, a process that dies, a tool that is not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fake_servers.mcp.behaviour import Behaviour
from harness.canary.claims import Claim, probe
from harness.canary.probes.claude.authority import Closing, GuardedDoors
from harness.canary.probes.claude.credentials import allow
from harness.canary.probes.claude.ground import (
    CACHE,
    SETTLED,
    init,
    log,
    project,
    results,
    said,
    session,
    statuses,
    store,
)
from harness.canary.probes.doors import Doors
from harness.canary.probes.witnesses import notes, witness
from harness.canary.script import Call, Script, Turn
from harness.canary.trial import Trial
from harness.world.ports import Request, Response

CALL, LAST = Turn((Call("one", "echo"),)), Turn(text="done")


@probe(
    Claim(
        "claude.call.refused-text",
        "what the model is told of a call that was refused with 401",
        affects="sessions in which a grant is withdrawn",
        reads=("refused_call_text",),
        derive={"refused_call_text": lambda observed: observed.replace('"one"', '"{name}"')},
    ),
    Claim(
        "claude.call.refused-log",
        "what the log says of it",
        assumes=lambda observed: "Tool call returned 401 Unauthorized - token may have expired" in observed,
        affects="sessions in which a grant is withdrawn",
    ),
    Claim(
        "claude.call.refused-remembered",
        "whether the server is then in the cache of those that need authentication",
        relied_on=("reconnect-live-clears-needs-auth",),
        affects="the next session, which may not even try the server",
        reads=("remembers_refused_call",),
        derive={"remembers_refused_call": lambda observed: observed == ["one"]},
    ),
    seconds=2.0,
)
def refused_call(trial: Trial) -> Mapping[str, Any]:
    """A session whose token is refused at its first call."""
    doors = Closing(Behaviour(requires_bearer=("stored",)), Behaviour(requires_bearer=("another",)))
    with trial.serving(doors=doors) as urls, trial.modelled(Script((CALL, LAST))):
        servers = {"one": {"type": "http", "url": urls["doors"].replace("/mcp", "/one")}}
        project(trial, servers)
        store(trial, {"one": {"accessToken": "stored"}}, servers)
        allow(trial)
        run = session(trial, env=SETTLED)
    lines = [trial.normal(text) for _, text in said(log(trial, "one"))]
    return {
        "claude.call.refused-text": plain(results(run)),
        "claude.call.refused-log": sorted({text for text in lines if "Tool " in text and "Calling" not in text}),
        "claude.call.refused-remembered": sorted(trial.read_json(CACHE) or {}),
    }


def plain(told: list[Any]) -> Any:
    """The text of the first result."""
    first = told[0] if told else None
    return first[0].get("text") if isinstance(first, list) and first else first


@probe(
    Claim(
        "claude.call.respawned",
        "a process that died during a call is started again for the next one",
        assumes=2,
        affects="stdio servers that crash",
    ),
    Claim(
        "claude.call.not-reconnected",
        "a server that began as needs-auth is not reconnected by a token that is pushed meanwhile",
        "seed 002",
        assumes=["needs-auth", False],
        relied_on=("reconnect-no-live-handover", "reconnect-next-turn-reconnects"),
        affects="sessions that somebody signs in for while they run",
    ),
    seconds=3.0,
)
def after_trouble(trial: Trial) -> Mapping[str, Any]:
    """A session in which one server dies and another wants a token that comes too late."""
    doors = Pushing(trial, {"two": Behaviour(requires_bearer=("pushed",))})
    calls = Script((CALL, CALL, Turn((Call("two", "echo"),)), LAST))
    with trial.serving(doors=doors) as urls, trial.modelled(calls):
        two = {"type": "http", "url": urls["doors"].replace("/mcp", "/two")}
        project(trial, {"one": witness(trial, "one", dies_on_call=True), "two": two})
        doors.entry = two
        allow(trial)
        run = session(trial, env=SETTLED)
    starts = {note["pid"] for note in notes(trial, "one", "start")}
    pids = {note["pid"] for note in notes(trial, "one", "received") if note["method"] == "tools/call"}
    called = any(visit.rpc_method == "tools/call" for visit in doors.visits["two"])
    return {
        "claude.call.respawned": len(starts & pids),
        "claude.call.not-reconnected": [statuses(run).get("two"), called],
    }


class Pushing(GuardedDoors):
    """Doors behind which a token is put into the store as soon as somebody was refused."""

    def __init__(self, trial: Trial, behaviours: Mapping[str, Behaviour]) -> None:
        super().__init__(behaviours)
        self.trial, self.entry = trial, {"type": "http", "url": ""}

    def handle(self, request: Request, now: float, who: str) -> Response:
        """Answer, then push."""
        response = super().handle(request, now, who)
        if response.status == 401:
            store(self.trial, {"two": {"accessToken": "pushed"}}, {"two": self.entry})
        return response


@probe(
    Claim(
        "claude.call.deferred",
        "whether tools are sent with a request or are only to be searched for",
        affects="whoever takes the tools of a request for the servers that are there",
        reads=("defers_tools",),
        derive={"defers_tools": lambda observed: observed["searching"]},
    ),
    Claim(
        "claude.call.deferred-off",
        "ENABLE_TOOL_SEARCH=false has all tools sent, and =true has none sent",
        assumes={"false": ["mcp__one__echo"], "true": []},
        affects="whoever takes the tools of a request for the servers that are there",
    ),
    seconds=3.0,
)
def deferred_tools(trial: Trial) -> Mapping[str, Any]:
    """Three sessions with one server."""
    doors = Doors()
    found: dict[str, Any] = {}
    with trial.serving(doors=doors) as urls, trial.modelled():
        project(trial, {"one": {"type": "http", "url": urls["doors"].replace("/mcp", "/one")}})
        for value in ("", "false", "true"):
            chosen = {"ENABLE_TOOL_SEARCH": value} if value else {}
            run = session(trial, env={"MCP_CONNECTION_NONBLOCKING": "0", **chosen})
            searching = "ToolSearch" in init(run).get("tools", [])
            found[value] = {"sent": trial.offered()[-1], "searching": searching}
    return {
        "claude.call.deferred": found[""],
        "claude.call.deferred-off": {value: found[value]["sent"] for value in ("false", "true")},
    }
