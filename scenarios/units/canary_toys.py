"""Small programs in place of runtimes, and probes that ask them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from fake_runtimes.profile import load_profile
from harness.canary.claims import Asking, Claim, Probe
from harness.canary.subject import REAL, Subject

PROFILE = load_profile("claude-2.1.268")
PROGRAM = """
import os, subprocess, sys, time
words = sys.argv[1:]
if words[0] == "say":
    print(*words[1:])
elif words[0] == "--version":
    print("{version} (Claude Code)")
elif words[0] == "hang":
    time.sleep(600)
elif words[0] == "leave-a-child":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True,
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print("left")
    sys.stdout.flush()
    if words[1:] == ["and-hang"]:
        time.sleep(600)
"""


def toy(folder: Path, version: str = "9.9.9") -> Subject:
    """A runtime that says what it is told to."""
    program = folder / f"toy-{version}.py"
    program.write_text(PROGRAM.replace("{version}", version), encoding="utf-8")
    return Subject(REAL, "claude", version, (sys.executable, "-IS", str(program)), PROFILE)


def claim(name: str, **settings: Any) -> Claim:
    """A claim about a toy."""
    return Claim(f"claude.toy.{name}", f"the toy does {name}", **settings)


def asking(ask: Asking, *claims: Claim, limit_seconds: float = 30.0, seconds: float = 0.1) -> Probe:
    """A probe that is not registered."""
    return Probe(ask.__name__.replace("_", "-"), "claude", claims, ask, seconds, limit_seconds)
