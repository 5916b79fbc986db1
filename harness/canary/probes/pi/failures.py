"""What Pi's adapter says on stderr of each server that does not connect: all that tells how one started."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_servers.mcp.behaviour import Behaviour
from fake_servers.mcp.http import HttpServer
from harness.canary.claims import Claim, probe
from harness.canary.probes.pi.ground import configure, session, told, told_of
from harness.canary.trial import Trial
from harness.reference.session.evidence import lines_seen

CRASHING = (
    "import sys; sys.stdin.readline(); print('one\\ntwo\\n\\nthree\\nAPI key invalid', file=sys.stderr); sys.exit(3)"
)
LOUD = "import sys; sys.stdin.readline(); print('x' * 9000, file=sys.stderr); sys.exit(3)"
SILENT = "import time; time.sleep(60)"
STATIC = {"headers": {"Authorization": "Bearer wrong"}}
SHORT = {"requestTimeoutMs": 2500}
LONG = re.compile("x{9,}")
VALIDATOR = re.compile(r'\[ \{ "code": "invalid_.*\} \]')
"""What the program's library for checking messages has found wrong with each kind that there is."""
UNREACHABLE = "http://127.0.0.1:9/mcp"


def python(script: str) -> dict[str, Any]:
    """The entry of a server that is a few lines of Python."""
    return {"command": sys.executable, "args": ["-ISc", script]}


class Case(NamedTuple):
    """A way to fail, or not to: the server, or an entry without `url`, and what is added to the entry."""

    says: str
    server: Behaviour | Mapping[str, Any]
    entry: Mapping[str, Any] = {}


CASES: Mapping[str, Case] = {
    "ready": Case("nothing is said of a server that connects", Behaviour()),
    "no-program": Case("a program that is not there", {"command": "/no/such-program"}),
    "no-permission": Case("a program that may not be run", {"command": "/dev/null"}),
    "crash": Case("a process that ends before it answers, with its last three lines", python(CRASHING)),
    "loud": Case("a process that ends with a long line", python(LOUD)),
    "no-directory": Case("a directory that is not there", {**python(SILENT), "cwd": "/no/such/directory"}),
    "stdio-timeout": Case("a silent process", python(SILENT), SHORT),
    "http-timeout": Case("a silent remote server", Behaviour(initialize="never"), SHORT),
    "list-timeout": Case("a silent list of tools", Behaviour(list_tools="never"), SHORT),
    "list-error": Case("an error in place of the list of tools", Behaviour(list_tools="error")),
    "rpc-error": Case("an error in place of the handshake", Behaviour(initialize="error")),
    "garbage": Case(
        "an answer that is no JSON-RPC",
        Behaviour(initialize="garbage"),
    ),
    "html": Case("a page in place of an answer", Behaviour(status=200, content_type="text/html", body="<p>")),
    "refused": Case("a port where nobody listens", {"url": UNREACHABLE}),
    "reset": Case("a connection that is reset", Behaviour(drops="after")),
    "401-static": Case("401 to a token of the entry", Behaviour(status=401, challenge="Bearer", body="no"), STATIC),
    "401-off": Case("401 where OAuth is off", Behaviour(status=401, challenge="Bearer", body="no"), {"oauth": False}),
    "400": Case("400", Behaviour(status=400, body="what"), STATIC),
    "403": Case("403", Behaviour(status=403, body="no"), STATIC),
    "404": Case("404", Behaviour(status=404, body="no"), STATIC),
    "405": Case("405", Behaviour(status=405, body="no"), STATIC),
    "429": Case("429", Behaviour(status=429, body="later"), STATIC),
    "500": Case("500", Behaviour(status=500, body="oops"), STATIC),
    "502": Case("502 with a page", Behaviour(status=502, content_type="text/html", body="<p>oops"), STATIC),
    "503": Case("503", Behaviour(status=503, body="later"), STATIC),
}


def is_read(name: str) -> Any:
    """What the reference makes of a line: that just this server has failed; of no line: nothing."""

    def right(line: str | None) -> bool:
        if name == "ready":
            return line is None
        return line is not None and list(lines_seen("pi", [line], [name, "ready"]).failed) == [name]

    return right


@probe(
    *(
        Claim(
            f"pi.stderr.{name}",
            case.says if name == "ready" else f"{case.says} is told in one line, in words of its own",
            assumes=is_read(name),
            relied_on=("status-pi-connected-only",),
            affects="the status of every server",
        )
        for name, case in CASES.items()
    ),
    Claim(
        "pi.stderr.nothing-else",
        "stderr holds nothing besides",
        assumes=[],
        relied_on=("status-pi-connected-only",),
        reads=("own_adapter_warning",),
        derive={"own_adapter_warning": lambda seen: "\n".join(seen).replace("ADAPTER", "{adapter}")},
    ),
    Claim(
        "pi.exit.failures",
        "a run whose servers all fail ends with 0, and stdout has no event of any server",
        assumes=[0, []],
        affects="every run",
    ),
    Claim(
        "pi.wire.ready",
        "what a server that connects is asked, in order",
        affects="remote servers",
    ),
    Claim(
        "pi.wire.failures",
        "what a remote server that fails is asked, in order: after most failures two requests without credentials",
        affects="remote servers",
    ),
    seconds=5.0,
)
def failed_servers(trial: Trial) -> Mapping[str, Any]:
    """All servers in one session, each in its own trouble."""
    behaviours = {name: case.server for name, case in CASES.items() if isinstance(case.server, Behaviour)}
    servers = {name: HttpServer(behaviour) for name, behaviour in behaviours.items()}
    with trial.serving(**servers) as urls, trial.modelled():
        configure(trial, {name: {**base_of(case, urls.get(name)), **case.entry} for name, case in CASES.items()})
        run = session(trial)
    lines = {name: told_of(trial, run, name) for name in CASES}
    shown = {name: line and shortened(line) for name, line in lines.items()}
    named = {kind for line in run.lines if isinstance(line, dict) for kind in [line.get("type", "")]}
    asked = {name: wire(server) for name, server in servers.items()}
    return {
        **{f"pi.stderr.{name}": line for name, line in shown.items()},
        "pi.stderr.nothing-else": [line for line in told(trial, run) if line not in lines.values()],
        "pi.exit.failures": [run.exit_code, sorted(kind for kind in named if "mcp" in kind.lower())],
        "pi.wire.ready": asked.pop("ready"),
        "pi.wire.failures": asked,
    }


def shortened(line: str) -> str:
    """A line without what is as long as somebody has made it."""
    return VALIDATOR.sub("[FOUND]", LONG.sub(lambda found: f"x times {len(found[0])}", line))


def base_of(case: Case, url: str | None) -> Mapping[str, Any]:
    """The entry without what the case adds."""
    return case.server if isinstance(case.server, Mapping) else {"url": url}


def wire(server: HttpServer) -> list[str]:
    """The requests in two words each. The stream of a connected client comes at any time, so it is left out."""
    asked = [f"{seen.method} {seen.rpc_method or '-'}" for seen in server.requests]
    return [each for each in asked if each != "GET -"] if "POST notifications/initialized" in asked else asked
