"""What `codex app-server` tells of each server: the only place where Codex says how one started."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fake_servers.mcp.behaviour import Behaviour
from fake_servers.mcp.http import HttpServer
from harness.canary.claims import Claim, probe
from harness.canary.probes.codex.asking import UPDATED, Talk, configure, python, talking
from harness.canary.trial import Trial
from harness.reference.session.evidence import lines_seen

CRASHING = "import sys; sys.stdin.readline(); print('API key invalid', file=sys.stderr); sys.exit(3)"
SILENT = "import time; time.sleep(60)"
CHALLENGE = 'Bearer error="invalid_token"'
DURATION = re.compile(r"\b\d+(?:\.\d+)?m?s\b")
UNREACHABLE = "http://127.0.0.1:9/mcp"


class Case(NamedTuple):
    """A way to fail, or not to: the server, or an entry without `url`, and what is added to the entry."""

    says: str
    server: Behaviour | Mapping[str, Any]
    entry: Mapping[str, Any] = {}
    reads: tuple[str, ...] = ()


RPC = ("transport_type", "timeout_repeats_cause")
CASES: Mapping[str, Case] = {
    "ready": Case("a server that answers is ready", Behaviour()),
    "no-program": Case("a program that is not there", {"command": "no-such-program"}),
    "no-permission": Case("a program that may not be run", {"command": "/dev/null"}),
    "crash": Case("a process that ends before it answers", python(CRASHING), reads=("timeout_repeats_cause",)),
    "stdio-timeout": Case("a silent process", python(SILENT), {"startup_timeout_sec": 1}),
    "no-budget": Case("a budget of 0", python(SILENT), {"startup_timeout_sec": 0}),
    "http-timeout": Case("a silent remote server", Behaviour(initialize="never"), {"startup_timeout_sec": 1}),
    "list-timeout": Case("a silent list of tools", Behaviour(list_tools="never"), {"startup_timeout_sec": 3}),
    "list-error": Case("an error in place of the list of tools", Behaviour(list_tools="error")),
    "rpc-error": Case(
        "an error in place of the handshake", Behaviour(initialize="error"), reads=("timeout_repeats_cause",)
    ),
    "garbage": Case("an answer that is no JSON-RPC", Behaviour(initialize="garbage"), reads=("no_message_text", *RPC)),
    "html": Case(
        "a page in place of an answer", Behaviour(status=200, content_type="text/html", body="<p>"), reads=RPC
    ),
    "refused": Case("a port where nobody listens", {"url": UNREACHABLE}, reads=RPC),
    "reset": Case("a connection that is reset", Behaviour(drops="after"), reads=RPC),
    "401-challenge": Case("401 with a challenge", Behaviour(status=401, challenge=CHALLENGE, body="no")),
    "401-static": Case(
        "401 with a challenge to a token of the entry",
        Behaviour(status=401, challenge=CHALLENGE, body="no"),
        {"http_headers": {"Authorization": "Bearer wrong"}},
    ),
    "401-bare": Case("401 without a challenge", Behaviour(status=401, body="no"), reads=RPC),
    "403": Case("403", Behaviour(status=403, body="no"), reads=RPC),
    "404": Case("404", Behaviour(status=404, body="no"), reads=RPC),
    "429": Case("429", Behaviour(status=429, body="later"), reads=RPC),
    "500": Case("500", Behaviour(status=500, body="oops"), reads=RPC),
    "408": Case("408", Behaviour(status=408, body="late"), reads=RPC),
    "502": Case("502", Behaviour(status=502, body="later"), reads=RPC),
    "503": Case("503", Behaviour(status=503, body="later"), reads=RPC),
    "unset-token": Case("a token whose variable is not set", Behaviour(), {"bearer_token_env_var": "NOT_SET"}),
}
TOLD = ("status", "reason", "text")
TRIED = ("500", "502", "503", "429", "408", "404", "401-bare", "reset")
NAMES: Mapping[str, str] = {"dot": "bad.name", "space": "bad name", "letter": "nämé", "slash": "a/b", "at": "@a:b"}


def part(pattern: str) -> Callable[[list[Any]], str]:
    """What gives a line of a profile: a part of the words of a failure."""

    def found(told: list[Any]) -> str:
        match = re.search(pattern, told[2])
        if match is None:
            raise ValueError(f"nothing like {pattern}")
        return match[1]

    return found


DERIVED: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "404": {"transport_type": part(r"Transport \[(.*?)\] error: ")},
    "garbage": {"no_message_text": part(r"Deserialize error: (.*?), when send")},
    "name-space": {"server_name_pattern": part(r"must match pattern (.*)$")},
}


def line_of(name: str, told: list[Any]) -> str:
    """The notification again, as a reader of lines would meet it."""
    params = {"name": name, "status": told[0], "failureReason": told[1], "error": told[2]}
    return json.dumps({"method": UPDATED, "params": params})


def is_read(name: str) -> Any:
    """What the reference makes of a failed server's notification: that it has failed, and with these words."""

    def right(told: list[Any]) -> bool:
        if name == "ready":
            return told[0] == "ready" and lines_seen("codex", [line_of(name, told)], [name]).failed == {}
        return told[0] == "failed" and lines_seen("codex", [line_of(name, told)], [name]).failed == {name: told[2]}

    return right


def status_claim(name: str, case: Case) -> Claim:
    """The claim about one way to fail."""
    says = case.says if name == "ready" else f"{case.says} is told as failed, in words of its own"
    return Claim(
        f"codex.status.{name}",
        says,
        assumes=is_read(name),
        relied_on=("status-codex-appserver-canary",),
        affects="the status of every server",
        reads=case.reads,
        derive=DERIVED.get(name, {}),
        parts=TOLD,
    )


@probe(
    *(status_claim(name, case) for name, case in CASES.items()),
    *(
        Claim(
            f"codex.status.name-{case}",
            f"a server named `{name}` starts, or is refused alone",
            assumes=lambda seen: seen[0] == "ready" or "Invalid MCP server name" in seen[2],
            relied_on=("status-codex-name-pattern", "catalog-name-codex-unsafe-lint"),
            affects="servers with such names",
            reads=("server_name_pattern",),
            derive=DERIVED.get(f"name-{case}", {}),
            parts=TOLD,
        )
        for case, name in NAMES.items()
    ),
    Claim("codex.status.disabled", "a server that is switched off is not told of, but listed", assumes=[0, True]),
    Claim("codex.status.auth", "the list of servers says how each is authorised", reads=("unknown_status",)),
    *(
        Claim(
            f"codex.attempts.{name}",
            f"how often the handshake is sent to a server that answers {name}",
            affects="remote entries",
        )
        for name in TRIED
    ),
    seconds=3.0,
)
def start_statuses(trial: Trial) -> Mapping[str, Any]:
    """All servers in one talk, each in its own trouble."""
    behaviours = {name: case.server for name, case in CASES.items() if isinstance(case.server, Behaviour)}
    servers = {name: HttpServer(behaviour) for name, behaviour in behaviours.items()}
    with trial.serving(**servers) as urls:
        entries = {
            name: {**({"url": urls[name]} if isinstance(case.server, Behaviour) else case.server), **case.entry}
            for name, case in CASES.items()
        }
        entries |= {name: {"url": urls["ready"]} for name in NAMES.values()}
        configure(trial, {**entries, "off": {"url": urls["ready"], "enabled": False}})
        with talking(trial) as talk:
            talk.begin()
            told = talk.settle(*entries)
            tried = {name: [each.rpc_method for each in server.requests] for name, server in servers.items()}
            off = [update for update in talk.updates if update["name"] == "off"]
            listed = listed_auth(talk)
    seen: dict[str, Any] = {}
    for name, what in told.items():
        text = None if what.error is None else trial.normal(DURATION.sub("N s", what.error))
        claim = name if name in CASES else f"name-{next(case for case, one in NAMES.items() if one == name)}"
        seen[f"codex.status.{claim}"] = [what.status, what.reason, text]
    seen["codex.status.disabled"] = [len(off), "off" in listed]
    auth = ("ready", "no-program", "401-challenge", "401-static", "unset-token", "refused", "off")
    seen["codex.status.auth"] = {name: listed.get(name) for name in auth}
    for name in TRIED:
        seen[f"codex.attempts.{name}"] = tried[name].count("initialize")
    return seen


def listed_auth(talk: Talk) -> dict[str, str]:
    """How each server is authorised, by the list of all."""
    answer = talk.ask("mcpServerStatus/list", {})
    return {each["name"]: each["authStatus"] for each in answer["result"]["data"]}
