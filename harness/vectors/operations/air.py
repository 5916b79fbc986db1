"""The vector operations about AIR's part of a preparation, answered by the fake program."""

from __future__ import annotations

from typing import Any

from fake_runtimes.air import transforms
from harness.vectors.registry import operation


@operation(
    "secrets.air_interpolate",
    requirements=("secrets-air-survivor-check", "secrets-air-survivor-grammar"),
)
def air_interpolate(given: dict[str, Any]) -> dict[str, Any]:
    """Servers after AIR's transforms, and what survived them."""
    servers = transforms.interpolate(given["servers"], given["environment"], given.get("file"))
    unresolved = transforms.survivors(servers)
    return {"ok": not unresolved, "unresolved": list(unresolved), "servers": servers}


@operation("secrets.air_error", requirements=("secrets-air-error-text",))
def air_error(given: dict[str, Any]) -> str:
    """The line on stderr."""
    return transforms.error_text(given["target"], tuple(given["unresolved"]))
