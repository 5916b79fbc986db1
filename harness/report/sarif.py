"""SARIF 2.1.0, as code scanning services read it. The published schema is `schemas/sarif-2.1.0.schema.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import harness
from harness.gate.events import Event
from harness.gate.model import Edit, Finding, Place
from harness.report.formats import RuleLookup, report_format
from harness.report.run import Run, gather, seen_from_the_top
from harness.report.safety import visible
from harness.report.summary import caution, sentence

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "%SRCROOT%"
FINGERPRINT = "mcpHarness/v1"
"""A name of our own: `primaryLocationLineHash`, which code scanning reads, is worked out from the lines by the action
that uploads, and it warns of every value that differs.
"""

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


@report_format("sarif")
def render(events: Sequence[Event], rules: RuleLookup) -> str:
    """One log with one run."""
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(seen_from_the_top(gather(events)), rules)]}
    return json.dumps(log, indent=2, allow_nan=False) + "\n"


def _run(run: Run, rules: RuleLookup) -> dict[str, Any]:
    findings = (*run.findings, *run.allowed)
    identifiers = sorted({finding.rule for finding in findings})
    return {
        "tool": {
            "driver": {
                "name": "mcp-harness",
                "semanticVersion": harness.__version__,
                "rules": [_rule(identifier, rules) for identifier in identifiers],
            }
        },
        "invocations": [_invocation(run)],
        "originalUriBaseIds": {ROOT: {"description": {"text": "The folder that relative paths start from."}}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(run, finding, identifiers.index(finding.rule)) for finding in findings],
    }


def _invocation(run: Run) -> dict[str, Any]:
    invocation: dict[str, Any] = {"executionSuccessful": True, "exitCode": run.finished.exit_code}
    if caution(run):
        invocation["toolExecutionNotifications"] = [{"level": "note", "message": {"text": _message(caution(run))}}]
    return invocation


def _rule(identifier: str, rules: RuleLookup) -> dict[str, Any]:
    rule = rules(identifier)
    if rule is None:
        return {"id": identifier}
    return {
        "id": identifier,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.fix},
        "defaultConfiguration": {"level": rule.severity.value},
    }


def _result(run: Run, finding: Finding, rule_index: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": finding.severity.value,
        "message": {"text": _message(sentence(run, finding))},
        "locations": [_location(finding)],
        "partialFingerprints": {FINGERPRINT: finding.fingerprint},
    }
    if run.started.base is not None:
        result["baselineState"] = _state(finding)
    if finding.edits:
        result["fixes"] = [_fix(finding)]
    if run.allowed:  # the standard wants the list on all results of a run or on none
        result["suppressions"] = _suppressions(finding)
    return result


def _state(finding: Finding) -> str:
    """What the change has to do with it: all results of a run say so, or none. What is not known to have been there
    before (an [[allow]] entry of no use) must not be hidden from who looks at what is new.

    What is there no more is no result: code scanning looks at no state, and would raise an alert for what was mended.
    """
    return "unchanged" if finding.new is False else "new"


def _message(text: str) -> str:
    """`[a](b)` would be a link in a message; brackets behind a backslash are none."""
    return re.sub(r"[\[\]]", r"\\\g<0>", text) if "](" in text else text


def _location(finding: Finding) -> dict[str, Any]:
    place = finding.place
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": _artifact(place.file), "region": _region(place)}
    }
    if finding.entry is not None:
        name = {"name": visible(finding.entry), "fullyQualifiedName": visible(place.pointer)}
        location["logicalLocations"] = [name]
    return location


def _region(place: Place) -> dict[str, int]:
    return {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }


def _artifact(file: str) -> dict[str, str]:
    """A path of the repository relative to its root; an absolute one as a file address."""
    if file.startswith("/"):
        return {"uri": f"file://{_encode(file)}"}
    if _DRIVE.match(file):
        return {"uri": f"file:///{file[0]}:{_encode(file[2:].replace(chr(92), '/'))}"}
    return {"uri": _encode(file.removeprefix("./")), "uriBaseId": ROOT}


def _encode(path: str) -> str:
    return quote(path.encode("utf-8", "surrogatepass"))


def _fix(finding: Finding) -> dict[str, Any]:
    change = {
        "artifactLocation": _artifact(finding.place.file),
        "replacements": [_replacement(edit) for edit in finding.edits],
    }
    return {"description": {"text": visible(finding.fix)}, "artifactChanges": [change]}


def _replacement(edit: Edit) -> dict[str, Any]:
    region = {"charOffset": edit.start, "charLength": edit.end - edit.start}
    return {"deletedRegion": region, "insertedContent": {"text": edit.text}}


def _suppressions(finding: Finding) -> list[dict[str, str]]:
    if finding.allowance is None:
        return []
    allowance = finding.allowance
    until = f", until {allowance.until}" if allowance.until else ""
    justification = visible(f"{allowance.reason}{until} ({allowance.place})")
    return [{"kind": "external", "status": "accepted", "justification": justification}]
