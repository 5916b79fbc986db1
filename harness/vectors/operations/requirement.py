"""Vectors of the area `requirement`: what an answer says, what a record says now, what is recorded."""

from __future__ import annotations

from typing import Any

from harness.reference.oauth.requirement import (
    Record,
    determination,
    effective,
    is_recordable,
    kept_detail,
    oauth_required_for,
)
from harness.vectors.operations.flow_discovery import answer_of
from harness.vectors.registry import operation
from harness.world import Ambiguous, NotSent

NOW_SECONDS = 1_800_000_000.0


@operation(
    "requirement.determination",
    requirements=(
        "requirement-adv-required-bearer-401",
        "requirement-401-not-bearer",
        "requirement-bearer-scheme-case",
        "requirement-not-required-2xx-mcp",
        "requirement-2xx-html-undetermined",
        "requirement-content-type-parsing",
        "requirement-other-status-undetermined",
        "requirement-connection-error-undetermined",
    ),
)
def _determination(given: dict[str, Any]) -> Any:
    try:
        said = determination(answer_of(given["answer"]))
    except (NotSent, Ambiguous) as error:
        said = determination(error)
    return {"required": said == "advertised_required", "determination": said}


@operation(
    "requirement.effective",
    requirements=(
        "requirement-three-values",
        "requirement-not-required-expires",
        "requirement-expiry-boundary",
        "requirement-required-never-expires",
        "requirement-tri-state-reader",
    ),
)
def _effective(given: dict[str, Any]) -> Any:
    told = given["record"]
    record = None if told is None else Record("n", "k", told["determination"], NOW_SECONDS - told["age_s"])
    return {
        "effective": effective(record, NOW_SECONDS),
        "oauth_required": oauth_required_for(record, NOW_SECONDS),
    }


@operation("requirement.record", requirements=("requirement-record-write-best-effort", "requirement-detail-capped"))
def _record(given: dict[str, Any]) -> Any:
    stored = is_recordable(given["server_name"], given["credential_key"], given["determination"])
    return {"stored": stored, "detail": kept_detail(given["detail"]) if stored else None}
