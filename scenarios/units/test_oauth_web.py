"""The way back from the consent screen: the hosted callback, and what a person pasted."""

from __future__ import annotations

from typing import Any

import pytest

from harness.reference.oauth.web import Answer, callback, complete, initiate
from harness.world import Request, Response, World
from harness.world.model import Fault
from scenarios.units.oauth_house import (
    HOSTED,
    JSON,
    LOOPBACK,
    NOTION,
    PLACES,
    WAITING,
    advertising,
    come_back,
    credential_rows,
    deployment,
    document,
    flow_rows,
    form_of,
    granting,
    parameters_of,
    paste,
    stored_flow,
)
from scenarios.units.oauth_run import START_SECONDS, Answers, run_world

# --- the callback


MISSING = "Missing state parameter"
UNKNOWN = "OAuth flow not found. It may have expired."
EXPIRED = "OAuth flow has expired. Please try again."
FAILED = "Failed to exchange authorization code for tokens. Please try again."
NO_CODE = "No authorization code received from OAuth provider."


@pytest.mark.requirement(
    "authorize-state-is-csrf-defense",
    "flow-callback-outcomes",
    "authorize-sessionless-callback-error-page",
    "flow-pending-flow-lifetime",
    "flow-state-unguessable",
)
@pytest.mark.parametrize("session", [None, "7"])
@pytest.mark.parametrize(
    ("parameters", "expires_in", "text", "kept"),
    [
        ({"code": "c"}, 60, MISSING, True),
        ({"code": "c", "state": ""}, 60, MISSING, True),
        ({"code": "c", "state": "S2"}, 60, UNKNOWN, True),
        ({"code": "c", "state": "S1"}, 0, EXPIRED, False),
        ({"code": "c", "state": "S1"}, -1, EXPIRED, False),
        ({"error": "access_denied", "state": "S1"}, -1, EXPIRED, False),
        (
            {"error": "access_denied", "error_description": "User said no", "state": "S1", "code": "c"},
            60, "OAuth authorization failed: User said no", False,
        ),
        ({"error": "access_denied", "state": "S1"}, 60, "OAuth authorization failed: access_denied", False),
        ({"state": "S1"}, 60, NO_CODE, False),
        ({"state": "S1", "code": " "}, 60, NO_CODE, False),
    ],
)  # fmt: skip
def test_a_callback_that_brings_no_code_of_a_flow_ends_before_any_request(
    parameters: dict[str, str], expires_in: float, text: str, kept: bool, session: str | None
) -> None:
    answers = granting()
    ran = come_back(parameters, answers.origins(), expires_at=START_SECONDS + expires_in, session=session)
    assert ran.result == Answer(400, "error", message=text)
    assert answers.requests == []
    assert bool(flow_rows(ran)) is kept
    assert credential_rows(ran) == {}
    assert ran.row("sessions", "7") == WAITING["sessions", "7"]


@pytest.mark.requirement("flow-callback-outcomes", "flow-exchange-only-200", "flow-slack-not-ok-is-failure")
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (201, '{"access_token":"a"}'),
        (302, '{"access_token":"a"}'),
        (400, '{"error":"invalid_grant"}'),
        (500, "<html>"),
        (200, '{"ok":false,"error":"invalid_grant"}'),
        (200, "<html>"),
        (200, ""),
    ],
)
def test_a_failed_exchange_stores_nothing_and_ends_the_flow(status: int, body: str) -> None:
    answers = granting(body, status, Location="https://notion.test/elsewhere")
    ran = come_back({"code": "c0de", "state": "S1"}, answers.origins())
    assert ran.result == Answer(400, "error", message=FAILED)
    assert answers.asked == ["POST https://notion.test/token"]
    assert (flow_rows(ran), credential_rows(ran)) == ([], {})
    assert [told["text"] for told in ran.named("oauth.failed")] == [FAILED]


@pytest.mark.requirement("flow-callback-outcomes", "flow-hanging-as-fails-exchange")
@pytest.mark.parametrize("action", ["refused", "tls", "open-timeout", "reset-before", "reset-after"])
def test_an_exchange_without_an_answer_fails_and_is_not_repeated(action: Any) -> None:
    answers = granting()
    ran = run_world(
        lambda world: callback(world, deployment(), {"code": "c", "state": "S1"}),
        servers=answers.origins(), rows=stored_flow("S1"), faults=[Fault(action, port="http")],
    )  # fmt: skip
    assert ran.result == Answer(400, "error", message=FAILED)
    assert len(answers.requests) == (1 if action == "reset-after" else 0)
    assert (flow_rows(ran), credential_rows(ran)) == ([], {})


@pytest.mark.requirement("flow-hanging-as-fails-exchange")
def test_a_token_endpoint_that_never_answers_holds_nobody_longer_than_its_bound() -> None:
    silent = Answers({"POST https://notion.test/token": Response(200, JSON, b"{}", after_seconds=1e9)})

    async def program(world: World) -> tuple[Answer, float]:
        answer = await callback(world, deployment(), {"code": "c", "state": "S1"})
        return answer, world.clock.now() - START_SECONDS

    ran = run_world(program, servers=silent.origins(), rows=stored_flow("S1"))
    assert ran.result == (Answer(400, "error", message=FAILED), 30.0)


@pytest.mark.requirement("https-exchange-insecure-contained", "https-migration-covers-flows")
@pytest.mark.parametrize("endpoint", ["http://notion.test/token", "http://127.0.0.1:9000/token", "not-a-uri", ""])
@pytest.mark.parametrize("finishing", ["callback", "complete"])
def test_a_cleartext_flow_of_older_days_fails_like_any_exchange(endpoint: str, finishing: str) -> None:
    answers = Answers({"POST http://notion.test/token": document(access_token="a")})
    servers = answers.origins("http://127.0.0.1:9000")
    if finishing == "callback":
        ran = come_back({"code": "c", "state": "S1"}, servers, token_endpoint=endpoint)
    else:
        ran = paste("c", servers, token_endpoint=endpoint)
    assert (ran.result.status, ran.result.message) == (400, FAILED)
    assert answers.requests == []
    assert (flow_rows(ran), credential_rows(ran)) == ([], {})


@pytest.mark.requirement("flow-callback-outcomes", "authorize-sessionless-returns-connectors")
@pytest.mark.parametrize(("session", "place"), PLACES)
def test_a_good_code_is_exchanged_with_what_the_flow_has_kept(session: str | None, place: str) -> None:
    answers = granting()
    ran = come_back({"code": "c0de", "state": "S1"}, answers.origins(), session=session)
    assert ran.result == Answer(302, "redirect", place, "Successfully authorized notion", notice=True)
    assert [form_of(request) for request in answers.requests] == [
        {
            "grant_type": "authorization_code",
            "code": "c0de",
            "redirect_uri": HOSTED,
            "code_verifier": "verifier-of-S1",
            "client_id": "client-0",
            "resource": "https://notion.test/mcp",
        }
    ]
    assert flow_rows(ran) == []
    assert list(credential_rows(ran)) == ["notion|0123456789abcdef"]
    assert ran.named("oauth.completed") == [{"server": "notion"}]


@pytest.mark.requirement(
    "authorize-configured-secret-optional", "flow-confidential-secret-post", "flow-public-exchange-omits-secret"
)
@pytest.mark.parametrize(
    ("block", "secret"),
    [
        ({"clientId": "c"}, None),
        ({"clientId": "c", "clientSecret": "shh"}, "shh"),
        ({"clientId": "c", "clientSecret": ""}, None),
    ],
)
def test_a_configured_secret_goes_into_the_form_and_none_is_no_field(block: dict[str, str], secret: str | None) -> None:
    base, token = advertising(), granting()
    answers = Answers({**base.by_request, **token.by_request})

    async def program(world: World) -> Answer:
        deps = deployment({"notion": {**NOTION["notion"], "oauth": block}})
        started = await initiate(world, deps, server_name="notion")
        return await callback(world, deps, {"state": str(started.flow_state), "code": "c0de"})

    ran = run_world(program, servers=answers.origins())
    request = answers.requests[-1]
    assert (form_of(request)["client_id"], form_of(request).get("client_secret")) == ("c", secret)
    assert "code_verifier" in form_of(request)
    assert not {name for name in request.headers if name.lower() == "authorization"}
    assert [row["client_secret"] for row in credential_rows(ran).values()] == [secret]


# --- what is pasted


@pytest.mark.requirement(
    "authorize-state-is-csrf-defense", "flow-forgery-exempt-routes", "flow-manual-state-absent-accepted"
)
@pytest.mark.parametrize(("state", "text"), [(None, MISSING), ("", MISSING), ("S2", UNKNOWN), ("notion", UNKNOWN)])
def test_a_paste_for_no_known_flow_changes_nothing(state: str | None, text: str) -> None:
    answers = granting()
    ran = paste("http://localhost:3118/callback?code=c&state=S1", answers.origins(), state=state)
    assert ran.result == Answer(400, "error", message=text)
    assert answers.requests == []
    assert len(flow_rows(ran)) == 1
    assert credential_rows(ran) == {}


@pytest.mark.requirement("flow-pending-flow-lifetime")
@pytest.mark.parametrize(("age", "page"), [(86399.0, "redirect"), (86400.0, "error"), (86401.0, "error")])
@pytest.mark.parametrize("finishing", ["callback", "complete"])
def test_a_flow_is_good_until_its_day_is_over(age: float, page: str, finishing: str) -> None:
    answers = granting()
    flow: dict[str, Any] = {"expires_at": START_SECONDS + 86400.0 - age}
    if finishing == "callback":
        ran = come_back({"code": "c", "state": "S1"}, answers.origins(), **flow)
    else:
        ran = paste("c", answers.origins(), **flow)
    assert ran.result.page == page
    assert flow_rows(ran) == []
    assert len(answers.requests) == (1 if page == "redirect" else 0)
    assert page == "redirect" or ran.result.message == EXPIRED


@pytest.mark.requirement(
    "flow-manual-failure-keeps-flow", "flow-manual-state-validated", "flow-manual-accepts-url-or-code"
)
@pytest.mark.parametrize("pasted", ["", None, "http://localhost:3118/callback?code=x&state=S2", "http://h/cb?error=no"])
def test_a_bad_paste_shows_the_page_again_and_keeps_the_flow(pasted: str | None) -> None:
    answers = granting()
    ran = paste(pasted, answers.origins())
    assert (ran.result.status, ran.result.page, ran.result.flow_state) == (400, "paste", "S1")
    assert ran.result.message
    assert parameters_of(ran.result.link)["state"] == "S1"
    assert answers.requests == []
    assert len(flow_rows(ran)) == 1
    assert credential_rows(ran) == {}


@pytest.mark.requirement("flow-manual-failure-keeps-flow", "flow-manual-exchange-same-path")
@pytest.mark.parametrize("first", ["http://localhost:3118/callback?code=wrong&state=S1", "", "?code=x&state=S2"])
def test_a_second_paste_succeeds_after_a_bad_one(first: str) -> None:
    def judge(request: Request) -> Response:
        good = form_of(request)["code"] == "right"
        return (
            document(access_token="a", refresh_token="r") if good else Response(400, JSON, b'{"error":"invalid_grant"}')
        )

    answers = Answers({"POST https://notion.test/token": judge})

    async def program(world: World) -> list[Answer]:
        second = "http://localhost:3118/callback?code=right&state=S1"
        return [await complete(world, deployment(), state="S1", pasted=text) for text in (first, second, second)]

    rows = {**WAITING, **stored_flow("S1", manual=True, redirect_uri=LOOPBACK, session="7")}
    ran = run_world(program, servers=answers.origins(), rows=rows)
    bad, good, replayed = ran.result
    assert (bad.status, bad.page) == (400, "paste")
    assert good == Answer(302, "redirect", "/sessions/7", "Successfully authorized notion", notice=True)
    assert replayed == Answer(400, "error", message=UNKNOWN)
    forms = [form_of(request) for request in answers.requests]
    assert [form["code"] for form in forms][-1:] == ["right"]
    assert {form["redirect_uri"] for form in forms} == {LOOPBACK}
    assert {form["code_verifier"] for form in forms} == {"verifier-of-S1"}
    assert len(credential_rows(ran)) == 1


@pytest.mark.requirement(
    "authorize-redirect-same-on-both-legs", "flow-exchange-persisted-values", "authorize-manual-persisted"
)
@pytest.mark.parametrize("block", [{}, {"redirectUri": LOOPBACK}])
def test_a_host_that_changes_under_a_flow_changes_nothing_of_it(block: dict[str, str]) -> None:
    tree = {"notion": {**NOTION["notion"], "oauth": block}}
    before, after = deployment(tree), deployment(tree, app_host="other.example.com")
    if block:
        after = deployment(tree, app_host="localhost:3118/callback?")
    answers = Answers({**advertising().by_request, **granting().by_request})

    async def program(world: World) -> list[Answer]:
        started = await initiate(world, before, server_name="notion")
        if not block:
            return [started, await callback(world, after, {"state": str(started.flow_state), "code": "c"})]
        again = await complete(world, after, state=started.flow_state, pasted="")
        return [started, again, await complete(world, after, state=started.flow_state, pasted="c")]

    ran = run_world(program, servers=answers.origins())
    started = ran.result[0]
    sent = parameters_of(started.location or started.link)["redirect_uri"]
    assert form_of(answers.requests[-1])["redirect_uri"] == sent == (LOOPBACK if block else HOSTED)
    assert not block or (ran.result[1].page, ran.result[1].link) == ("paste", started.link)
    assert ran.result[-1].page == "redirect"
