"""What Codex does where CODEX_HOME names no directory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.canary.claims import Claim, probe
from harness.canary.trial import Trial

COMMANDS = {"exec": ("exec", "hello"), "list": ("mcp", "list"), "app-server": ("app-server",)}


def lost_home_text(seen: Mapping[str, Any]) -> str:
    """What `codex mcp` says that it failed to do."""
    line = next(line for line in seen["list"]["said"] if line.startswith("Error: "))
    return str(line.removeprefix("Error: "))


@probe(
    Claim(
        "codex.home.absent",
        "where CODEX_HOME names no directory every command but `--version` ends with 1, and none is made",
        assumes=lambda seen: all(each["exit"] == 1 for each in seen.values()),
        affects="sessions whose CODEX_HOME nobody has made",
        reads=("lost_home_text",),
        derive={"lost_home_text": lost_home_text},
    ),
    Claim(
        "codex.home.no-directory",
        "so it is where it names a file",
        assumes=lambda seen: all(each["exit"] == 1 for each in seen.values()),
        affects="sessions whose CODEX_HOME nobody has made",
    ),
    Claim(
        "codex.home.version",
        "the version is told all the same, with a warning",
        affects="who looks for the installed version",
    ),
    seconds=1.5,
)
def lost_homes(trial: Trial) -> Mapping[str, Any]:
    """Two places that are no home."""
    trial.write("~/a-file", "")
    found: dict[str, Any] = {}
    for claim, place in (("absent", "nowhere"), ("no-directory", "a-file")):
        home = {"CODEX_HOME": str(trial.home / place)}
        found[f"codex.home.{claim}"] = {name: told(trial, words, home) for name, words in COMMANDS.items()}
        if claim == "absent":
            found["codex.home.version"] = told(trial, ("--version",), home)
    return found


def told(trial: Trial, words: tuple[str, ...], env: Mapping[str, str]) -> Mapping[str, Any]:
    """How a command ends and what it says on stderr."""
    run = trial.run(*words, env=env, limit_seconds=20.0)
    return {
        "exit": run.exit_code,
        "said": [line.strip() for line in trial.normal(run.stderr).splitlines() if line.strip()],
    }
