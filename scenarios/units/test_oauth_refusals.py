"""Where a click on Authorize leads to no flow: what is refused, which server is meant, and when none is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.reference.credentials.key import credential_key
from harness.reference.oauth.web import Answer
from harness.reference.secrets.loader import StoreUnavailableError
from harness.world import Response
from scenarios.units.oauth_house import (
    DISCOVERY,
    JSON,
    NOTION,
    PLACES,
    REGISTER,
    SLACK,
    SLACK_ENTRY,
    WAITING,
    advertising,
    click,
    deployment,
    document,
    flow_rows,
    only,
    parked,
    stored,
    stored_flow,
)
from scenarios.units.oauth_run import Answers

# --- initiate: what is refused, in which order


UNDETERMINED = "Could not determine OAuth requirements for notion"
NO_ENDPOINTS = "Could not determine OAuth endpoints for notion"
NOT_REGISTERED = (
    "Dynamic Client Registration failed for notion."
    " The OAuth provider may be temporarily unavailable. Please try again."
)
CLEARTEXT = {"token_endpoint": "http://as/t"}
REFUSALS: list[tuple[str, Answers, str]] = [
    ("nothing is advertised", Answers({"GET https://notion.test/mcp": document()}), UNDETERMINED),
    (
        "a challenge that leads nowhere",
        Answers({"GET https://notion.test/mcp": Response(401, {"WWW-Authenticate": "Bearer"})}),
        UNDETERMINED,
    ),
    ("no authorization endpoint", advertising(authorization_endpoint=None, **CLEARTEXT, **REGISTER), NO_ENDPOINTS),
    ("an endpoint that is a script", advertising(authorization_endpoint="javascript:alert(1)"), NO_ENDPOINTS),
    ("a registration that fails", advertising(**REGISTER, **CLEARTEXT), NOT_REGISTERED),
    ("a cleartext registration", advertising(registration_endpoint="http://notion.test/register"), NOT_REGISTERED),
    ("no token endpoint", advertising(token_endpoint=None), NO_ENDPOINTS),
    ("a cleartext token endpoint", advertising(**CLEARTEXT), "http://as/t"),
]


@pytest.mark.requirement(
    "flow-initiate-refusals-order",
    "flow-registration-failure-message",
    "authorize-failed-dcr-is-no-client",
    "https-initiate-refuses-before-consent",
    "https-initiate-flash-names-endpoint",
    "authorize-sessionless-returns-connectors",
    "https-registration-degrades",
    "authorize-zimmer-literal-last",
    "flow-client-id-fallback",
)
@pytest.mark.parametrize(("session", "place"), PLACES)
@pytest.mark.parametrize(("_why", "server", "text"), REFUSALS, ids=[why for why, _, _ in REFUSALS])
def test_a_flow_that_cannot_be_finished_is_refused_before_it_begins(
    _why: str, server: Answers, text: str, session: str | None, place: str
) -> None:
    server.requests.clear()
    ran = click(servers=server.origins("http://as", "http://notion.test", "https://as"), session=session)
    assert ran.result == Answer(302, "redirect", place, ran.result.message)
    assert text in str(ran.result.message)
    assert flow_rows(ran) == []
    assert not [
        asked for asked in server.asked if asked.startswith(("POST http://", "GET https://notion.test/authorize"))
    ]
    assert [told["text"] for told in ran.named("oauth.refused")] == [ran.result.message]
    assert ran.named("oauth.started") == []


@pytest.mark.requirement("flow-initiate-refusals-order", "authorize-failed-dcr-is-no-client")
def test_a_refused_registration_ends_with_its_own_message() -> None:
    register = Response(403, JSON, b"{}")
    server = advertising(**REGISTER)
    answers = Answers({**server.by_request, "POST https://notion.test/register": register})
    ran = click(servers=answers.origins())
    assert ran.result.message == NOT_REGISTERED
    assert answers.asked[-1] == "POST https://notion.test/register"


@pytest.mark.requirement("https-initiate-flash-names-endpoint", "https-secrets-not-in-logs")
def test_a_refused_endpoint_is_named_without_its_userinfo() -> None:
    ran = click(servers=advertising(token_endpoint="http://cid:s3cr3t@as.test/t").origins())
    assert "as.test/t" in str(ran.result.message)
    assert "https" in str(ran.result.message)
    assert "s3cr3t" not in str(ran.result.message) + ran.told


@pytest.mark.requirement("https-local-mcp-server-refused", "https-remote-names-loopback", "https-no-loopback-exception")
@pytest.mark.parametrize("url", ["http://localhost:9000/mcp", "https://notion.test/mcp"])
@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1:9000", "[::1]:9000"])
def test_a_cleartext_loopback_endpoint_is_refused_like_any_other(url: str, host: str) -> None:
    origin = url.removesuffix("/mcp")
    answers = Answers(
        {
            f"GET {origin}{DISCOVERY}": document(
                authorization_endpoint=f"{origin}/authorize", token_endpoint=f"http://{host}/token"
            )
        }
    )
    deps = deployment({"notion": {"type": "http", "url": url}})
    ran = click(deps, servers=answers.origins(f"http://{host}"))
    assert f"http://{host}/token" in str(ran.result.message)
    assert "https" in str(ran.result.message)
    assert not [asked for asked in answers.asked if asked.startswith("POST")]
    assert flow_rows(ran) == []


@pytest.mark.requirement("https-applies-to-endpoint-not-server")
def test_a_cleartext_server_with_an_https_token_endpoint_is_authorized() -> None:
    answers = Answers(
        {
            f"GET http://localhost:9000{DISCOVERY}": document(
                authorization_endpoint="http://localhost:9000/authorize", token_endpoint="https://as.test/token"
            )
        }
    )
    ran = click(deployment({"notion": {"type": "http", "url": "http://localhost:9000/mcp"}}), servers=answers.origins())
    assert str(ran.result.location).startswith("http://localhost:9000/authorize?")


@pytest.mark.requirement("https-initiate-covers-preregistered", "https-initiate-refuses-before-consent")
def test_a_cleartext_endpoint_of_a_client_registered_by_hand_is_refused() -> None:
    entry = {**SLACK_ENTRY, "token_endpoint": "http://slack.test/t"}
    ran = click(deployment(SLACK, registered={"slack": entry}), servers={}, server_name="slack")
    assert "http://slack.test/t" in str(ran.result.message)
    assert ran.result.page == "redirect"
    assert flow_rows(ran) == []


def test_a_resource_of_another_host_is_refused() -> None:
    base = advertising().by_request
    foreign = document(resource="https://bank.test", authorization_servers=["https://notion.test"])
    answers = Answers({**base, "GET https://notion.test/.well-known/oauth-protected-resource": foreign})
    assert click(servers=answers.origins()).result.message == UNDETERMINED


# --- initiate: which server


TREE = {
    **NOTION,
    "local": {"type": "stdio", "command": "npx"},
    "bearer": {
        "type": "streamable-http",
        "url": "https://notion.test/mcp",
        "headers": {"Authorization": "Bearer ${X}"},
    },
}


@pytest.mark.requirement(
    "authorize-sessionless-catalog-only",
    "authorize-sessionless-capable-only",
    "flow-initiate-catalog-url-only",
    "authorize-sessionless-returns-connectors",
)
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("not-in-the-catalog", "not-in-the-catalog"),
        ("", "That server"),
        (" ", "That server"),
        (None, "That server"),
        ("Notion", "Notion"),
        ("local", "local"),
        ("bearer", "bearer"),
    ],
)
def test_without_a_session_only_a_capable_server_of_the_catalog_is_authorized(name: str | None, told: str) -> None:
    answers = advertising()
    servers = answers.origins("https://evil.example.com")
    deps = deployment(TREE, variables={"X": "token"})
    ran = click(deps, servers, server_name=name, server_url="https://evil.example.com/mcp")
    text = f"{told} is not an OAuth connector in the catalog."
    assert ran.result == Answer(302, "redirect", "/connectors", text)
    assert answers.asked == []
    assert flow_rows(ran) == []


@pytest.mark.requirement(
    "authorize-url-from-catalog", "authorize-sessionless-ignores-url", "flow-initiate-catalog-url-only"
)
@pytest.mark.parametrize("session", [None, "7"])
@pytest.mark.parametrize("submitted", ["https://evil.example.com/mcp", ":::", "", None, "http://127.0.0.1:1/"])
def test_the_catalogs_address_is_taken_whatever_was_submitted(session: str | None, submitted: str | None) -> None:
    answers = advertising()
    ran = click(servers=answers.origins("https://evil.example.com"), session=session, server_url=submitted)
    assert str(ran.result.location).startswith("https://notion.test/authorize?")
    assert [row["server_url"] for row in flow_rows(ran)] == ["https://notion.test/mcp"]
    assert not [asked for asked in answers.asked if "evil" in asked]


@pytest.mark.requirement("authorize-off-catalog-in-session-gap")
def test_in_a_session_a_server_outside_the_catalog_is_fetched_which_is_a_known_gap() -> None:
    answers = Answers(
        {
            f"GET https://off.example.com{DISCOVERY}": document(
                authorization_endpoint="https://off.example.com/authorize", token_endpoint="https://off.example.com/t"
            )
        }
    )
    request: dict[str, Any] = {"server_name": "off", "server_url": "https://off.example.com/mcp"}
    ran = click(servers=answers.origins(), session="7", **request)
    assert answers.asked != []
    assert [row["mcp_server_config"] for row in flow_rows(ran)] == [
        {"type": "http", "url": "https://off.example.com/mcp"}
    ]
    answers.requests.clear()
    assert click(servers=answers.origins(), **request).result.location == "/connectors"
    assert answers.asked == []


@pytest.mark.requirement("authorize-off-catalog-in-session-gap")
def test_the_gap_is_not_wider_than_servers_that_the_catalog_does_not_have() -> None:
    answers = advertising()
    deps = deployment({"local": {"type": "stdio", "command": "npx"}, "bare": {"type": "http"}})
    for name in ("local", "bare"):
        ran = click(deps, answers.origins(), session="7", server_name=name, server_url="https://notion.test/mcp")
        assert ran.result.message == f"Could not determine OAuth requirements for {name}"
    assert answers.asked == []


@pytest.mark.requirement("authorize-off-catalog-https-guard")
@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://off.example.com/x", "", None, " ", "off.example.com/mcp", "https://${SECRET}/x"],
)
def test_outside_the_catalog_only_web_addresses_are_fetched_and_no_secret_is_put_in(url: str | None) -> None:
    answers = Answers({})
    deps = deployment(variables={"SECRET": "s3cr3t"})
    ran = click(deps, answers.origins("https://s3cr3t"), session="7", server_name="off", server_url=url)
    assert ran.result == Answer(302, "redirect", "/sessions/7", "Could not determine OAuth requirements for off")
    assert answers.asked == []
    assert "s3cr3t" not in ran.told


@pytest.mark.requirement("authorize-request-cannot-invent-target")
@pytest.mark.parametrize("session", [None, "7"])
def test_nothing_else_of_the_request_reaches_the_flow(session: str | None) -> None:
    invented = {
        "authorization_endpoint": "https://evil.example.com/authorize",
        "token_endpoint": "https://evil.example.com/token",
        "client_id": "evil",
        "client_secret": "evil",
        "redirect_uri": "https://evil.example.com/cb",
        "scopes": "evil",
        "resource": "https://evil.example.com",
        "session": "8",
    }
    server = advertising(scopes_supported=["read"])
    plain = only(flow_rows(click(servers=server.origins(), session=session)))
    other = only(flow_rows(click(servers=server.origins(), session=session, extra=invented)))
    assert {**plain, "state": "", "code_verifier": ""} == {**other, "state": "", "code_verifier": ""}


@pytest.mark.requirement("flow-uses-resolved-url")
def test_the_server_is_asked_at_the_address_that_a_runtime_will_read() -> None:
    tree = {"notion": {"type": "streamable-http", "url": "https://${TENANT}.test/mcp"}}
    answers = advertising()
    ran = click(deployment(tree, variables={"TENANT": "notion"}), answers.origins())
    row = only(flow_rows(ran))
    assert (row["server_url"], row["resource"]) == ("https://notion.test/mcp", "https://notion.test/mcp")
    assert row["credential_key"] == credential_key("notion", {"type": "streamable-http", "url": tree["notion"]["url"]})
    assert all("https://notion.test/" in asked for asked in answers.asked)


@pytest.mark.requirement("flow-uses-resolved-url")
@pytest.mark.parametrize("value", [None, "", "  "])
def test_an_address_with_a_variable_that_is_not_set_is_not_asked(value: str | None) -> None:
    tree = {"notion": {"type": "streamable-http", "url": "https://${TENANT}.test/mcp"}}
    answers = advertising()
    variables = {} if value is None else {"TENANT": value}
    ran = click(deployment(tree, variables=variables), answers.origins("https://${TENANT}.test"))
    assert ran.result.message == UNDETERMINED
    assert answers.asked == []


def test_a_secret_store_that_cannot_be_reached_is_no_error_of_the_click() -> None:
    def unreachable(name: str) -> str | None:
        raise StoreUnavailableError(name)

    tree = {"notion": {"type": "streamable-http", "url": "https://${TENANT}.test/mcp"}}
    assert click(replace(deployment(tree), lookup=unreachable)).result.message == UNDETERMINED


def test_a_session_that_is_not_there_gets_no_flow() -> None:
    answers = advertising()
    ran = click(servers=answers.origins(), session="99")
    assert (ran.result.status, ran.result.page) == (404, "error")
    assert answers.asked == []
    assert flow_rows(ran) == []
    assert click(servers=answers.origins(), session="").result.location.startswith("https://notion.test/authorize?")


# --- initiate: is there a credential


@pytest.mark.requirement("authorize-expired-row-does-not-shortcut", "authorize-sessionless-returns-connectors")
@pytest.mark.parametrize("expires_in", [None, 1.0, 3600.0])
def test_an_active_credential_needs_no_flow(expires_in: float | None) -> None:
    answers = advertising()
    ran = click(servers=answers.origins(), rows=stored(expires_in))
    assert ran.result == Answer(302, "redirect", "/connectors", "notion is already authorized.", notice=True)
    assert answers.asked == []
    assert flow_rows(ran) == []
    assert ran.row("sessions", "7") == WAITING["sessions", "7"]


@pytest.mark.requirement("authorize-expired-row-does-not-shortcut")
@pytest.mark.parametrize("refresh_token", [None, "r1"])
@pytest.mark.parametrize("expires_in", [0.0, -1.0, -86400.0])
@pytest.mark.parametrize("session", [None, "7"])
def test_a_credential_that_has_lapsed_or_was_retired_stops_no_flow(
    session: str | None, expires_in: float, refresh_token: str | None
) -> None:
    row = stored(expires_in, refresh_token=refresh_token, token_endpoint="https://notion.test/token")
    ran = click(rows=row, session=session)
    assert str(ran.result.location).startswith("https://notion.test/authorize?")
    assert len(flow_rows(ran)) == 1


def test_an_active_credential_resumes_the_session_whose_runtime_never_honoured_it() -> None:
    answers = advertising()
    ran = click(servers=answers.origins(), rows=stored(), session="7")
    text = "notion is already authorized — retrying the session."
    assert ran.result == Answer(302, "redirect", "/sessions/7", text, notice=True)
    assert answers.asked == []
    both = click(rows={**stored(), **parked("7", "notion", "linear")}, session="7")
    assert both.result.message == "notion is already authorized."


@pytest.mark.requirement("gate-initiate-short-circuit-retries", "reconnect-parked-release-via-own-initiate")
def test_a_click_releases_a_session_whose_server_was_authorized_elsewhere_while_its_own_consent_was_open() -> None:
    begun = {**stored_flow("S1", session="7"), **stored_flow("S2"), **stored_flow("S3", session="8")}
    ran = click(rows={**stored(), **begun}, session="7")
    assert ran.result.message == "notion is already authorized — retrying the session."
    assert ran.named("session.resumed") == [{"servers": ["notion"]}]
    assert sorted(flow["state"] for flow in flow_rows(ran)) == ["S2", "S3"]


def test_a_click_leaves_the_consent_to_a_server_that_is_called_none_alone() -> None:
    """Where nothing is named, no name is it."""
    ran = click(rows={**stored(), **parked("7", "notion"), **stored_flow(server_name="None", session="7")}, session="7")
    assert ran.result.message == "notion is already authorized."
    assert [flow["server_name"] for flow in flow_rows(ran)] == ["None"]
