"""How long a server may take, who waits for it, and how many start at a time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from fake_servers.mcp.behaviour import Behaviour
from harness.canary.claims import Claim, probe
from harness.canary.probes.claude.ground import SETTINGS, SETTLED, STREAM, init, log, project, said, session, statuses
from harness.canary.probes.doors import Doors
from harness.canary.probes.witnesses import notes, witness
from harness.canary.script import Script, Turn
from harness.canary.trial import Trial
from harness.world.ports import Request, Response

LIMIT = re.compile(r"Starting connection with timeout of (\d+)ms")
DEFAULT_MS = 30_000
FORMS: Mapping[str, int] = {
    "": DEFAULT_MS,
    "2500": 2500,
    "180000": 180000,
    "abc": DEFAULT_MS,
    "0": DEFAULT_MS,
    "0x1000": DEFAULT_MS,
    "3s": 3,
    "1e4": 10000,
    "5_000": 5000,
    "3000000000": 2147483647,
}
BUDGET = ("prepare-claude-timeout-env", "startup-timeout-claude-process-max", "prepare-canary-budgets")


@probe(
    Claim(
        "claude.budget.default",
        "without MCP_TIMEOUT a server has 30 seconds",
        "seed 000",
        assumes=DEFAULT_MS,
        relied_on=BUDGET,
        affects="every server",
        reads=("default_timeout_ms",),
        derive={"default_timeout_ms": lambda observed: observed},
    ),
    Claim(
        "claude.budget.variable",
        "MCP_TIMEOUT gives the budget in milliseconds",
        "seed 000",
        assumes={form: FORMS[form] for form in ("2500", "180000")},
        relied_on=BUDGET,
        affects="every server",
    ),
    Claim(
        "claude.budget.odd-forms",
        "what MCP_TIMEOUT means where it is no plain number",
        affects="sessions whose MCP_TIMEOUT somebody wrote by hand",
        reads=("default_timeout_ms",),
    ),
    Claim(
        "claude.budget.settings",
        "MCP_TIMEOUT in the env of the user's settings counts as well",
        assumes=2345,
        relied_on=("prepare-claude-timeout-beats-dotenv",),
        affects="every server",
    ),
    Claim(
        "claude.budget.entry-key",
        "startupTimeoutSec, startup_timeout_sec and timeout of an entry have no effect on starting",
        "seed 000",
        assumes=[DEFAULT_MS],
        relied_on=("startup-timeout-claude-key-not-written", "prepare-claude-no-entry-timeout-key"),
        affects="entries with a budget of their own",
        reads=("default_timeout_ms",),
    ),
    seconds=8.0,
)
def start_budgets(trial: Trial) -> Mapping[str, Any]:
    """What the log says of the budget, at servers that answer at once: nothing is waited for."""
    doors, keys = Doors(), ("startupTimeoutSec", "startup_timeout_sec", "timeout")
    with trial.serving(doors=doors) as urls:
        base = urls["doors"].removesuffix("/mcp")
        project(trial, {name: {"type": "http", "url": f"{base}/{name}", name: 6} for name in keys})
        trial.run("mcp", "list")
        entries = {name: limit_ms(trial, name) for name in keys}
        found = {}
        for number, form in enumerate(FORMS):
            project(trial, {f"s{number}": {"type": "http", "url": f"{base}/d"}})
            trial.run("mcp", "list", env={"MCP_TIMEOUT": form} if form else {})
            found[form] = limit_ms(trial, f"s{number}")
        project(trial, {"set": {"type": "http", "url": f"{base}/d"}})
        trial.write_json(SETTINGS, {**(trial.read_json(SETTINGS) or {}), "env": {"MCP_TIMEOUT": "2345"}})
        trial.run("mcp", "list")
    plain = ("2500", "180000")
    return {
        "claude.budget.default": found[""],
        "claude.budget.variable": {form: found[form] for form in plain},
        "claude.budget.odd-forms": {form: found[form] for form in FORMS if form and form not in plain},
        "claude.budget.settings": limit_ms(trial, "set"),
        "claude.budget.entry-key": sorted(set(entries.values()), key=str),
    }


def limit_ms(trial: Trial, name: str) -> int | None:
    """The budget as a server's log gives it."""
    found = (LIMIT.match(text) for _, text in said(log(trial, name)))
    return next((int(match[1]) for match in found if match is not None), None)


# --- what is waited for

SOON_SECONDS, LATE_SECONDS = 0.8, 3.2
SLOWLY = 0.5
"""Between what is told apart here are at least two seconds of a fake's real time."""


@probe(
    Claim(
        "claude.wait.first-request",
        "the first request to the model waits about two seconds for servers of .mcp.json, and leaves without the rest",
        assumes={"late": "pending", "soon": "connected"},
        relied_on=("status-claude-init-pending-not-failed",),
        affects="servers that start slowly",
        reads=("first_request_wait_ms",),
    ),
    Claim(
        "claude.wait.extra-tool",
        "what the model is offered besides while a server is still connecting",
        affects="what the model can do about servers that start slowly",
        reads=("wait_tool",),
        derive={"wait_tool": lambda observed: observed[0] if observed else ""},
    ),
    Claim(
        "claude.wait.blocking",
        "with MCP_CONNECTION_NONBLOCKING=0 it waits for the outcome of every server",
        assumes={"late": "connected", "soon": "connected"},
        relied_on=("prepare-spawn-claude-mcp-env",),
        affects="servers that start slowly",
    ),
    Claim(
        "claude.wait.given",
        "it waits for the outcome of servers of --mcp-config in any case",
        assumes={"late": "connected", "soon": "connected"},
        affects="servers given on the command line",
    ),
    seconds=10.0,
)
def first_request(trial: Trial) -> Mapping[str, Any]:
    """A server that is there soon and one that is late, in three sessions."""
    doors = Doors({"soon": delayed(SOON_SECONDS), "late": delayed(LATE_SECONDS)})
    trial.hurry(SLOWLY)
    with trial.serving(doors=doors) as urls, trial.modelled():
        base = urls["doors"].removesuffix("/mcp")
        servers = {name: {"type": "http", "url": f"{base}/{name}"} for name in ("soon", "late")}
        project(trial, servers)
        plain = session(trial, env={"ENABLE_TOOL_SEARCH": "false"})
        extra = [name for name in init(plain).get("tools", []) if name.startswith("Wait")]
        blocking = session(trial, env=SETTLED)
        given = trial.write_json("given.json", {"mcpServers": servers})
        called = session(trial, "--strict-mcp-config", "--mcp-config", str(given), env={"ENABLE_TOOL_SEARCH": "false"})
    return {
        "claude.wait.first-request": statuses(plain),
        "claude.wait.extra-tool": extra,
        "claude.wait.blocking": statuses(blocking),
        "claude.wait.given": statuses(called),
    }


def delayed(seconds: float) -> Behaviour:
    """A server that takes its time to shake hands."""
    return Behaviour(initialize_after_seconds=seconds)


@probe(
    Claim(
        "claude.wait.hanging",
        "a server of .mcp.json that does not make its budget is failed where it is waited for, and the exit code is 0",
        assumes={"status": "failed", "exit": 0},
        relied_on=("prepare-hang-costs-whole-budget", "startup-timeout-default-hang-held"),
        affects="servers that hang",
    ),
    Claim(
        "claude.wait.hanging-given",
        "a server of --mcp-config that does not make its budget is failed, or not yet: whatever is noticed first",
        assumes=True,
        affects="servers given on the command line that hang",
    ),
    seconds=4.0,
)
def hanging(trial: Trial) -> Mapping[str, Any]:
    """A server that hangs, with a short budget."""
    doors = Doors({"hung": delayed(30.0)})
    with trial.serving(doors=doors) as urls, trial.modelled():
        servers = {"hung": {"type": "http", "url": urls["doors"].replace("/mcp", "/hung")}}
        project(trial, servers)
        plain = session(trial, env={**SETTLED, "MCP_TIMEOUT": "800"})
        given = trial.write_json("given.json", {"mcpServers": servers})
        called = session(
            trial, "--strict-mcp-config", "--mcp-config", str(given), env={**SETTLED, "MCP_TIMEOUT": "800"}
        )
    return {
        "claude.wait.hanging": {"status": statuses(plain).get("hung"), "exit": plain.exit_code},
        "claude.wait.hanging-given": statuses(called).get("hung") in ("failed", "pending"),
    }


# --- how many at a time

WIDE, EACH_SECONDS = 24, 2.5
DEEP = 5


class Counting(Doors):
    """Doors that tell how many handshakes were under way at once."""

    def __init__(self) -> None:
        super().__init__({f"d{number}": delayed(EACH_SECONDS) for number in range(WIDE)})
        self.began: list[float] = []

    def handle(self, request: Request, now: float, who: str) -> Response:
        """Note when a handshake begins."""
        if b'"initialize"' in request.body:
            self.began.append(now)
        return super().handle(request, now, who)


def at_once(began: list[float]) -> int:
    """How many of these began before the first could be over."""
    return sum(each < min(began) + EACH_SECONDS for each in began) if began else 0


@probe(
    Claim(
        "claude.wait.stdio-at-a-time",
        "a session starts so many processes at a time",
        assumes=3,
        relied_on=("prepare-nine-cold-npx-within-budget",),
        affects="catalogs with many stdio servers: a hang holds up those behind it",
        reads=("stdio_at_a_time",),
        derive={"stdio_at_a_time": lambda observed: observed},
    ),
    Claim(
        "claude.wait.remote-at-a-time",
        "a session connects to so many remote servers at a time",
        assumes=20,
        affects="catalogs with many remote servers",
        reads=("remote_at_a_time",),
        derive={"remote_at_a_time": lambda observed: observed},
    ),
    Claim(
        "claude.wait.batch-size",
        "MCP_SERVER_CONNECTION_BATCH_SIZE sets how many processes",
        assumes=DEEP,
        affects="sessions with that variable",
    ),
    seconds=9.0,
)
def side_by_side(trial: Trial) -> Mapping[str, Any]:
    """Many slow servers of both kinds in one session, then only the processes with the variable."""
    doors = Counting()
    found: dict[str, Any] = {}
    with trial.serving(doors=doors) as urls, trial.modelled():
        base = urls["doors"].removesuffix("/mcp")
        remote = {f"r{number}": {"type": "http", "url": f"{base}/d{number}"} for number in range(WIDE)}
        for label, servers, env in (
            ("plain", remote, {}),
            ("batch", {}, {"MCP_SERVER_CONNECTION_BATCH_SIZE": str(DEEP)}),
        ):
            slow = {f"{label}{n}": witness(trial, f"{label}{n}", starts_after=EACH_SECONDS) for n in range(DEEP)}
            project(trial, {**slow, **servers})
            session(trial, env={**SETTLED, **env})
            began = [note["at"] for name in slow for note in notes(trial, name, "start")[:1]]
            found[label] = at_once(began)
    return {
        "claude.wait.stdio-at-a-time": found["plain"],
        "claude.wait.remote-at-a-time": at_once(doors.began),
        "claude.wait.batch-size": found["batch"],
    }


# --- the newer probe

TO_A_SECOND, TO_A_HALF = 0.4, 0.25
"""How fast the fake's time passes where its waits are told to the second, and to half of one."""
THINKING_SECONDS = 3.0
"""How long the model thinks: meanwhile the program tries again."""


@probe(
    Claim(
        "claude.wait.stdio-probe",
        "what is sent to a process first, and how long an answer to the newer probe is waited for, in whole seconds",
        affects="servers that pass over what they do not know: they start later",
        reads=("stdio_probe_ms",),
        derive={"stdio_probe_ms": lambda observed: probe_ms(observed)},
    ),
    Claim(
        "claude.wait.remote-probe",
        "what is posted to a remote server first, and how long the newer probe is waited for, in whole seconds",
        affects="servers that pass over what they do not know: they start later",
        reads=("remote_probe_ms",),
        derive={"remote_probe_ms": lambda observed: probe_ms(observed)},
    ),
    seconds=6.0,
)
def newer_probe(trial: Trial) -> Mapping[str, Any]:
    """Two servers that pass over the probe, in one session."""
    doors = Doors({"deaf": Behaviour(discover="never")})
    trial.hurry(TO_A_SECOND)
    with trial.serving(doors=doors) as urls, trial.modelled():
        remote = {"type": "http", "url": urls["doors"].replace("/mcp", "/deaf")}
        project(trial, {"silent": witness(trial, "silent", discover="never"), "deaf": remote})
        trial.run(*STREAM, env=SETTLED)
    heard = [(note["method"], note["at"] * trial.pace.scale) for note in notes(trial, "silent", "received")]
    posted = [(visit.rpc_method, visit.at) for visit in doors.visits["deaf"] if visit.rpc_method]
    return {"claude.wait.stdio-probe": beginnings(heard), "claude.wait.remote-probe": beginnings(posted)}


def beginnings(heard: list[tuple[Any, float]]) -> Mapping[str, Any]:
    """The methods up to the handshake, and how long it was until that."""
    methods = [method for method, _ in heard]
    until = methods.index("initialize") if "initialize" in methods else len(methods) - 1
    waited = heard[until][1] - heard[0][1] if heard else 0.0
    return {"methods": methods[: until + 1], "seconds": round(waited)}


def probe_ms(observed: Mapping[str, Any]) -> int:
    """How long the newer probe is waited for; 0 where it is not sent."""
    return int(observed["seconds"]) * 1000 if observed["methods"][0] == "server/discover" else 0


@probe(
    Claim(
        "claude.wait.reconnect",
        "after how many seconds a remote server that answers 500 is asked again in a session, to the half",
        affects="servers behind a proxy that fails for a moment",
        reads=("reconnect_after_ms",),
        derive={"reconnect_after_ms": lambda observed: int(observed[0] * 1000)},
    ),
    seconds=5.0,
)
def reconnecting(trial: Trial) -> Mapping[str, Any]:
    """One server that fails, in a session whose model takes its time."""
    doors = Doors({"broken": Behaviour(status=500)})
    trial.hurry(TO_A_HALF)
    with trial.serving(doors=doors) as urls, trial.modelled(Script((Turn(text="done", seconds=THINKING_SECONDS),))):
        project(trial, {"broken": {"type": "http", "url": urls["doors"].replace("/mcp", "/broken")}})
        trial.run(*STREAM, env=SETTLED)
    tried = [visit.at for visit in doors.visits["broken"] if visit.rpc_method == "initialize"]
    return {"claude.wait.reconnect": [round(2 * (two - one)) / 2 for one, two in pairwise(tried)][:2]}
