"""MH221 to MH226 and MH323: the headers of a remote server."""

from __future__ import annotations

import json

import pytest

from harness.gate.engine import entry_findings as findings_of_engine
from harness.gate.judge import judge
from harness.gate.model import Severity, State
from scenarios.units.gate_fixture import catalog_context, entry_findings, findings, mended, only

HEADER_RULES = [f"MH22{digit}" for digit in range(1, 7)] + ["MH323"]
CLAUDE, CODEX, PI = "claude@2.1.268", "codex@0.146.0", "pi@0.84.1+2.32.1"


def remote(**headers):
    return {"type": "streamable-http", "url": "https://x.test/mcp", "headers": headers}


def states(entry):
    context = catalog_context(json.dumps({"a": entry}))
    outcomes = judge(context.entries["a"], context, touched=True).outcomes
    return {outcome.runtime: outcome.state for outcome in outcomes}


def test_ordinary_headers_are_no_finding():
    assert entry_findings(remote(**{"Authorization": "Bearer ${T}", "X-Team": "acme", "X-A": "é"}), HEADER_RULES) == []
    assert entry_findings(remote(**{"X-Team": "${TEAM}", "X-Workspace-Id": "${WORKSPACE}"}), HEADER_RULES) == []
    assert entry_findings({"type": "stdio", "command": "c", "headers": {"X A": "\n"}}, HEADER_RULES) == []


@pytest.mark.parametrize(
    ("name", "trimmed"), [("X A", None), ("X-A ", "X-A"), (" X-A", "X-A"), ("X:A", None), ("Ä", None), ("", None)]
)
def test_a_name_that_is_no_token_stops_every_runtime_that_uses_fetch(name, trimmed):
    text = json.dumps({"a": remote(**{"Authorization": "Bearer ${T}", name: "x"})})
    found = only(findings(text, ["MH221"]))
    assert (found.severity, found.runtimes) == (Severity.ERROR, (CLAUDE, PI))
    entry = remote(**{"Authorization": "Bearer ${T}", name: "x"})
    assert states(entry) == {CLAUDE: State.FAILS, CODEX: State.STARTS, PI: State.FAILS}
    if trimmed:
        assert list(json.loads(mended(text, found))["a"]["headers"]) == ["Authorization", trimmed]
    else:
        assert found.edits == ()


def test_where_codex_alone_is_judged_the_header_is_left_out():
    entry = remote(**{"Authorization": "Bearer ${T}", "X A": "x"})
    found = only(entry_findings(entry, ["MH221"], runtimes=["codex"]))
    assert found.severity is Severity.WARNING
    assert "called without it" in found.message


@pytest.mark.parametrize(
    ("value", "runtimes"),
    [
        ("a\nb", (CLAUDE, CODEX, PI)),
        ("a\r\nb", (CLAUDE, CODEX, PI)),
        ("a\x01b", (CLAUDE, CODEX, PI)),
        ("a\x7f", (CLAUDE, CODEX, PI)),
        ("Bearer “${T}”", (CLAUDE, PI)),
        ("日本", (CLAUDE, PI)),
        ("Bearer ${T}\u200b", (CLAUDE, PI)),
    ],
)
def test_a_value_that_no_header_can_hold_is_an_error_and_not_shown(value, runtimes):
    found = only(entry_findings(remote(**{"X-API-Key": value}), ["MH222"]))
    assert (found.severity, found.runtimes) == (Severity.ERROR, runtimes)
    assert value not in found.message
    failing = {name for name, state in states(remote(**{"X-API-Key": value})).items() if state is State.FAILS}
    assert failing == set(runtimes)


@pytest.mark.parametrize("value", ["é", "a\tb", "a\n", " a ", "${T:-日本}", "", None, 3])
def test_a_value_that_can_be_sent_is_no_finding(value):
    assert entry_findings(remote(**{"X-API-Key": value}), ["MH222"]) == []


@pytest.mark.parametrize("name", ["Host", "content-length", "Connection", "Transfer-Encoding", "Content-Type", "Host "])
def test_a_header_that_the_client_sets_is_a_warning(name):
    assert only(entry_findings(remote(**{name: "x"}), ["MH223"])).severity is Severity.WARNING
    assert entry_findings(remote(**{f"X-{name}": "x"}), ["MH223"]) == []


def test_one_header_in_two_spellings_is_one_warning():
    found = only(entry_findings(remote(**{"X-A": "1", "x-a": "2", "X-B": "3"}), ["MH224"]))
    assert (found.severity, found.place.pointer) == (Severity.WARNING, "/a/headers/x-a")
    assert "X-A and x-a are one header" in found.message


@pytest.mark.parametrize(
    ("value", "hits"),
    [("${T}", 1), (" ${T} ", 1), ("${T:-x}", 1), ("Bearer ${T}", 0), ("Basic ${T}", 0), ("${A}${B}", 0), ("x", 0)],
)
def test_an_authorization_without_a_scheme_is_a_warning(value, hits):
    found = entry_findings(remote(authorization=value), ["MH225"])
    assert [each.severity for each in found] == [Severity.WARNING] * hits
    assert entry_findings(remote(**{"X-API-Key": value}), ["MH225"]) == []


def test_a_secret_that_holds_the_scheme_itself_is_no_finding():
    entry = remote(Authorization="${T}")
    assert entry_findings(entry, ["MH225"], values={"T": "Bearer abc"}) == []
    assert len(entry_findings(entry, ["MH225"], values={"T": "abc"})) == 1


@pytest.mark.parametrize(
    ("headers", "becomes"),
    [
        ({"Bearer": "${T}"}, {"Authorization": "Bearer ${T}"}),
        ({"bearer": "Bearer ${T}"}, {"Authorization": "Bearer ${T}"}),
        ({"Basic": "${T}"}, {"Authorization": "Basic ${T}"}),
        ({"Bearer": "${T}", "Authorization": "x"}, None),
    ],
)
def test_a_header_named_like_a_scheme_becomes_an_authorization(headers, becomes):
    text = json.dumps({"a": remote(**headers)})
    found = only(findings(text, ["MH226"]))
    assert found.severity is Severity.WARNING
    assert (json.loads(mended(text, found))["a"]["headers"] if found.edits else None) == becomes


@pytest.mark.parametrize("name", ["X-Key", "Cookie", "X-Subscription-Key", "DD-APPLICATION-KEY", "X-Acme", "X-Session"])
def test_a_header_that_is_a_secret_alone_may_be_the_credential_that_zimmer_does_not_know(name):
    context = catalog_context(json.dumps({"a": remote(**{name: "${ACME}"})}))
    found = only([f for f in findings_of_engine(context, context.entries["a"]) if f.rule != "MH910"])
    assert (found.rule, found.severity) == ("MH323", Severity.WARNING)
    assert f"if {name} is the credential" in found.message


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Team": "${TEAM}"},
        {"X-Key": "literal"},
        {"X-Key": "${ACME:-none}"},
        {"X-Key": "${ACME}", "Authorization": "Bearer ${T}"},
        {"X-API-Key": "${ACME}"},
    ],
)
def test_routine_headers_and_known_credentials_are_no_finding(headers):
    assert entry_findings(remote(**headers), ["MH323"]) == []


def test_a_routine_header_named_for_its_subject_counts_where_the_secret_says_what_it_is():
    assert len(entry_findings(remote(**{"X-Client-Id": "${ACME_TOKEN}"}), ["MH323"])) == 1
