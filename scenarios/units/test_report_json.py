"""The report for programs, checked against its own schema."""

from __future__ import annotations

import datetime
import json

import jsonschema
import pytest

from harness.gate.events import Judged
from harness.report.formats import FORMATS, load_formats
from harness.report.json import SCHEMA
from scenarios.report_schemas import schema, validate
from scenarios.units.report_events import clean_run, finding, judgement, pull_request_run, rules, stream


def render(events):
    load_formats()
    text = FORMATS["json"](events, rules)
    report = json.loads(text)
    validate("gate-report", report)
    return report


def test_the_schema_names_the_version_that_is_written():
    assert schema("gate-report")["properties"]["schema"]["const"] == SCHEMA == render(clean_run())["schema"]


def test_the_schema_refuses_what_it_does_not_know():
    report = render(clean_run())
    report["entries"][0]["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError, match="surprise"):
        validate("gate-report", report)


def test_every_entry_tells_what_becomes_of_it_on_each_runtime():
    figma = next(entry for entry in render(clean_run())["entries"] if entry["name"] == "figma")
    assert figma["needs"] == [{"kind": "consent", "text": "figma|d39d3b6252bc1ac5"}]
    assert figma["runtimes"][1] == {
        "runtime": "codex@0.146.0",
        "state": "authorize",
        "first_request": "never",
        "tool_room": 52,
        "credential_key": "figma|d39d3b6252bc1ac5",
        "written": {"command": "npx", "args": ["-y", "figma@latest"]},
        "detail": "",
    }


def test_untouched_entries_are_named_as_such():
    entries = render(pull_request_run())["entries"]
    assert [(entry["name"], entry["touched"]) for entry in entries[:2]] == [("context7", False), ("acme-search", True)]


def test_findings_carry_edits_fingerprint_title_and_allowance():
    findings = render(pull_request_run())["findings"]
    assert findings[0]["edits"] == [{"start": 1204, "end": 1210, "text": '"streamable-http"'}]
    assert findings[0]["fingerprint"] == "a1b2c3d4e5f60718"
    assert findings[0]["title"] == "a type that the schema does not know"
    assert findings[0]["place"] == {
        "file": "mcp.json",
        "line": 48,
        "column": 7,
        "end_line": 48,
        "end_column": 17,
        "pointer": "/acme-search/type",
    }
    assert [one["allowance"] for one in findings[:-1]] == [None] * 5
    assert findings[-1]["allowance"] == {
        "place": "mcp-harness.toml:4:1",
        "reason": "acme-legacy",
        "until": "2027-01-31",
    }


def test_changes_plans_and_summary_are_complete():
    report = render(pull_request_run())
    assert [change["kind"] for change in report["changes"]] == ["added", "changed", "changed", "removed"]
    assert "Bearer ${ACME_TOKEN_}" in report["changes"][0]["config"]["claude@2.1.268"]
    assert report["plans"]["after"] == [
        "existing clones keep their budget for acme-fast until their config is regenerated"
    ]
    assert report["base"] == "origin/main@4f1c2e9"
    assert report["summary"] == {
        "verdict": "FAIL",
        "errors": 3,
        "warnings": 1,
        "notes": 1,
        "allowed": 1,
        "judged": 3,
        "entries": 16,
        "seconds": 1.94,
        "seed": 0,
        "exit_code": 1,
    }


def test_strings_are_exact_and_the_file_is_ascii():
    message = "a\nb\x1b[31m \u202e ä \U0001f600"
    events = stream(finding(message=message))
    assert render(events)["findings"][0]["message"] == message
    assert FORMATS["json"](events, rules).isascii()


def test_values_that_json_does_not_know_are_written_as_text():
    (one,) = (judgement("one", runtimes=("codex@0.146.0",)),)
    written = {"a": float("inf"), "b": datetime.date(2026, 1, 2), "c": [float("nan"), 1.5, None, True]}
    odd = one._replace(outcomes=(one.outcomes[0]._replace(written=written),))
    events = stream(judgements=(odd,))
    assert isinstance(events[1], Judged)
    assert render(events)["entries"][0]["runtimes"][0]["written"] == {
        "a": "inf",
        "b": "2026-01-02",
        "c": ["nan", 1.5, None, True],
    }
