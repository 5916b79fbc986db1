"""The schemas of the reports that programs read."""

from __future__ import annotations

import functools
import json
from importlib.resources import files
from typing import Any

import jsonschema

PACKAGE_OF = {
    "gate-report": "harness.report",
    "canary-report": "harness.report",
    "canary-list": "harness.report",
    "requirements-report": "harness.requirements",
    "requirements-list": "harness.requirements",
    "variants-report": "harness.requirements",
    "variants-list": "harness.requirements",
    "vectors-list": "harness.vectors",
    "vectors-check": "harness.vectors",
    "run-report": "harness.scenario",
    "scenarios-list": "harness.scenario",
    "shrink-report": "harness.scenario",
    "campaign-report": "harness.scenario",
}


@functools.cache
def schema(name: str) -> dict[str, Any]:
    """The schema as it travels with the package."""
    text = (files(PACKAGE_OF[name]) / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def validate(name: str, report: object) -> None:
    """Raises `jsonschema.ValidationError` where the report does not fit its schema."""
    faults = sorted(jsonschema.Draft202012Validator(schema(name)).iter_errors(report), key=_unknown_members_first)
    if faults:
        raise faults[0]


def _unknown_members_first(fault: jsonschema.ValidationError) -> bool:
    return fault.validator != "additionalProperties"
