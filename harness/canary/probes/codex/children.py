"""What a stdio server of Codex gets, and what becomes of it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.canary.claims import Claim, probe
from harness.canary.probes.codex.asking import (
    ENDING_SECONDS,
    FULL_ACCESS,
    configure,
    python,
    spoken_to,
    statuses,
    talking,
)
from harness.canary.script import Script, Turn
from harness.canary.trial import MARK_VARIABLE, PATH, Trial, end_group
from harness.world.outside.reaping import marked

TELLING = """
import json, os, sys
with open(sys.argv[1], "w") as file:
    leads = os.getpgid(0) == os.getpid()
    json.dump({"environment": dict(os.environ), "directory": os.getcwd(), "own group": leads}, file)
"""
"""Writes what it was started with into the file that it is told, and ends."""
ANSWERING = """
import json, os, signal, subprocess, sys
if "deaf" in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "parent" in sys.argv: subprocess.Popen([sys.executable, "-ISc", "import time; time.sleep(60)"])
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    told = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "x", "version": "1"}}, "tools/list": {"tools": []}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": told.get(asked["method"], {})}), flush=True)
if "stays" in sys.argv:
    import time; time.sleep(60)
"""
"""Answers the handshake. After its stdin has ended it ends as well, unless it stays; it may be deaf to SIGTERM."""
GONE_SECONDS = 3.0
ASKING_SECONDS = 20.0

EXPORTED = [
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TZ",
    "USER",
    "__CF_USER_TEXT_ENCODING",
    "PWD",
    "HOSTNAME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NPM_CONFIG_CACHE",
    "npm_config_cache",
    "NPM_CONFIG_REGISTRY",
    "MCP_TIMEOUT",
    "OPENAI_API_KEY",
    "GITHUB_TOKEN",
    "AWS_PROFILE",
    "SECRET_TOKEN",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "DISPLAY",
    "EDITOR",
    "CODEX_CA_CERTIFICATE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "AWS_CA_BUNDLE",
    "NIX_SSL_CERT_FILE",
    "no_proxy",
    "NO_PROXY",
    "WANTED",
]
"""Set in the program's environment beside what it needs. The proxies are those for nobody."""
TRIALS_OWN = "WORLD_"
"""How the names begin by which a fake and the servers of this project find each other."""
MISSING = ("NPM_CONFIG_CACHE", "npm_config_cache", "MCP_TIMEOUT", "OPENAI_API_KEY", "SECRET_TOKEN", "NO_PROXY")


def telling(trial: Trial, name: str) -> dict[str, Any]:
    """The entry of a server that tells of itself."""
    return python(TELLING, str(trial.project / f"{name}.json"))


@probe(
    Claim(
        "codex.child.inherited",
        "which variables a stdio server inherits",
        assumes=lambda seen: not {*MISSING} & {*seen},
        relied_on=("prepare-codex-child-env-whitelist", "npx-pin-not-inherited", "prepare-spawn-codex-no-mcp-env"),
        affects="stdio entries",
        reads=("child_environment",),
        derive={"child_environment": tuple},
    ),
    Claim(
        "codex.child.asked-for",
        "a name in `env_vars` is inherited too, one that is not set is left out",
        assumes=["WANTED"],
        relied_on=("prepare-codex-forwarding-inlined", "translate-air-codex-env-forms"),
        affects="stdio entries with `env_vars`",
    ),
    Claim(
        "codex.child.env",
        "`env` lies over what is inherited, word for word, NPM_CONFIG_CACHE among it",
        assumes={"NPM_CONFIG_CACHE": "/cache", "HOME": "/elsewhere", "X": "${WANTED}"},
        relied_on=("npx-cache-pinned-per-entry", "npx-pin-not-on-agent-codex"),
        affects="stdio entries",
    ),
    Claim(
        "codex.child.path",
        "what comes before an inherited PATH",
        reads=("path_prefix",),
        derive={"path_prefix": lambda seen: f"{seen[0].removeprefix('.codex/')}/codex-arg0"},
    ),
    Claim("codex.child.own-path", "a PATH of the entry stands alone", assumes="/own"),
    Claim("codex.child.directory", "where it runs: the project, or `cwd`", assumes=["$PROJ", "$HOME"]),
    Claim(
        "codex.child.group",
        "it leads a process group of its own",
        not_modelled="a fake's children stay in its group, so that whoever ends it ends them",
    ),
    seconds=1.0,
)
def child_environment(trial: Trial) -> Mapping[str, Any]:
    """Three servers that write down what they got; what they say then is no matter."""
    exported = {name: f"value of {name}" for name in EXPORTED}
    certificates = {"SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt"}
    env = {"NPM_CONFIG_CACHE": "/cache", "HOME": "/elsewhere", "X": "${WANTED}", "PATH": "/own"}
    servers = {
        "plain": telling(trial, "plain"),
        "asking": {**telling(trial, "asking"), "env_vars": ["WANTED", "UNSET"]},
        "given": {**telling(trial, "given"), "env": env, "cwd": str(trial.home)},
    }
    configure(trial, servers)
    statuses(trial, *servers, env={**exported, **certificates})
    plain, asking, given = ((trial.read_json(f"{name}.json") or {}) for name in servers)
    found = {name: each.get("environment", {}) for name, each in zip(servers, (plain, asking, given), strict=True)}
    names = {name for name in found["plain"] if name != MARK_VARIABLE and not name.startswith(TRIALS_OWN)}
    return {
        "codex.child.inherited": sorted(names),
        "codex.child.asked-for": sorted({*found["asking"]} - {*found["plain"]}),
        "codex.child.env": {name: found["given"].get(name) for name in ("NPM_CONFIG_CACHE", "HOME", "X")},
        "codex.child.path": path_before(trial, found["plain"].get("PATH", "")),
        "codex.child.own-path": found["given"].get("PATH"),
        "codex.child.directory": [trial.normal(each.get("directory", "")) for each in (plain, given)],
        "codex.child.group": plain.get("own group"),
    }


def path_before(trial: Trial, found: str) -> list[str]:
    """The directories in front of the program's own PATH: below the home by their place, others by their name."""
    before = found.removesuffix(PATH).rstrip(":").split(":")
    home = str(trial.home)
    inside = [str(Path(each).relative_to(home).parent) for each in before if each.startswith(home)]
    return [*inside, *(Path(each).name for each in before if each and not each.startswith(home))]


WAYS: Mapping[str, tuple[str, ...]] = {
    "plain": (),
    "stays": ("stays",),
    "deaf": ("stays", "deaf"),
    "parent": ("parent",),
}


@probe(
    *(
        Claim(
            f"codex.left.{name}",
            f"of a server that {says} nothing is left once the program has ended",
            assumes=0,
            affects="stdio entries",
        )
        for name, says in (
            ("plain", "ends with its stdin"),
            ("stays", "ignores the end of its stdin"),
            ("deaf", "ignores SIGTERM as well"),
            ("parent", "has started another process"),
        )
    ),
    *(
        Claim(
            f"codex.left.{name}",
            f"how many servers that ignore the end of their stdin are left when {says}",
            affects="stdio entries",
            reads=("ends_gently",) if name == "terminated" else (),
            derive={"ends_gently": lambda left: left == 0} if name == "terminated" else {},
            not_modelled="the fake dies of SIGINT without a word" if name == "exec-interrupted" else "",
        )
        for name, says in (
            ("terminated", "`codex app-server` gets SIGTERM"),
            ("killed", "`codex app-server` gets SIGKILL"),
            ("exec-terminated", "`codex exec` gets SIGTERM"),
            ("exec-interrupted", "`codex exec` gets SIGINT"),
        )
    ),
    seconds=4.0,
)
def children_left(trial: Trial) -> Mapping[str, Any]:
    """One talk for each kind of server; who is there a moment after it."""
    seen = {}
    for name, words in WAYS.items():
        server = python(ANSWERING, *words)
        configure(trial, {"one": server})
        before = marked(trial.mark)
        statuses(trial, "one")
        seen[f"codex.left.{name}"] = left_of(trial, before)
    configure(trial, {"one": {**python(ANSWERING, "stays"), "required": True}}, **FULL_ACCESS)
    for name, number in (("terminated", signal.SIGTERM), ("killed", signal.SIGKILL)):
        before = marked(trial.mark)
        with talking(trial) as talk:
            talk.begin()
            talk.settle("one")
            talk.strike(number)
            seen[f"codex.left.{name}"] = left_of(trial, before)
    for name, number in (("exec-terminated", signal.SIGTERM), ("exec-interrupted", signal.SIGINT)):
        seen[f"codex.left.{name}"] = left_by_run(trial, number)
    return seen


def left_by_run(trial: Trial, number: int) -> int:
    """Who is left of a run that gets a signal while it waits for its model."""
    before = marked(trial.mark)
    with trial.modelled(Script((Turn(text="late", seconds=60.0),))):
        asked = len(trial.offered())
        process = trial.start("exec", "--json", "--skip-git-repo-check", *spoken_to(trial), "hello")
        try:
            process.stdin.close()  # type: ignore[union-attr] # it was asked for as a pipe
            until = time.monotonic() + ASKING_SECONDS
            while len(trial.offered()) == asked and time.monotonic() < until:
                time.sleep(0.05)
            process.send_signal(number)
            process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            left = left_of(trial, before | {process.pid})
            end_group(process.pid)
            process.wait()
    return left


def left_of(trial: Trial, before: set[int]) -> int:
    """How many processes there are still; they are ended."""
    until = time.monotonic() + GONE_SECONDS
    while (left := alive(trial, before)) and time.monotonic() < until:
        time.sleep(0.05)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(left)


def alive(trial: Trial, before: set[int]) -> set[int]:
    """Those that bear the trial's mark and were not there before, zombies apart."""
    return marked(trial.mark) - before
