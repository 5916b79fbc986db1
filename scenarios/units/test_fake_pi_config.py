"""How the fake Pi adapter reads its configuration."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fake_runtimes.pi.config import oauth_considered, read_config
from fake_runtimes.pi.expansion import expand
from fake_runtimes.pi.startup import child_environment
from fake_runtimes.profile import load_profile

OLDER: Any = load_profile("pi-0.84.1+2.32.1")
NEWER: Any = load_profile("pi-0.86.1+2.36.0")
BOTH = (OLDER, NEWER)
GOOD = {"command": "good"}
URL = "https://x.test/mcp"


def loaded(entries, environment=None, profile=OLDER):
    return read_config(json.dumps({"mcpServers": entries}), environment or {}, profile)


def only(entry, environment=None, profile=OLDER):
    found = loaded({"x": entry, "good": GOOD}, environment, profile)
    assert found.servers[-1].name == "good"
    assert found.servers[-1].starts
    return found.servers[0]


NOT_ONE = "Server x must configure exactly one of command, url, or socket"


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({}, NOT_ONE),
        ({"command": "c", "url": URL}, NOT_ONE),
        ({"command": 5}, NOT_ONE),
        ({"command": "c", "args": "a"}, "(definition.args ?? []).map is not a function"),
        ({"command": "c", "env": {"N": 1}}, "value.startsWith is not a function"),
        ({"url": "https://${HOST}/mcp"}, "Missing environment variable in MCP server URL: HOST"),
        ({"command": "c", "cwd": "$env:NOWHERE"}, 'MCP server "x" configured cwd does not exist: ""'),
    ],
)
def test_a_bad_entry_fails_alone_with_its_text(entry, fault):
    for profile in BOTH:
        found = loaded({"x": entry, "good": GOOD}, {}, profile)
        assert [(server.name, server.starts) for server in found.servers] == [("x", False), ("good", True)]
        assert found.servers[0].fault == fault
        assert found.problems == (("x", "server_fails", f"MCP: Failed to connect to x: {fault}"),)


@pytest.mark.parametrize("entry", ["text", None, []])
def test_an_entry_that_is_no_object_is_dropped_silently(entry):
    found = loaded({"x": entry, "good": GOOD})
    assert [server.name for server in found.servers] == ["good"]
    assert found.problems == (("x", "skipped", ""),)


def test_unknown_fields_and_the_type_are_ignored():
    entry = {"type": "sse", "url": URL, "title": "T", "startup_timeout_sec": "x", "unavailable": 1}
    assert (only(entry).transport, only(entry).starts) == ("http", True)


def test_comments_trailing_commas_and_the_alias_are_accepted():
    text = '{// one\n"mcp-servers": {"a": {"command": "c", /* two, */ "args": ["//", "/*,]*/",],},},}'
    for profile in BOTH:
        found = read_config(text, {}, profile)
        assert [(server.command, server.args) for server in found.servers] == [("c", ("//", "/*,]*/"))]
        assert found.problems == ()


@pytest.mark.requirement("prepare-empty-servers-key")
def test_an_empty_servers_table_is_no_fault():
    for profile in BOTH:
        assert read_config('{"mcpServers": {}}', {}, profile) == ((), ())


def test_an_invalid_file_loses_its_own_servers_alone():
    files = {".mcp.json": '{"mcpServers": {', ".pi/mcp.json": '{"mcpServers": {"a": {"command": "c"}}}'}
    for profile in BOTH:
        found = read_config(files, {}, profile)
        assert [server.name for server in found.servers] == ["a"]
        assert [(problem.server, problem.code) for problem in found.problems] == [(None, "file_lost")]
        assert found.problems[0].text.startswith("Failed to load MCP config from .mcp.json: SyntaxError: ")


def test_empty_files_and_settings_that_are_no_object_differ_by_version():
    assert [problem.code for problem in read_config("", {}, OLDER).problems] == ["file_lost"]
    assert read_config("", {}, NEWER) == ((), ())
    odd = '{"settings": [], "mcpServers": {"a": {"command": "c"}}}'
    assert [server.name for server in read_config(odd, {}, OLDER).servers] == ["a"]
    assert [problem.code for problem in read_config(odd, {}, NEWER).problems] == ["file_lost"]


def test_a_server_is_disabled_only_by_a_literal_true():
    assert loaded({"x": {**GOOD, "disabled": True}}) == ((), (("x", "skipped", "⊘ x (disabled)"),))
    assert only({**GOOD, "disabled": "true"}).starts


@pytest.mark.parametrize(
    ("text", "expanded", "unset"),
    [
        ("${S} $env:S {env:S}", "s s s", ()),
        ("[${U}$env:V{env:U}]", "[]", ("U", "V")),
        ("$S ${S:-default} ${} $$", "$S ${S:-default} ${} $$", ()),
        ("${N}", "{env:S}", ()),
    ],
)
def test_three_spellings_expand_and_an_unset_one_is_empty(text, expanded, unset):
    assert expand(text, {"S": "s", "N": "{env:S}"}) == (expanded, unset)


def test_everything_but_the_command_expands():
    entry = {"command": "${S}", "args": ["$env:S", "${U}"], "env": {"${S}": "{env:S}"}}
    server = only(entry, {"S": "s"})
    assert (server.command, server.args, server.env) == ("${S}", ("s", ""), {"${S}": "s"})
    assert (server.unset, server.starts) == (("U",), True)
    remote = only({"url": URL + "?k=${S}", "headers": {"H": "Bearer ${U}"}}, {"S": "s"})
    assert (remote.url, remote.headers, remote.starts) == (URL + "?k=s", {"H": "Bearer "}, True)


def test_a_command_value_is_kept_with_a_warning_and_a_doubled_mark_is_literal():
    found = loaded({"x": {"command": "c", "env": {"A": "!pass ${S}", "B": "!!${S}"}}}, {"S": "s"})
    assert found.servers[0].env == {"A": "!pass ${S}", "B": "!s"}
    assert [(problem.code, problem.text.split()[0]) for problem in found.problems] == [("warning", "env.A")]


def test_a_bearer_token_counts_only_with_the_auth_that_asks_for_it():
    entry = {"url": URL, "bearerToken": "${T}"}
    assert only(entry, {"T": "t"}).headers == {}
    assert only({**entry, "auth": "bearer"}, {"T": "t"}).headers == {"Authorization": "Bearer t"}
    by_variable = {"url": URL, "auth": "bearer", "bearerTokenEnv": "T"}
    assert only(by_variable, {"T": "t"}).headers == {"Authorization": "Bearer t"}


@pytest.mark.parametrize(
    ("fields", "considered"),
    [
        ({}, True),
        ({"auth": "oauth"}, True),
        ({"auth": "oauth", "headers": {"X-Route": "1"}}, True),
        ({"headers": {"X-Route": "1"}}, False),
        ({"auth": False}, False),
        ({"auth": "bearer"}, False),
        ({"oauth": False}, False),
        ({"oauth": False, "auth": "oauth"}, False),
    ],
)
def test_oauth_is_considered_without_headers_or_when_asked_for(fields, considered):
    assert oauth_considered(only({"url": URL, **fields})) is considered
    assert not oauth_considered(only(GOOD))


def test_files_merge_field_by_field_in_the_runtime_s_order():
    files = {
        ".pi/mcp.json": {"x": {"requestTimeoutMs": 1}, "y": {"command": "c"}, "z": {"url": URL + "/2"}},
        ".mcp.json": {
            "x": {"command": "c", "env": {"A": "1"}},
            "y": {"url": URL, "headers": {"H": "h"}},
            "z": {"url": URL, "headers": {"H": "h"}, "lifecycle": "eager"},
        },
    }
    found = read_config({path: json.dumps({"mcpServers": servers}) for path, servers in files.items()}, {}, OLDER)
    assert {server.name: server.raw for server in found.servers} == {
        "x": {"command": "c", "env": {"A": "1"}, "requestTimeoutMs": 1},
        "y": {"command": "c"},
        "z": {"url": URL + "/2", "lifecycle": "eager"},
    }


def test_a_child_inherits_everything_unless_the_newer_version_is_told_not_to():
    parent = {"OPENAI_API_KEY": "k", "PATH": "/bin"}
    inheriting, closed = only({**GOOD, "env": {"N": "1"}}), only({**GOOD, "inheritEnv": False})
    for profile in BOTH:
        assert child_environment(inheriting, parent, profile) == {**parent, "N": "1"}
    assert child_environment(closed, parent, OLDER) == parent
    assert child_environment(closed, parent, NEWER) == {}
