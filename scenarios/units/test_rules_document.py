"""The gate's rules on the file as a whole: MH101 to MH106."""

from __future__ import annotations

import pytest

from harness.gate.context import Context
from harness.gate.model import Severity
from harness.inputs.document import Document
from harness.reference.catalog.schema import SCHEMA_URL
from scenarios.units.gate_fixture import PRODUCTION, catalog_context, findings, mended, only, rule_findings, where

TWICE = """{
  "a": { "type": "stdio", "command": "x" },
  "b": { "type": "stdio", "command": "z" },
  "a": { "type": "stdio", "command": "y" }
}"""


@pytest.mark.requirement("catalog-duplicate-json-keys")
def test_a_server_name_written_twice_is_one_finding_and_the_last_one_counts():
    found = only(findings(TWICE, {"MH101"}))
    assert (found.rule, found.entry, found.severity) == ("MH101", "a", Severity.ERROR)
    assert where(found) == (4, 3)
    assert "this name is written 2 times (line 2 and line 4)" in found.message
    assert "the server of line 2 reaches no session" in found.message
    assert found.edits == ()
    assert catalog_context(TWICE).catalog.require("a").command == "y"


def test_a_field_and_a_header_written_twice_are_found_with_both_places():
    text = '{"a": {"url": "u", "url": "v", "headers": {"X": "1", "X": "2"}}}'
    field, header = findings(text, {"MH101"})
    assert field.place.pointer == "/a/url"
    assert header.place.pointer == "/a/headers/X"
    assert "line 1 column 8 and line 1 column 20" in field.message


def test_what_a_dropped_namesake_holds_twice_is_not_told():
    text = '{"a": {"url": "u", "url": "v", "env": {"K": "1", "K": "2"}}, "a": {"url": "w"}}'
    assert [found.place.pointer for found in findings(text, {"MH101"})] == ["/a"]


def test_equal_names_in_different_objects_are_no_repetition():
    text = '{"a": {"env": {"a": "1"}}, "b": {"env": {"a": "1"}, "headers": {"a": "1"}}}'
    assert findings(text, {"MH101"}) == []


def test_a_copy_that_says_the_same_can_be_taken_out_and_the_first_keeps_its_place():
    text = '{"a": {"headers": {"B": "1", "A": "2" , "B": "1"}}}'
    found = only(findings(text, {"MH101"}))
    assert mended(text, found) == '{"a": {"headers": {"B": "1", "A": "2"}}}'
    assert findings(mended(text, found), {"MH101"}) == []


def test_a_byte_order_mark_is_refused_by_airs_reader():
    document = Document.parse("mcp.json", b"\xef\xbb\xbf{}")
    found = only(rule_findings(Context(document, runtimes=(), instance=PRODUCTION), {"MH102"}))
    assert found.severity is Severity.ERROR
    assert where(found) == (1, 1)
    assert "sessions go on with the last good catalog" in found.message
    assert findings("{}", {"MH102"}) == []


@pytest.mark.requirement("catalog-schema-url")
def test_a_schema_key_that_points_elsewhere_is_a_finding_and_the_catalog_still_loads():
    text = '{\n  "$schema": "https://raw.githubusercontent.com/x/zimmer-catalog/mcp.schema.json",\n  "a": {}\n}'
    found = only(findings(text, {"MH103"}))
    assert found.severity is Severity.WARNING
    assert where(found) == (2, 14)
    assert findings(mended(text, found), {"MH103"}) == []
    assert catalog_context(text).catalog.names == ("a",)


@pytest.mark.requirement("catalog-schema-url")
def test_the_published_schema_is_the_one_that_is_accepted():
    assert SCHEMA_URL == "https://pulsemcp.github.io/air/schemas/mcp.schema.json"
    accepted = '{"$schema": "https://pulsemcp.github.io/air/schemas/mcp.schema.json"}'
    assert findings(accepted, {"MH103"}) == []
    identifier = '{"$schema": "https://raw.githubusercontent.com/pulsemcp/air/main/schemas/mcp.schema.json"}'
    assert len(findings(identifier, {"MH103"})) == 1


@pytest.mark.parametrize("text", ["{}", "{ }", '{\n  "a": {}\n}', '{"a":{}}'])
def test_a_missing_schema_key_is_a_note_with_the_line_to_add(text):
    found = only(findings(text, {"MH103", "MH107", "MH108"}))
    assert (found.rule, found.severity) == ("MH107", Severity.NOTE)
    assert findings(mended(text, found), {"MH103", "MH107", "MH108"}) == []


def test_a_schema_key_that_is_no_text_is_an_error():
    text = '{"$schema": 7}'
    found = only(findings(text, {"MH103", "MH107", "MH108"}))
    assert (found.rule, found.severity) == ("MH108", Severity.ERROR)
    assert findings(mended(text, found), {"MH103"}) == []
    assert findings(text, {"MH201"}) == []


@pytest.mark.requirement("catalog-schema-wrapper-misread")
def test_servers_under_a_wrapper_are_one_finding_that_shows_how_air_reads_it():
    text = '{\n  "mcpServers": {\n    "x": { "type": "stdio", "command": "c" }\n  }\n}'
    found = findings(text, {"MH104", "MH201", "MH205", "MH207"})
    assert [(each.rule, each.entry) for each in found] == [("MH104", "mcpServers")]
    assert where(found[0]) == (2, 3)
    assert "must have required property 'type'" in found[0].message
    assert "x" in found[0].message
    context = catalog_context(text)
    assert context.catalog.names == ("mcpServers",)
    assert list(context.entries) == ["mcpServers"]
    assert catalog_context(mended(text, found[0])).catalog.names == ("x",)


def test_another_hosts_wrapper_is_told_too_but_a_server_of_that_name_is_not():
    assert len(findings('{"servers": {"x": {"url": "https://a.test"}}}', {"MH104"})) == 1
    assert findings('{"servers": {"type": "stdio", "command": "c"}}', {"MH104"}) == []
    assert findings('{"mcpServers": {"type": "stdio", "command": "c"}}', {"MH104"}) == []


@pytest.mark.parametrize("text", ['{"mcpServers": {}}', '{"x": {}, "mcpServers": {"x": {"command": "c"}}}'])
def test_a_wrapper_whose_removal_would_leave_a_gap_or_mix_names_gets_no_edit(text):
    found = only(findings(text, {"MH104"}))
    assert found.edits == ()


def test_a_catalog_without_entries_is_worth_a_note():
    found = only(findings('{"$schema": "x"}', {"MH105"}))
    assert (found.severity, found.entry) == (Severity.NOTE, None)
    assert findings('{"a": {}}', {"MH105"}) == []


@pytest.mark.requirement("catalog-name-js-proto-lint")
def test_a_name_that_javascript_swallows_is_a_finding_and_no_listed_server():
    text = '{"__proto__": {"type": "stdio", "command": "c"}, "prototype": {"type": "stdio", "command": "c"}}'
    found = only(findings(text, {"MH106"}))
    assert (found.entry, found.severity) == ("__proto__", Severity.ERROR)
    assert "AIR loses the entry without a word" in found.message
    assert catalog_context(text).catalog.names == ("prototype",)


@pytest.mark.parametrize(("name", "count"), [("10", 1), ("0", 1), ("010", 0), ("v10", 0)])
def test_a_name_that_is_a_whole_number_moves_to_the_front(name, count):
    found = findings(f'{{"{name}": {{}}}}', {"MH106"})
    assert [each.severity for each in found] == [Severity.NOTE] * count
