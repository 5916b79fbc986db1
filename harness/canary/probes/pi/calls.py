"""What the model is told of calls, and of the state of servers, by Pi's adapter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_servers.mcp.behaviour import Behaviour, Tool
from fake_servers.mcp.http import HttpServer
from harness.canary.claims import UNSTATED, Claim, probe
from harness.canary.probes.pi.ground import configure, results, session
from harness.canary.probes.witnesses import witness
from harness.canary.script import Call, Script, Turn
from harness.canary.trial import Trial


class Case(NamedTuple):
    """A call as the model makes it: the name of the tool and its arguments; how its result begins, where that counts.

    `later` is one of the second session, when tools of servers are known from the first.
    """

    says: str
    tool: str
    args: Mapping[str, Any]
    begins: str = ""
    later: bool = False
    relied_on: tuple[str, ...] = ()


TEXT = '{"text": "x"}'
SLOWLY = 0.7
"""The fake's budget of one and a half seconds is over late, so that a busy machine's answers are in time."""
REFUSED = ("status-pi-refusal-markers", "status-pi-connected-only")
CASES: Mapping[str, Case] = {
    "gateway": Case("a call through the gateway", "mcp", {"server": "good", "tool": "echo", "args": TEXT}, "ok"),
    "gateway-table": Case(
        "the gateway's arguments as a table", "mcp", {"server": "good", "tool": "echo", "args": {"text": "x"}}
    ),
    "unnamed": Case(
        "a call through the gateway that names no server", "mcp", {"tool": "good_echo", "args": TEXT}, "ok"
    ),
    "proxy": Case("a call through a server's proxy", "mcp__good", {"tool": "echo", "args": {}}, "ok", later=True),
    "proxy-text": Case("the proxy's arguments as a text", "mcp__good", {"tool": "echo", "args": TEXT}, later=True),
    "error": Case("a tool that says it failed", "mcp", {"server": "good", "tool": "bad"},
                  ),
    "slow": Case("a call that takes longer than its budget", "mcp", {"server": "good", "tool": "slow"},
                 "Failed to call tool: Request timed out", relied_on=("prepare-pi-budget-covers-calls",
                                                                     "startup-timeout-pi-covers-tool-calls")),
    "no-tool": Case("a tool that the server does not have", "mcp", {"server": "good", "tool": "none"}),
    "no-server": Case("a server that is not configured", "mcp", {"server": "none", "tool": "echo"}),
    "dies": Case("a server that dies under the call", "mcp", {"server": "dying", "tool": "echo"}),
    "failed": Case("a server that has just failed", "mcp", {"server": "failing", "tool": "echo"},
                   'Server "failing" not available (last failed', relied_on=REFUSED),
    "connect-failed": Case("connecting one that has just failed", "mcp", {"connect": "failing"}, "Failed to connect",
                           relied_on=("status-pi-connect-call", *REFUSED)),
    "locked": Case("a server that wants a token", "mcp", {"server": "locked", "tool": "echo"},
                   'Server "locked" requires OAuth authentication',
                   relied_on=("writers-pi-unattended", *REFUSED)),
    "disabled": Case("a server that is switched off", "mcp", {"server": "off", "tool": "echo"},
                     'Server "off" is disabled', relied_on=REFUSED),
    "connect": Case("connecting a server", "mcp", {"connect": "good"}, "good (", relied_on=("status-pi-connect-call",)),
    "connect-none": Case("connecting one that is not configured", "mcp", {"connect": "none"}),
    "list": Case("listing a server", "mcp", {"server": "good"}, "good (",
                 relied_on=("status-pi-listing-not-evidence",)),
    "status": Case("the state of all", "mcp", {}, "MCP: 2/5 servers", relied_on=("status-pi-needs-result",)),
    "first": Case("the state of all before anything was called", "mcp", {}, "MCP: 0/5 servers", later=True,
                  relied_on=("status-pi-lazy-is-healthy",)),
    "unoffered": Case("a tool that was not offered", "good_echo", {}, "Tool good_echo not found"),
}  # fmt: skip


DERIVED: Mapping[str, Mapping[str, Any]] = {
    "proxy-text": {"no_table_text": lambda seen: seen[0].partition("- args: ")[2].partition("\n")[0]},
    "error": {"tool_error_shows_parameters": lambda seen: "Expected parameters" in seen[0]},
    "status": {"lost_server_is_forgotten": lambda seen: "dying (not listening" in seen[0]},
}
"""The lines of a profile that follow from one of these."""


def beginning(begins: str) -> Any:
    """True of a result whose text begins so."""
    return lambda seen: seen[0].startswith(begins)


@probe(
    *(
        Claim(
            f"pi.call.{name}",
            f"{case.says}: what the model reads, the adapter's own code, whether it counts as an error",
            assumes=beginning(case.begins) if case.begins else UNSTATED,
            relied_on=case.relied_on,
            affects="calls of tools",
            reads=tuple(DERIVED.get(name, {})),
            derive=DERIVED.get(name, {}),
            parts=("what the model reads", "the adapter's own code", "it counts as an error"),
        )
        for name, case in CASES.items()
    ),
    Claim(
        "pi.call.renews",
        "after a server died under a call the next call starts it anew",
        affects="servers that die later on",
    ),
    seconds=6.0,
)
def calls(trial: Trial) -> Mapping[str, Any]:
    """Two sessions: in the first everything connects that can; the second knows it from its memory."""
    tools = (Tool("echo"), Tool("bad", text="no luck", is_error=True), Tool("slow", answers_after_seconds=3.0))
    good, locked = HttpServer(Behaviour(tools=tools)), HttpServer(Behaviour(status=401, challenge="Bearer"))
    seen: dict[str, Any] = {}
    trial.hurry(SLOWLY)
    with trial.serving(good=good, locked=locked) as urls:
        configure(
            trial,
            {
                "good": {"url": urls["good"], "requestTimeoutMs": 1500},
                "dying": witness(trial, "dying", dies_on_call=True),
                "failing": {"command": "/no/such-program"},
                "locked": {"url": urls["locked"], "oauth": {"clientId": "c"}},
                "idle": {"url": urls["good"]},
                "off": {"url": urls["good"], "disabled": True},
            },
        )
        for later in (False, True):
            cases = {name: case for name, case in CASES.items() if case.later == later}
            if later:
                cases = dict(sorted(cases.items(), key=lambda each: each[0] != "first"))
            made = [Call("", case.tool, case.args) for case in cases.values()]
            again = [] if later else [Call("", "mcp", {"server": "dying", "tool": "echo"})]
            turns = [Turn((call,)) for call in (*made, *again)]  # the calls of one turn run at the same time
            with trial.modelled(Script((*turns, Turn(text="done")))):
                run = session(trial)
            told = [[each["text"], each["code"], each["error"]] for each in results(run)]
            seen |= dict(zip((f"pi.call.{name}" for name in cases), told, strict=False))
            if not later:
                seen["pi.call.renews"] = told[len(cases) :]
    return seen
