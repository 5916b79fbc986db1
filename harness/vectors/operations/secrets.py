"""Vectors of the area `secrets`: the orchestrator's own half (what AIR does is answered elsewhere)."""

from __future__ import annotations

from typing import Any

from harness.reference.secrets.interpolator import resolve_servers, resolve_value
from harness.reference.secrets.placeholders import MissingVariableError, variables
from harness.vectors.registry import operation


@operation(
    "secrets.variables",
    requirements=("secrets-required-variable", "secrets-placeholders-not-elsewhere", "secrets-grammar"),
)
def _variables(given: dict[str, Any]) -> Any:
    found = variables(given["entry"])
    return {"required": list(found.required), "optional": list(found.optional)}


@operation(
    "secrets.resolve",
    requirements=(
        "secrets-grammar",
        "secrets-non-placeholders-literal",
        "secrets-values-not-rescanned",
        "secrets-nested-default-trap",
        "secrets-blank-is-missing",
        "secrets-missing-error-type",
        "secrets-nonstrings-untouched",
    ),
)
def _resolve(given: dict[str, Any]) -> Any:
    try:
        return {"result": resolve_value(given["value"], given["variables"].get), "error": None}
    except MissingVariableError as missing:
        return {"result": None, "error": str(missing)}


@operation(
    "secrets.config",
    requirements=(
        "secrets-placeholders-env-headers",
        "secrets-placeholders-args-url",
        "secrets-placeholders-not-elsewhere",
        "secrets-codex-http-headers",
        "secrets-blank-result-dropped",
        "secrets-nonstrings-untouched",
        "secrets-missing-error-type",
        "secrets-no-rescue-per-entry",
    ),
)
def _config(given: dict[str, Any]) -> Any:
    try:
        return {"servers": resolve_servers(given["servers"], given["variables"].get), "error": None}
    except MissingVariableError as missing:
        return {"servers": None, "error": str(missing)}
