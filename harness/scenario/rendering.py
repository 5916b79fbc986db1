"""Runs and lists of scenarios as JSON documents; their schemas are `schemas/*.schema.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.next_steps import step_values
from harness.scenario.model import Scenario
from harness.scenario.next_steps import Again, next_steps
from harness.scenario.production import Judged, Report
from harness.scenario.sentences import session_of
from harness.scenario.telling import Teller
from harness.scenario.timeline import NO_OPTIONS, quitters
from harness.scenario.trees import plain
from harness.scenario.verdicts import Verdict

RUN_SCHEMA = "mcp-harness/run-report/1"
LIST_SCHEMA = "mcp-harness/scenarios-list/1"


def run_document(
    reports: Sequence[tuple[Report, float]],
    *,
    seed: int | None,
    variant: str | None,
    disputed: Sequence[str],
    verdict: Verdict,
    exit_code: int,
    again: Again = NO_OPTIONS,
) -> dict[str, Any]:
    """All runs of one scenario, each with its real seconds. `again`: how to ask for them once more."""
    scenario = reports[0][0].scenario
    return {
        "schema": RUN_SCHEMA,
        "scenario": {"id": scenario.id, "file": scenario.file, "title": scenario.title},
        "seed": seed,
        "variant": variant,
        "runs": [_run(report, seconds, again) for report, seconds in reports],
        "disagreements": list(disputed),
        "verdict": verdict.value,
        "exit_code": exit_code,
    }


def _run(report: Report, real_seconds: float, again: Again) -> dict[str, Any]:
    teller = Teller(quitters(report.scenario))
    return {
        "runtime": report.runtime.label,
        "tier": report.tier,
        "verdict": report.verdict.value,
        "detail": report.detail,
        "expectations": [_expectation(each, report.scenario) for each in report.judged],
        "invariants": [
            {"name": each.name, "holds": each.holds, "detail": each.detail, "events": list(each.events)}
            for each in report.invariants
        ],
        "holes": {name: walked._asdict() for name, walked in report.holes.items()},
        "holds": [
            {"at_seconds": round(each.at_seconds, 6), "actor": each.actor, "at": each.label, "text": each.text}
            for each in report.kept
        ],
        "events": [
            {
                "id": number,
                "at_seconds": round(event.at_seconds - report.started_seconds, 6),
                "actor": event.actor,
                "event": event.name,
                "text": teller.tell(event),
                "fields": plain(event.details),
            }
            for number, event in enumerate(report.events)
        ],
        "steps": report.steps,
        "simulated_seconds": round(report.seconds, 6),
        "real_seconds": round(real_seconds, 6),
        "trace_digest": report.trace_digest,
        "next": step_values(next_steps(report, again)),
    }


def _expectation(judged: Judged, scenario: Scenario) -> dict[str, Any]:
    expectation, seen = judged
    return {
        "says": expectation.says,
        "session": session_of(expectation.check, scenario.sessions) or None,
        "run": seen.of_run or None,
        "line": expectation.line,
        "after": expectation.after,
        "warns": expectation.warns,
        "met": seen.met,
        "instead": "" if seen.met else seen.instead,
        "events": list(seen.events),
    }


def list_document(scenarios: Sequence[Scenario]) -> dict[str, Any]:
    """What is shipped."""
    return {
        "schema": LIST_SCHEMA,
        "scenarios": [
            {
                "id": each.id,
                "file": each.file,
                "title": each.title,
                "incidents": list(each.incidents),
                "requirements": list(each.requirements),
                "tiers": list(each.tiers),
                "not_at": dict(each.not_at),
                "runtimes": list(each.runtimes),
                "old_bugs": [bug.name for bug in each.old_bugs],
            }
            for each in scenarios
        ],
    }
