"""What `codex exec` shows of its servers: hardly anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fake_servers.mcp.behaviour import Behaviour
from fake_servers.mcp.http import HttpServer
from harness.canary.claims import Claim, probe
from harness.canary.probes.codex.asking import (
    FULL_ACCESS,
    GRACE_SLOWLY,
    STORE,
    configure,
    executed,
    python,
    said,
)
from harness.canary.probes.codex.refresh import Case, realm, site, stored, write
from harness.canary.trial import Finished, Trial
from harness.reference.session.evidence import lines_seen

CRASHING = python("import sys; sys.stdin.readline(); print('API key invalid', file=sys.stderr); sys.exit(3)")
CHALLENGE = 'Bearer error="invalid_token"'


def shown(run: Finished) -> list[str]:
    """The kinds of lines on stdout, an item by its own; the remark on an unknown model is left out."""
    lines = [(str(line.get("type")), line.get("item", {}).get("type", "")) for line in run.lines]
    return [" ".join(filter(None, line)) for line in lines if line != ("item.completed", "error")]


@probe(
    Claim(
        "codex.exec.silence",
        "of servers that crash, are silent, missing or refused nothing is on stdout, and the run succeeds",
        assumes=[0, ["thread.started", "turn.started", "item.completed agent_message", "turn.completed"]],
        relied_on=("status-codex-no-evidence-pending",),
        affects="whoever reads the output",
    ),
    Claim(
        "codex.exec.stderr",
        "on stderr there is a line for a 401 alone, without the server's name",
        relied_on=("status-codex-stderr-failed", "failure-stderr-only-claude-has-input"),
        affects="the status of a server",
    ),
    Claim(
        "codex.exec.renewal",
        "on stderr there is a line for a refresh token that was refused, in some versions",
        relied_on=("gate-rejected-grant-known-misses", "failure-auth-runtime-texts"),
        affects="remote entries with a stored credential",
        reads=("renewal_failure_text",),
    ),
    Claim(
        "codex.exec.log",
        "with the log turned up a failed server is told, in some versions by name",
        affects="the status of a server",
        reads=("names_failed_servers",),
        derive={"names_failed_servers": lambda seen: bool(seen[-1])},
        parts=("the warning", "the server is named"),
    ),
    Claim(
        "codex.exec.server-stderr",
        "with the log turned up a server's own words are there, behind its command",
        relied_on=("failure-stderr-only-claude-has-input",),
        affects="the reason that a failed server gives",
    ),
    seconds=5.0,
)
def failed_servers(trial: Trial) -> Mapping[str, Any]:
    """Two runs with the same failing servers: as it is, and with the log turned up."""
    refusing = HttpServer(Behaviour(status=401, challenge=CHALLENGE, body="no"))
    trial.hurry(GRACE_SLOWLY)
    with trial.serving(refusing=refusing) as urls, trial.modelled():
        servers = {
            "crash": CRASHING,
            "silent": {**python("import time; time.sleep(60)"), "startup_timeout_sec": 0.5},
            "missing": {"command": "no-such-program"},
            "refused": {"url": urls["refusing"]},
        }
        configure(trial, servers, **FULL_ACCESS)
        plain = executed(trial)
        dead = rejected_grant(trial)
        configure(trial, {"crash": CRASHING}, **FULL_ACCESS)
        loud = executed(trial, env={"RUST_LOG": "codex_mcp=debug,codex_rmcp_client=debug"})
    lines = said(trial, loud)
    warned = sorted({line for line in lines if line.startswith("WARN codex_mcp")})
    told = [line.replace(str(CRASHING["command"]), "PYTHON") for line in lines if "MCP server stderr" in line]
    return {
        "codex.exec.silence": [plain.exit_code, shown(plain)],
        "codex.exec.stderr": said(trial, plain),
        "codex.exec.renewal": dead,
        "codex.exec.log": [*warned, lines_seen("codex", lines, ["crash"]).failed != {}],
        "codex.exec.server-stderr": told,
    }


def rejected_grant(trial: Trial) -> list[str]:
    """What a run with a refused refresh token puts on stderr."""
    one = realm("dead", Case("", answers=("invalid_grant",)))
    with trial.serving(site=site({"dead": one})) as urls:
        base = urls["site"].removesuffix("/mcp")
        before = stored("dead", base, one, Case(""), "/as/dead")
        write(trial, {"dead": before}, **FULL_ACCESS)
        lines = said(trial, executed(trial))
    trial.place(STORE).unlink()
    return lines
