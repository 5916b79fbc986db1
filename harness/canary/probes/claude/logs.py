"""What the log says of each way in which a connection comes out, and what the reference reads in it.

An observation holds the lines that the reference's reading takes into account, and the status that `claude mcp list`
shows; a claim holds when that reading comes to the right verdict.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fake_servers.mcp.behaviour import Behaviour
from fake_servers.mcp.http import HttpServer
from harness.canary.claims import Claim, probe
from harness.canary.probes.claude.authority import GuardedDoors
from harness.canary.probes.claude.ground import SETTLED, init, listing, log, project, said, session, statuses
from harness.canary.probes.doors import Doors
from harness.canary.probes.witnesses import witness
from harness.canary.trial import Trial
from harness.reference.session.evidence import claude_verdict, entry_of

HANGING_MS = "700"
REJECTION = "BrightData: Invalid API key - authentication failed"
USUAL = ("Starting connection with timeout of ", "HTTP transport options: ", "SSE transport options: ")
"""Lines of every server that are taken into account for a word of theirs; they decide nothing."""
STACK = re.compile(r"\n\s*at .*", re.DOTALL)
CLASS = re.compile(r"^[A-Za-z]{1,4}: ")
IN_JSON = re.compile(r"\\n    at .*", re.DOTALL)
ERROR_TYPE = re.compile(r'"errorType":"[^"]*"')
VALIDATOR = re.compile(r"\[\s*\{\s*\"code\": ?\"invalid_.*", re.DOTALL)
MILLISECONDS = re.compile(r"\b\d+ms\b")
PLAIN_FILE, NO_PROGRAM = "$PROJ/plain-file", "$PROJ/no-program"
AUTH_SHAPED = re.compile("unauthorized|401|supported scopes|oauth|invalid_token", re.IGNORECASE)
"""What makes a failure one of authorization (failure-auth-pattern-words)."""
FINE = True
DIALECT_WORDS = {"named": "(CONNECTION_CLOSED)", "numbered": "(-32000)"}
WORDING, DIALECTS = ("log_wording",), ("status-claude-both-dialects", "status-claude-failure-pattern")


class Case(NamedTuple):
    """A server, by its behaviour, and what the reference must read in its log: FINE, or words of a failure."""

    says: str
    verdict: bool | str
    reads: tuple[str, ...] = ()
    behaviour: Behaviour | None = None
    stdio: Mapping[str, Any] | None = None
    entry: Mapping[str, Any] = {}
    relied_on: tuple[str, ...] = DIALECTS


CASES: Mapping[str, Case] = {
    "good": Case("a server that connects", FINE, behaviour=Behaviour(), relied_on=("status-claude-success-pattern",)),
    "good-sse": Case(
        "one that connects over sse",
        FINE,
        behaviour=Behaviour(),
        entry={"type": "sse"},
        relied_on=("status-claude-success-pattern",),
    ),
    "good-stdio": Case(
        "one that connects over stdio and is ended", FINE, stdio={}, relied_on=("status-claude-normal-shutdown",)
    ),
    "good-with-words": Case(
        "one that complains on its stderr and connects all the same",
        FINE,
        stdio={"stderr": "warning: connection refused, failed to load cache\n"},
        relied_on=("status-claude-healthy-stderr",),
    ),
    "no-command": Case(
        "a command that is nowhere in PATH", "Executable not found", entry={"command": "no-such-cmd-xyz"}
    ),
    "no-file": Case("a command that is no file", "no such file", entry={"command": "/nonexistent/bin/foo"}),
    "not-executable": Case("a command that may not be executed", "permission denied", entry={"command": PLAIN_FILE}),
    "no-program": Case("a command that is no program", "ENOEXEC", entry={"command": NO_PROGRAM}),
    "exits-with-words": Case(
        "a process that ends after it said why",
        "Invalid API key",
        ("log_wording", "stdio_probe_ms"),
        stdio={"stderr": f"{REJECTION}\n", "exits": 1},
        relied_on=(*DIALECTS, "failure-stderr-dialects", "status-claude-respawn-not-failure"),
    ),
    "exits-silently": Case(
        "a process that ends without a word", "Connection closed", ("log_wording", "stdio_probe_ms"), stdio={"exits": 0}
    ),
    "wall": Case(
        "401 of a server with an authorization server",
        "Authentication required",
        WORDING,
        Behaviour(status=401),
        relied_on=("failure-auth-runtime-texts",),
    ),
    "wall-sse": Case(
        "the same over sse",
        "Authentication required",
        WORDING,
        Behaviour(status=401),
        entry={"type": "sse"},
        relied_on=("failure-auth-runtime-texts",),
    ),
    "own-header": Case(
        "401 in spite of a configured Authorization header",
        "Server rejected the configured Authorization header",
        WORDING,
        Behaviour(status=401),
        entry={"headers": {"Authorization": "Bearer own-token"}},
        relied_on=("status-claude-error-line-alone",),
    ),
    "forbidden": Case(
        "403",
        "Error POSTing to endpoint",
        WORDING,
        Behaviour(status=403, body="no"),
        relied_on=("status-claude-403-is-needs-auth",),
    ),
    "absent": Case("404", "MCP endpoint not found", WORDING, Behaviour(status=404, body="no")),
    "broken": Case("500", "boom", ("log_wording", "reconnect_after_ms"), Behaviour(status=500, body="boom")),
    "broken-sse": Case(
        "500 over sse",
        "Non-200 status code (500)",
        ("log_wording",),
        Behaviour(status=500, body="boom"),
        entry={"type": "sse"},
    ),
    "page": Case(
        "a web page in place of the protocol",
        "Unexpected content type",
        WORDING,
        Behaviour(status=200, body="<html>", content_type="text/html"),
    ),
    "gibberish": Case(
        "an answer that is no message of the protocol", "Connection failed", WORDING, Behaviour(initialize="garbage")
    ),
    "unable": Case("an error in answer to initialize", "Internal error", WORDING, Behaviour(initialize="error")),
}
OUTSIDE: Mapping[str, Case] = {
    "port-closed": Case("a port at which nobody listens", "Unable to connect", WORDING),
    "dropped": Case("a connection that is broken behind the request", "socket connection was closed", WORDING),
    "alone": Case(
        "401 of a server without an authorization server: no client can be registered",
        "HTTP 404",
        ("log_wording", "stamps_issuer"),
        relied_on=("failure-auth-runtime-texts",),
    ),
}


REFUSALS = ("wall", "wall-sse", "own-header", "alone")
DOORS = {name: f"d{number}" for number, name in enumerate(CASES)}
"""Paths that no message has a word of: the program strikes out what stands in a url."""


def reading(verdict: bool | str) -> Callable[[Any], bool]:
    """Whether the reference reads this in the lines that were observed."""

    def right(observed: Any) -> bool:
        read = claude_verdict([json.dumps({level: text}) for level, text in observed["lines"]], 0.0)
        return verdict in read if isinstance(verdict, str) and isinstance(read, str) else read is verdict

    return right


def wording(observed: Mapping[str, Any]) -> str:
    """Which of the two dialects this is."""
    said = json.dumps(observed["lines"])
    found = [name for name, word in DIALECT_WORDS.items() if word in said]
    if len(found) != 1:
        raise ValueError("another dialect")
    return found[0]


def claim(name: str, case: Case) -> Claim:
    """The claim of a case."""
    wanted = "connected" if case.verdict is FINE else "failed"
    return Claim(
        f"claude.log.{name}",
        f"the log is read rightly for {case.says}: {wanted}",
        "seed 002",
        assumes=reading(case.verdict),
        relied_on=case.relied_on,
        affects="the status of servers, and what is done about those that failed",
        reads=case.reads,
        derive={"log_wording": wording} if name == "exits-silently" else {},
    )


def auth_claim(name: str, case: Case) -> Claim:
    """The claim that a refusal is one of authorization by its words."""
    return Claim(
        f"claude.log.auth-shaped.{name}",
        f"what is collected of {case.says} tells that it is about authorization",
        "seed 000",
        assumes=lambda observed: AUTH_SHAPED.search(MILLISECONDS.sub("", observed)) is not None,
        relied_on=("failure-auth-pattern-words", "failure-auth-runtime-texts"),
        affects="servers that want a sign-in: the session waits for it, or retries in vain and leaves them out",
        reads=WORDING if name == "own-header" else (),
    )


@probe(
    *(claim(name, case) for name, case in {**CASES, **OUTSIDE}.items()),
    *(auth_claim(name, case) for name, case in {**CASES, **OUTSIDE}.items() if name in REFUSALS),
    seconds=5.0,
)
def log_texts(trial: Trial) -> Mapping[str, Any]:
    """All cases in one `claude mcp list`."""
    doors = GuardedDoors(
        {DOORS[name]: case.behaviour for name, case in CASES.items() if case.behaviour},
        sse=[DOORS[name] for name, case in CASES.items() if case.entry.get("type") == "sse"],
    )
    dropped, alone = HttpServer(Behaviour(drops="after")), Doors({"d": Behaviour(status=401)})
    with trial.serving(doors=doors, dropped=dropped, alone=alone) as urls:
        base = urls["doors"].removesuffix("/mcp")
        servers = {name: entry(trial, name, case, base) for name, case in CASES.items()}
        servers["port-closed"] = {"type": "http", "url": f"http://127.0.0.1:{closed_port()}/mcp"}
        servers["dropped"] = {"type": "http", "url": urls["dropped"]}
        servers["alone"] = {"type": "http", "url": urls["alone"].replace("/mcp", "/d")}
        project(trial, servers)
        trial.write("plain-file", "#!/bin/sh\n")
        trial.write("no-program", "nothing\n", mode=0o755)
        shown = listing(trial.run("mcp", "list"))
    seen = {name: observed(trial, name, shown) for name in servers}
    return {
        **{f"claude.log.{name}": value for name, value in seen.items()},
        **{f"claude.log.auth-shaped.{name}": blob(seen[name]["lines"]) for name in REFUSALS},
    }


def entry(trial: Trial, name: str, case: Case, base: str) -> Mapping[str, Any]:
    """The entry of a case."""
    if case.stdio is not None:
        return witness(trial, name, **case.stdio)
    if "command" in case.entry:
        return {"type": "stdio", "command": case.entry["command"].replace("$PROJ", str(trial.project))}
    return {"type": "http", "url": f"{base}/{DOORS[name]}", **case.entry}


def closed_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def observed(trial: Trial, name: str, shown: Mapping[str, str]) -> Mapping[str, Any]:
    """The telling lines of a server's log, and how the list shows it."""
    return {"lines": telling(trial, name), "listed": plain(trial, shown.get(name, ""))}


def blob(lines: list[list[str]]) -> str:
    """What the reference collects of a failure."""
    read = claude_verdict([json.dumps({level: text}) for level, text in lines], 0.0)
    return read if isinstance(read, str) else ""


def telling(trial: Trial, name: str) -> list[list[str]]:
    """The lines that the reference's reading takes into account, with nothing of the moment in them."""
    found = []
    for level, text in said(log(trial, name)):
        line = entry_of(json.dumps({level: text}))
        if line is not None and (line.connected or line.failed or line.collected) and not text.startswith(USUAL):
            found.append([level, plain(trial, text)])
    return found


def plain(trial: Trial, text: str) -> str:
    """A text without stack, times, ports, what the validator found in detail, and names that a build makes up."""
    text = ERROR_TYPE.sub('"errorType":"CLASS"', CLASS.sub("CLASS: ", trial.normal(text)))
    text = VALIDATOR.sub("[FOUND]", IN_JSON.sub("", STACK.sub("", text)))
    return MILLISECONDS.sub("N ms", text)


# --- what takes its time


@probe(
    Claim(
        "claude.log.hangs",
        "the log is read rightly for a process that never answers: failed",
        assumes=reading("timed out"),
        relied_on=DIALECTS,
        affects="the status of servers that hang",
        reads=WORDING,
    ),
    Claim(
        "claude.log.hangs-remote",
        "the log is read rightly for a remote server that never answers: failed",
        assumes=reading("timed out"),
        relied_on=DIALECTS,
        affects="the status of servers that hang",
        reads=WORDING,
    ),
    Claim(
        "claude.log.file",
        "the log of a server is named by the program's start; its lines have a level, a time, a session and a place",
        assumes={"name": "TIME.jsonl", "keys": ["cwd", "sessionId", "timestamp"], "cwd": "$PROJ"},
        relied_on=("status-claude-jsonl-only", "status-claude-min-timestamp"),
        affects="the status of every server",
    ),
    seconds=2.0,
)
def log_of_hanging(trial: Trial) -> Mapping[str, Any]:
    """Two servers that get as far as nothing."""
    doors = Doors({"d": Behaviour(initialize_after_seconds=30.0)})
    with trial.serving(doors=doors) as urls:
        remote = {"type": "http", "url": urls["doors"].replace("/mcp", "/d")}
        project(trial, {"hangs": witness(trial, "hangs", initialize="never"), "hangs-remote": remote})
        shown = listing(trial.run("mcp", "list", env={"MCP_TIMEOUT": HANGING_MS}))
    lines = log(trial, "hangs")
    files = [path.name for path in (trial.home / ".cache").rglob("mcp-logs-hangs/*")]
    keys = sorted({key for line in lines for key in line} - {"debug", "error"})
    return {
        **{f"claude.log.{name}": observed(trial, name, shown) for name in ("hangs", "hangs-remote")},
        "claude.log.file": {
            "name": re.sub(r"^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z", "TIME", files[0]) if files else None,
            "keys": keys,
            "cwd": trial.normal(str(lines[0].get("cwd"))) if lines else None,
        },
    }


# --- where it is


NAMES = {"My_Srv.1": "mcp-logs-My-Srv-1", "a__b": "mcp-logs-a--b", "@org/x": "mcp-logs--org-x", "unï": "mcp-logs-un-"}
PLACE = "some_dir.with ünusual"


@probe(
    Claim(
        "claude.log.folder",
        "the log of a server is in a folder with its name, everything but letters and digits as hyphens",
        assumes=sorted(NAMES.values()),
        relied_on=("status-claude-log-location", "status-claude-dirname-to-server"),
        affects="the status of servers with such names",
    ),
    Claim(
        "claude.log.slug",
        "the folders are below one named by the project's path, everything but letters and digits as hyphens",
        assumes=True,
        relied_on=("status-claude-slug",),
        affects="the status of every server",
    ),
    seconds=1.0,
)
def log_places(trial: Trial) -> Mapping[str, Any]:
    """Servers with odd names in a project with an odd path."""
    doors = Doors()
    trial.project = trial.project / PLACE
    trial.project.mkdir()
    with trial.serving(doors=doors) as urls:
        base = urls["doors"].removesuffix("/mcp")
        project(trial, {name: {"type": "http", "url": f"{base}/{n}"} for n, name in enumerate(NAMES)})
        trial.run("mcp", "list")
    found = sorted((trial.home / ".cache" / "claude-cli-nodejs").glob("*/*"))
    slug = re.sub("[^A-Za-z0-9]", "-", str(trial.project))
    return {
        "claude.log.folder": sorted(path.name for path in found),
        "claude.log.slug": {path.parent.name for path in found} == {slug},
    }


@probe(
    Claim(
        "claude.log.session",
        "the lines of a session carry its id, which the first line of its output names",
        assumes=True,
        relied_on=("status-claude-foreign-session-lines",),
        affects="telling the lines of a session from those of another",
    ),
    Claim(
        "claude.log.call-died",
        "what a call leaves in the log when the process dies under it, and of the next call, which starts it again",
        relied_on=("status-claude-last-verdict-wins",),
        affects="the status of servers that die later on",
        reads=WORDING,
    ),
    seconds=2.0,
)
def log_of_a_session(trial: Trial) -> Mapping[str, Any]:
    """A session with a server that dies when it is called."""
    from harness.canary.probes.claude.credentials import allow
    from harness.canary.script import Call, Script, Turn

    call = Turn((Call("one", "echo"),))
    with trial.modelled(Script((call, Turn(text="done")))):
        project(trial, {"one": witness(trial, "one", dies_on_call=True)})
        allow(trial)
        run = session(trial, env=SETTLED)
    ids = {line.get("sessionId") for line in log(trial, "one")}
    first = init(run)
    return {
        "claude.log.session": ids == {first.get("session_id")} and statuses(run) == {"one": "connected"},
        "claude.log.call-died": telling(trial, "one"),
    }
