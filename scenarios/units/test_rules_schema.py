"""The gate's rules on an entry's shape: MH201 to MH207."""

from __future__ import annotations

import json

import pytest

from harness.gate.model import Severity
from scenarios.units.gate_fixture import catalog_context, entry_findings, findings, mended, only, where

SHAPE_RULES = {"MH103", "MH104", "MH201", "MH203", "MH204", "MH205", "MH206"}
HTTPS = {"type": "streamable-http", "url": "https://x.test/mcp"}
STDIO = {"type": "stdio", "command": "npx"}

ONE_FAULT = [
    ("MH201", "/a", "must be object", 7),
    ("MH201", "/a/title", "must NOT have fewer than 1 characters", {**STDIO, "title": ""}),
    ("MH201", "/a/description", "must NOT have more than 500 characters", {**STDIO, "description": "d" * 501}),
    ("MH201", "/a/args", "must be array", {**STDIO, "args": "-y"}),
    ("MH201", "/a/args/1", "must be string", {**STDIO, "args": ["a", 1]}),
    ("MH201", "/a/env/K", "must be string", {**STDIO, "env": {"K": None}}),
    ("MH201", "/a", "must have required property 'command'", {"type": "stdio"}),
    ("MH201", "/a", "must have required property 'url'", {"type": "sse"}),
    ("MH201", "/a/url", "boolean schema is false", {**STDIO, "url": "https://x.test"}),
    ("MH201", "/a/url", 'must match format "uri"', {**HTTPS, "url": "x.test/mcp"}),
    ("MH201", "/a/url", 'must match format "uri"', {**HTTPS, "url": "https://${HOST} /mcp"}),
    ("MH201", "/a/oauth/redirectUri", 'must match format "uri"', {**HTTPS, "oauth": {"redirectUri": "x"}}),
    ("MH201", "/a/type", "must be string", {**STDIO, "type": ["stdio"]}),
    ("MH201", "/a/default_in_roots/0", "must be string", {**STDIO, "default_in_roots": [1]}),
    ("MH203", "/a/type", "http", {**HTTPS, "type": "http"}),
    ("MH204", "/a/type", "HTTP", {**HTTPS, "type": "HTTP"}),
    ("MH205", "/a", "must have required property 'type'", {"command": "npx"}),
    ("MH205", "/a/type", "no type", {"command": "npx", "type": None}),
    ("MH206", "/a/url", 'must match format "uri"', {**HTTPS, "url": "https://${HOST}/mcp"}),
    ("MH206", "/a/url", 'must match format "uri"', {**HTTPS, "url": "${BASE}"}),
    ("MH206", "/a/url", 'must match format "uri"', {**HTTPS, "url": "${BASE}/mcp"}),
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
    found = only(findings(text, {"MH201"}))
    assert where(found) == (2, 3)
    assert "property name must be valid" in found.message


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
    assert "prepare would let a through unchecked" in found.message
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
