"""The report for programs: everything the gate knows, in one versioned document.

The shape is fixed by `schemas/gate-report.schema.json`. Strings are exact (but masked); whatever is not
ASCII is written as an escape, so that no character can act on a terminal that shows the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from harness.gate.battery.results import Tried
from harness.gate.events import Event
from harness.gate.model import Change, Finding, Judgement, Outcome, Place
from harness.report.formats import RuleLookup, report_format
from harness.report.run import Run, gather

SCHEMA = "mcp-harness/gate-report/1"


@report_format("json")
def render(events: Sequence[Event], rules: RuleLookup) -> str:
    """The document, indented by two."""
    return json.dumps(report(gather(events), rules), indent=2, allow_nan=False) + "\n"


def report(run: Run, rules: RuleLookup) -> dict[str, Any]:
    """The document as plain values; findings that are allowed come last."""
    started = run.started
    return {
        "schema": SCHEMA,
        "catalog": {"file": started.catalog, "entries": started.entries},
        "roots": {"file": started.roots_file, "roots": started.roots},
        "runtimes": list(started.runtimes),
        "pinned": started.pinned,
        "base": started.base,
        "caution": started.caution,
        "entries": [_judgement(judgement) for judgement in run.judgements],
        "findings": [_finding(finding, rules) for finding in (*run.findings, *run.allowed)],
        "battery": _tried(run.tried),
        "changes": [_change(change) for change in run.changes],
        "plans": {"before": list(run.before), "after": list(run.after)},
        "summary": run.finished._asdict(),
    }


def _judgement(judgement: Judgement) -> dict[str, Any]:
    return {
        "name": judgement.entry,
        "place": _place(judgement.place),
        "touched": judgement.touched,
        "default_in_roots": list(judgement.default_in_roots),
        "needs": [need._asdict() for need in judgement.needs],
        "runtimes": [_outcome(outcome) for outcome in judgement.outcomes],
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "runtime": outcome.runtime,
        "state": outcome.state.value,
        "first_request": outcome.first_request,
        "tool_room": outcome.tool_room,
        "credential_key": outcome.credential_key,
        "written": None if outcome.written is None else _plain(outcome.written),
        "detail": outcome.detail,
    }


def _finding(finding: Finding, rules: RuleLookup) -> dict[str, Any]:
    rule = rules(finding.rule)
    return {
        "rule": finding.rule,
        "title": rule.title if rule else None,
        "severity": finding.severity.value,
        "place": _place(finding.place),
        "entry": finding.entry,
        "runtimes": list(finding.runtimes),
        "message": finding.message,
        "fix": finding.fix,
        "edits": [edit._asdict() for edit in finding.edits],
        "fingerprint": finding.fingerprint,
        "new": finding.new,
        "allowance": finding.allowance._asdict() if finding.allowance else None,
        "events": list(finding.events),
        "proof": finding.proof.name if finding.proof else None,
    }


def _tried(tried: Tried | None) -> dict[str, Any] | None:
    if tried is None:
        return None
    facts = [{**fact._asdict(), "kinds": list(fact.kinds)} for fact in tried.facts]
    low, high = tried.kinds
    return {**tried._asdict(), "mode": tried.mode.value, "kinds": {"fewest": low, "most": high}, "facts": facts}


def _place(place: Place) -> dict[str, Any]:
    return place._asdict()


def _change(change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "entry": change.entry,
        "consequences": list(change.consequences),
        "config": dict(change.config),
    }


def _plain(value: Any) -> Any:
    """Values of a runtime's own file as JSON can hold them: its TOML also knows dates and infinity."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else str(value)
