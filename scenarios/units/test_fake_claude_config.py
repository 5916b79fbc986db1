"""How the fake Claude Code reads `.mcp.json`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fake_runtimes.claude.config import read_config, read_project
from fake_runtimes.claude.expansion import expand
from fake_runtimes.claude.urls import is_url
from fake_runtimes.profile import load_profile

OLDER: Any = load_profile("claude-2.1.268")
NEWER: Any = load_profile("claude-2.1.328")
GOOD = {"command": "good"}


def loaded(entries, profile=OLDER, environment=None):
    return read_config(json.dumps({"mcpServers": entries}), environment or {}, profile)


def only(entry, profile=OLDER, environment=None):
    """The one server of the entry, or None, and what is said of it."""
    found = loaded({"x": entry, "good": GOOD}, profile, environment)
    assert found.servers[-1].name == "good"
    server = next((server for server in found.servers if server.name == "x"), None)
    return server, tuple((problem.code, problem.text) for problem in found.problems)


@pytest.mark.parametrize(("declared", "transport"), [("http", "http"), ("streamable-http", "http"), ("sse", "sse")])
def test_a_remote_type_becomes_its_transport(declared, transport):
    server, said = only({"type": declared, "url": "https://x.test/mcp"})
    assert server.transport == transport
    assert said == ()


def test_a_command_without_type_is_stdio():
    server, said = only({"command": "c", "args": ["a"], "env": {"E": "e"}, "title": "T", "startupTimeoutSec": 6})
    assert (server.transport, server.command, server.args, server.env) == ("stdio", "c", ("a",), {"E": "e"})
    assert said == ()


URL_WITHOUT_TYPE = (
    'Skipped — MCP server "x" has a "url" but no "type"; add "type": "http" (or "sse" / "ws") to this entry'
)
INVALID = 'Skipped — invalid MCP server config for "x": '
MISTAKEN = (
    'mcpServers: Missing "mcpServers" — found "servers" instead.'
    ' Claude Code reads MCP servers from the "mcpServers" key.'
)
SDK = 'Skipped — MCP server "x" declares type "sdk", which only an SDK host application can register'


@pytest.mark.parametrize(
    ("entry", "older", "newer"),
    [
        ({"url": "https://x.test"}, URL_WITHOUT_TYPE, URL_WITHOUT_TYPE),
        ({"type": "HTTP", "url": "https://x.test"}, *['Skipped — unknown MCP server type "HTTP" for server "x"'] * 2),
        ({"type": "sdk"}, "", SDK),
        ({"type": None}, INVALID + "type: Invalid input", INVALID + 'type: expected "stdio"'),
        ({"type": "http"}, INVALID + "url: Invalid input", INVALID + "url: expected string, received undefined"),
        ({}, INVALID + "command: Invalid input", INVALID + "command: expected string, received undefined"),
        ({"command": ""}, *[INVALID + "command: Command cannot be empty"] * 2),
        (
            {"command": "c", "args": ["a", 1]},
            INVALID + "args.1: Invalid input",
            INVALID + "args.1: expected string, received number",
        ),
        (
            {"command": "c", "env": {"N": True}},
            INVALID + "env.N: Invalid input",
            INVALID + "env.N: expected string, received boolean",
        ),
        (
            {"type": "http", "url": "https://x.test", "headers": {"H": 1}},
            INVALID + "headers.H: Invalid input",
            INVALID + "headers.H: expected string, received number",
        ),
        ([], INVALID + "(root): Invalid input", INVALID + "(root): expected object, received array"),
        (
            {"type": "http", "url": "https://x.test", "oauth": {"authServerMetadataUrl": "http://a.test"}},
            *[INVALID + "oauth.authServerMetadataUrl: authServerMetadataUrl must use https://"] * 2,
        ),
    ],
)
def test_a_bad_entry_is_skipped_alone_in_the_words_of_the_version(entry, older, newer):
    assert only(entry, OLDER) == (None, (("skipped", older),))
    assert only(entry, NEWER) == (None, (("skipped", newer),))


def test_websocket_entries_are_loaded_by_the_newer_version_alone():
    entry = {"type": "ws", "url": "wss://x.test"}
    assert only(entry, OLDER) == (None, (("skipped", ""),))
    assert only(entry, NEWER)[0].transport == "ws"


@pytest.mark.parametrize("name", ["workspace", "claude-in-chrome", "computer-use"])
def test_a_reserved_name_is_not_loaded(name):
    found = loaded({name: GOOD, "ide": GOOD})
    assert [server.name for server in found.servers] == ["ide"]
    assert found.problems[0].text == f'"{name}" is a reserved MCP server name and was not loaded'


@pytest.mark.parametrize(
    ("text", "older", "newer"),
    [
        ('{"mcpServers": x}', "MCP config is not a valid JSON", "MCP config is not a valid JSON (line 1, column 16)"),
        ("// c\n{}", "MCP config is not a valid JSON", "MCP config is not a valid JSON (line 1, column 1)"),
        ('{"NaN":\n NaN}', "MCP config is not a valid JSON", "MCP config is not a valid JSON (line 2, column 2)"),
        ('{"servers": {}}', *[MISTAKEN] * 2),
        ("{}", "mcpServers: Invalid input", "mcpServers: Invalid input: expected record, received undefined"),
        (
            '{"mcpServers": []}',
            "mcpServers: Invalid input",
            "mcpServers: Invalid input: expected record, received array",
        ),
        ("[]", "Invalid input", "Invalid input: expected object, received array"),
    ],
)
def test_a_bad_file_loses_every_server(text, older, newer):
    for profile, said in ((OLDER, older), (NEWER, newer)):
        found = read_config(text, {}, profile)
        assert found.servers == ()
        assert [(problem.server, problem.code, problem.text) for problem in found.problems] == [
            (None, "file_lost", said)
        ]
        assert not found.run_killed


def test_a_trailing_comma_loses_the_file():
    for profile in (OLDER, NEWER):
        found = read_config('{"mcpServers": {"a": {"command": "c"},}}', {}, profile)
        assert (found.servers, [problem.code for problem in found.problems]) == ((), ["file_lost"])


def test_an_empty_file_is_an_error_to_the_older_version_and_nothing_to_the_newer():
    assert [problem.code for problem in read_config("", {}, OLDER).problems] == ["file_lost"]
    assert read_config("", {}, NEWER) == read_config(None, {}, NEWER) == ((), ())


def test_a_byte_order_mark_extra_keys_and_repeated_keys_are_accepted():
    found = read_config('\ufeff{"x": 1, "mcpServers": {"a": {"command": "1"}, "a": {"command": "2"}}}', {}, OLDER)
    assert [(server.name, server.command) for server in found.servers] == [("a", "2")]
    assert found.problems == ()


@pytest.mark.requirement("prepare-empty-servers-key")
def test_an_empty_servers_table_is_accepted_where_an_empty_object_is_an_error():
    for profile in (OLDER, NEWER):
        assert read_config('{"mcpServers": {}}', {}, profile) == ((), ())
        assert [problem.code for problem in read_config("{}", {}, profile).problems] == ["file_lost"]


@pytest.mark.requirement("prepare-claude-never-settings-json")
def test_a_servers_table_in_a_settings_file_registers_no_server():
    table = json.dumps({"mcpServers": {"a": GOOD}})
    for profile in (OLDER, NEWER):
        settings = {".claude/settings.json": table, ".claude/settings.local.json": table}
        assert read_project(settings, {}, profile) == ((), ())
        with_own_file = read_project({**settings, ".mcp.json": '{"mcpServers": {"b": {"command": "c"}}}'}, {}, profile)
        assert [server.name for server in with_own_file.servers] == ["b"]


@pytest.mark.parametrize(
    ("text", "expanded", "unset"),
    [
        ("${S}", "value", ()),
        ("${E}", "", ()),
        ("${E:-e}", "", ()),
        ("${U:-e}", "e", ()),
        ("${U:-}", "", ()),
        ("${U:-${S}}", "${S}", ()),
        ("$S $$ ${} ${bad-name} ${1X} ${A.B}", "$S $$ ${} ${bad-name} ${1X} ${A.B}", ()),
        ("$${S}", "$value", ()),
        ("\\${S}", "\\value", ()),
        ("${U}/${V}/${U}", "${U}/${V}/${U}", ("U", "V")),
    ],
)
def test_variables_expand_by_the_grammar_of_the_runtime(text, expanded, unset):
    assert expand(text, {"S": "value", "E": ""}) == (expanded, unset)


def test_an_unset_variable_stays_literal_with_a_warning_and_the_server_starts():
    server, said = only({"command": "${U}", "args": ["${V}"], "env": {"${S}": "${S}"}}, environment={"S": "s"})
    assert (server.command, server.args, server.env) == ("${U}", ("${V}",), {"${S}": "s"})
    assert server.starts
    assert server.unset == ("U", "V")
    assert said == (("warning", "Missing environment variables: U, V"),)


def test_an_invalid_url_is_loaded_and_fails():
    server, said = only({"type": "http", "url": "${U}"})
    fault = "'url' is not a valid URL. Update the server's config and reconnect."
    assert (server.starts, server.fault) == (False, fault)
    assert said[-1] == ("server_fails", fault)
    assert only({"type": "http", "url": ""})[0].fault == "Not configured"


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("https://x.test/mcp", True),
        (" http://x.test ", True),
        ("HTTP://LOCALHOST:80", True),
        ("http://u:p@x.test", True),
        ("http://[::1]:8080/", True),
        ("http://x.test:65535", True),
        ("http://x.test:65536", False),
        ("http://x.test:80a", False),
        ("http://", False),
        ("http://a b/", False),
        ("x.test/mcp", False),
        ("/mcp", False),
        ("", False),
    ],
)
def test_a_url_is_what_a_browser_takes_for_one(text, valid):
    assert is_url(text) is valid
