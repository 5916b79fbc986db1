"""Validation by the published schema, and the local convenience copy beside it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from jsonschema import Draft7Validator

from harness.preparation import RUNTIMES
from harness.reference.catalog.entry import read_entry
from harness.reference.catalog.schema import (
    SCHEMA_URL,
    build_validator,
    drift,
    published_schema,
    snapshot_schema,
    snapshot_text,
    validate,
)
from scenarios.preparing import prepared, servers

STDIO = {"type": "stdio", "command": "npx"}
REMOTE = {"type": "sse", "url": "https://x.test"}


def faults(entry: Any, name: str = "a") -> list[tuple[str, str, str]]:
    """Pointer, rule and message of each fault of a catalog with this one entry."""
    return [(fault.at, fault.rule, fault.message) for fault in validate({name: entry})]


@pytest.mark.requirement("catalog-schema-type-required")
@pytest.mark.parametrize("entry", [{"command": "x"}, {"url": "https://x.test"}, {}])
def test_an_entry_without_a_type_is_refused_for_that_alone(entry):
    assert faults(entry) == [("/a/type", "required", "must have required property 'type'")]


@pytest.mark.requirement("catalog-schema-type-enum")
@pytest.mark.parametrize("transport", ["http", "HTTP", "SSE", "ws", ""])
def test_three_transports_are_accepted_and_http_is_not_among_them(transport):
    refused = ("/a/type", "enum", "must be equal to one of the allowed values")
    assert faults({"type": transport, "url": "https://x.test"}) == [refused]
    assert faults(STDIO) == faults(REMOTE) == faults({**REMOTE, "type": "streamable-http"}) == []
    assert read_entry("a", {"type": "http", "url": "https://x.test"}).remote


@pytest.mark.requirement("catalog-schema-type-enum")
def test_a_type_that_is_no_text_breaks_two_rules():
    assert [fault[1] for fault in faults({"type": 1})] == ["enum", "type"]


@pytest.mark.requirement("catalog-schema-stdio-shape")
@pytest.mark.parametrize(("member", "value"), [("url", "https://x.test"), ("headers", {}), ("oauth", {})])
def test_a_stdio_entry_may_not_have_what_belongs_to_remote_ones(member, value):
    assert faults({**STDIO, member: value}) == [(f"/a/{member}", "forbidden", "boolean schema is false")]


@pytest.mark.requirement("catalog-schema-stdio-shape")
def test_a_stdio_entry_needs_a_command():
    assert faults({"type": "stdio"}) == [("/a/command", "required", "must have required property 'command'")]


@pytest.mark.requirement("catalog-schema-remote-shape")
@pytest.mark.parametrize("transport", ["sse", "streamable-http"])
def test_a_remote_entry_needs_a_url_and_may_have_env_but_no_command(transport):
    entry = {"type": transport, "url": "https://x.test", "env": {"A": "b"}}
    assert faults(entry) == []
    assert faults({**entry, "command": "x"}) == [("/a/command", "forbidden", "boolean schema is false")]
    assert faults({**entry, "args": []}) == [("/a/args", "forbidden", "boolean schema is false")]
    assert faults({"type": transport}) == [("/a/url", "required", "must have required property 'url'")]


@pytest.mark.requirement("catalog-schema-lengths")
@pytest.mark.parametrize("character", ["x", "é", "😀"])
def test_lengths_are_bounded_in_characters(character):
    assert faults({**STDIO, "title": character}) == faults({**STDIO, "title": character * 100}) == []
    assert faults({**STDIO, "description": ""}) == faults({**STDIO, "description": character * 500}) == []
    assert faults({**STDIO, "title": ""}) == [("/a/title", "too_short", "must NOT have fewer than 1 characters")]
    assert faults({**STDIO, "title": character * 101}) == [
        ("/a/title", "too_long", "must NOT have more than 100 characters")
    ]
    assert faults({**STDIO, "description": character * 501}) == [
        ("/a/description", "too_long", "must NOT have more than 500 characters")
    ]


@pytest.mark.requirement("catalog-schema-string-maps")
@pytest.mark.parametrize("value", [1, 1.5, True, None, [], {}])
def test_args_env_and_headers_hold_texts_only(value):
    assert faults({**STDIO, "env": {"A": value, "B": "b"}}) == [("/a/env/A", "type", "must be string")]
    assert faults({**REMOTE, "headers": {"A": value}}) == [("/a/headers/A", "type", "must be string")]
    assert faults({**STDIO, "args": [value, "x"]}) == [("/a/args/0", "type", "must be string")]


@pytest.mark.requirement("catalog-schema-string-maps")
def test_args_is_a_list_and_env_a_map():
    assert faults({**STDIO, "args": "-y"}) == [("/a/args", "type", "must be array")]
    assert faults({**STDIO, "env": []}) == [("/a/env", "type", "must be object")]


@pytest.mark.requirement("catalog-schema-url-format")
@pytest.mark.parametrize(
    "url", ["${URL}", "https://${H}/mcp", "x.test/mcp", "/mcp", "//x.test", "", "a b", "mailto:", "https:?a"]
)
def test_what_is_no_absolute_uri_is_refused_as_a_url(url):
    assert faults({"type": "sse", "url": url}) == [("/a/url", "uri", 'must match format "uri"')]


@pytest.mark.requirement("catalog-schema-url-format")
@pytest.mark.parametrize("url", ["https://x.test", "https://x.test:", "http://[::1]:80/a?b#c", "urn:a:", "mailto:a@b"])
def test_any_absolute_uri_will_do_as_a_url(url):
    assert faults({"type": "sse", "url": url}) == []


@pytest.mark.requirement("catalog-schema-url-format")
def test_a_url_with_a_placeholder_is_refused_here_and_resolved_by_preparation():
    entry = {"type": "sse", "url": "${URL}"}
    assert faults(entry) != []
    for runtime in RUNTIMES:
        written = servers(prepared(runtime, ["a"], {"a": entry}, {"URL": "https://x.test/mcp"}))
        assert written["a"]["url"] == "https://x.test/mcp"


@pytest.mark.requirement("catalog-schema-open-world")
@pytest.mark.parametrize("value", ["20", 20, True, None, [], {}])
def test_unknown_fields_of_any_type_pass(value):
    assert faults({**STDIO, "unavailable": value, "startup_timeout_sec": value, "frob": value}) == []
    assert faults({**REMOTE, "unavailable": value, "startup_timeout_sec": value, "frob": value}) == []


@pytest.mark.requirement("catalog-schema-oauth-open")
def test_an_oauth_block_is_open_but_its_known_members_are_checked():
    def oauth_faults(block: Any) -> list[tuple[str, str]]:
        return [(at, rule) for at, rule, _ in faults({**REMOTE, "oauth": block})]

    assert oauth_faults({"frob": 1}) == oauth_faults({}) == []
    assert oauth_faults({"redirectUri": "not a uri"}) == [("/a/oauth/redirectUri", "uri")]
    assert oauth_faults({"authServerMetadataUrl": "x"}) == [("/a/oauth/authServerMetadataUrl", "uri")]
    assert oauth_faults({"scopes": ["a", ""]}) == [("/a/oauth/scopes/1", "too_short")]
    assert oauth_faults({"scopes": "a"}) == [("/a/oauth/scopes", "type")]
    assert oauth_faults({"clientId": 1}) == [("/a/oauth/clientId", "type")]
    assert oauth_faults([]) == [("/a/oauth", "type")]


@pytest.mark.requirement("catalog-schema-name-pattern")
def test_names_are_letters_digits_and_five_signs():
    refused = {
        "a.b": "/a.b",
        "a b": "/a b",
        "@x/a": "/@x~1a",
        "a/b": "/a~1b",
        "": "/",
        "é": "/é",
        "a\n": "/a\n",
    }
    for name, at in refused.items():
        assert faults(STDIO, name) == [(at, "name", "property name must be valid")]
    for name in ("$a[1]_-", "zimmer-self-session", "A", "0", "__proto__"):
        assert faults(STDIO, name) == []


@pytest.mark.requirement("catalog-schema-entry-object")
@pytest.mark.parametrize("entry", [None, "x", 1, True, [], [STDIO]])
def test_an_entry_that_is_no_object_is_refused_as_a_whole(entry):
    assert faults(entry) == [("/a", "type", "must be object")]


@pytest.mark.requirement("catalog-schema-wrapper-misread")
def test_a_wrapped_file_is_one_server_without_a_type():
    assert [fault[:2] for fault in faults({"a": STDIO}, "mcpServers")] == [("/mcpServers/type", "required")]


def test_the_schema_key_must_be_a_text_and_is_no_entry():
    assert validate({"$schema": "x"}) == ()
    assert [fault[:2] for fault in faults({}, "$schema")] == [("/$schema", "type")]


def test_faults_are_sorted_and_each_is_said_once():
    catalog = {"b": {"type": "stdio", "url": "nowhere"}, "a": {"type": "sse", "oauth": {"scopes": ["", 1]}}}
    assert [fault[:2] for fault in validate(catalog)] == [
        ("/a/oauth/scopes/0", "too_short"),
        ("/a/oauth/scopes/1", "type"),
        ("/a/url", "required"),
        ("/b/command", "required"),
        ("/b/url", "forbidden"),
        ("/b/url", "uri"),
    ]


def forbid_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **_: Any) -> None:
        raise AssertionError(f"opened a connection: {arguments}")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setattr("socket.socket", refuse)
    monkeypatch.setattr("socket.create_connection", refuse)


@pytest.mark.requirement("catalog-schema-validation-offline")
def test_validation_opens_no_connection(monkeypatch):
    forbid_connections(monkeypatch)
    catalog = {
        "$schema": SCHEMA_URL,
        "a": {"type": "http"},
        "b": REMOTE,
    }
    assert [fault[:2] for fault in validate(catalog)] == [("/a/type", "enum")]


@pytest.mark.requirement("catalog-schema-validation-offline")
def test_another_copy_of_the_schema_is_compared_place_by_place():
    installed = deepcopy(published_schema())
    assert drift(installed) == ()
    installed["$defs"]["ServerConfiguration"]["properties"]["title"]["maxLength"] = 80
    installed["$defs"]["ServerConfiguration"]["properties"]["title"]["description"] = "said otherwise"
    installed["$defs"]["ServerConfiguration"]["required"].append("title")
    assert [difference.at for difference in drift(installed)] == [
        "/$defs/ServerConfiguration/properties/title/maxLength",
        "/$defs/ServerConfiguration/required",
    ]


@pytest.mark.requirement("catalog-snapshot-not-authority")
def test_where_the_local_copy_disagrees_the_published_schema_decides(monkeypatch):
    forbid_connections(monkeypatch)
    catalog = {"$x": {**REMOTE, "oauth": {"clientId": "c"}, "default_in_roots": ["r"]}}
    assert list(build_validator(snapshot_schema()).iter_errors(catalog)) != []
    assert validate(catalog) == ()
    assert [fault[:2] for fault in validate({"a": {**REMOTE, "oauth": 1}})] == [("/a/oauth", "type")]


@pytest.mark.requirement("catalog-snapshot-drift-listed")
def test_the_local_copy_lacks_the_dollar_in_names_oauth_and_default_in_roots():
    assert {difference.at: difference.other for difference in drift()} == {
        "/$id": snapshot_schema()["$id"],
        "/propertyNames/pattern": r"^[a-zA-Z0-9_\[\]-]+$",
        "/$defs/OAuthConfiguration": None,
        "/$defs/ServerConfiguration/allOf/0/then/properties/oauth": None,
        "/$defs/ServerConfiguration/properties/oauth": None,
        "/$defs/ServerConfiguration/properties/default_in_roots": None,
    }


@pytest.mark.requirement("catalog-snapshot-drift-listed")
def test_texts_for_people_are_no_drift_but_a_server_field_of_that_name_is():
    other = deepcopy(published_schema())
    other["title"] = "said otherwise"
    assert drift(other) == ()
    del other["$defs"]["ServerConfiguration"]["properties"]["title"]
    assert [difference.at for difference in drift(other)] == ["/$defs/ServerConfiguration/properties/title"]


def test_both_copies_are_draft_07_schemas():
    for schema in (published_schema(), snapshot_schema()):
        assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
        Draft7Validator.check_schema(schema)
    assert '"$id"' in snapshot_text()
