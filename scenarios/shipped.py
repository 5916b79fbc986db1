"""The catalog and the roots that ship with the project, as parsed documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def shipped_catalog() -> dict[str, Any]:
    """mcp.json at the root of the repository, read anew each time."""
    tree: dict[str, Any] = json.loads((ROOT / "mcp.json").read_text(encoding="utf-8"))
    return tree


def shipped_roots() -> dict[str, Any]:
    """roots.json at the root of the repository, read anew each time."""
    tree: dict[str, Any] = json.loads((ROOT / "roots.json").read_text(encoding="utf-8"))
    return tree
