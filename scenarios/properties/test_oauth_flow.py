"""Whatever a person pastes and whatever a token endpoint answers: no error, and no code of another flow."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.reference.credentials.row import Credential
from harness.reference.oauth.consent import authorization_url, challenge
from harness.reference.oauth.endpoints import acceptable_endpoint
from harness.reference.oauth.exchange import exchanged
from harness.reference.oauth.flows import flow_of, granted, missing_fields, require_valid
from harness.reference.oauth.paste import pasted_code
from harness.reference.oauth.tokens import TokenAnswer, parse_body, store_tokens, token_answer
from harness.reference.oauth.web import initiate
from harness.world import Response
from scenarios.units.oauth_house import DISCOVERY, JSON, WAITING, deployment, flow_rows, parameters_of, stored_flow
from scenarios.units.oauth_run import Answers, run_world

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
STATES = st.text("abcXYZ0189-_", min_size=1, max_size=43)
PIECES = st.sampled_from(
    ["http://h/cb", "https://", "?", "#", "&", "=", "code", "code=", "state=", "state", "%", "%2", "%26", "+", " ", "x"]
)
PASTED = st.one_of(TEXTS, st.lists(st.one_of(PIECES, STATES), max_size=12).map("".join))
JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
NAMES = st.sampled_from(["access_token", "refresh_token", "scope", "expires_in", "authed_user", "ok", "error"])
BODIES = st.dictionaries(NAMES, st.one_of(JSON_VALUES, st.dictionaries(NAMES, JSON_VALUES, max_size=4)), max_size=6)
FLOW = flow_of(next(iter(stored_flow().values())))


@given(PASTED, STATES)
def test_any_pasted_text_gives_a_code_or_nothing(pasted: str, state: str) -> None:
    code = pasted_code(pasted, state)
    assert code is None or code.strip()


@pytest.mark.requirement("flow-manual-state-validated")
@given(
    st.sampled_from(["http://localhost:3118/callback?", "?", "", "HTTPS://h/cb?"]), TEXTS, STATES, STATES, st.booleans()
)
def test_a_code_that_comes_with_another_state_is_never_taken(
    before: str, code: str, state: str, other: str, first: bool
) -> None:
    fields = [("code", code), ("state", other)]
    pasted = before + urlencode(fields if first else fields[::-1])
    assert (pasted_code(pasted, state) is None) or other == state


@pytest.mark.requirement("flow-manual-accepts-url-or-code", "flow-manual-code-extraction")
@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).filter(str.strip), STATES, st.booleans())
def test_every_code_survives_the_way_through_an_address_bar(code: str, state: str, plus: bool) -> None:
    encoded = quote_plus(code) if plus else quote(code, safe="")
    pasted = f" http://localhost:3118/callback?state={state}&code={encoded}#_=_ "
    assert pasted_code(pasted, state) == code


@given(st.one_of(st.none(), TEXTS, st.just("application/json")), st.one_of(TEXTS, PASTED), st.integers(100, 599))
def test_any_body_is_an_object_or_nothing(content_type: str | None, body: str, status: int) -> None:
    parsed = parse_body(content_type, body)
    assert parsed is None or isinstance(parsed, dict)
    answer = token_answer(parsed)
    assert answer is None or answer.access_token.strip()
    headers = {} if content_type is None else {"Content-Type": content_type}
    assert exchanged(Response(status, headers, body.encode())) == (answer if status == 200 else None)


@pytest.mark.requirement("flow-slack-top-level-first")
@given(BODIES)
def test_all_of_an_answer_comes_from_the_object_that_carried_the_token(body: dict[str, Any]) -> None:
    answer = token_answer(body)
    nested = body.get("authed_user")
    if answer is None:
        return
    wins = isinstance(nested, dict) and nested.get("access_token") == answer.access_token
    source = nested if wins else body
    assert isinstance(source, dict)
    assert answer.refresh_token in (None, source.get("refresh_token"))
    assert answer.scope in (None, source.get("scope"))
    assert "expires_in" in source or answer.expires_in_seconds is None


@pytest.mark.requirement(
    "authorize-flag-from-survivor", "authorize-flag-never-contradicts", "authorize-reauth-keeps-stored-token"
)
@given(st.lists(st.tuples(st.one_of(st.none(), st.sampled_from(["", " ", "r1", "r2"])), st.booleans()), max_size=6))
def test_after_any_exchanges_a_row_is_one_shot_exactly_without_a_refresh_token(
    answers: list[tuple[str | None, bool]],
) -> None:
    stored: Credential | None = None
    seen = ""
    for refresh_token, _ in answers:
        stored = store_tokens(stored, granted(FLOW, TokenAnswer("t", refresh_token), 0.0))
        seen = (refresh_token or "").strip() or seen
        assert (stored.refresh_token or "") == seen
        assert stored.refresh_token_unsupported is (not seen)


@pytest.mark.requirement("flow-authorization-url")
@given(STATES, STATES, st.one_of(st.none(), TEXTS), st.one_of(st.none(), TEXTS))
def test_the_consent_screen_is_told_what_the_flow_holds(
    state: str, verifier: str, scopes: str | None, resource: str | None
) -> None:
    values = next(iter(stored_flow(state, code_verifier=verifier, scopes=scopes, resource=resource).values()))
    parameters = parameters_of(authorization_url(flow_of(values)))
    assert (parameters["state"], parameters["code_challenge"]) == (state, challenge(verifier))
    for name, value in (("scope", scopes), ("resource", resource)):
        assert name not in parameters or parameters[name] == value


HOSTILE_URLS = st.sampled_from(
    [
        "https://notion.test/authorize", "https://notion.test/token", "http://notion.test/token", "javascript:alert(1)",
        "http://127.0.0.1:9000/token", "https://", "https:/x", "//notion.test/t", "https://id:s3cr3t@as.test/t",
        "http://id:s3cr3t@as.test/t", "file:///etc/passwd", "https://as.test/a b", "https://as.test/\r\nX: y", "",
    ]
)  # fmt: skip
MEMBERS = st.sampled_from(
    ["authorization_endpoint", "token_endpoint", "registration_endpoint", "issuer", "scopes_supported", "resource"]
)
DOCUMENTS = st.dictionaries(MEMBERS, st.one_of(HOSTILE_URLS, HOSTILE_URLS, JSON_VALUES), max_size=6)


@pytest.mark.requirement("https-initiate-refuses-before-consent", "https-secrets-not-in-logs")
@given(DOCUMENTS, DOCUMENTS, JSON_VALUES, st.sampled_from([None, "7"]))
@settings(max_examples=60)
def test_whatever_a_server_says_of_itself_a_click_leads_somewhere_safe(
    own: dict[str, Any], resource: dict[str, Any], registered: Any, session: str | None
) -> None:
    answers = Answers(
        {
            f"GET https://notion.test{DISCOVERY}": Response(200, JSON, json.dumps(own).encode()),
            "GET https://notion.test/.well-known/oauth-protected-resource": Response(
                200, JSON, json.dumps(resource).encode()
            ),
            "POST https://notion.test/token": Response(201, JSON, json.dumps(registered).encode()),
        }
    )
    servers = answers.origins("https://as.test", "http://as.test", "http://notion.test", "http://127.0.0.1:9000")
    ran = run_world(
        lambda world: initiate(world, deployment(), server_name="notion", session=session),
        servers=servers,
        rows=WAITING,
    )
    assert ran.result.page == "redirect"
    place = str(ran.result.location)
    assert place.startswith(("/connectors", "/sessions/7", "http://", "https://"))
    assert place.isprintable()
    assert not [asked for asked in answers.asked if asked.startswith("POST http://")]
    assert len(answers.requests) <= 15
    assert all(acceptable_endpoint(row["token_endpoint"]) for row in flow_rows(ran))
    assert "s3cr3t" not in str(ran.result.message) + ran.told


@pytest.mark.requirement("flow-pending-flow-required-fields", "https-pending-flow-refuses")
@given(st.dictionaries(st.sampled_from(sorted(next(iter(stored_flow().values())))), st.one_of(st.none(), TEXTS)))
def test_no_flow_without_all_it_needs_or_with_a_cleartext_endpoint_is_storable(changed: dict[str, Any]) -> None:
    values = {**next(iter(stored_flow().values())), **changed}
    try:
        require_valid(values)
    except ValueError:
        return
    assert missing_fields(values) == ()
    assert acceptable_endpoint(values["token_endpoint"])
    assert isinstance(values["mcp_server_config"], dict)
