"""What a stdio server is started with, how it is ended, and which processes are left behind."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from harness.canary.claims import Claim, probe
from harness.canary.probes.claude.ground import SETTLED, init, log, project, said, session
from harness.canary.probes.witnesses import notes, witness
from harness.canary.script import Script, Turn
from harness.canary.trial import Trial

SECRETS = {"SOME_SECRET": "s", "NPM_CONFIG_CACHE": "/cache/of/parent", "MCP_TIMEOUT": "20000"}
OURS = ("MCP_HARNESS_TRIAL", "WORLD_", "LC_CTYPE")
"""Names, or how they begin, of what a trial and its tools put into the environment, not the program."""
KNOWN_VALUES = {"CLAUDECODE": "1", "COREPACK_ENABLE_AUTO_PIN": "0", "NoDefaultCurrentDirectoryInExePath": "1"}
GONE_SECONDS = 10.0
"""How long is waited for what must come; what comes is noticed at once."""
SLOWLY = 0.2
"""The fake sends one signal a tenth of a second behind another; a witness must come to note each."""


@probe(
    Claim(
        "claude.child.environment",
        "a process inherits the whole environment, secrets and all, with the entry's env on top",
        assumes={"inherited": sorted(SECRETS), "own": "entry", "over": "/cache/of/entry"},
        relied_on=("npx-cache-pinned-per-entry", "npx-pin-env-merged", "npx-pin-not-inherited"),
        affects="stdio servers: what is in the environment of the session reaches all of them",
    ),
    Claim(
        "claude.child.added",
        "which variables the program adds",
        affects="stdio servers that look at such variables",
        reads=("child_variables",),
        derive={"child_variables": lambda observed: observed},
    ),
    Claim(
        "claude.child.values",
        "what stands in those whose values can be known",
        assumes=lambda observed: observed["CLAUDECODE"] == "1" and observed["CLAUDE_PROJECT_DIR"] == "$PROJ",
        affects="stdio servers that look at such variables",
    ),
    Claim(
        "claude.child.place",
        "a process starts in the project, in the process group of its parent, which is the program",
        assumes={"directory": "$PROJ", "group of parent": True, "child of program": True},
        affects="stdio servers, and whoever ends a session by its process group",
    ),
    seconds=2.0,
)
def child_environment(trial: Trial) -> Mapping[str, Any]:
    """A witness in a session."""
    with trial.modelled():
        plain = witness(trial, "plain")
        merged = {**witness(trial, "merged"), "env": {"OWN": "entry", "NPM_CONFIG_CACHE": "/cache/of/entry"}}
        project(trial, {"plain": plain, "merged": merged})
        process = trial.start("-p", "hello", "--output-format", "stream-json", "--verbose", env={**SETTLED, **SECRETS})
        process.communicate(b"")
        given = trial.environment({**SETTLED, **SECRETS})
    start, other = notes(trial, "plain", "start")[0], notes(trial, "merged", "start")[0]
    environment = start["environment"]
    added = [name for name in environment if name not in given and not name.startswith(OURS)]
    values = {name: trial.normal(environment[name]) for name in (*KNOWN_VALUES, "CLAUDE_PROJECT_DIR", "AI_AGENT")}
    return {
        "claude.child.environment": {
            "inherited": sorted(name for name, value in SECRETS.items() if environment.get(name) == value),
            "own": other["environment"].get("OWN"),
            "over": other["environment"].get("NPM_CONFIG_CACHE"),
        },
        "claude.child.added": sorted(added),
        "claude.child.values": values,
        "claude.child.place": {
            "directory": trial.normal(start["directory"]),
            "group of parent": start["group"] == process.pid,
            "child of program": start["parent"] == process.pid,
        },
    }


# --- how it ends


@probe(
    Claim(
        "claude.child.ended",
        "a connected process is ended with SIGINT",
        assumes={"signals": ["SIGINT"], "alive": False},
        affects="stdio servers that have something to finish",
    ),
    Claim(
        "claude.child.deaf",
        "one that passes over SIGINT gets SIGTERM, then SIGKILL",
        assumes={"signals": ["SIGINT", "SIGTERM"], "alive": False},
        affects="stdio servers that pass over signals",
    ),
    Claim(
        "claude.child.grandchild",
        "what a server has started itself is left behind",
        assumes=True,
        affects="servers behind a launcher or with helpers: whoever runs sessions must end what is left",
    ),
    Claim(
        "claude.child.shell",
        "a server behind a shell that stays gets no signal; its stdin ends",
        assumes={"signals": [], "stdin ended": True},
        affects="servers that are started through a shell",
    ),
    seconds=3.0,
)
def ends_of_children(trial: Trial) -> Mapping[str, Any]:
    """Witnesses in a session; then a look at who is left."""
    trial.hurry(SLOWLY)
    with trial.modelled():
        behind = witness(trial, "behind")
        words = " ".join(f"'{word}'" for word in (behind["command"], *behind["args"]))
        project(
            trial,
            {
                "ended": witness(trial, "ended"),
                "deaf": witness(trial, "deaf", deaf=True),
                "parent": witness(trial, "parent", child=True),
                "behind": {"type": "stdio", "command": "/bin/sh", "args": ["-c", f"{words} ; true"]},
            },
        )
        trial.run("-p", "hello", env=SETTLED, keeps_children=True)
        wait_for(lambda: bool(notes(trial, "behind", "end")))
    left = {note["child"] for note in notes(trial, "parent", "child")}
    return {
        "claude.child.ended": ending(trial, "ended"),
        "claude.child.deaf": ending(trial, "deaf"),
        "claude.child.grandchild": any(alive(pid) for pid in left),
        "claude.child.shell": {
            "signals": [note["name"] for note in notes(trial, "behind", "signal")],
            "stdin ended": bool(notes(trial, "behind", "end")),
        },
    }


def ending(trial: Trial, name: str) -> Mapping[str, Any]:
    """The signals that a witness took, and whether it is still there; who got one has a moment to go."""
    pids = {note["pid"] for note in notes(trial, name, "start")}
    signals = [note["name"] for note in notes(trial, name, "signal")]
    if signals:
        wait_for(lambda: not any(alive(pid) for pid in pids))
    return {"signals": signals, "alive": any(alive(pid) for pid in pids)}


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked about does not."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(holds: Any) -> None:
    """Wait until something holds, not for long."""
    deadline = time.monotonic() + GONE_SECONDS
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)


@probe(
    Claim(
        "claude.child.never-connected",
        "what becomes of a process that did not connect in its budget and passes over the end of its stdin",
        affects="servers that hang: whoever runs sessions must end what is left",
        reads=("signals_unconnected",),
        derive={"signals_unconnected": lambda observed: bool(observed["signals"])},
    ),
    Claim(
        "claude.child.still-connecting",
        "what becomes of such a process that is still connecting when the session ends, and what the log says of it",
        affects="servers that hang: whoever runs sessions must end what is left",
        reads=("signals_unconnected", "log_wording"),
    ),
    seconds=5.0,
)
def hung_children(trial: Trial) -> Mapping[str, Any]:
    """A list with a short budget, then a session that does not wait for its server."""
    with trial.modelled(Script((Turn(text="done", seconds=2.0),))):  # the server has started by then
        hung = {"discover": "never", "initialize": "never", "stays": True}
        project(trial, {"hung": witness(trial, "hung", **hung)})
        trial.run("mcp", "list", env={"MCP_TIMEOUT": "2500"}, keeps_children=True)
        wait_for(lambda: bool(notes(trial, "hung", "signal")))
        project(trial, {"pending": witness(trial, "pending", **hung)})
        trial.run("-p", "hello", keeps_children=True)
        wait_for(lambda: bool(notes(trial, "pending", "signal")))
    abandoned = [trial.normal(text) for _, text in said(log(trial, "pending")) if "abandoned" in text]
    return {
        "claude.child.never-connected": ending(trial, "hung"),
        "claude.child.still-connecting": {**ending(trial, "pending"), "said": abandoned},
    }


# --- a session besides


@probe(
    Claim(
        "claude.session.version",
        "the version is told on the command line, in the first line of a session, and to servers",
        assumes=lambda observed: len(set(observed.values())) == 1,
        affects="whoever asks which version it is",
        reads=("version",),
    ),
    seconds=2.0,
)
def told_version(trial: Trial) -> Mapping[str, Any]:
    """The version in three places, compared with that which was to be tried."""
    with trial.modelled():
        project(trial, {"told": witness(trial, "told")})
        first = init(session(trial, env=SETTLED))
    printed = trial.run("--version").stdout.partition(" ")[0]
    handshake = next(note["params"] for note in notes(trial, "told", "received") if note["method"] == "initialize")
    told = (printed, first.get("claude_code_version"), handshake["clientInfo"]["version"])
    places = ("printed", "init", "handshake")
    return {
        "claude.session.version": {
            place: each == trial.subject.version for place, each in zip(places, told, strict=True)
        }
    }
