"""SARIF, checked against the published schema."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import pytest

from harness.gate.events import Found
from harness.gate.model import Allowance, Edit, Place
from harness.report.formats import FORMATS, load_formats
from scenarios.units.report_events import clean_run, finding, finished, pull_request_run, rules, started, stream

SCHEMA = json.loads((files("harness.report") / "schemas/sarif-2.1.0.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)


def run_of(events):
    load_formats()
    log = json.loads(FORMATS["sarif"](events, rules))
    VALIDATOR.validate(log)
    (run,) = log["runs"]
    return run


def result_of(one):
    (result,) = run_of(stream(one))["results"]
    return result


def test_the_published_schema_refuses_an_unknown_level():
    log = json.loads(FORMATS["sarif"](pull_request_run(), rules)) if load_formats() else {}
    log["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(jsonschema.ValidationError, match="fatal"):
        VALIDATOR.validate(log)


@pytest.mark.parametrize("run", [clean_run(), pull_request_run(), stream()], ids=["clean", "pull request", "empty"])
def test_every_log_is_valid(run):
    assert run_of(run)["columnKind"] == "unicodeCodePoints"


def test_rules_are_described_once_and_results_point_at_them():
    run = run_of(stream(finding(), finding("MH100"), finding(entry="b")))
    described = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in described] == ["MH100", "MH203"]
    assert described[1]["fullDescription"] == {"text": "The schema check refuses it, but prepare lets it through."}
    assert described[1]["help"] == {"text": 'Write "streamable-http".'}
    assert described[1]["defaultConfiguration"] == {"level": "error"}
    assert "helpUri" not in described[1]
    for result in run["results"]:
        assert described[result["ruleIndex"]]["id"] == result["ruleId"]


def test_a_result_tells_level_message_place_and_fingerprint():
    result = result_of(finding(fix="write x"))
    assert result["level"] == "error"
    assert result["message"] == {"text": "acme-search: the runtime refuses the entry. Fix: write x"}
    assert result["partialFingerprints"] == {"mcpHarness/v1": "3fad03f7abd02b9c"}
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "mcp.json", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 48, "startColumn": 7, "endLine": 48, "endColumn": 17},
    }
    assert location["logicalLocations"] == [{"name": "acme-search", "fullyQualifiedName": "/acme-search"}]


def test_a_message_holds_no_links():
    linked = result_of(finding(message="see [here](https://evil.test)"))
    assert linked["message"]["text"] == r"acme-search: see \[here\](https://evil.test)"


@pytest.mark.parametrize(
    ("file", "address"),
    [
        ("./config/mcp.json", {"uri": "config/mcp.json", "uriBaseId": "%SRCROOT%"}),
        ("a b/ä#?%.json", {"uri": "a%20b/%C3%A4%23%3F%25.json", "uriBaseId": "%SRCROOT%"}),
        ("/srv/repo/mcp.json", {"uri": "file:///srv/repo/mcp.json"}),
        ("C:\\repo\\mcp.json", {"uri": "file:///C:/repo/mcp.json"}),
    ],
)
def test_paths_become_addresses(file, address):
    result = result_of(finding(where=Place(file, 1, 1, 1, 2, "")))
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == address


def test_edits_become_a_fix_and_without_edits_there_is_none():
    result = result_of(finding(fix="write it so", edits=(Edit(10, 16, '"x"\n'), Edit(20, 20, "y"))))
    (fix,) = result["fixes"]
    assert fix["description"] == {"text": "write it so"}
    (change,) = fix["artifactChanges"]
    assert change["artifactLocation"] == {"uri": "mcp.json", "uriBaseId": "%SRCROOT%"}
    assert change["replacements"] == [
        {"deletedRegion": {"charOffset": 10, "charLength": 6}, "insertedContent": {"text": '"x"\n'}},
        {"deletedRegion": {"charOffset": 20, "charLength": 0}, "insertedContent": {"text": "y"}},
    ]
    assert "fixes" not in result_of(finding())


def test_allowed_findings_are_suppressed_with_their_reason():
    allowed = finding("MH8", allowance=Allowance("mcp-harness.toml:4", "known", "2027-01-31"))
    results = run_of(stream(finding(), allowed))["results"]
    justification = "known, until 2027-01-31 (mcp-harness.toml:4)"
    assert results[0]["suppressions"] == []
    assert results[1]["suppressions"] == [{"kind": "external", "status": "accepted", "justification": justification}]
    assert "suppressions" not in result_of(finding())


def test_with_a_base_every_result_says_whether_the_change_brings_it_and_without_one_none_does():
    of_settings = finding("MH001", entry=None)
    found = (finding()._replace(new=True), finding("MH100")._replace(new=False), of_settings)
    compared = [started(base="origin/main"), *map(Found, found), finished(errors=3)]
    assert [each["baselineState"] for each in run_of(compared)["results"]] == ["new", "unchanged", "new"]
    assert not any("baselineState" in each for each in run_of(stream(*found))["results"])


def test_the_exit_code_is_told():
    assert run_of(pull_request_run())["invocations"] == [{"executionSuccessful": True, "exitCode": 1}]
