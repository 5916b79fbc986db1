"""The flow that a click on Authorize starts: whose client, which redirect and scope, and which flows it replaces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.reference.oauth.flows import TABLE as FLOWS
from harness.reference.oauth.web import Answer, callback, initiate
from harness.world import Response, World
from scenarios.units.oauth_house import (
    DISCOVERY,
    HOSTED,
    JSON,
    LOOPBACK,
    NOTION,
    REGISTER,
    SLACK,
    SLACK_CLIENT,
    SLACK_ENTRY,
    advertising,
    click,
    deployment,
    flow_rows,
    only,
    parameters_of,
    stored_flow,
)
from scenarios.units.oauth_run import START_SECONDS, Answers, run_world

# --- initiate: on what grounds


@pytest.mark.requirement(
    "authorize-client-id-order", "authorize-zimmer-literal-last", "flow-client-id-fallback", "flow-registration-when",
    "authorize-configured-skips-dcr", "authorize-oauth-block-still-discovers", "flow-public-client-catalog-block",
    "authorize-configured-verbatim",
)  # fmt: skip
@pytest.mark.parametrize(
    ("block", "registers", "client_id", "registrations"),
    [
        ({"clientId": SLACK_CLIENT}, True, SLACK_CLIENT, 0),
        ({"clientId": SLACK_CLIENT}, False, SLACK_CLIENT, 0),
        ({"client_id": "b"}, True, "b", 0),
        ({"clientSecret": "alone"}, True, "dcr-1", 1),
        ({"clientId": " "}, True, "dcr-1", 1),
        (None, True, "dcr-1", 1),
        (None, False, "zimmer", 0),
    ],
)
def test_the_client_is_the_catalogs_then_a_registered_one_then_zimmer(
    block: dict[str, str] | None, registers: bool, client_id: str, registrations: int
) -> None:
    server = advertising(**(REGISTER if registers else {}))
    registered = Response(201, JSON, b'{"client_id":"dcr-1","client_secret":"dcr-secret"}')
    answers = Answers({**server.by_request, "POST https://notion.test/register": registered})
    ran = click(deployment({"notion": {**NOTION["notion"], "oauth": block}}), answers.origins())
    row = only(flow_rows(ran))
    assert (row["client_id"], row["client_secret"]) == (client_id, "dcr-secret" if client_id == "dcr-1" else None)
    assert parameters_of(ran.result.location)["client_id"] == client_id
    assert answers.asked.count("POST https://notion.test/register") == registrations
    assert f"GET https://notion.test{DISCOVERY}" in answers.asked
    assert row["token_endpoint"] == "https://notion.test/token"


@pytest.mark.requirement(
    "authorize-preregistered-bypasses-discovery", "flow-preregistered-skips-discovery", "flow-slack-config-only",
    "flow-client-config-from-credentials",
)  # fmt: skip
@pytest.mark.parametrize("name", ["slack", "acme"])
def test_a_client_registered_by_hand_brings_its_endpoints_and_nothing_is_asked(name: str) -> None:
    tree = {name: {"type": "http", "url": "https://mcp.slack.test/mcp"}}
    answers = Answers({})
    servers = answers.origins("https://mcp.slack.test", "https://slack.test")
    ran = click(deployment(tree, registered={name: SLACK_ENTRY}), servers, server_name=name)
    assert answers.asked == []
    assert str(ran.result.link).startswith("https://slack.test/oauth/v2_user/authorize?")
    incomplete = {key: value for key, value in SLACK_ENTRY.items() if key != "token_endpoint"}
    assert click(deployment(tree, registered={name: incomplete}), servers, server_name=name).result.page == "redirect"
    assert answers.asked != []


@pytest.mark.requirement("authorize-preregistered-before-block")
def test_a_client_registered_by_hand_decides_over_the_catalogs_block() -> None:
    block = {"clientId": "b", "clientSecret": "s", "redirectUri": "http://localhost:1/cb"}
    tree = {"slack": {**SLACK["slack"], "oauth": block}}
    ran = click(deployment(tree, registered={"slack": SLACK_ENTRY}), {}, server_name="slack")
    row = only(flow_rows(ran))
    assert (row["client_id"], row["client_secret"], row["redirect_uri"]) == (SLACK_CLIENT, None, LOOPBACK)
    assert row["token_endpoint"] == SLACK_ENTRY["token_endpoint"]


@pytest.mark.requirement(
    "flow-slack-authorize-request", "flow-resource-empty-suppresses", "authorize-configured-verbatim"
)
def test_the_official_slack_entry_gives_exactly_its_own_request() -> None:
    entry = {
        "client_id": SLACK_CLIENT,
        "authorization_endpoint": "https://slack.com/oauth/v2_user/authorize",
        "token_endpoint": "https://slack.com/api/oauth.v2.user.access",
        "scopes": "channels:history,groups:history,search:read.public,users:read",
        "redirect_uri": LOOPBACK,
        "manual": True,
        "resource": "",
    }
    tree = {"slack": {"type": "http", "url": "https://mcp.slack.com/mcp"}}
    ran = click(deployment(tree, registered={"slack": entry}), {}, server_name="slack")
    assert ran.result.link.partition("?")[0] == "https://slack.com/oauth/v2_user/authorize"
    parameters = parameters_of(ran.result.link)
    assert {name: parameters[name] for name in ("client_id", "redirect_uri", "scope")} == {
        "client_id": SLACK_CLIENT,
        "redirect_uri": LOOPBACK,
        "scope": "channels:history,groups:history,search:read.public,users:read",
    }
    assert "resource" not in parameters
    assert parameters["code_challenge_method"] == "S256"


@pytest.mark.requirement("flow-slack-entry-name-match", "authorize-preregistered-exact-name")
@pytest.mark.parametrize("key", ["Slack", "slac", "slack-reframe", "slack "])
def test_an_entry_of_another_name_is_not_used(key: str) -> None:
    answers = Answers({})
    ran = click(
        deployment(SLACK, registered={key: SLACK_ENTRY}), answers.origins("https://mcp.slack.test"), server_name="slack"
    )
    assert ran.result.message == "Could not determine OAuth requirements for slack"
    assert answers.asked != []


@pytest.mark.requirement("flow-resource-omitted-derives")
def test_without_a_resource_the_indicator_comes_from_the_servers_address() -> None:
    entry = {key: value for key, value in SLACK_ENTRY.items() if key != "resource"}
    tree = {"slack": {"type": "http", "url": "https://mcp.example.com/mcp/?x=1"}}
    ran = click(deployment(tree, registered={"slack": entry}), {}, server_name="slack")
    assert parameters_of(ran.result.link)["resource"] == "https://mcp.example.com/mcp"


@pytest.mark.requirement(
    "authorize-scopes-joined-as-advertised", "authorize-never-asks-offline-access", "flow-scopes-source"
)
@pytest.mark.parametrize(
    ("advertised", "block", "expected"),
    [
        (["read", "write"], {}, "read write"),
        (["b", "a", "b"], {}, "b a b"),
        (["a", "offline_access"], {}, "a offline_access"),
        ([], {}, None),
        (None, {}, None),
        (["read", "write"], {"clientId": "c", "scopes": ["admin"]}, "admin"),
    ],
)
def test_the_scope_is_what_is_configured_or_else_what_is_advertised(
    advertised: list[str] | None, block: dict[str, Any], expected: str | None
) -> None:
    tree = {"notion": {**NOTION["notion"], "oauth": block}}
    ran = click(deployment(tree), advertising(scopes_supported=advertised).origins())
    assert parameters_of(ran.result.location).get("scope") == expected
    assert [row["scopes"] for row in flow_rows(ran)] == [expected]


@pytest.mark.requirement(
    "authorize-redirect-configured-wins", "authorize-redirect-in-dcr", "authorize-catalog-has-no-manual-flag",
    "flow-manual-redirect-source",
)  # fmt: skip
@pytest.mark.parametrize(
    ("block", "redirect_uri", "page"),
    [
        ({"redirectUri": LOOPBACK}, LOOPBACK, "paste"),
        ({"redirect_uri": LOOPBACK}, LOOPBACK, "paste"),
        ({"redirectUri": "urn:ietf:wg:oauth:2.0:oob"}, "urn:ietf:wg:oauth:2.0:oob", "paste"),
        ({"redirectUri": HOSTED}, HOSTED, "redirect"),
        ({"redirectUri": " "}, HOSTED, "redirect"),
        ({"manual": True}, HOSTED, "redirect"),
        ({}, HOSTED, "redirect"),
    ],
)
def test_the_catalogs_redirect_is_registered_sent_and_decides_how_the_flow_ends(
    block: dict[str, Any], redirect_uri: str, page: str
) -> None:
    server = advertising(**REGISTER)
    registered = Response(201, JSON, b'{"client_id":"dcr-1"}')
    answers = Answers({**server.by_request, "POST https://notion.test/register": registered})
    ran = click(deployment({"notion": {**NOTION["notion"], "oauth": block}}), answers.origins())
    assert ran.result.page == page
    assert parameters_of(ran.result.location or ran.result.link)["redirect_uri"] == redirect_uri
    assert json.loads(answers.requests[-1].body)["redirect_uris"] == [redirect_uri]
    assert [(row["redirect_uri"], row["manual"]) for row in flow_rows(ran)] == [(redirect_uri, page == "paste")]


@pytest.mark.requirement("authorize-manual-forced-by-entry", "flow-manual-flag")
@pytest.mark.parametrize(("manual", "page"), [(True, "paste"), (False, "redirect"), (None, "redirect")])
def test_an_entry_can_force_the_paste_page_over_the_hosted_callback(manual: bool | None, page: str) -> None:
    entry = {**SLACK_ENTRY, "redirect_uri": None, "manual": manual}
    ran = click(deployment(SLACK, registered={"slack": entry}), {}, server_name="slack")
    assert ran.result.page == page
    assert parameters_of(ran.result.location or ran.result.link)["redirect_uri"] == HOSTED


@pytest.mark.requirement("authorize-hosted-localhost-automatic", "authorize-redirect-default-hosted")
def test_a_development_instance_finishes_on_its_own() -> None:
    ran = click(deployment(app_host=None))
    assert ran.result.page == "redirect"
    callback_uri = "http://localhost:3000/mcp_oauth/callback"
    assert parameters_of(ran.result.location)["redirect_uri"] == callback_uri


@pytest.mark.requirement(
    "flow-manual-renders-page", "authorize-manual-completes-at-complete", "flow-manual-page-explains-dead-page"
)
def test_a_manual_flow_shows_a_page_with_the_link_and_redirects_nowhere() -> None:
    ran = click(deployment(SLACK, registered={"slack": SLACK_ENTRY}), {}, server_name="slack")
    row = only(flow_rows(ran))
    assert (ran.result.status, ran.result.page, ran.result.location) == (200, "paste", None)
    assert ran.result.flow_state == row["state"] == parameters_of(ran.result.link)["state"]
    text = " ".join(ran.result.texts)
    assert "localhost" in text
    assert "will not load" in text
    assert "address bar" in text
    assert "?code=" in text


@pytest.mark.requirement("authorize-sweep-on-initiate", "authorize-abandoned-flow-bounded")
@pytest.mark.parametrize("session", [None, "7"])
def test_every_flow_that_starts_sweeps_away_the_abandoned_ones(session: str | None) -> None:
    day = 86400
    rows = {
        **stored_flow("A", server_name="linear", expires_at=START_SECONDS - 2 * day),
        **stored_flow("A2", server_name="figma", expires_at=START_SECONDS - 1),
        **stored_flow("B", server_name="linear", session="7", expires_at=START_SECONDS - 2 * day),
        **stored_flow("C", server_name="exa", expires_at=START_SECONDS + 3600),
    }
    ran = click(rows=rows, session=session)
    assert {row["state"] for row in flow_rows(ran)} == {"B", "C", ran.result.flow_state}


@pytest.mark.requirement("authorize-abandoned-flow-bounded", "authorize-sweep-on-initiate")
def test_an_abandoned_flow_is_gone_with_the_first_click_after_its_day() -> None:
    tree = {**NOTION, "linear": {"type": "http", "url": "https://notion.test/mcp"}}

    async def program(world: World) -> list[str]:
        first = await initiate(world, deployment(tree), server_name="notion")
        await world.clock.sleep(86400 + 1)
        second = await initiate(world, deployment(tree), server_name="linear")
        return [str(first.flow_state), str(second.flow_state)]

    ran = run_world(program, servers=advertising().origins())
    assert {row["state"] for row in flow_rows(ran)} == {ran.result[1]}


@pytest.mark.requirement("authorize-restart-replaces-own-flow", "flow-pending-flow-one-per-server")
def test_a_click_replaces_the_flow_of_its_own_session_and_server() -> None:
    rows = {**stored_flow("#1", session="7"), **stored_flow("#2")}
    ran = click(rows=rows)
    assert {row["state"] for row in flow_rows(ran)} == {"#1", ran.result.flow_state}
    left = {(FLOWS, key): values for key, values in ran.rows(FLOWS).items()}
    late = run_world(lambda world: callback(world, deployment(), {"state": "#2", "code": "c"}), rows=left)
    assert late.result == Answer(400, "error", message="OAuth flow not found. It may have expired.")
