"""What is pasted back, what a token endpoint answers, and what becomes of the stored row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.reference.credentials.row import Credential
from harness.reference.credentials.state import credential_state
from harness.reference.oauth.check import Check
from harness.reference.oauth.clients import Client, registered_client
from harness.reference.oauth.discovery import discovered
from harness.reference.oauth.exchange import exchange_form, exchanged
from harness.reference.oauth.flows import flow_of, granted
from harness.reference.oauth.initiation import flow_on, registered_grounds
from harness.reference.oauth.paste import pasted_code
from harness.reference.oauth.server import remote_server
from harness.reference.oauth.tokens import (
    LONGEST_LIFETIME_SECONDS,
    TokenAnswer,
    lifetime_seconds,
    parse_body,
    store_tokens,
    token_answer,
    token_members,
)
from harness.world import Response
from scenarios.units.oauth_house import HOSTED, deployment, stored_flow
from scenarios.units.oauth_run import START_SECONDS

FLOW = flow_of(next(iter(stored_flow().values())))
FORM = "application/x-www-form-urlencoded"
NESTED = {
    "ok": True,
    "authed_user": {
        "id": "U123",
        "access_token": "xoxp-user",
        "refresh_token": "xoxe-refresh",
        "scope": "search:read users:read",
        "expires_in": 43200,
    },
}

# --- what is pasted


@pytest.mark.requirement("flow-manual-accepts-url-or-code")
@pytest.mark.parametrize(
    ("pasted", "expected"),
    [
        ("http://localhost:3118/callback?code=the-code&state=S1", "the-code"),
        ("HTTPS://localhost:3118/callback?state=S1&code=the-code", "the-code"),
        ("bare-code-123", "bare-code-123"),
        ("4/0AbCd-e_f", "4/0AbCd-e_f"),
        ("code=qcode&state=S1", "qcode"),
        ("?code=q1&state=S1", "q1"),
        ("  bare  ", "bare"),
        ("\n\tbare\u00a0", "bare"),
    ],
)
def test_a_whole_address_a_query_and_a_bare_code_are_taken(pasted: str, expected: str) -> None:
    assert pasted_code(pasted, "S1") == expected


@pytest.mark.requirement("flow-manual-state-validated")
@pytest.mark.parametrize(
    "pasted",
    [
        "http://localhost:3118/callback?code=x&state=S2",
        "http://localhost:3118/callback?code=x&state=s1",
        "code=x&state=S1x",
        "?state=S%202&code=x",
        "http://h/cb?code=x&state=S1&state=S2",
    ],
)
def test_a_code_of_another_state_is_refused(pasted: str) -> None:
    assert pasted_code(pasted, "S1") is None


@pytest.mark.requirement("flow-manual-state-absent-accepted")
@pytest.mark.parametrize(
    ("pasted", "expected"),
    [
        ("http://localhost:3118/callback?code=c", "c"),
        ("http://h/cb?code=ok&state=", "ok"),
        ("http://h/cb?code=ok&state=+", "ok"),
        ("http://h/cb?code=ok&state", "ok"),
    ],
)
def test_a_paste_without_a_state_belongs_to_the_flow_of_its_form(pasted: str, expected: str) -> None:
    assert pasted_code(pasted, "S1") == expected


@pytest.mark.requirement("flow-manual-code-extraction")
@pytest.mark.parametrize(
    ("pasted", "expected"),
    [
        ("http://h/cb?state=S1&code=a%2Bb%2Fc#_=_", "a+b/c"),
        ("http://h/cb?code=a+b", "a b"),
        ("code=a&code=b&state=S1", "b"),
        ("http://h/cb?error=access_denied&state=S1", None),
        ("http://h/cb#code=frag", None),
        ("http://h/cb?state=S1", None),
        ("https://host/cb", None),
        ("code=", None),
        ("code=%20", None),
        ("", None),
        ("   ", None),
        (None, None),
        ("xcode=1", None),
        ("http://h/cb?xcode=1&state=S1", None),
        ("http://h/cb?code=100%", None),
        ("http://h/cb?code=%ff", None),
        ("http://h/cb?a?code=x&code=y", "y"),
    ],
)
def test_the_code_is_the_querys_last_field_of_that_name_decoded(pasted: str | None, expected: str | None) -> None:
    assert pasted_code(pasted, "S1") == expected


@pytest.mark.requirement("flow-manual-code-extraction")
def test_a_bare_code_with_a_question_mark_is_lost_which_is_a_known_defect() -> None:
    assert pasted_code("4/0Ab?cd", "S1") is None


# --- what is posted


@pytest.mark.requirement("flow-exchange-form", "flow-public-exchange-omits-secret", "flow-confidential-secret-post")
@pytest.mark.parametrize(
    ("secret", "resource", "optional"),
    [
        (None, "https://r.example.com", {"resource": "https://r.example.com"}),
        ("shh", None, {"client_secret": "shh"}),
        ("", "", {}),
        (" ", " ", {}),
        ("shh", "https://r.example.com", {"client_secret": "shh", "resource": "https://r.example.com"}),
    ],
)
def test_the_form_has_a_secret_and_a_resource_only_where_there_is_one(
    secret: str | None, resource: str | None, optional: dict[str, str]
) -> None:
    assert exchange_form(replace(FLOW, client_secret=secret, resource=resource), "4/0Ab") == {
        "grant_type": "authorization_code",
        "code": "4/0Ab",
        "redirect_uri": HOSTED,
        "code_verifier": "verifier-of-S1",
        "client_id": "client-0",
        **optional,
    }


# --- what is answered


@pytest.mark.requirement("flow-token-body-formats")
@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        ("application/json", '{"access_token":"a"}', {"access_token": "a"}),
        (
            "application/json; charset=utf-8", '{"access_token":"a","expires_in":10}',
            {"access_token": "a", "expires_in": 10},
        ),
        ("text/html", '{"access_token":"a"}', {"access_token": "a"}),
        (None, '{"access_token":"a"}', {"access_token": "a"}),
        (FORM, "access_token=a&scope=x+y&expires_in=10", {"access_token": "a", "scope": "x y", "expires_in": "10"}),
        (f"{FORM}; charset=utf-8", "access_token=a%2Bb", {"access_token": "a+b"}),
        ("application/json", "access_token=a", {"access_token": "a"}),
        (None, "access_token=a", {"access_token": "a"}),
        (FORM, '{"access_token":"a"}', {"access_token": "a"}),
        (FORM, "error=bad_verification_code", {"error": "bad_verification_code"}),
        ("text/plain", "scope=x", None),
        ("text/plain", "scope=x&y=1", None),
        (None, "{bad", None),
        ("application/json", "{bad", None),
        ("application/json", "[]", None),
        ("application/json", '"text"', None),
        ("application/json", '{"access_token": NaN}', None),
        ("application/json", '{"a":' + "[" * 100_000, None),
        ("text/html", "<html><body class=x>access</body></html>", None),
        (FORM, "", None),
        (FORM, "access_token=%zz", None),
        (None, "", None),
    ],
)  # fmt: skip
def test_a_token_body_is_json_or_a_form_whatever_it_is_called(
    content_type: str | None, body: str, expected: dict[str, Any] | None
) -> None:
    assert parse_body(content_type, body) == expected


@pytest.mark.requirement("flow-slack-unwrap-exchange", "flow-slack-top-level-first", "flow-slack-not-ok-is-failure")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (NESTED, ("xoxp-user", "xoxe-refresh", "search:read users:read", 43200)),
        (
            {"access_token": "xoxb-bot", "scope": "bot:scope", "authed_user": {"access_token": "xoxp-user"}},
            ("xoxp-user", None, None, None),
        ),
        (
            {**NESTED, "access_token": "xoxb", "refresh_token": "bot-refresh", "scope": "bot", "expires_in": 60},
            ("xoxp-user", "xoxe-refresh", "search:read users:read", 43200),
        ),
        ({"access_token": "xoxe-flat", "refresh_token": "r"}, ("xoxe-flat", "r", None, None)),
        ({"access_token": "top", "authed_user": {"access_token": ""}}, ("top", None, None, None)),
        ({"access_token": "top", "authed_user": {"id": "U1", "scope": "x"}}, ("top", None, None, None)),
        ({"access_token": "top", "authed_user": "U1"}, ("top", None, None, None)),
        ({"access_token": "t", "refresh_token": "", "scope": " "}, ("t", None, None, None)),
        ({"access_token": "t", "expires_in": "60"}, ("t", None, None, "60")),
        ({"ok": False, "error": "invalid_grant"}, None),
        ({"access_token": ""}, None),
        ({"access_token": " ", "authed_user": {"access_token": None}}, None),
        ({"access_token": 7}, None),
        ({"access_token": ["t"]}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_nested_user_token_wins_as_a_whole(body: dict[str, Any] | None, expected: tuple[Any, ...] | None) -> None:
    members = token_members(body)
    assert (None if members is None else tuple(members.values())) == expected
    assert (token_answer(body) is None) is (expected is None)


@pytest.mark.requirement("authorize-expires-absent-null", "flow-store-upsert-by-key")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (3600, 3600.0),
        (3600.9, 3600.0),
        ("3600", 3600.0),
        (" 60 ", 60.0),
        ("60.0", 60.0),
        (0, 0.0),
        ("0", 0.0),
        (-5, -5.0),
        (10**20, LONGEST_LIFETIME_SECONDS),
        (1e308, LONGEST_LIFETIME_SECONDS),
        (-1e308, -LONGEST_LIFETIME_SECONDS),
        ("9" * 300, LONGEST_LIFETIME_SECONDS),
        ("", None),
        ("soon", None),
        (float("inf"), LONGEST_LIFETIME_SECONDS),
        (float("nan"), None),
        (10**400, LONGEST_LIFETIME_SECONDS),
        (-(10**400), -LONGEST_LIFETIME_SECONDS),
        (True, None),
        ([60], None),
        ({}, None),
    ],
)
def test_a_lifetime_is_a_number_of_seconds_or_its_text(value: object, expected: float | None) -> None:
    assert lifetime_seconds(value) == expected


@pytest.mark.requirement("flow-exchange-only-200", "flow-slack-not-ok-is-failure")
@pytest.mark.parametrize("status", [200, 201, 202, 204, 302, 400, 401, 429, 500, 503])
def test_only_200_with_a_token_is_an_answer(status: int) -> None:
    response = Response(status, {"content-type": "application/json"}, b'{"access_token":"a","expires_in":60}')
    assert exchanged(response) == (TokenAnswer("a", expires_in_seconds=60.0) if status == 200 else None)
    refused = Response(status, {"Content-Type": "application/json"}, b'{"ok":false,"error":"invalid_grant"}')
    assert exchanged(refused) is None
    assert exchanged(Response(status, {}, b"\xff\xfe{")) is None
    marked = response._replace(body=b"\xef\xbb\xbf" + response.body)
    assert exchanged(marked) == exchanged(response), "a byte order mark is no part of a text, here as at a refresh"


# --- what is stored


def row(refresh_token: str | None = None, *, flag: bool = False) -> Credential:
    """A stored row of which the refresh token and the flag matter."""
    return Credential(
        FLOW.credential_key, "notion", "https://old.test/mcp", "client-old", "old-access", refresh_token,
        expires_at=START_SECONDS - 1, refresh_token_unsupported=flag,
    )  # fmt: skip


@pytest.mark.requirement(
    "authorize-flag-set-at-exchange",
    "authorize-reauth-keeps-stored-token",
    "authorize-flag-from-survivor",
    "authorize-flag-never-contradicts",
    "flow-store-upsert-by-key",
)
@pytest.mark.parametrize(
    ("stored", "answered", "survivor", "flag"),
    [
        (None, None, None, True),
        (None, "", None, True),
        (None, "r2", "r2", False),
        (row(None), None, None, True),
        (row(""), None, None, True),
        (row("r1"), None, "r1", False),
        (row("r1"), "", "r1", False),
        (row("r1"), " ", "r1", False),
        (row("r1"), "r2", "r2", False),
        (row(None, flag=True), None, None, True),
        (row(None, flag=True), "r2", "r2", False),
        (row("r1", flag=True), None, "r1", False),
    ],
)
def test_the_flag_follows_the_refresh_token_that_survives(
    stored: Credential | None, answered: str | None, survivor: str | None, flag: bool
) -> None:
    fresh = granted(FLOW, TokenAnswer("new-access", answered), START_SECONDS)
    after = store_tokens(stored, fresh)
    assert (after.refresh_token, after.refresh_token_unsupported) == (survivor, flag)
    assert (after.access_token, after.client_id, after.server_url) == ("new-access", FLOW.client_id, FLOW.server_url)
    state = credential_state(None, after.refresh_token, after.token_endpoint, after.refresh_token_unsupported)
    assert state.requires_periodic_reauth is flag
    assert state.can_refresh is not flag


@pytest.mark.requirement("authorize-periodic-reauth-predicate")
@pytest.mark.parametrize(
    ("flag", "refresh_token", "expected"),
    [(True, None, True), (True, "", True), (True, "r", False), (False, None, False), (False, "r", False)],
)
def test_periodic_reauthorization_needs_the_flag_and_still_no_token(
    flag: bool, refresh_token: str | None, expected: bool
) -> None:
    assert credential_state(60, refresh_token, "https://as.test/t", flag).requires_periodic_reauth is expected


@pytest.mark.requirement("authorize-no-refresh-token-is-one-shot")
@pytest.mark.parametrize(("expires_in_s", "expected"), [(1, False), (0, True), (-1, True), (None, False)])
def test_without_a_refresh_token_a_lapse_needs_a_person_at_once(expires_in_s: float | None, expected: bool) -> None:
    state = credential_state(expires_in_s, None, "https://as.test/t", refresh_token_unsupported=True)
    assert state.requires_reauth is expected
    assert state.can_refresh is False


@pytest.mark.requirement("flow-row-keeps-issuer-and-redirect", "authorize-expires-absent-null")
def test_a_credential_has_all_that_the_flow_knew() -> None:
    flow = replace(FLOW, client_secret="shh")
    assert granted(flow, TokenAnswer("a", "r", "granted", 60.0), START_SECONDS) == Credential(
        credential_key="notion|0123456789abcdef",
        server_name="notion",
        server_url="https://notion.test/mcp",
        client_id="client-0",
        access_token="a",
        refresh_token="r",
        client_secret="shh",
        token_endpoint="https://notion.test/token",
        scopes="granted",
        resource="https://notion.test/mcp",
        issuer="https://notion.test",
        redirect_uri=HOSTED,
        expires_at=START_SECONDS + 60,
    )
    without = granted(flow, TokenAnswer("a"), START_SECONDS)
    assert (without.expires_at, without.scopes) == (None, "read write")


@pytest.mark.requirement("https-secrets-not-in-logs")
def test_no_representation_of_a_deployment_or_of_what_was_discovered_holds_a_secret() -> None:
    endpoint = "https://id:s3cret@as.test/"
    block = {"clientId": "c", "clientSecret": "s3cret"}
    entry = {"type": "http", "url": "https://n.test/mcp?key=${KEY}", "headers": {"X-Org": "s3cret"}, "oauth": block}
    client = {"authorization_endpoint": endpoint, "token_endpoint": endpoint, "client_id": "c"}
    deps = deployment({"n": entry}, registered={"n": client}, variables={"KEY": "s3cret"})
    server = remote_server(deps.catalog.require("n"), deps.lookup)
    assert server.url.endswith("?key=s3cret")
    found = discovered(
        {**client, "registration_endpoint": endpoint, "issuer": "https://as.test"}, server.url, None, scopes=None
    )
    registered = registered_client(deps.settings, "n")
    assert registered is not None
    grounds = registered_grounds(registered, server.url)
    flow = flow_on(grounds, server, None, HOSTED, manual=False)
    check = Check(required=True, determination="advertised_required", discovered=found, client=Client("c", "s3cret"))
    shown = repr([deps, server, found, registered, grounds, flow, check, granted(flow, TokenAnswer("a"), 0.0)])
    assert "s3cret" not in shown
    assert "as.test" in shown


def test_no_representation_holds_a_secret() -> None:
    flow = replace(FLOW, client_secret="s3cret", token_endpoint="https://id:s3cret@as.test/t")
    shown = repr([flow, TokenAnswer("a-s3cret", "r-s3cret"), granted(flow, TokenAnswer("a-s3cret"), 0.0)])
    assert "s3cret" not in shown
    assert "verifier" not in shown.replace("code_verifier", "")
