"""MH211 to MH214: the address of a remote server."""

from __future__ import annotations

import json

import pytest

from harness.gate.engine import entry_findings as findings_of_engine
from harness.gate.judge import judge
from harness.gate.model import Severity, State
from scenarios.units.gate_fixture import catalog_context, entry_findings, findings, mended, only

CLAUDE, CODEX, PI = "claude@2.1.268", "codex@0.146.0", "pi@0.84.1+2.32.1"


def remote(url, **headers):
    return {"type": "streamable-http", "url": url, "headers": headers}


def states(entry):
    context = catalog_context(json.dumps({"a": entry}))
    outcomes = judge(context.entries["a"], context, touched=True).outcomes
    return {outcome.runtime: outcome.state for outcome in outcomes}


@pytest.mark.parametrize(
    ("url", "said", "becomes"),
    [
        ("wss://x.test/mcp", "scheme is wss", None),
        ("ftp://x.test/mcp", "scheme is ftp", None),
        ("htps://x.test/mcp", "scheme is htps", "https://x.test/mcp"),
        ("htttp://x.test/mcp", "scheme is htttp", "http://x.test/mcp"),
        ("file:///mcp", "scheme is file", None),
        ("localhost:3000/mcp", "no scheme", None),
        ("x.test:8080", "no scheme", None),
    ],
)
def test_no_runtime_connects_to_anything_but_http(url, said, becomes):
    text = json.dumps({"a": remote(url)})
    found = only(findings(text, ["MH211"]))
    assert (found.severity, found.place.pointer) == (Severity.ERROR, "/a/url")
    assert said in found.message
    assert set(states(remote(url)).values()) == {State.FAILS}
    if becomes is None:
        assert found.edits == ()
    else:
        assert json.loads(mended(text, found))["a"]["url"] == becomes


@pytest.mark.parametrize("url", ["https://x.test/mcp", "HTTP://x.test", "${BASE}/mcp", "x.test/mcp", "https://x:1/"])
def test_http_in_any_case_and_what_is_not_known_are_no_finding(url):
    assert entry_findings(remote(url), ["MH211"]) == []


@pytest.mark.parametrize("url", ["https://u:${PASS}@x.test/mcp", "https://${USER}@x.test/mcp", "https://u@x.test"])
def test_fetch_refuses_a_user_in_the_url_and_codex_does_not(url):
    found = only(entry_findings(remote(url, Authorization="Bearer ${T}"), ["MH212"]))
    assert (found.severity, found.runtimes) == (Severity.ERROR, (CLAUDE, PI))
    expected = {CLAUDE: State.FAILS, CODEX: State.STARTS, PI: State.FAILS}
    assert states(remote(url, Authorization="Bearer ${T}")) == expected
    assert entry_findings(remote(url), ["MH212"], runtimes=["codex"]) == []


def test_a_placeholder_in_front_of_the_host_is_one_finding():
    context = catalog_context(json.dumps({"a": remote("https://u:${PASS}@x.test/mcp", Authorization="Bearer ${T}")}))
    assert [found.rule for found in findings_of_engine(context, context.entries["a"])] == ["MH212"]


@pytest.mark.parametrize("url", ["https://x.test/@scope", "https://x.test/?mail=a@b.test", "https://[broken@", "@"])
def test_an_at_sign_elsewhere_is_no_user(url):
    assert entry_findings(remote(url), ["MH212"]) == []


def test_a_fragment_is_a_note_and_dropped_where_no_stored_key_depends_on_it():
    text = json.dumps({"a": remote("https://x.test/mcp#top", Authorization="Bearer ${T}")})
    found = only(findings(text, ["MH213"]))
    assert found.severity is Severity.NOTE
    assert json.loads(mended(text, found))["a"]["url"] == "https://x.test/mcp"
    assert only(entry_findings(remote("https://x.test/mcp#top"), ["MH213"])).edits == ()
    assert entry_findings(remote("https://x.test/mcp"), ["MH213"]) == []


def test_a_server_to_be_authorized_over_plain_http_is_a_warning():
    assert only(entry_findings(remote("http://x.test/mcp"), ["MH214", "MH322"])).severity is Severity.WARNING
    assert only(entry_findings(remote("http://x.test", Authorization="x"), ["MH214", "MH322"])).rule == "MH322"
    for url in ("https://x.test/mcp", "http://localhost:3000/mcp", "http://127.0.0.1/mcp", "http://${HOST}/mcp"):
        assert entry_findings(remote(url), ["MH214"]) == []


def test_blanks_around_a_url_are_the_schemas_finding_with_an_edit():
    text = json.dumps({"a": remote(" https://x.test/mcp ")})
    context = catalog_context(text)
    found = only([f for f in findings_of_engine(context, context.entries["a"]) if f.rule != "MH806"])
    assert (found.rule, found.fix) == ("MH201", "Remove the blanks.")
    assert "blanks around the address" in found.message
    assert json.loads(mended(text, found))["a"]["url"] == "https://x.test/mcp"


def test_the_url_of_a_program_is_left_to_the_schema():
    entry = {"type": "stdio", "command": "server", "url": "wss://u@x.test#a"}
    assert entry_findings(entry, ["MH211", "MH212", "MH213", "MH214"]) == []
