"""Reading entries and the catalog around them."""

from __future__ import annotations

import builtins
import io
from copy import deepcopy
from typing import Any

import pytest

from fake_runtimes.air.adapters import claude_entry, codex_entry
from harness.preparation import RUNTIMES
from harness.reference.catalog.catalog import UnknownServerError, read_catalog
from harness.reference.catalog.composition import CompositionError, Source, compose
from harness.reference.catalog.connection import connectable
from harness.reference.catalog.entry import read_entry
from harness.reference.catalog.readers import CatalogError, artifacts, read_agent_roots, read_servers
from harness.reference.catalog.roots import read_roots
from harness.reference.catalog.schema import SCHEMA_URL
from harness.reference.credentials.key import credential_key
from harness.reference.credentials.state import StoredCredential
from harness.reference.oauth.capability import oauth_capable
from harness.reference.prepare import seeding
from harness.reference.prepare.budgets import codex_table, pi_entry
from harness.reference.readiness.probe import judge, judge_all
from harness.reference.secrets.interpolator import resolve_entry
from harness.reference.secrets.loader import SecretsLoader
from harness.reference.surfaces.options import options
from scenarios.preparing import prepared

STDIO = {"type": "stdio", "command": "npx", "args": ["-y", "p"]}
REMOTE = {"type": "sse", "url": "https://x.test/mcp"}
FULL = {
    "title": "Full",
    "description": "Has every field.",
    "type": "sse",
    "command": "c",
    "args": ["a"],
    "env": {"E": "e"},
    "url": "https://x.test/mcp",
    "headers": {"H": "h"},
    "oauth": {"clientId": "id", "scopes": ["s"]},
    "default_in_roots": ["r"],
    "unavailable": " Retired. ",
    "startup_timeout_sec": 20,
}
NO_SECRETS = SecretsLoader().resolution


def never_stored(_key):
    return None


@pytest.mark.requirement("catalog-entry-is-the-config")
def test_an_entry_loads_from_the_index_alone(monkeypatch):
    def refuse(*arguments, **_):
        raise AssertionError(f"opened {arguments[0]}")

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(io, "open", refuse)
    catalog = read_catalog({"a": {**STDIO, "path": "bodies/a.md", "file": "b.md"}, "b": REMOTE})
    monkeypatch.undo()

    assert catalog.names == ("a", "b")
    assert catalog.require("a").command == "npx"
    assert catalog.require("a").args == ("-y", "p")
    assert catalog.require("b").url == "https://x.test/mcp"


@pytest.mark.requirement("catalog-flat-name-map")
@pytest.mark.parametrize("reserved", [SCHEMA_URL, {"type": "stdio", "command": "x"}])
def test_only_the_schema_key_is_no_server(reserved):
    assert read_catalog({"$schema": reserved, "a": STDIO, "b": REMOTE}).names == ("a", "b")
    assert read_catalog({"a": STDIO, "b": REMOTE}).names == ("a", "b")


@pytest.mark.requirement("catalog-known-fields")
def test_the_twelve_fields_have_accessors_and_others_only_stay_in_the_raw_entry():
    entry = read_entry("full", {**FULL, "frob": 1})

    assert entry.title == "Full"
    assert entry.description == "Has every field."
    assert entry.type == "sse"
    assert entry.command == "c"
    assert entry.args == ("a",)
    assert entry.env == {"E": "e"}
    assert entry.url == "https://x.test/mcp"
    assert entry.headers == {"H": "h"}
    assert (entry.oauth.client_id, entry.oauth.raw) == ("id", FULL["oauth"])
    assert entry.default_in_roots == ("r",)
    assert entry.unavailable == "Retired."
    assert entry.startup_timeout_sec == 20
    assert entry.raw["frob"] == 1


@pytest.mark.requirement("catalog-known-fields")
@pytest.mark.parametrize("raw", [STDIO, REMOTE, FULL, {**STDIO, "env": {"A": "${T}"}}])
def test_an_unknown_field_influences_nothing(raw):
    plain, odd = read_catalog({"a": raw}), read_catalog({"a": {**raw, "frob": 1}})
    judged = [judge_all(catalog, NO_SECRETS, never_stored) for catalog in (plain, odd)]

    assert odd.names == ("a",)
    assert judged[0] == judged[1]
    assert options(plain, judged[0]) == options(odd, judged[1])
    assert plain.require("a").credential_config() == odd.require("a").credential_config()
    for runtime in RUNTIMES:
        texts = [prepared(runtime, ["a"], {"a": entry}, {"T": "t"}).text for entry in (raw, {**raw, "frob": 1})]
        assert texts[0] == texts[1]
    assert connectable(plain.entries.values()).warnings == connectable(odd.entries.values()).warnings


@pytest.mark.requirement("catalog-transport-values")
@pytest.mark.parametrize(
    ("transport", "stdio", "remote"),
    [
        ("stdio", True, False),
        ("sse", False, True),
        ("streamable-http", False, True),
        ("http", False, True),
        ("HTTP", False, False),
        ("Stdio", False, False),
        ("streamableHttp", False, False),
        ("streamable_http", False, False),
        ("ws", False, False),
        (" sse", False, False),
        (None, False, False),
        (1, False, False),
    ],
)
def test_a_transport_is_recognised_by_its_exact_spelling(transport, stdio, remote):
    entry = read_entry("a", {"type": transport})
    assert (entry.stdio, entry.remote) == (stdio, remote)


@pytest.mark.requirement("catalog-transport-values")
def test_an_entry_without_a_type_is_neither_stdio_nor_remote():
    entry = read_entry("a", {"command": "x", "url": "https://x.test"})
    assert (entry.stdio, entry.remote) == (False, False)


@pytest.mark.requirement("catalog-http-alias-everywhere")
@pytest.mark.parametrize("stored", [None, StoredCredential(3600.0)])
def test_http_and_streamable_http_are_one_transport(stored):
    body = {"url": "https://x.test/mcp", "headers": {"X-Team": "a"}}
    http, streamable = (read_entry("a", {"type": spelling, **body}) for spelling in ("http", "streamable-http"))
    key = credential_key("a", streamable.credential_config())

    def row(asked):
        return stored if asked == key else None

    assert http.remote
    assert streamable.remote
    assert oauth_capable(http.raw) is oauth_capable(streamable.raw) is True
    assert judge("a", http, NO_SECRETS, row) == judge("a", streamable, NO_SECRETS, row)
    assert connectable([http]).warnings == connectable([streamable]).warnings == ()
    assert seeding.seeded_entry(http) == seeding.seeded_entry(streamable)
    assert claude_entry(http.raw) == claude_entry(streamable.raw)
    assert codex_entry(http.raw) == codex_entry(streamable.raw)
    assert pi_entry(body, 300) == {**body, "requestTimeoutMs": 300_000}
    assert codex_table(body, 300) == {**body, "startup_timeout_sec": 300}


@pytest.mark.requirement("catalog-stdio-fields")
@pytest.mark.parametrize("broken", [{}, {"command": ""}, {"command": "  "}, {"command": None}, {"command": ["npx"]}])
def test_a_stdio_entry_without_a_command_is_left_out_alone(broken):
    catalog = read_catalog({"bad": {"type": "stdio", **broken}, "good": {**STDIO, "env": {"A": "b"}}})
    result = connectable(catalog.entries.values())

    assert [entry.name for entry in result.entries] == ["good"]
    assert result.entries[0].env == {"A": "b"}
    assert len(result.warnings) == 1
    assert "'bad'" in result.warnings[0]
    assert "command" in result.warnings[0]
    seeded = seeding.seed(catalog.names, catalog)
    assert (tuple(seeded.entries), seeded.warnings) == (("good",), result.warnings)


@pytest.mark.requirement("catalog-remote-fields")
@pytest.mark.parametrize("transport", ["sse", "streamable-http", "http"])
@pytest.mark.parametrize("broken", [{}, {"url": ""}, {"url": "\n"}, {"url": 1}])
def test_a_remote_entry_without_a_url_is_left_out_alone(transport, broken):
    catalog = read_catalog({"bad": {"type": transport, **broken}, "good": REMOTE})
    result = connectable(catalog.entries.values())

    assert [entry.name for entry in result.entries] == ["good"]
    assert result.entries[0].headers == {}
    assert len(result.warnings) == 1
    assert "'bad'" in result.warnings[0]
    assert "url" in result.warnings[0]
    seeded = seeding.seed(catalog.names, catalog)
    assert (tuple(seeded.entries), seeded.warnings) == (("good",), result.warnings)


@pytest.mark.requirement("catalog-stdio-fields", "catalog-remote-fields")
def test_an_entry_of_no_known_transport_is_left_out_alone():
    catalog = read_catalog({"bad": {"type": "ws", "url": "wss://x.test"}, "good": STDIO})
    result = connectable(catalog.entries.values())
    assert [entry.name for entry in result.entries] == ["good"]
    assert "type" in result.warnings[0]


@pytest.mark.requirement("catalog-oauth-field-scope")
def test_an_oauth_block_means_nothing_on_a_stdio_entry():
    block = {"clientId": "c", "clientSecret": "s", "redirectUri": "https://r.test/"}
    stdio, remote = read_entry("a", {**STDIO, "oauth": block}), read_entry("b", {**REMOTE, "oauth": block})

    assert not oauth_capable(stdio.raw)
    assert stdio.flow_client.client_id is None
    assert stdio.flow_client.raw == {}
    assert remote.flow_client.client_id == "c"
    assert remote.flow_client.client_secret == "s"
    assert remote.flow_client.redirect_uri == "https://r.test/"
    assert stdio.credential_config() == {"type": "stdio"}
    for written in (seeding.seeded_entry(stdio), claude_entry(stdio.raw), codex_entry(stdio.raw)):
        assert "oauth" not in written


@pytest.mark.requirement("catalog-oauth-field-scope")
def test_oauth_capability_follows_the_transport_and_not_the_block():
    assert oauth_capable(read_entry("a", REMOTE).raw)
    assert not oauth_capable(read_entry("a", {**STDIO, "oauth": {}}).raw)


@pytest.mark.requirement("catalog-oauth-keys")
@pytest.mark.parametrize(
    ("block", "client"),
    [
        ({"clientId": "a", "client_id": "b"}, ("a", None, None)),
        ({"client_id": "b", "client_secret": "s"}, ("b", "s", None)),
        ({"clientSecret": "s", "client_secret": "t", "redirect_uri": "u"}, (None, "s", "u")),
        ({"redirectUri": "v", "redirect_uri": "u"}, (None, None, "v")),
        ({"clientId": " ", "clientSecret": ""}, (None, None, None)),
        ({"authServerMetadataUrl": "https://a.test/x", "scopes": ["a"]}, (None, None, None)),
        ({}, (None, None, None)),
        (None, (None, None, None)),
        ("text", (None, None, None)),
    ],
)
def test_oauth_members_are_read_in_camel_case_first(block, client):
    oauth = read_entry("a", {**REMOTE, "oauth": block}).oauth
    assert (oauth.client_id, oauth.client_secret, oauth.redirect_uri) == client
    assert oauth.raw == (block if isinstance(block, dict) else {})


@pytest.mark.requirement("catalog-absent-field-defaults")
@pytest.mark.parametrize("explicit", [{}, dict.fromkeys(field for field in FULL if field not in ("type", "command"))])
def test_absent_and_null_fields_get_their_defaults(explicit):
    entry = read_entry("plain", {"type": "stdio", "command": "npx", **explicit})
    assert (entry.title, entry.description) == ("plain", None)
    assert (entry.args, dict(entry.env), dict(entry.headers), dict(entry.oauth.raw)) == ((), {}, {}, {})
    assert (entry.url, entry.default_in_roots) == (None, ())
    assert (entry.unavailable, entry.startup_timeout_sec) == (None, None)


@pytest.mark.requirement("catalog-lookup-exact")
@pytest.mark.parametrize("name", ["Context7", "context", "context7 ", "$schema", ""])
def test_a_server_is_found_by_its_exact_name_only(name):
    catalog = read_catalog({"$schema": SCHEMA_URL, "context7": STDIO})

    assert catalog.require("context7").name == "context7"
    assert catalog.find(name) is None
    with pytest.raises(UnknownServerError) as raised:
        catalog.require(name)
    assert str(raised.value) == f"Server '{name}' not found in catalog"


@pytest.mark.requirement("catalog-placeholder-fields-in-format")
def test_placeholders_in_env_and_headers_are_filled_whole_and_embedded():
    entry = read_entry(
        "a", {**REMOTE, "env": {"A": "${T}", "B": "<${T}>"}, "headers": {"Authorization": "Bearer ${T}"}}
    )
    written = resolve_entry(entry.raw, {"T": "v"}.get)
    assert written["env"] == {"A": "v", "B": "<v>"}
    assert written["headers"] == {"Authorization": "Bearer v"}


@pytest.mark.requirement("catalog-schema-wrapper-misread")
def test_a_wrapped_file_is_not_unwrapped():
    assert read_catalog({"mcpServers": {"a": STDIO, "b": REMOTE}}).names == ("mcpServers",)


@pytest.mark.requirement("catalog-readonly")
def test_nothing_that_reads_a_catalog_changes_it():
    tree = {
        "a": {**STDIO, "env": {"T": "${T}"}, "startup_timeout_sec": 900},
        "b": {**REMOTE, "headers": {"Authorization": "Bearer ${T}"}, "unavailable": "x  y"},
        "c": FULL,
    }
    before = deepcopy(tree)
    catalog = read_catalog(tree)
    judge_all(catalog, SecretsLoader(environment={"T": "the-secret"}).resolution, never_stored)
    written = {name: resolve_entry(entry.raw, {"T": "the-secret"}.get) for name, entry in catalog.entries.items()}
    for name, entry in written.items():
        codex_table(entry, catalog.require(name).raw.get("startup_timeout_sec"))
        pi_entry(entry, catalog.require(name).raw.get("startup_timeout_sec"))

    assert written["a"]["env"]["T"] == "the-secret"
    assert tree == before
    assert "${T}" in catalog.snapshot_text()
    assert "the-secret" not in catalog.snapshot_text()


def failing():
    raise CatalogError("air exited with 1")


@pytest.mark.requirement("catalog-readers-degrade-empty")
def test_a_catalog_that_cannot_be_resolved_reads_as_an_empty_one():
    try:
        servers, roots = read_servers(failing), read_agent_roots(failing)
    except CatalogError as error:
        pytest.fail(f"a reader let the error through: {error}")

    assert servers.catalog.names == ()
    assert [line.level for line in servers.log] == ["warning"]
    assert dict(roots.roots) == {}
    assert [line.level for line in roots.log] == ["error"]
    assert options(servers.catalog, ()) == ()


@pytest.mark.requirement("catalog-readers-degrade-empty")
def test_a_resolved_tree_is_read_without_a_word():
    def resolve():
        return {"mcp": {"a": STDIO}, "roots": {"r": {}}}

    assert (read_servers(resolve).catalog.names, read_servers(resolve).log) == (("a",), ())
    assert (tuple(read_agent_roots(resolve).roots), read_agent_roots(resolve).log) == (("r",), ())


@pytest.mark.requirement("catalog-resolve-type-guard")
def test_what_is_no_object_in_a_resolved_tree_counts_as_absent():
    servers: dict[str, Any] = {"good": {}, "bogus": "x", "nothing": None}
    tree = {"mcp": servers, "roots": []}
    assert tuple(artifacts(tree, "mcp")) == ("good",)
    assert artifacts(tree, "roots") == artifacts(tree, "plugins") == {}
    assert read_catalog(servers).names == ("good",)


@pytest.mark.requirement("catalog-compose-union-only")
def test_catalogs_are_united_and_never_override_each_other():
    united = compose([Source("a.json", {"a": STDIO}), Source("b.json", {"a": REMOTE}, "owner/repo")])
    assert united == {"@local/a": STDIO, "@owner/repo/a": REMOTE}
    with pytest.raises(CompositionError) as raised:
        compose(
            [
                Source("one.json", {"$schema": "x", "a": STDIO}),
                Source("two.json", {"$schema": "x", "a": REMOTE}),
            ]
        )
    assert str(raised.value).startswith('Duplicate mcp ID "@local/a" produced by both "one.json" and "two.json"')


@pytest.mark.requirement("catalog-compose-bare-keys")
def test_a_qualified_key_is_refused():
    with pytest.raises(CompositionError) as raised:
        compose([Source("one.json", {"@x/a": STDIO})])
    assert str(raised.value).startswith(
        'Artifact index entry must use a bare shortname; got qualified ID "@x/a" in one.json.'
    )


def test_a_root_is_read_with_its_subagent_roots():
    roots = read_roots(
        {"$schema": "x", "r": {"display_name": "R", "default_subagent_roots": ["s", 1]}, "s": {}, "t": 1}
    )
    assert tuple(roots) == ("r", "s")
    assert (roots["r"].display_name, roots["r"].default_subagent_roots) == ("R", ("s",))
    assert (roots["s"].display_name, roots["s"].description) == ("s", None)


def test_a_name_that_javascript_swallows_is_no_server():
    assert read_catalog({"__proto__": STDIO, "a": STDIO}).names == ("a",)
