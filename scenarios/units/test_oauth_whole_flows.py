"""Whole flows against providers as they are: from the click to the stored credential."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fake_servers.oauth import Answer as Scripted
from fake_servers.oauth import Client
from harness.reference.oauth.flows import TABLE as FLOWS
from harness.reference.oauth.web import Answer, callback, initiate
from harness.world import World
from scenarios.units.oauth_house import (
    HOSTED,
    LOOPBACK,
    NOTION,
    NOTION_KEY,
    SLACK,
    SLACK_CLIENT,
    SLACK_ENTRY,
    WAITING,
    consented,
    credential_rows,
    deployment,
    finish,
    flow_rows,
    only,
    parked,
    stage_of,
    stored,
    whole_flow,
)
from scenarios.units.oauth_run import START_SECONDS, Answers, Ran, run_world

# --- whole flows


@pytest.mark.requirement(
    "flow-zimmer-runs-whole-flow", "flow-row-keeps-issuer-and-redirect", "authorize-credential-keyed-by-config",
    "authorize-no-session-created", "authorize-no-user-auth", "authorize-sessionless-resumes-nothing",
)  # fmt: skip
def test_a_connector_is_authorized_from_its_page_and_costs_no_session() -> None:
    stage = stage_of("notion")
    ran = run_world(whole_flow(deployment(), stage, "notion"), servers=stage.servers, rows=WAITING)
    assert ran.result[1] == Answer(302, "redirect", "/connectors", "Successfully authorized notion", notice=True)
    assert ran.rows("sessions") == {"7": WAITING["sessions", "7"]}
    assert ran.rows("jobs") == {}
    generation = only(stage.authorization.tokens)
    key, row = only(credential_rows(ran).items())
    assert key == row["credential_key"] == NOTION_KEY
    assert (row["access_token"], row["refresh_token"]) == (generation.access, generation.refresh)
    assert (row["issuer"], row["redirect_uri"]) == ("https://notion.test", HOSTED)
    assert row["expires_at"] == START_SECONDS + 3600
    assert "session" not in row
    own = [each for each in stage.authorization.requests if each.endpoint != "authorize"]
    assert {each.headers["User-Agent"] for each in own} == {"Zimmer/1.0"}


def shape(ran: Ran, stage: Any) -> Any:
    """The requests of a run and its row, ids aside."""
    random = {"state", "code", "code_verifier", "code_challenge"}
    requests = [
        (each.endpoint, each.method, each.url.partition("?")[0], sorted(each.fields),
         {name: value for name, value in each.fields.items() if name not in random})
        for each in stage.authorization.requests
    ]  # fmt: skip
    return requests, stage.site.requests and None, credential_rows(ran)


@pytest.mark.requirement("authorize-two-differences-only", "authorize-sessionless-resumes-nothing")
@pytest.mark.parametrize("profile", ["notion", "slack"])
def test_with_and_without_a_session_a_flow_makes_the_same_requests_and_the_same_row(profile: str) -> None:
    tree = NOTION if profile == "notion" else SLACK
    deps = deployment(tree, registered={"slack": SLACK_ENTRY})
    shapes, answers = [], []
    for session in (None, "7"):
        stage = stage_of(profile)
        rows = parked("7", profile)
        ran = run_world(whole_flow(deps, stage, profile, session), servers=stage.servers, rows=rows)
        shapes.append(shape(ran, stage))
        answers.append([answer._replace(location=None, link=None, flow_state=None) for answer in ran.result])
        resumed = ran.row("sessions", "7") != rows["sessions", "7"]
        assert resumed is (session is not None)
        assert bool(ran.rows("jobs")) is (session is not None)
        assert ran.result[1].location == ("/connectors" if session is None else "/sessions/7")
    assert shapes[0] == shapes[1]
    assert answers[0] == answers[1]


@pytest.mark.requirement(
    "flow-manual-exchange-same-path",
    "flow-slack-unwrap-exchange",
    "flow-slack-token-request",
    "flow-slack-tests-offline",
    "flow-slack-config-only",
    "flow-public-client-allowed",
    "authorize-manual-completes-at-complete",
    "flow-resource-empty-suppresses",
)
@pytest.mark.parametrize(("profile", "name"), [("slack", "slack"), ("slack", "acme"), ("slack-with-bot", "slack")])
def test_slack_is_authorized_by_paste_back_and_configuration_alone(profile: str, name: str) -> None:
    stage = stage_of(profile)
    deps = deployment({name: SLACK["slack"]}, registered={name: SLACK_ENTRY})
    ran = run_world(whole_flow(deps, stage, name, "7"), servers=stage.servers, rows=parked("7", name))
    assert [answer.page for answer in ran.result] == ["paste", "redirect"]
    posted = only(stage.authorization.received("token"))
    assert posted.url == "https://slack.test/api/oauth.v2.user.access"
    assert sorted(posted.fields) == ["client_id", "code", "code_verifier", "grant_type", "redirect_uri"]
    assert posted.fields["redirect_uri"] == LOOPBACK
    generation = only(stage.authorization.tokens)
    row = only(credential_rows(ran).values())
    assert (row["access_token"], row["refresh_token"]) == (generation.access, generation.refresh)
    assert row["expires_at"] == START_SECONDS + 43200
    assert row["resource"] in (None, "")
    assert stage.authorization.received("register") == []
    assert ran.named("session.resumed") == [{"servers": [name]}]


@pytest.mark.requirement("flow-manual-no-listener")
def test_nothing_is_started_to_receive_the_redirect_of_a_manual_flow() -> None:
    started: list[str] = []

    async def ends(_world: World, _argv: Sequence[str]) -> int:
        return 0

    def launcher(argv: Sequence[str], _variables: Mapping[str, str], _directory: str) -> Any:
        started.append(argv[0])
        return ends

    stage = stage_of("slack")
    deps = deployment(SLACK, registered={"slack": SLACK_ENTRY})
    ran = run_world(whole_flow(deps, stage, "slack"), servers=stage.servers, launcher=launcher)
    assert ran.result[1].page == "redirect"
    assert started == []
    assert not [event for event in ran.events if ":3118" in str(event.details.get("at"))]


@pytest.mark.requirement("authorize-slack-catalog-block-scenario", "authorize-redirect-configured-wins")
def test_slacks_catalog_block_alone_is_enough() -> None:
    stage = stage_of("slack")
    block = {"clientId": SLACK_CLIENT, "redirectUri": LOOPBACK}
    # The resource's own document names the authorization server at another host.
    tree = {"slack-reframe": {**SLACK["slack"], "oauth": block}}
    ran = run_world(whole_flow(deployment(tree), stage, "slack-reframe"), servers=stage.servers)
    assert [answer.page for answer in ran.result] == ["paste", "redirect"]
    assert stage.authorization.received("register") == []
    assert stage.authorization.received("metadata") != []
    row = only(credential_rows(ran).values())
    assert (row["server_name"], row["client_id"]) == ("slack-reframe", SLACK_CLIENT)
    assert "code_verifier" in stage.authorization.received("token")[0].fields


@pytest.mark.requirement("authorize-slack-literal-rejected", "authorize-slack-redirect-rejected")
@pytest.mark.parametrize(
    ("block", "page"),
    [
        ({}, "invalid_client_id"),
        ({"clientId": SLACK_CLIENT}, "redirect_uri did not match any configured URIs"),
        ({"clientId": SLACK_CLIENT, "redirectUri": "http://localhost:3119/callback"}, "redirect_uri did not match any"),
        ({"clientId": SLACK_CLIENT, "redirectUri": LOOPBACK}, None),
    ],
)
def test_slack_takes_only_its_own_client_with_its_own_redirect(block: dict[str, str], page: str | None) -> None:
    stage = stage_of("slack")
    deps = deployment({"slack": {**SLACK["slack"], "oauth": block}})

    async def program(world: World) -> Any:
        return await consented(world, await initiate(world, deps, server_name="slack"), stage)

    landed = run_world(program, servers=stage.servers).result
    if page is None:
        assert "code" in landed.parameters
    else:
        assert landed.url is None
        assert page in landed.page
    assert len(stage.authorization.codes) == (1 if page is None else 0)


@pytest.mark.requirement("flow-public-exchange-relies-on-verifier", "flow-pkce-s256")
@pytest.mark.parametrize("tampered", [False, True])
def test_the_verifier_that_was_kept_is_what_proves_the_exchange(tampered: bool) -> None:
    stage = stage_of("notion")
    deps = deployment()

    async def program(world: World) -> Answer:
        started = await initiate(world, deps, server_name="notion")
        landed = await consented(world, started, stage)
        if tampered:
            transaction = await world.store.begin()
            row = await transaction.get(FLOWS, str(started.flow_state), lock=True)
            assert row is not None
            await transaction.put(FLOWS, row.key, {**row.values, "code_verifier": "another"})
            await transaction.commit()
        return await callback(world, deps, landed.parameters)

    ran = run_world(program, servers=stage.servers)
    assert (ran.result.page == "error") is tampered
    assert bool(credential_rows(ran)) is not tampered


@pytest.mark.requirement("flow-pending-flow-persists", "flow-exchange-persisted-values")
def test_a_flow_is_finished_by_another_process_than_the_one_that_began_it() -> None:
    stage = stage_of("notion")
    deps = deployment()

    async def begin(world: World) -> Any:
        return await consented(world, await initiate(world, deps, server_name="notion"), stage)

    first = run_world(begin, servers=stage.servers)
    rows = {(FLOWS, key): values for key, values in first.rows(FLOWS).items()}

    async def end(world: World) -> Answer:
        return await callback(world, deployment({}), first.result.parameters)

    second = run_world(end, servers=stage.servers, rows=rows)
    assert second.result.message == "Successfully authorized notion"
    assert list(credential_rows(second)) == [NOTION_KEY]


@pytest.mark.requirement(
    "authorize-replace-in-place", "authorize-reauth-keeps-stored-token", "https-reauthorize-rediscovers",
    "flow-store-upsert-by-key", "authorize-flag-set-at-exchange",
)  # fmt: skip
@pytest.mark.parametrize("answers_refresh", [True, False])
@pytest.mark.parametrize("kept", ["issued-on-first-consent", None])
def test_authorizing_again_updates_the_row_and_finds_the_endpoint_anew(answers_refresh: bool, kept: str | None) -> None:
    script = () if answers_refresh else ("ok-without-refresh",)
    stage = stage_of("notion", token_answers=script)
    before = stored(-60, refresh_token=kept, scopes="old", refresh_token_unsupported=kept is None)
    ran = run_world(whole_flow(deployment(), stage, "notion"), servers=stage.servers, rows=before)
    generation = only(stage.authorization.tokens)
    key, row = only(credential_rows(ran).items())
    assert key == NOTION_KEY
    assert row["refresh_token"] == (generation.refresh if answers_refresh else kept)
    assert row["refresh_token_unsupported"] is (row["refresh_token"] is None)
    assert (row["access_token"], row["client_id"], row["scopes"]) == (generation.access, "client-1", "read write")
    assert row["token_endpoint"] == "https://notion.test/token"
    assert row["expires_at"] == START_SECONDS + 3600


@pytest.mark.requirement("authorize-kept-token-of-other-client")
def test_a_refresh_token_kept_from_another_client_is_kept_and_told_apart() -> None:
    stage = stage_of("notion", token_answers=("ok-without-refresh",))
    ran = run_world(
        whole_flow(deployment(), stage, "notion"), servers=stage.servers, rows=stored(-60, refresh_token="r1")
    )
    row = only(credential_rows(ran).values())
    assert (row["client_id"], row["refresh_token"]) == ("client-1", "r1")


@pytest.mark.requirement("flow-token-body-formats", "authorize-expires-absent-null", "authorize-flag-set-at-exchange")
def test_github_answers_a_form_without_lifetime_and_refresh_token() -> None:
    stage = stage_of("github")
    block = {"clientId": "Iv1.fake0000github", "clientSecret": "github-client-secret"}
    tree = {"github": {"type": "http", "url": "https://mcp.github.test/mcp/", "oauth": block}}
    entry = {
        "client_id": block["clientId"],
        "client_secret": block["clientSecret"],
        "authorization_endpoint": "https://github.test/login/oauth/authorize",
        "token_endpoint": "https://github.test/login/oauth/access_token",
        "scopes": "repo",
    }
    deps = deployment(tree, registered={"github": entry})
    ran = run_world(whole_flow(deps, stage, "github"), servers=stage.servers)
    assert ran.result[1].message == "Successfully authorized github"
    row = only(credential_rows(ran).values())
    assert (row["expires_at"], row["refresh_token"], row["refresh_token_unsupported"]) == (None, None, True)
    assert "github-client-secret" not in ran.told


@pytest.mark.requirement("https-secrets-not-in-logs")
@pytest.mark.parametrize("script", [(), ("invalid_grant",), ("500-html",), ("drop-after",), (Scripted(200, "s3cr3t"),)])
def test_no_event_and_no_message_of_a_flow_holds_a_secret(script: tuple[Any, ...]) -> None:
    stage = stage_of("notion", token_answers=script)
    block = {"clientId": "c-1", "clientSecret": "s3cr3t"}
    deps = deployment({"notion": {**NOTION["notion"], "oauth": block}})
    stage.authorization.clients["c-1"] = Client("c-1", "s3cr3t", (), "client_secret_post")
    ran = run_world(whole_flow(deps, stage, "notion", "7"), servers=stage.servers, rows=WAITING)
    posted = only(stage.authorization.received("token"))
    secrets = [posted.fields[name] for name in ("code", "code_verifier", "client_secret")]
    secrets += [token for made in stage.authorization.tokens for token in (made.access, made.refresh or made.access)]
    told = ran.told + str(ran.result[1]) + str(ran.row("sessions", "7"))
    assert [secret for secret in secrets if secret in told] == []


def test_a_flow_that_the_user_denies_ends_with_the_providers_words() -> None:
    stage = stage_of("notion")
    stage.authorization.provider = stage.authorization.provider._replace(consent="denied")
    ran = run_world(whole_flow(deployment(), stage, "notion"), servers=stage.servers)
    assert ran.result[1].message == "OAuth authorization failed: The user has denied access"
    assert [told["text"] for told in ran.named("oauth.failed")] == ["OAuth authorization failed"]
    assert flow_rows(ran) == []


@pytest.mark.requirement("authorize-credential-keyed-by-config")
def test_a_catalog_that_changes_under_a_flow_leaves_the_credential_with_the_config_that_was_authorized() -> None:
    stage = stage_of("notion")
    moved = deployment({"notion": {"type": "streamable-http", "url": "https://moved.test/mcp"}})

    async def program(world: World) -> Answer:
        started = await initiate(world, deployment(), server_name="notion")
        return await finish(world, moved, started, stage)

    ran = run_world(program, servers=stage.servers)
    key, row = only(credential_rows(ran).items())
    assert (key, row["server_url"]) == (NOTION_KEY, "https://notion.test/mcp")


def test_metadata_that_changes_under_a_flow_changes_nothing_of_it() -> None:
    stage = stage_of("notion")

    async def program(world: World) -> Answer:
        started = await initiate(world, deployment(), server_name="notion")
        stage.authorization.provider = stage.authorization.provider._replace(
            metadata={"token_endpoint": "https://evil.test/token"}
        )
        return await finish(world, deployment(), started, stage)

    evil = Answers({})
    ran = run_world(program, servers={**stage.servers, **evil.origins("https://evil.test")})
    assert ran.result.message == "Successfully authorized notion"
    assert evil.requests == []
