"""The canary's report for programs: everything, in one versioned document (`schemas/canary-report.schema.json`)."""

from __future__ import annotations

import json
from typing import Any

from harness.canary.claims import Unstated
from harness.canary.judging import NOTHING, Row
from harness.canary.result import Canary, Checked
from harness.canary.running import Measured
from harness.canary.workarounds import evidence
from harness.next_steps import step_values
from harness.report.canary import summary
from harness.report.masking import mask

SCHEMA = "mcp-harness/canary-report/1"


def render(canary: Canary) -> str:
    """The document, indented by two."""
    return json.dumps(masked(report(canary)), indent=2, allow_nan=False) + "\n"


def report(canary: Canary) -> dict[str, Any]:
    """The document as plain values."""
    return {
        "schema": SCHEMA,
        "runtimes": [_checked(each) for each in canary.checked],
        "missing": [{"runtime": each.label, "reason": each.reason} for each in canary.missing],
        "next": step_values(summary.next_steps(canary)),
        "summary": {
            "verdict": summary.word(canary),
            "seconds": round(canary.seconds, 3),
            "workers": canary.workers,
            "seed": None,
            "exit_code": canary.exit_code,
        },
    }


def _checked(checked: Checked) -> dict[str, Any]:
    played, written = checked.played, checked.written
    return {
        "runtime": checked.label,
        "against": checked.against,
        "pinned": checked.pinned,
        "recorded": checked.recorded,
        "sha256": checked.digest or None,
        "real": _measured(checked.real),
        "fake": _measured(checked.fake),
        "claims": [_row(row) for row in checked.rows],
        "workarounds": [
            {
                **found.workaround._asdict(),
                "need": found.need.value,
                "shown_by": list(found.shown_by),
                "not_shown_by": list(found.denied_by),
                "no_answer_of": list(found.silent),
            }
            for found in evidence(checked.rows, checked.unasked)
        ],
        "scenarios": None
        if played is None
        else {"played": played.scenarios, "fallen": [each._asdict() for each in played.fallen]},
        "profile": None
        if written is None
        else {
            "name": written.name,
            "file": checked.place,
            "derived": list(written.derived),
            "changed": list(written.changed),
            "kept": list(written.kept),
            "problems": list(written.problems),
        },
        "left": list(checked.left),
    }


def _measured(measured: Measured | None) -> dict[str, Any] | None:
    if measured is None:
        return None
    return {
        "wall_seconds": measured.wall_seconds,
        "seconds": dict(measured.seconds),
        "retried_alone": list(measured.alone),
    }


def _row(row: Row) -> dict[str, Any]:
    claim = row.claim
    stated = not isinstance(claim.assumes, Unstated)
    return {
        "id": claim.id,
        "says": claim.says,
        "source": claim.source,
        "verdict": row.verdict.value if row.verdict else None,
        "answers_otherwise": row.answers_otherwise,
        "fake": row.likeness.value if row.likeness else None,
        "assumed": claim.assumes if stated and not callable(claim.assumes) else None,
        "assumes": "nothing" if not stated else "a condition" if callable(claim.assumes) else "a value",
        "recorded": _observation(row.before),
        "observed": _observation(row.observed),
        "faked": _observation(row.faked),
        "reason": row.reason,
        "fake_reason": row.fake_reason,
        "requirements": list(claim.relied_on),
        "affects": claim.affects,
        "profile_lines": list(claim.lines),
    }


def _observation(value: Any) -> list[Any]:
    """An array of one, or an empty one: null is an observation too."""
    return [] if value is NOTHING else [value]


def masked(value: Any) -> Any:
    """A document with every text in it masked."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {mask(key): masked(item) for key, item in value.items()}
    return [masked(item) for item in value] if isinstance(value, (list, tuple)) else value
