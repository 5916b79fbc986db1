"""Stdio servers that note what happens to them, for the probes of every runtime."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.canary.trial import Trial

WITNESS = Path(__file__).with_name("witness.py")


def witness(trial: Trial, name: str, **does: Any) -> dict[str, Any]:
    """The entry of a stdio server that notes what happens to it, and behaves as told (see `witness`)."""
    notes = trial.folder / f"notes-{name}.jsonl"
    return {"type": "stdio", "command": sys.executable, "args": ["-IS", str(WITNESS), str(notes), json.dumps(does)]}


def notes(trial: Trial, name: str, kind: str = "") -> list[Mapping[str, Any]]:
    """What a witness has noted."""
    file = trial.folder / f"notes-{name}.jsonl"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    found = [json.loads(line) for line in text.splitlines()]
    return [note for note in found if not kind or note["note"] == kind]
