"""What was observed of each profiled version, as files: `measured/LABEL.json`, from the ids of claims to observations.

They are written by `mcp-harness canary RUNTIME@VERSION --record` and by nobody's hand. A claim that does not hold in
the record of a version is known to be broken there.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from harness.errors import HarnessFault

FOLDER = "measured"


def record_folder() -> Path:
    """Where the records are."""
    return Path(str(files("harness.canary") / FOLDER))


def recorded_labels() -> tuple[str, ...]:
    """The versions that have a record."""
    return tuple(sorted(path.stem for path in record_folder().glob("*.json")))


def load_record(label: str, folder: Path | None = None) -> dict[str, Any]:
    """The observations of a version; empty where nothing is recorded. Raises HarnessFault for a file that is none."""
    path = (folder or record_folder()) / f"{label}.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise HarnessFault(f"the record of {label} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise HarnessFault(f"the record of {label} is no object")
    return found


def record_text(observations: Mapping[str, Any], before: Mapping[str, Any], known: Collection[str]) -> str:
    """The text of a record: what is new, and what was there before of claims that still are."""
    kept = {claim: value for claim, value in before.items() if claim in known}
    return json.dumps({**kept, **observations}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
