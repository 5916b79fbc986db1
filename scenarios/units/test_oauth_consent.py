"""Whose client, which redirect, paste-back or not, and the address of the consent screen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.reference.catalog.entry import read_entry
from harness.reference.oauth.clients import (
    Client,
    RegisteredClient,
    catalog_client,
    configured_redirect,
    public_view,
    registered_client,
)
from harness.reference.oauth.consent import (
    authorization_url,
    challenge,
    hosted_callback,
    is_consent_page,
    is_manual,
    joined_scopes,
    redirect_uri_for,
)
from harness.reference.oauth.flows import flow_of
from harness.reference.oauth.initiation import configured_scopes, registered_resource
from harness.reference.oauth.settings import OAuthSettings
from scenarios.units.oauth_house import HOSTED, LOOPBACK, SLACK_CLIENT, SLACK_ENTRY, parameters_of, stored_flow

LOCAL = "http://localhost:3000/mcp_oauth/callback"
FLOW = flow_of(next(iter(stored_flow().values())))


@pytest.mark.requirement("flow-hosted-callback-url", "authorize-redirect-default-hosted")
@pytest.mark.parametrize(
    ("app_host", "expected"),
    [
        (None, LOCAL),
        ("", LOCAL),
        ("zimmer.example.com", HOSTED),
        ("localhost:4000", "http://localhost:4000/mcp_oauth/callback"),
        ("localhost.example.com", "http://localhost.example.com/mcp_oauth/callback"),
        ("127.0.0.1:3000", "https://127.0.0.1:3000/mcp_oauth/callback"),
    ],
)
def test_the_hosted_callback_is_http_only_where_the_host_holds_localhost(app_host: str | None, expected: str) -> None:
    assert hosted_callback(app_host) == expected
    assert redirect_uri_for(None, app_host) == expected
    assert redirect_uri_for(" ", app_host) == expected


@pytest.mark.requirement("flow-manual-redirect-source", "authorize-redirect-configured-wins")
@pytest.mark.parametrize("app_host", [None, "zimmer.example.com"])
def test_a_configured_redirect_wins_over_the_hosted_callback(app_host: str | None) -> None:
    assert redirect_uri_for(LOOPBACK, app_host) == LOOPBACK


@pytest.mark.requirement(
    "authorize-manual-derived",
    "authorize-hosted-localhost-automatic",
    "authorize-blank-redirect-not-manual",
    "authorize-completion-not-by-loopback",
    "flow-manual-flag",
)
@pytest.mark.parametrize(
    ("redirect_uri", "app_host", "expected"),
    [
        (LOOPBACK, None, True),
        ("urn:ietf:wg:oauth:2.0:oob", None, True),
        (LOCAL, None, False),
        (f"{LOCAL}/", None, True),
        (f"{LOCAL}?x=1", None, True),
        ("http://127.0.0.1:3000/mcp_oauth/callback", None, True),
        (HOSTED, "zimmer.example.com", False),
        ("https://ZIMMER.example.com/mcp_oauth/callback", "zimmer.example.com", True),
        ("http://zimmer.example.com/mcp_oauth/callback", "zimmer.example.com", True),
        (LOCAL, "zimmer.example.com", True),
        (None, None, False),
        ("", None, False),
        ("  ", "zimmer.example.com", False),
    ],
)
def test_a_flow_is_manual_exactly_when_its_redirect_is_not_the_hosted_callback(
    redirect_uri: str | None, app_host: str | None, expected: bool
) -> None:
    assert is_manual(redirect_uri, app_host) is expected
    assert is_manual(redirect_uri, app_host, forced=True) is True


@pytest.mark.requirement("flow-pkce-s256", "authorize-state-random")
@pytest.mark.parametrize(
    ("verifier", "expected"),
    [
        ("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
        ("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ", "RqIZl4LIgn8KxW9QO-nTnv7pf0CnNrksx9fF-CXP2FE"),
        ("abc", "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0"),
    ],
)
def test_the_challenge_is_the_unpadded_digest_of_the_verifier(verifier: str, expected: str) -> None:
    assert challenge(verifier) == expected


@pytest.mark.requirement("flow-authorization-url", "flow-pkce-s256")
@pytest.mark.parametrize("secret", [None, "shh"])
def test_the_authorization_url_carries_the_whole_request(secret: str | None) -> None:
    flow = replace(FLOW, scopes="a b", resource="https://r.example.com", client_secret=secret)
    assert parameters_of(authorization_url(flow)) == {
        "response_type": "code",
        "client_id": "client-0",
        "redirect_uri": HOSTED,
        "state": "S1",
        "code_challenge": challenge("verifier-of-S1"),
        "code_challenge_method": "S256",
        "scope": "a b",
        "resource": "https://r.example.com",
    }


@pytest.mark.requirement("flow-authorization-url", "authorize-scopes-joined-as-advertised")
@pytest.mark.parametrize("blank", [None, "", "  "])
def test_a_blank_scope_or_resource_is_not_sent(blank: str | None) -> None:
    parameters = parameters_of(authorization_url(replace(FLOW, scopes=blank, resource=blank)))
    assert not {"scope", "resource"} & set(parameters)


@pytest.mark.requirement("flow-authorization-url")
def test_a_query_of_the_endpoint_is_kept_but_cannot_replace_ours() -> None:
    endpoint = "https://login.example.com/authorize?tenant=x&empty=&client_id=evil&state=evil#part"
    url = authorization_url(replace(FLOW, authorization_endpoint=endpoint))
    parameters = parameters_of(url)
    assert url.startswith("https://login.example.com/authorize?tenant=x&empty=&")
    assert "#" not in url
    assert (parameters["client_id"], parameters["state"]) == ("client-0", "S1")
    assert url.count("client_id=") == url.count("state=") == 1


@pytest.mark.requirement("flow-authorization-url")
@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("a=%FF&b=x+y&c=x%20y&d", "a=%FF&b=x+y&c=x%20y&d"),
        ("a=1&a=2;3&&%63lient_id=evil", "a=1&a=2;3"),
        ("a=\"><script>'", "a=%22%3E%3Cscript%3E%27"),
    ],
)
def test_a_query_of_the_endpoint_is_kept_as_it_was_written(query: str, kept: str) -> None:
    url = authorization_url(replace(FLOW, authorization_endpoint=f"https://login.example.com/authorize?{query}"))
    assert url.startswith(f"https://login.example.com/authorize?{kept}&response_type=code&")
    assert parameters_of(url)["client_id"] == "client-0"


@pytest.mark.requirement("flow-google-offline")
@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("accounts.google.com", True),
        ("google.com", True),
        ("notgoogle.com", False),
        ("evilgoogle.com", False),
        ("google.com.evil.example", False),
        ("example.com", False),
    ],
)
def test_google_alone_is_asked_for_offline_access_in_its_own_words(host: str, expected: bool) -> None:
    endpoint = f"https://{host}/o/oauth2/v2/auth?p=google.com"
    parameters = parameters_of(authorization_url(replace(FLOW, authorization_endpoint=endpoint)))
    wanted = {"access_type": "offline", "prompt": "consent"} if expected else {}
    assert {name: parameters[name] for name in ("access_type", "prompt") if name in parameters} == wanted


@pytest.mark.requirement("authorize-scopes-joined-as-advertised", "authorize-never-asks-offline-access")
@pytest.mark.parametrize(
    ("scopes", "expected"),
    [
        ((), None),
        (("read", "write"), "read write"),
        (("read",), "read"),
        (("a", "offline_access"), "a offline_access"),
        (("b", "a", "b"), "b a b"),
    ],
)
def test_scopes_are_joined_as_advertised_and_nothing_is_added(scopes: tuple[str, ...], expected: str | None) -> None:
    assert joined_scopes(scopes) == expected


@pytest.mark.requirement("flow-scopes-source")
@pytest.mark.parametrize(
    ("block", "expected"),
    [({}, None), ({"scopes": []}, None), ({"scopes": ["a", "", "b"]}, "a b"), ({"scopes": "a"}, None)],
)
def test_the_scopes_of_a_catalog_client_are_its_list(block: dict[str, Any], expected: str | None) -> None:
    assert configured_scopes(block) == expected


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("https://as.example.com/authorize?tenant=x", True),
        ("http://localhost:9000/authorize", True),
        ("javascript:alert(1)", False),
        ("https://", False),
        ("https://as.example.com/a b", False),
        ("https://as.example.com/a\r\nSet-Cookie: x", False),
        ("/authorize", False),
        ("", False),
        (None, False),
    ],
)
def test_a_browser_is_sent_to_web_addresses_only(endpoint: str | None, expected: bool) -> None:
    assert is_consent_page(endpoint) is expected


# --- clients


def settings(entry: object, name: str = "slack") -> OAuthSettings:
    """A deployment with one entry."""
    return OAuthSettings(registered={name: entry})


@pytest.mark.requirement("flow-preregistered-shape", "flow-public-client-allowed")
def test_a_registered_client_needs_an_id_and_both_endpoints_and_nothing_else() -> None:
    needed = {name: SLACK_ENTRY[name] for name in ("client_id", "authorization_endpoint", "token_endpoint")}
    assert registered_client(settings(needed), "slack") == RegisteredClient(
        SLACK_CLIENT, "https://slack.test/oauth/v2_user/authorize", "https://slack.test/api/oauth.v2.user.access"
    )
    for name in needed:
        for blank in ({}, {name: None}, {name: ""}, {name: " "}, {name: 7}):
            without = {key: value for key, value in needed.items() if key != name}
            assert registered_client(settings({**without, **blank}), "slack") is None


@pytest.mark.requirement("flow-preregistered-shape")
def test_a_registered_client_is_read_as_written() -> None:
    entry = {**SLACK_ENTRY, "client_secret": "shh", "resource": "https://r.example.com"}
    found = registered_client(settings(entry), "slack")
    assert found is not None
    assert (found.client_secret, found.scopes) == ("shh", "search:read,channels:history")
    assert (found.redirect_uri, found.manual, found.resource) == (LOOPBACK, True, "https://r.example.com")
    assert "shh" not in repr(found)
    for manual in (None, False, "true", 1):
        other = registered_client(settings({**SLACK_ENTRY, "manual": manual}), "slack")
        assert other is not None
        assert other.manual is False


@pytest.mark.requirement("flow-slack-entry-name-match", "authorize-preregistered-exact-name")
@pytest.mark.parametrize("name", ["slack-reframe", "Slack", "slac", " slack", "slack ", "", " ", None])
def test_another_name_than_the_entrys_own_finds_no_client(name: str | None) -> None:
    assert registered_client(settings(SLACK_ENTRY), "slack") is not None
    assert registered_client(OAuthSettings(registered={"slack": SLACK_ENTRY, "": SLACK_ENTRY}), name) is None


@pytest.mark.requirement("flow-client-config-from-credentials")
@pytest.mark.parametrize("section", [{}, None, [], "slack"])
def test_an_absent_section_holds_no_client(section: Any) -> None:
    assert registered_client(OAuthSettings(), "slack") is None
    assert registered_client(OAuthSettings(registered=section), "slack") is None
    assert registered_client(settings(None), "slack") is None


@pytest.mark.requirement("flow-resource-empty-suppresses", "flow-resource-omitted-derives")
@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, "https://mcp.example.com/mcp"),
        ({"resource": None}, "https://mcp.example.com/mcp"),
        ({"resource": ""}, None),
        ({"resource": " "}, None),
        ({"resource": "https://r.example.com"}, "https://r.example.com"),
    ],
)
def test_a_blank_resource_suppresses_the_indicator_and_none_derives_it(
    entry: dict[str, Any], expected: str | None
) -> None:
    base = {key: value for key, value in SLACK_ENTRY.items() if key != "resource"}
    found = registered_client(settings({**base, **entry}), "slack")
    assert found is not None
    assert registered_resource(found, "https://mcp.example.com/mcp/") == expected


@pytest.mark.requirement("flow-preregistered-public-view")
def test_no_view_of_a_registered_client_has_a_secret() -> None:
    entry = {**SLACK_ENTRY, "client_secret": "shh", "token_endpoint": "https://id:s3cret@slack.test/t"}
    found = registered_client(settings(entry), "slack")
    assert found is not None
    view = public_view(found)
    assert "client_secret" not in view
    assert "shh" not in repr(view)
    assert "s3cret" not in repr(view)
    assert view["client_id"] == SLACK_CLIENT


@pytest.mark.requirement(
    "flow-catalog-oauth-block-names",
    "authorize-oauth-block-spelling",
    "flow-public-client-catalog-block",
    "authorize-configured-verbatim",
)
@pytest.mark.parametrize(
    ("block", "client", "redirect_uri"),
    [
        ({"clientId": SLACK_CLIENT}, Client(SLACK_CLIENT), None),
        ({"clientId": "a", "client_id": "b"}, Client("a"), None),
        ({"client_id": "b", "redirect_uri": "u:1"}, Client("b"), "u:1"),
        ({"clientId": "a", "clientSecret": "s", "redirectUri": "u:1", "redirect_uri": "u:2"}, Client("a", "s"), "u:1"),
        ({"clientId": "a", "client_secret": "s"}, Client("a", "s"), None),
        ({"clientSecret": "s", "redirect_uri": "u:2"}, None, "u:2"),
        ({"clientId": "a", "manual": True}, Client("a"), None),
        (None, None, None),
    ],
)
def test_the_catalogs_block_names_the_client_in_both_spellings(
    block: dict[str, Any] | None, client: Client | None, redirect_uri: str | None
) -> None:
    entry = read_entry("slack", {"type": "http", "url": "https://mcp.slack.test/mcp", "oauth": block})
    assert catalog_client(entry) == client
    assert configured_redirect(entry, None) == redirect_uri
    assert "client_secret" not in repr(client)


@pytest.mark.requirement("authorize-redirect-configured-wins")
def test_whatever_configures_the_client_configures_its_redirect() -> None:
    block = {"clientId": "a", "redirectUri": "http://localhost:1/cb"}
    entry = read_entry("slack", {"type": "http", "url": "https://mcp.slack.test/mcp", "oauth": block})
    registered = registered_client(settings(SLACK_ENTRY), "slack")
    assert configured_redirect(entry, None) == "http://localhost:1/cb"
    assert configured_redirect(entry, registered) == LOOPBACK
    assert configured_redirect(None, None) is None
