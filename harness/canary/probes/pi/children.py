"""What the processes of stdio servers get from Pi's adapter, and what is left of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.canary.claims import Claim, probe
from harness.canary.probes.pi.ground import CACHE, configure, session
from harness.canary.probes.witnesses import notes, witness
from harness.canary.trial import MARK_VARIABLE, Trial

EXPORTED = {
    "NPM_CONFIG_CACHE": "/cache",
    "npm_config_registry": "http://127.0.0.1:9",
    "SECRET_TOKEN": "secret",
    "OPENAI_API_KEY": "key",
    "NODE_OPTIONS": "--no-warnings",
    "MCP_DIRECT_TOOLS": "none",
    "EMPTY": "",
    "GIVEN": "by the program",
}
OWN = ("WORLD_", "MCP_FAKE_", MARK_VARIABLE)
"""How the names begin by which a fake, the servers of this project and a trial find each other."""
LEFT_SECONDS, ENDING_SECONDS = 10.0, 10.0


@probe(
    Claim(
        "pi.child.environment",
        "a stdio server inherits all of the program's environment",
        assumes=[],
        relied_on=("npx-pi-fallback-uses-pin",),
        affects="every stdio server",
    ),
    Claim("pi.child.added", "what the program adds to that", affects="every stdio server"),
    Claim(
        "pi.child.env",
        "the entry's `env` goes over it",
        assumes={"GIVEN": "by the entry", "NPM_CONFIG_CACHE": "/own", "NEW": "x"},
        relied_on=("npx-pi-fallback-uses-pin",),
        affects="entries with `env`",
    ),
    Claim(
        "pi.child.opt-out",
        "what a server with `inheritEnv` false gets",
        affects="entries with `inheritEnv`",
        reads=("environment_opt_out",),
        derive={"environment_opt_out": lambda seen: seen == ["NEW"]},
    ),
    Claim(
        "pi.child.directory",
        "a server runs in the session's directory, or in the entry's `cwd`, after expansion, `~` being the home",
        assumes={"plain": "$PROJ", "cwd": "$TRIAL/other", "variable": "$TRIAL/other", "home": "$HOME"},
        affects="entries with `cwd`",
    ),
    Claim("pi.child.greeting", "how the adapter presents itself to a server", affects="every server"),
    Claim("pi.child.first-messages", "what a server that connects is sent, in order", affects="every server"),
    seconds=3.0,
)
def what_children_get(trial: Trial) -> Mapping[str, Any]:
    """One session with five servers that tell what they got."""
    other = trial.folder / "other"
    other.mkdir()
    given: Mapping[str, Mapping[str, Any]] = {
        "plain": {},
        "cwd": {"cwd": str(other)},
        "variable": {"cwd": "${OTHER}"},
        "home": {"cwd": "~"},
        "own": {"env": {"GIVEN": "by the entry", "NPM_CONFIG_CACHE": "/own", "NEW": "x"}},
        "out": {"inheritEnv": False, "env": {"NEW": "x"}},
    }
    with trial.modelled():
        configure(trial, {name: {**witness(trial, name), **fields} for name, fields in given.items()})
        session(trial, env={**EXPORTED, "OTHER": str(other)})
    started = {name: (notes(trial, name, "start") or [{}])[0] for name in given}
    environment = {name: clean(told.get("environment", {})) for name, told in started.items()}
    base = {name: value for name, value in trial.environment({**EXPORTED}).items() if not is_own(name)}
    greeting = notes(trial, "plain", "received")[0]["params"]
    return {
        "pi.child.environment": sorted(name for name, value in base.items() if environment["plain"].get(name) != value),
        "pi.child.added": {
            name: value for name, value in environment["plain"].items() if name not in base and name != "OTHER"
        },
        "pi.child.env": {name: environment["own"].get(name) for name in ("GIVEN", "NPM_CONFIG_CACHE", "NEW")},
        "pi.child.opt-out": sorted(name for name in environment["out"] if name in (*EXPORTED, "NEW")),
        "pi.child.directory": {
            name: trial.normal(str(started[name].get("directory"))) for name in ("plain", "cwd", "variable", "home")
        },
        "pi.child.greeting": greeting,
        "pi.child.first-messages": [note["method"] for note in notes(trial, "plain", "received")],
    }


def is_own(name: str) -> bool:
    """Whether a variable is the trial's."""
    return name.startswith(OWN)


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without the trial's variables, and without what an interpreter adds to its own."""
    return {name: value for name, value in environment.items() if not is_own(name) and name != "LC_CTYPE"}


@probe(
    Claim(
        "pi.left.polite",
        "a server that ends with its stdin is gone when the program is",
        assumes=["end", False],
        affects="every stdio server",
    ),
    Claim("pi.left.deaf", "what becomes of a server that passes over the end of its stdin and signals"),
    Claim(
        "pi.left.grandchild",
        "the program does not end while a process that a server has started holds that server's stderr",
        not_modelled="a fake does not wait for who holds the stderr of an ended server",
        affects="servers that start processes which outlive them",
    ),
    seconds=14.0,
)
def what_is_left(trial: Trial) -> Mapping[str, Any]:
    """A session with two servers, then one whose server leaves a process; who lives on after each."""
    servers = {"polite": witness(trial, "polite"), "deaf": witness(trial, "deaf", deaf=True)}
    with trial.modelled():
        configure(trial, servers)
        session(trial, keeps_children=True)
        configure(trial, {"parent": witness(trial, "parent", child=True)})
        trial.place(CACHE).unlink(missing_ok=True)
        run = session(trial, keeps_children=True, limit_seconds=ENDING_SECONDS)
    pids = {name: (notes(trial, name, "start") or [{"pid": 0}])[0]["pid"] for name in (*servers, "parent")}
    deadline = time.monotonic() + LEFT_SECONDS
    while any(map(runs, pids.values())) and time.monotonic() < deadline:
        time.sleep(0.1)
    ends = {name: [note["note"] for note in notes(trial, name) if note["note"] in ("end", "signal")] for name in pids}
    signals = [note["name"] for note in notes(trial, "deaf", "signal")]
    return {
        "pi.left.polite": [*ends["polite"], runs(pids["polite"])],
        "pi.left.deaf": [ends["deaf"][:1], signals, runs(pids["deaf"])],
        "pi.left.grandchild": [ends["parent"], run.exit_code],
    }


def runs(pid: int) -> bool:
    """Whether a process is there and not only waits to be taken note of."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    return False
