"""Whose `.codex/config.toml` counts: what makes Codex trust a project, and what it says and writes about that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fake_servers.mcp.http import HttpServer
from harness.canary.claims import Claim, probe
from harness.canary.probes.codex.asking import CONFIG, MODES, PROJECT_CONFIG, executed, said, toml
from harness.canary.trial import Trial

DERIVED: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "writable": {"trusts_writable_runs": lambda seen: bool(seen[1])},
    "untrusted": {"untrusted_warning": lambda seen: seen[3][0] if seen[3] else ""},
    "flag": {"trust_flag": lambda seen: seen[0] == 0},
}


@probe(
    *(
        Claim(
            f"codex.trust.{name}",
            says,
            relied_on=("prepare-codex-trust",),
            affects="projects with a `.codex/config.toml`",
            reads=reads,
            derive=DERIVED.get(name, {}),
            parts=("exit code", "the project's server is started", "lines that are recorded", "warnings"),
        )
        for name, says, reads in (
            (
                "writable",
                "a run that may write: is the project's file used, is trust recorded, what is said",
                ("trusts_writable_runs", "untrusted_warning"),
            ),
            ("read-only", "a run that may only read", ("trusts_writable_runs", "untrusted_warning")),
            ("trusted", "a project that is trusted", ()),
            ("untrusted", "a project that is recorded as untrusted", ("untrusted_warning",)),
            ("flag", "`exec --trust`", ("trust_flag",)),
        )
    ),
    seconds=3.0,
)
def trust(trial: Trial) -> Mapping[str, Any]:
    """One run for each: whether the project's server is started, and what became of the user's file."""
    server = HttpServer()
    ways: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], tuple[str, ...]]] = {
        "writable": (MODES["full"], {}, ()),
        "read-only": (MODES["reading"], {}, ()),
        "trusted": (MODES["reading"], {"trust_level": "trusted"}, ()),
        "untrusted": (MODES["full"], {"trust_level": "untrusted"}, ()),
        "flag": (MODES["reading"], {}, ("--trust",)),
    }
    seen = {}
    with trial.serving(server=server) as urls, trial.modelled():
        trial.write(PROJECT_CONFIG, toml({"mcp_servers": {"own": {"url": urls["server"], "required": True}}}))
        for name, (settings, record, words) in ways.items():
            projects = {"projects": {str(trial.project): record}} if record else {}
            trial.write(CONFIG, before := toml({**settings, **projects}))
            server.requests.clear()
            run = executed(trial, *words)
            after = (trial.read(CONFIG) or "").replace(str(trial.project), "$PROJ")
            added = after.removeprefix(before.replace(str(trial.project), "$PROJ")).strip().splitlines()
            warned = [line for line in said(trial, run) if "roject-local" in line or "unexpected argument" in line]
            seen[f"codex.trust.{name}"] = [run.exit_code, bool(server.requests), added, warned]
    return seen
