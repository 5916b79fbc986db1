"""Zimmer's own servers: names, injection, retargeting."""

import json

import pytest

from harness.reference.secrets.placeholders import variables
from harness.reference.selection import zimmer
from harness.reference.selection.connection import connect, session_actions, tool_names
from harness.reference.selection.zimmer import Instance, inject, retarget

BASE_URL = "http://localhost:3000"
STAGING = Instance("staging", "https://staging.zimmer.example.com", "staging-key")
PRODUCTION_HOST = "https://zimmer.example.com"


@pytest.mark.requirement("selection-retarget-by-name")
@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("zimmer", True),
        ("zimmer-", True),
        ("zimmer-x", True),
        ("zimmerman", False),
        ("my-zimmer", False),
        ("Zimmer", False),
        ("ZIMMER-X", False),
        ("zimmer_x", False),
        (" zimmer", False),
        ("figma", False),
        ("", False),
    ],
)
def test_the_name_alone_makes_a_zimmer_server(name, ours):
    entry = {"type": "http", "url": f"{PRODUCTION_HOST}/mcp", "headers": {"X-API-Key": "prod-key"}}
    assert zimmer.is_zimmer_name(name) is ours
    assert (retarget(name, entry, STAGING) != entry) is ours


@pytest.mark.requirement("selection-self-session-covered")
@pytest.mark.parametrize(
    ("name", "url", "covers"),
    [
        ("zimmer", "https://z/mcp", True),
        ("zimmer", "https://z/mcp?allowed_agent_roots=docs", True),
        ("zimmer-full", "https://z/mcp?tool_groups=sessions,self_session", True),
        ("zimmer-full", "https://z/mcp?tool_groups=sessions%2Cself_session", True),
        ("zimmer-full", "https://z/mcp?tool_groups=sessions,+self_session", True),
        ("zimmer-full", "https://z/mcp?tool_groups=%20,%20", True),
        ("zimmer-full", "https://z/mcp?tool_groups=", True),
        ("zimmer-full", "https://z/mcp#?tool_groups=sessions", True),
        ("zimmer-sessions", "https://z/mcp?tool_groups=sessions", False),
        ("zimmer-sessions", "https://z/mcp?tool_groups=self_session&tool_groups=sessions", False),
        ("zimmer-sessions", "https://z/mcp?tool_groups=self_session_readonly", False),
        ("zimmer-sessions", "${BASE}/mcp?tool_groups=sessions", False),
        ("zimmer-local", None, False),
        ("zimmer-local", "", False),
        ("figma", "https://mcp.figma.com/mcp", False),
        ("zimmerman", "https://z/mcp", False),
        ("zimmer-self-session", "https://z/mcp?tool_groups=self_session", False),
    ],
)
def test_another_zimmer_server_covers_the_self_session_when_its_scope_has_it(name, url, covers):
    assert zimmer.self_session_covered({"figma": "https://f/mcp", name: url}) is covers


@pytest.mark.requirement("selection-self-session-url", "selection-subagent-entry-url")
@pytest.mark.parametrize(
    ("base_url", "groups", "roots", "url"),
    [
        ("http://localhost:4000", "self_session", None, "http://localhost:4000/mcp?tool_groups=self_session"),
        ("http://h/", "self_session", None, "http://h/mcp?tool_groups=self_session"),
        ("http://h", None, "a,b", "http://h/mcp?allowed_agent_roots=a%2Cb"),
        ("http://h", "s", "a b", "http://h/mcp?allowed_agent_roots=a+b&tool_groups=s"),
        ("http://h//", "", " ", "http://h/mcp"),
    ],
)
def test_an_injected_url_has_one_slash_and_a_sorted_escaped_query(base_url, groups, roots, url):
    assert zimmer.injected_url(base_url, groups, roots) == url


@pytest.mark.requirement("selection-auto-injected")
def test_the_self_session_server_is_injected_with_and_without_other_servers():
    expected = {"zimmer-self-session": f"{BASE_URL}/mcp?tool_groups=self_session"}
    assert inject({}, [], BASE_URL) == expected
    assert inject({"playwright-custom": None}, [], BASE_URL) == expected


@pytest.mark.requirement("selection-injected-names", "selection-subagent-entry-url")
def test_zimmer_is_injected_only_where_the_root_has_subagent_roots():
    assert list(inject({}, [], BASE_URL)) == list(inject({}, ["", " "], BASE_URL)) == ["zimmer-self-session"]
    assert inject({}, ["a", "b"], BASE_URL) == {"zimmer": f"{BASE_URL}/mcp?allowed_agent_roots=a%2Cb"}


@pytest.mark.requirement("selection-existing-zimmer-kept")
def test_a_zimmer_server_that_is_there_is_not_replaced_by_a_narrower_one():
    assert inject({"zimmer": "https://z/mcp"}, ["a"], BASE_URL) == {}
    assert list(inject({"zimmer": "https://z/mcp?tool_groups=sessions"}, ["a"], BASE_URL)) == ["zimmer-self-session"]
    assert list(inject({"zimmer": None}, ["a"], BASE_URL)) == ["zimmer-self-session"]


@pytest.mark.requirement("selection-injected-synthesised")
def test_a_catalogs_copy_of_the_self_session_server_is_replaced():
    copied = {"zimmer-self-session": "https://elsewhere/mcp"}
    assert inject(copied, [], BASE_URL) == {"zimmer-self-session": f"{BASE_URL}/mcp?tool_groups=self_session"}
    assert inject({}, [], BASE_URL) == inject(copied, [], BASE_URL)


@pytest.mark.requirement("selection-zimmer-entries-deliberate")
@pytest.mark.parametrize("roots", [[], ["a"], ["zimmer", "docs"]])
def test_the_scoped_catalog_entries_are_never_injected(roots):
    injected = inject({}, roots, BASE_URL)
    assert not {"zimmer-sessions", "zimmer-fleet", "zimmer-gate-decisions", "zimmer-work-backlog"} & set(injected)


@pytest.mark.requirement("selection-self-session-powers")
def test_the_self_session_server_reaches_the_agents_own_session_and_no_more():
    connection = connect(inject({}, [], BASE_URL)["zimmer-self-session"])
    assert connection.groups == ("self_session",)
    assert {"archive", "update_title"} <= set(session_actions(connection.groups))
    assert "wake_me_up_later" in tool_names(connection.groups)
    assert "start_session" not in tool_names(connection.groups)


@pytest.mark.requirement("selection-injected-transport")
def test_injected_servers_are_http_entries_with_the_key_header():
    url = f"{BASE_URL}/mcp"
    plain = {"type": "http", "url": url, "headers": {"X-API-Key": "k"}}
    assert zimmer.injected_entry("claude", url, "k") == plain
    assert zimmer.injected_entry("pi", url, "k") == plain
    assert zimmer.injected_entry("codex", url, "k") == {"url": url, "http_headers": {"X-API-Key": "k"}}


@pytest.mark.requirement("selection-injected-no-secret-chain")
@pytest.mark.parametrize("runtime", ["claude", "codex", "pi"])
def test_an_injected_entry_holds_no_placeholder_even_without_a_key(runtime):
    instance = zimmer.instance_from("production", {})
    entry = zimmer.injected_entry(runtime, f"{instance.base_url}/mcp", instance.api_key)
    assert variables(entry).required == ()
    assert "${" not in json.dumps(entry)
    assert "ZIMMER_PROD_API_KEY" in (zimmer.blank_key_warning(instance) or "")


@pytest.mark.requirement("selection-retarget-every-zimmer")
@pytest.mark.parametrize(
    ("url", "moved"),
    [
        ("https://zimmer.example.com/mcp?tool_groups=sessions", "/mcp?tool_groups=sessions"),
        ("https://zimmer.example.com:8443/mcp", "/mcp"),
        ("HTTPS://Zimmer.Example.com/mcp", "/mcp"),
        ("http://[2001:db8::1]:80/mcp?x=1", "/mcp?x=1"),
        ("https://user:prod-key@zimmer.example.com/mcp", "/mcp"),
        ("https://zimmer.example.com", ""),
        ("https://zimmer.example.com?a=https://b/c", "?a=https://b/c"),
        ("https://zimmer.example.com/a%2Fb//c?x=%2C&x=2#f", "/a%2Fb//c?x=%2C&x=2#f"),
        ("${ZIMMER_PROD_BASE_URL}/mcp?x", "/mcp?x"),
        ("${B:-https://zimmer.example.com}/mcp", "/mcp"),
        ("https://${HOST:-zimmer.example.com}/mcp", "/mcp"),
        ("//zimmer.example.com/mcp", "/mcp"),
        ("zimmer.example.com/mcp", "/mcp"),
        (" https://zimmer.example.com/mcp ", "/mcp"),
    ],
)
def test_the_origin_is_replaced_and_the_rest_of_the_url_kept(url, moved):
    entry = retarget("zimmer-fleet", {"type": "http", "url": url}, STAGING)
    assert entry["url"] == f"https://staging.zimmer.example.com{moved}"


@pytest.mark.requirement("selection-retarget-every-zimmer")
@pytest.mark.parametrize("base_url", ["http://localhost:4000/", "http://localhost:4000", "http://localhost:4000/app"])
def test_only_the_origin_of_the_instance_is_taken(base_url):
    moved = retarget("zimmer", {"url": "https://zimmer.example.com/mcp"}, Instance("development", base_url, "k"))
    assert moved["url"] == "http://localhost:4000/mcp"


@pytest.mark.requirement("selection-retarget-key")
@pytest.mark.parametrize(
    ("headers", "after"),
    [
        ({"headers": {"X-API-Key": "prod-key"}}, {"headers": {"X-API-Key": "staging-key"}}),
        ({"headers": {"x-api-key": "prod-key"}}, {"headers": {"X-API-Key": "staging-key"}}),
        (
            {"headers": {"A": "1", "X-Api-Key": "prod-key", "X-API-Key": "prod-key"}},
            {"headers": {"A": "1", "X-API-Key": "staging-key"}},
        ),
        ({}, {"headers": {"X-API-Key": "staging-key"}}),
        ({"headers": None}, {"headers": {"X-API-Key": "staging-key"}}),
        ({"headers": "X-API-Key: prod-key"}, {"headers": {"X-API-Key": "staging-key"}}),
        ({"http_headers": {"x-api-key": "prod-key"}}, {"http_headers": {"X-API-Key": "staging-key"}}),
        ({"env_http_headers": {"X-API-Key": "PROD_KEY"}}, {"http_headers": {"X-API-Key": "staging-key"}}),
        (
            {"env_http_headers": {"x-api-key": "PROD_KEY", "X-Team": "TEAM"}},
            {"env_http_headers": {"X-Team": "TEAM"}, "http_headers": {"X-API-Key": "staging-key"}},
        ),
    ],
)
def test_the_key_is_replaced_under_every_spelling_and_no_other_instances_key_is_left(headers, after):
    url = f"{PRODUCTION_HOST}/mcp"
    before = json.dumps(headers)
    assert retarget("zimmer", {"url": url, **headers}, STAGING) == {"url": f"{STAGING.base_url}/mcp", **after}
    assert json.dumps(headers) == before


@pytest.mark.requirement("selection-retarget-key")
def test_the_order_of_headers_and_keys_is_kept():
    entry = {"headers": {"A": "1", "x-api-key": "p", "B": "2"}, "url": f"{PRODUCTION_HOST}/mcp", "type": "http"}
    moved = retarget("zimmer", entry, STAGING)
    assert list(moved) == ["headers", "url", "type"]
    assert list(moved["headers"]) == ["A", "X-API-Key", "B"]


@pytest.mark.requirement("selection-retarget-every-zimmer")
@pytest.mark.parametrize(
    "entry", [{"type": "stdio", "command": "npx"}, {"type": "http"}, {"url": None}, {"url": ""}, {"url": 5}]
)
def test_an_entry_without_a_url_is_left_alone(entry):
    assert retarget("zimmer-x", entry, STAGING) == entry
    assert retarget("zimmer-x", {**entry, "url": "https://z/mcp"}, STAGING)["url"] == f"{STAGING.base_url}/mcp"


@pytest.mark.requirement("selection-retarget-production-noop")
def test_production_keeps_origin_and_key_of_the_catalog():
    production = Instance("production", "https://other.example.com", "other-key")
    entry = {"type": "http", "url": f"{PRODUCTION_HOST}/mcp", "headers": {"X-API-Key": "${ZIMMER_PROD_API_KEY}"}}
    assert retarget("zimmer", entry, production) == entry


@pytest.mark.requirement("selection-retarget-targets")
@pytest.mark.parametrize(
    ("environment", "given", "instance"),
    [
        ("production", {"ZIMMER_PROD_BASE_URL": "https://p", "ZIMMER_PROD_API_KEY": "k"}, ("https://p", "k")),
        ("production", {"ZIMMER_LOCAL_API_KEY": "k"}, ("https://zimmer.example.com", "")),
        ("staging", {"ZIMMER_STAGING_BASE_URL": "https://s", "ZIMMER_STAGING_API_KEY": "k"}, ("https://s", "k")),
        ("development", {"PORT": "4444", "ZIMMER_LOCAL_API_KEY": "k"}, ("http://localhost:4444", "k")),
        ("development", {"ZIMMER_PROD_API_KEY": "k"}, ("http://localhost:3000", "")),
        ("test", {"PORT": " ", "ZIMMER_LOCAL_BASE_URL": ""}, ("http://localhost:3000", "")),
    ],
)
def test_base_url_and_key_come_from_the_environments_own_variables(environment, given, instance):
    assert zimmer.instance_from(environment, given) == (environment, *instance)


@pytest.mark.requirement("selection-retarget-targets")
@pytest.mark.parametrize(
    ("environment", "variable"),
    [
        ("development", "ZIMMER_LOCAL_API_KEY"),
        ("staging", "ZIMMER_STAGING_API_KEY"),
        ("production", "ZIMMER_PROD_API_KEY"),
    ],
)
def test_a_blank_key_is_a_warning_that_names_the_variable(environment, variable):
    assert variable in (zimmer.blank_key_warning(zimmer.instance_from(environment, {variable: " "})) or "")
    assert zimmer.blank_key_warning(zimmer.instance_from(environment, {variable: "k"})) is None
