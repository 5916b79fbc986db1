"""The gate's rules on an entry's shape: MH201 to MH207, and what they say in place of the runtimes' words."""

from __future__ import annotations

import json

import pytest

from harness.gate.engine import entry_findings as findings_of_engine
from harness.gate.model import Severity
from scenarios.units.gate_fixture import catalog_context, entry_findings, findings, mended, only, where

SHAPE_RULES = {"MH103", "MH104", "MH201", "MH203", "MH204", "MH205", "MH206"}
HTTPS = {"type": "streamable-http", "url": "https://x.test/mcp"}
STDIO = {"type": "stdio", "command": "server"}

ONE_FAULT = [
    ("MH201", "/a", "the entry is 7 and has to be an object", 7),
    ("MH201", "/a/title", "title is empty", {**STDIO, "title": ""}),
    ("MH201", "/a/description", "description has 501 characters and may have 500", {**STDIO, "description": "d" * 501}),
    ("MH201", "/a/args", "args is a text and has to be a list", {**STDIO, "args": "-y"}),
    ("MH201", "/a/args/1", "args[1] is 1 and has to be a text", {**STDIO, "args": ["a", 1]}),
    ("MH201", "/a/env/K", "env.K is null and has to be a text", {**STDIO, "env": {"K": None}}),
    ("MH201", "/a", "the entry has no command", {"type": "stdio"}),
    ("MH201", "/a", "the entry has no url", {"type": "sse"}),
    (
        "MH201",
        "/a/url",
        "an entry of type stdio holds url: a program has no address",
        {**STDIO, "url": "https://x.test"},
    ),
    ("MH201", "/a/url", "an address without a scheme", {**HTTPS, "url": "x.test/mcp"}),
    ("MH201", "/a/url", "no valid address", {**HTTPS, "url": "https://${HOST} /mcp"}),
    ("MH201", "/a/oauth/redirectUri", "an address without a scheme", {**HTTPS, "oauth": {"redirectUri": "x"}}),
    ("MH201", "/a/type", "type is a list and has to be a text", {**STDIO, "type": ["stdio"]}),
    ("MH201", "/a/default_in_roots/0", "default_in_roots[0] is 1", {**STDIO, "default_in_roots": [1]}),
    ("MH203", "/a/type", "http", {**HTTPS, "type": "http"}),
    ("MH204", "/a/type", "HTTP", {**HTTPS, "type": "HTTP"}),
    ("MH205", "/a", "must have required property 'type'", {"command": "npx"}),
    ("MH205", "/a/type", "no type", {"command": "npx", "type": None}),
    ("MH206", "/a/url", "fails `air validate`", {**HTTPS, "url": "https://${HOST}/mcp"}),
    ("MH206", "/a/url", "fails `air validate`", {**HTTPS, "url": "${BASE}"}),
    ("MH206", "/a/url", "fails `air validate`", {**HTTPS, "url": "${BASE}/mcp"}),
]


@pytest.mark.parametrize(("rule", "pointer", "named", "entry"), ONE_FAULT)
def test_one_fault_of_the_schema_is_one_finding_at_its_place(rule, pointer, named, entry):
    text = json.dumps({"$schema": "https://pulsemcp.github.io/air/schemas/mcp.schema.json", "a": entry})
    found = only(findings(text, SHAPE_RULES))
    assert (found.rule, found.place.pointer, found.entry) == (rule, pointer, "a")
    assert named in found.message


@pytest.mark.parametrize("entry", [STDIO, HTTPS, {**HTTPS, "type": "sse"}, {**STDIO, "frob": 1}])
def test_a_valid_entry_has_no_fault(entry):
    assert entry_findings(entry, SHAPE_RULES - {"MH103"}) == []


def test_a_name_outside_the_pattern_is_told_at_the_name():
    text = '{\n  "a b": {"type": "stdio", "command": "c"}\n}'
    found = only(findings(text, {"MH201"}, runtimes=["claude", "pi"]))
    assert where(found) == (2, 3)
    assert "the name holds a character other than letters" in found.message
    assert findings(text, {"MH201"}) == []  # MH701 says it where Codex is judged


def test_a_fault_says_what_becomes_of_the_entry_on_each_runtime():
    found = only(entry_findings({**STDIO, "args": [1]}, {"MH201"}))
    assert "skipped by claude@2.1.268" in found.message
    harmless = only(entry_findings({**STDIO, "title": ""}, {"MH201"}))
    assert "skipped" not in harmless.message


@pytest.mark.parametrize(("value", "text"), [(1, '"1"'), (True, '"true"'), (1.5, '"1.5"')])
def test_a_number_or_truth_value_in_env_can_be_put_in_quotes(value, text):
    catalog = json.dumps({"a": {**STDIO, "env": {"K": value}}})
    found = only(findings(catalog, {"MH201"}))
    result = mended(catalog, found)
    assert f'"K": {text}' in result
    assert findings(result, {"MH201"}) == []


def test_type_http_is_mended_to_the_published_spelling():
    text = '{\n  "a": { "type": "http", "url": "https://x.test/mcp" }\n}'
    found = only(findings(text, {"MH203"}))
    assert where(found) == (2, 18)
    assert found.severity is Severity.ERROR
    assert "prepare would let it through unchecked" in found.message
    assert findings(mended(text, found), SHAPE_RULES - {"MH103"}) == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("HTTP", "streamable-http"),
        ("streamableHttp", "streamable-http"),
        ("streamable_http", "streamable-http"),
        ("Streamable-HTTP", "streamable-http"),
        ("streamble-http", "streamable-http"),
        ("remote", "streamable-http"),
        ("SSE", "sse"),
        ("ws", None),
        ("grpc", None),
    ],
)
def test_an_unknown_transport_is_told_with_what_each_runtime_does(written, meant):
    text = json.dumps({"a": {**HTTPS, "type": written}})
    found = only(findings(text, {"MH204"}))
    assert "not written on pi@" in found.message
    assert "skipped by claude@2.1.268" in found.message
    if meant is None:
        assert found.edits == ()
    else:
        assert json.loads(mended(text, found))["a"]["type"] == meant


def test_a_spelling_of_stdio_is_mended_only_where_there_is_a_command():
    found = only(entry_findings({"type": "STDIO", "command": "npx"}, {"MH204"}))
    assert [edit.text for edit in found.edits] == ['"stdio"']
    remote = only(entry_findings({"type": "STDIO", "url": "https://x.test"}, {"MH204"}))
    assert remote.edits == ()


@pytest.mark.parametrize(
    ("entry", "meant"),
    [
        ({"command": "npx"}, "stdio"),
        ({"url": "https://x.test/mcp"}, "streamable-http"),
        ({"url": "https://x.test/sse?a=b"}, "sse"),
        ({"type": None, "command": "npx"}, "stdio"),
    ],
)
def test_a_missing_type_is_added_by_what_the_entry_has(entry, meant):
    text = json.dumps({"a": entry}, indent=2)
    found = only(findings(text, {"MH205"}))
    assert "Claude adapter loses" in found.message
    result = mended(text, found)
    assert json.loads(result)["a"]["type"] == meant
    assert findings(result, SHAPE_RULES - {"MH103"}) == []


@pytest.mark.parametrize("entry", [{}, {"command": "npx", "url": "https://x.test"}])
def test_a_type_that_nothing_tells_is_left_to_a_human(entry):
    found = only(entry_findings(entry, {"MH205"}))
    assert found.edits == ()


def test_a_placeholder_url_is_a_warning_since_prepare_resolves_it():
    found = only(entry_findings({**HTTPS, "url": "https://${HOST}/mcp"}, {"MH206"}))
    assert found.severity is Severity.WARNING
    assert "prepare resolves it" in found.message


@pytest.mark.parametrize(
    ("field", "instead"),
    [
        ("header", "headers"),
        ("Headers", "headers"),
        ("enviroment", "env"),
        ("environment", "env"),
        ("enabled", "unavailable"),
        ("disabled", "unavailable"),
        ("cwd", None),
        ("timeout", "startup_timeout_sec"),
        ("startupTimeoutSec", "startup_timeout_sec"),
        ("requestTimeoutMs", "startup_timeout_sec"),
        ("startup_timeout_ms", "startup_timeout_sec"),
        ("http_headers", "headers"),
        ("env_vars", "env"),
        ("bearerToken", "headers"),
        ("alwaysAllow", None),
        ("auth", "oauth"),
        ("desciption", "description"),
        ("defaultInRoots", "default_in_roots"),
    ],
)
def test_a_field_that_nobody_reads_is_told_with_the_catalogs_own(field, instead):
    text = json.dumps({"a": {**HTTPS, field: "v"}})
    found = only(findings(text, {"MH207"}))
    assert (found.place.pointer, found.severity) == (f"/a/{field}", Severity.WARNING)
    assert repr(field) in found.message
    assert "no effect on any runtime" in found.message
    assert (f"own field is {instead!r}" in found.message) if instead else ("own field" not in found.message)


@pytest.mark.parametrize(
    "field", ["title", "startup_timeout_sec", "unavailable", "frob", "version", "_comment", "tags"]
)
def test_known_fields_and_plain_unknown_ones_are_let_be(field):
    assert entry_findings({**STDIO, field: "x"}, {"MH207"}) == []


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({**HTTPS, "header": {"X": "1"}}, "headers"),
        ({**HTTPS, "http_headers": {"X": "1"}}, "headers"),
        ({**STDIO, "environment": {"X": "1"}}, "env"),
        ({**STDIO, "arg": ["-y"]}, "args"),
        ({**HTTPS, "oauth": {"client-id": "x"}}, "clientId"),
    ],
)
def test_a_field_of_the_right_shape_can_be_renamed(entry, field):
    text = json.dumps({"a": entry})
    found = only(findings(text, {"MH207"}))
    result = mended(text, found)
    assert f'"{field}": ' in result
    assert findings(result, {"MH207", "MH201"}) == []


@pytest.mark.parametrize(
    "entry",
    [
        {**STDIO, "header": {"X": "1"}},
        {**HTTPS, "header": ["X: 1"]},
        {**HTTPS, "header": {"X": "1"}, "headers": {}},
        {**STDIO, "enabled": False},
    ],
)
def test_a_field_that_would_not_fit_is_left_to_a_human(entry):
    found = only(entry_findings(entry, {"MH207"}))
    assert found.edits == ()


def test_without_runtimes_a_wrong_type_is_still_told():
    found = only(entry_findings({**HTTPS, "type": "ws"}, {"MH204"}, runtimes=()))
    assert "left out by Zimmer" in found.message
    assert catalog_context("{}", runtimes=()).runtimes == ()


def every_finding(entry, **given):
    context = catalog_context(json.dumps({"a": entry}), **given)
    return findings_of_engine(context, context.entries["a"])


ONE_MISTAKE = [
    ({"type": "streamable-http", "command": "server", "args": ["x"], "env": {"A": "b"}}, "MH201", "stdio"),
    ({"type": "sse", "command": "server"}, "MH201", "stdio"),
    ({"type": "stdio", "url": "https://x.test/mcp"}, "MH201", "streamable-http"),
    ({"type": "stdio", "url": "https://x.test/sse", "headers": {"A": "b"}}, "MH201", "sse"),
]


@pytest.mark.parametrize(("entry", "rule", "meant"), ONE_MISTAKE)
def test_the_fields_of_another_type_are_one_finding_that_sets_the_type(entry, rule, meant):
    found = only(every_finding(entry))
    assert (found.rule, found.place.pointer, found.fix) == (rule, "/a/type", f'Write "type": "{meant}".')
    result = json.loads(mended(json.dumps({"a": entry}), found))["a"]
    assert result["type"] == meant
    assert [each.rule for each in every_finding(result) if each.severity is Severity.ERROR] == []


@pytest.mark.parametrize(
    ("entry", "pointer", "left"),
    [
        ({**HTTPS, "args": []}, "/a/args", HTTPS),
        ({"args": ["x"], **HTTPS}, "/a/args", HTTPS),
        ({**STDIO, "oauth": {}}, "/a/oauth", STDIO),
        ({"oauth": {}, **STDIO, "headers": {"A": "b"}}, "/a/oauth", STDIO),
    ],
)
def test_fields_beside_those_of_the_type_are_one_finding_that_removes_them(entry, pointer, left):
    found = only(every_finding(entry))
    assert (found.rule, found.place.pointer) == ("MH201", pointer)
    assert found.fix.startswith("Remove ")
    assert json.loads(mended(json.dumps({"a": entry}), found))["a"] == left


@pytest.mark.parametrize(
    "entry",
    [
        {**HTTPS, "command": "server"},
        {**HTTPS, "command": "server", "args": ["x"]},
        {**HTTPS, "comand": "server", "args": ["x"]},
        {**STDIO, "url": "https://x.test"},
        {**STDIO, "httpUrl": "https://x.test", "headers": {"A": "b"}},
    ],
)
def test_whether_an_entry_is_remote_or_a_program_is_decided_by_nobody_but_a_person(entry):
    found = next(each for each in every_finding(entry) if each.rule == "MH201")
    assert found.fix.startswith("Remove ")
    assert found.edits == ()


def test_an_entry_with_neither_is_to_get_what_its_type_needs():
    found = only(every_finding({"type": "stdio", "headers": {}}))
    assert (found.fix, found.edits) == ("Remove headers, and add command.", ())


@pytest.mark.parametrize(
    ("entry", "rules"),
    [
        ({**STDIO, "env": {"A": 3}}, ["MH201"]),
        ({**STDIO, "args": "x"}, ["MH201"]),
        ({**STDIO, "command": 3}, ["MH201"]),
        ({**HTTPS, "oauth": {"clientId": 3}}, ["MH201"]),
        ({**HTTPS, "title": "", "oauth": {"authServerMetadataUrl": "http://x"}}, ["MH201", "MH802"]),
        ({**STDIO, "title": "", "command": " "}, ["MH201", "MH805"]),
    ],
)
def test_a_fault_hides_what_runtimes_say_of_the_same_field_and_nothing_else(entry, rules):
    assert sorted({found.rule for found in every_finding(entry)}) == rules


@pytest.mark.parametrize(
    ("entry", "fix"),
    [
        ({**STDIO, "env": {"K": None}}, "Leave it out, or write a text."),
        ({**STDIO, "env": {"K": 1}}, "Put it in quotes."),
        ({**STDIO, "env": {"K": ["x"]}}, "Write one text."),
        ({**STDIO, "args": "x"}, 'Write a list: ["-y", "package@1.0.0"].'),
        ({**STDIO, "env": []}, 'Write an object: {"name": "value"}.'),
        ({**STDIO, "title": ""}, "Write something in title, or leave the field out."),
        ({**STDIO, "description": "d" * 501}, "Shorten description to 500 characters."),
        ({"type": "sse"}, 'Add "url": "https://...".'),
        (7, 'Write an object with at least a "type".'),
    ],
)
def test_each_fault_says_what_to_write(entry, fix):
    assert only(entry_findings(entry, {"MH201"})).fix == fix


def test_a_missing_type_names_the_one_that_fits():
    assert only(entry_findings({"command": "npx"}, {"MH205"})).fix == 'Add "type": "stdio".'
    assert "streamable-http" not in only(entry_findings({"command": "npx"}, {"MH205"})).fix
