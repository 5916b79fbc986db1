"""The fake providers: what each is reported to do is seen in what its servers answer, by one who asks them."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from fake_servers.oauth import Answer, Resource, profile_named, profile_names, provider_named
from fake_servers.oauth.profiles import good_names, read_profile
from scenarios.units.fake_oauth_run import CALLBACK, FORM, NOW, Asker, shaped

PROFILES = profile_names()
NAMED = {
    "well-behaved", "path-inserted", "openid-only", "separate-host", "notion", "linear", "slack", "github", "figma",
    "google", "atlassian", "sentry", "entra", "hubspot", "supabase",
}  # fmt: skip
OAUTH, OPENID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
CALLED = {"figma": {"client_name": "Codex"}}
ASKED: dict[str, dict[str, str]] = {
    "separate-host": {"resource": "https://mcp.apart.test/mcp"},
    "openid-only": {"scope": "read offline_access"},
    "entra": {"scope": "api://mcp/access offline_access"},
    "google": {"access_type": "offline", "prompt": "consent"},
    "atlassian": {"resource": "https://atlassian.test/v1/mcp"},
}
ONE_SHOT = {"github", "slack-one-shot"}


def known(name: str) -> Asker:
    """One who has registered there, where that can be done."""
    asker = Asker(name)
    if not asker.client:
        assert asker.registered(**CALLED.get(name, {})).status == 201
    return asker


def given(name: str) -> tuple[Asker, dict[str, Any]]:
    """One who holds the tokens of a code, and the object that they are in."""
    asker = known(name)
    body = asker.tokens(**ASKED.get(name, {}))
    return asker, body.get("authed_user", body)


def renewed(asker: Asker, name: str, token: str, now: float = NOW) -> Any:
    return asker.refreshed(token, now, **{k: v for k, v in ASKED.get(name, {}).items() if k == "resource"})


def test_every_provider_that_was_reported_has_a_profile():
    assert set(PROFILES) >= NAMED


@pytest.mark.parametrize("name", PROFILES)
def test_whoever_does_as_the_provider_wants_is_let_in_and_can_refresh(name):
    asker, tokens = given(name)
    assert asker.called(None).status == 401
    assert asker.called(tokens["access_token"]).status == 200
    assert ("refresh_token" in tokens) == (name not in ONE_SHOT)
    if name in ONE_SHOT:
        return
    answer = renewed(asker, name, tokens["refresh_token"], NOW + 10)
    fresh = answer.body.get("authed_user", answer.body)
    assert answer.status == 200
    assert asker.called(fresh["access_token"], NOW + 10).status == 200
    assert fresh["access_token"] != tokens["access_token"]


@pytest.mark.requirement("flow-public-exchange-relies-on-verifier")
@pytest.mark.parametrize("name", PROFILES)
def test_a_code_is_good_once_and_needs_its_verifier_at_every_provider(name):
    asker = known(name)
    code = asker.sent_back(**ASKED.get(name, {}))["code"]
    resource = {key: value for key, value in ASKED.get(name, {}).items() if key == "resource"}
    wrong = asker.redeemed(code, code_verifier="w" * 43, **resource)
    missing = asker.redeemed(code, code_verifier="", **resource)
    assert not {"access_token", "authed_user"} & ({*wrong.body} | {*missing.body})
    first = asker.redeemed(code, **resource).body
    assert "access_token" in first.get("authed_user", first)
    again = asker.redeemed(code, **resource).body
    assert "access_token" not in again
    assert asker.called(first.get("authed_user", first)["access_token"]).status == 401


@pytest.mark.parametrize("name", PROFILES)
def test_nobody_is_sent_where_the_client_is_not_registered_by_any_provider(name):
    asker = known(name)
    if not asker.server.clients[asker.client["client_id"]].redirect_uris:
        return
    answer = asker.consented(redirect_uri="https://evil.test/callback")
    assert (answer.status, "Location" in answer.headers) == (400, False)


@pytest.mark.parametrize("name", PROFILES)
def test_a_client_that_nobody_knows_stays_on_a_page(name):
    answer = Asker(name, client_id="zimmer").consented()
    assert (answer.status, answer.headers["Content-Type"]) == (400, "text/html; charset=utf-8")


# --- what each one is known for ---------------------------------------------------------------------------------------


@pytest.mark.requirement("reconcile-rotation-kills-prior-token")
def test_notion_ends_earlier_access_tokens_and_the_family_when_a_spent_token_comes_again():
    asker, first = given("notion")
    second = asker.refreshed(first["refresh_token"]).body
    assert asker.called(first["access_token"]).status == 401
    assert asker.called(second["access_token"]).status == 200
    reused = asker.refreshed(first["refresh_token"], NOW + 1)
    assert (reused.status, reused.body["error"], reused.body["error_description"]) == (
        400, "invalid_grant", "OAuth grant revoked",
    )  # fmt: skip
    assert asker.called(second["access_token"]).status == 401
    assert asker.refreshed(second["refresh_token"]).body["error"] == "invalid_grant"


def test_linear_bears_a_spent_token_for_half_an_hour():
    asker, first = given("linear")
    assert first["expires_in"] == 86400
    assert asker.refreshed(first["refresh_token"], NOW + 100).status == 200
    assert asker.refreshed(first["refresh_token"], NOW + 100 + 1799).status == 200
    late = asker.refreshed(first["refresh_token"], NOW + 100 + 1800)
    assert (late.status, late.body["error_description"]) == (400, "Grant not found")


def test_slack_nests_the_users_tokens_and_gives_them_at_the_top_on_refresh():
    asker = Asker("slack")
    body = asker.tokens(scope="search:read,chat:write")
    assert body["ok"] is True
    assert "access_token" not in body
    assert body["authed_user"]["token_type"] == "user"
    assert body["authed_user"]["scope"] == "search:read,chat:write"
    fresh = asker.refreshed(body["authed_user"]["refresh_token"]).body
    assert (fresh["ok"], fresh["token_type"]) == (True, "user")
    assert "authed_user" not in fresh
    assert asker.called(fresh["access_token"]).status == 200


def test_slack_says_errors_in_a_200():
    asker, tokens = given("slack")
    asker.refreshed(tokens["refresh_token"])
    answers = [asker.refreshed(tokens["refresh_token"]), asker.redeemed("nope"), asker.refreshed("x", client_id="y")]
    assert [(answer.status, answer.body) for answer in answers] == [
        (200, {"ok": False, "error": "invalid_refresh_token"}), (200, {"ok": False, "error": "invalid_code"}),
        (200, {"ok": False, "error": "invalid_client_id"}),
    ]  # fmt: skip


@pytest.mark.requirement("authorize-slack-literal-rejected", "authorize-slack-redirect-rejected")
def test_slack_registers_nobody_and_refuses_what_it_does_not_know_on_the_consent_page():
    asker = Asker("slack")
    assert asker.metadata().get("registration_endpoint") is None
    assert asker.fetched("https://slack.test/register", method="POST").status == 404
    assert "invalid_client_id" in Asker("slack", client_id="zimmer").consented().text
    for place in (CALLBACK, "http://localhost:3119/callback"):
        answer = asker.consented(redirect_uri=place)
        assert (answer.status, "redirect_uri did not match any configured URIs" in answer.text) == (400, True)
        assert asker.server.codes == {}
    assert asker.sent_back()["code"] in asker.server.codes


def test_slack_takes_a_users_scopes_before_others():
    body = Asker("slack").tokens(user_scope="chat:write", scope="search:read")
    assert body["authed_user"]["scope"] == "chat:write"


def test_slack_may_give_an_hour_and_nothing_to_renew_it_with():
    asker = Asker("slack-one-shot")
    tokens = asker.tokens()["authed_user"]
    assert (tokens["expires_in"], tokens["scope"], "refresh_token" in tokens) == (3600, "", False)
    assert asker.called(tokens["access_token"], NOW + 3599).status == 200
    assert asker.called(tokens["access_token"], NOW + 3600).status == 401


def test_the_bots_token_at_the_top_opens_nothing():
    asker = Asker("slack-with-bot")
    body = asker.tokens()
    assert asker.called(body["access_token"]).status == 401
    assert asker.called(body["authed_user"]["access_token"]).status == 200
    fresh = asker.refreshed(body["authed_user"]["refresh_token"]).body
    assert asker.called(fresh["access_token"]).status == 401
    assert asker.called(fresh["authed_user"]["access_token"]).status == 200


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", FORM), ("*/*", FORM), ("text/html, application/x-www-form-urlencoded", FORM),
        ("application/json", "application/json"), ("text/plain, APPLICATION/JSON;q=0.9", "application/json"),
    ],
)  # fmt: skip
def test_github_answers_with_a_form_unless_json_is_asked_for(accept, kind):
    asker = Asker("github")
    answer = asker.redeemed(asker.sent_back()["code"], NOW, accept)
    assert (answer.status, answer.headers["Content-Type"]) == (200, kind)
    assert (answer.body["token_type"], answer.body["scope"]) == ("bearer", "repo,read:org,read:user")
    assert {"expires_in", "refresh_token"} & set(answer.body) == set()
    assert asker.called(answer.body["access_token"], NOW + 1e9).status == 200


def test_github_says_errors_in_a_200_in_its_own_words():
    asker = Asker("github-app")
    refused = asker.refreshed("stale", NOW, "")
    assert (refused.status, refused.headers["Content-Type"]) == (200, FORM)
    assert refused.body["error"] == "bad_refresh_token"
    assert asker.redeemed("stale").body["error"] == "bad_verification_code"
    assert asker.refreshed("stale", client_secret="no").body["error"] == "incorrect_client_credentials"
    assert asker.metadata(f"{OAUTH}/login/oauth").get("registration_endpoint") is None


def test_github_passes_over_scopes_that_it_does_not_know():
    asker = Asker("github")
    assert asker.tokens(scope="repo offline_access")["scope"] == "repo"


@pytest.mark.parametrize("name", ["Zimmer", "Claude Code (Zimmer)", ""])
def test_figma_registers_known_names_alone(name):
    asker = Asker("figma")
    refused = asker.registered(client_name=name)
    assert (refused.status, refused.text, asker.server.clients) == (403, "Forbidden", {})
    assert asker.registered(client_name="Codex").status == 201


def test_figma_says_none_and_demands_the_secret():
    asker = Asker("figma")
    assert asker.metadata()["token_endpoint_auth_methods_supported"] == ["none"]
    told = asker.registered(client_name="Codex").body
    assert told["token_endpoint_auth_method"] == "none"
    secret = asker.client.pop("client_secret")
    code = asker.sent_back()["code"]
    public = asker.redeemed(code)
    assert (public.status, public.body["error"]) == (401, "invalid_client")
    assert asker.redeemed(code, client_secret="no").status == 401
    assert asker.redeemed(code, client_secret=secret).status == 200


@pytest.mark.parametrize(
    ("fields", "refreshes"),
    [
        ({}, False), ({"access_type": "offline"}, False), ({"prompt": "consent"}, False),
        ({"access_type": "online", "prompt": "consent"}, False),
        ({"access_type": "offline", "prompt": "consent"}, True),
    ],
)  # fmt: skip
def test_google_gives_a_refresh_token_to_who_asks_for_one_in_its_own_way(fields, refreshes):
    assert ("refresh_token" in Asker("google").tokens(**fields)) == refreshes


def test_google_is_named_with_a_slash_by_the_resource_alone():
    asker = Asker("google")
    found = asker.fetched("https://drive.google.test/.well-known/oauth-protected-resource").body
    assert found["authorization_servers"] == ["https://accounts.google.com/"]
    assert asker.metadata(OPENID)["issuer"] == "https://accounts.google.com"


def test_a_refresh_token_that_google_does_not_rotate_stays_good():
    asker, tokens = given("google")
    answers = [asker.refreshed(tokens["refresh_token"], NOW + at) for at in (0, 10_000)]
    assert [("refresh_token" in answer.body, answer.status) for answer in answers] == [(False, 200), (False, 200)]


def test_atlassian_wants_the_resource_on_refresh_and_has_its_own_word_for_a_dead_token():
    asker, tokens = given("atlassian")
    refused = asker.refreshed(tokens["refresh_token"])
    assert (refused.status, refused.body["error"]) == (400, "invalid_request")
    resource = asker.protected.resource.url
    assert asker.refreshed(tokens["refresh_token"], resource="https://other.test/mcp").body["error"] == "invalid_target"
    assert asker.refreshed(tokens["refresh_token"], resource=resource).status == 200
    dead = asker.refreshed(tokens["refresh_token"], resource=resource)
    assert (dead.body["error"], dead.body["error_description"]) == ("unauthorized_client", "refresh_token is invalid")


def test_the_older_atlassian_says_nothing_of_itself():
    asker = Asker("atlassian-older")
    refused = asker.called(None)
    assert (refused.status, "WWW-Authenticate" in refused.headers) == (401, False)
    for path in ("", "/v1/sse"):
        assert asker.fetched(f"https://atlassian.test/.well-known/oauth-protected-resource{path}").status == 404
    assert asker.metadata()["token_endpoint"] == "https://atlassian.test/token"


def test_at_sentry_a_lost_answer_ends_the_chain_and_leaves_the_access_token():
    asker, tokens = given("sentry")
    asker.server.answer_next("token", "drop-after")
    assert asker.refreshed(tokens["refresh_token"]).status == 0
    dead = asker.refreshed(tokens["refresh_token"], NOW + 1)
    assert (dead.body["error"], dead.body["error_description"]) == ("invalid_grant", "Grant not found")
    assert asker.called(tokens["access_token"], NOW + 2).status == 200


def test_entra_says_the_lifetime_as_a_text_and_gives_a_refresh_token_for_offline_access():
    body = Asker("entra").tokens(scope="api://mcp/access offline_access")
    assert (body["expires_in"], "refresh_token" in body) == ("3600", True)
    assert "refresh_token" not in Asker("entra").tokens(scope="api://mcp/access")
    assert Asker("entra").metadata(f"/common/v2.0{OPENID}")["issuer"] == "https://entra.test/common/v2.0"


def test_hubspot_takes_the_secret_in_the_form_alone():
    asker = Asker("hubspot")
    assert asker.metadata()["token_endpoint_auth_methods_supported"] == ["client_secret_post"]
    code = asker.sent_back()["code"]
    asker.client.pop("client_secret")
    assert asker.redeemed(code).status == 401
    assert asker.redeemed(code, client_secret="hubspot-client-secret").status == 200


def test_supabase_has_forgotten_a_client_and_refuses_offline_access_though_it_gives_refresh_tokens():
    asker, tokens = given("supabase")
    assert "refresh_token" in tokens
    assert asker.sent_back(scope="projects:read offline_access")["error"] == "invalid_scope"
    stale = asker.refreshed(tokens["refresh_token"], client_id="client-9")
    assert (stale.status, stale.body) == (422, {"message": "Unrecognized client_id"})


def test_exa_has_its_own_words_for_a_dead_token():
    asker, tokens = given("exa")
    asker.server.revoke_family(tokens["refresh_token"])
    assert asker.refreshed(tokens["refresh_token"]).body["error_description"] == "Refresh token has been revoked"
    assert asker.redeemed("x").body["error_description"] == "Invalid code"


# --- good shapes ------------------------------------------------------------------------------------------------------

# Name, where the authorization server's metadata is, what it says of client authentication, whether all is one origin.
SHAPES: list[tuple[str, list[str], list[str], bool]] = [
    ("well-behaved", [OAUTH], ["none", "client_secret_post", "client_secret_basic"], True),
    ("path-inserted", [f"{OAUTH}/tenant"], ["client_secret_basic"], True),
    ("openid-only", [f"{OPENID}/realm", f"/realm{OPENID}"], ["client_secret_post"], False),
    ("separate-host", [OAUTH], ["none"], False),
]


@pytest.mark.parametrize(("name", "places", "methods", "one"), SHAPES)
def test_the_good_shapes_differ_in_where_things_are(name, places, methods, one):
    asker = Asker(name)
    base = asker.server.issuer_at("").removesuffix("/tenant").removesuffix("/realm")
    candidates = [OAUTH, OPENID, f"{OAUTH}/tenant", f"{OPENID}/realm", f"/realm{OPENID}"]
    assert [path for path in candidates if asker.fetched(base + path).status == 200] == places
    assert asker.metadata(places[0])["token_endpoint_auth_methods_supported"] == methods
    assert (len(asker.stage.servers) == 1) == one
    refused = asker.called(None)
    place = refused.headers["WWW-Authenticate"].partition('resource_metadata="')[2].partition('"')[0]
    assert asker.fetched(place).body["authorization_servers"] == [asker.profile.issuer]


def test_a_separate_server_knows_its_resource_alone_and_the_resource_its_own_tokens():
    asker = known("separate-host")
    assert asker.sent_back()["error"] == "invalid_request"
    assert asker.sent_back(resource="https://other.test/mcp")["error"] == "invalid_target"
    code = asker.sent_back(resource="https://mcp.apart.test/mcp")["code"]
    assert asker.redeemed(code).body["error"] == "invalid_request"
    elsewhere, _ = asker.server.issue("client-1", "read", resource="https://other.test/mcp")
    assert asker.called(elsewhere).status == 401


def test_the_well_behaved_one_says_who_it_is_in_the_redirect():
    asker = known("well-behaved")
    assert asker.sent_back()["iss"] == "https://good.test"


def test_good_profiles_are_those_that_any_client_can_use():
    assert {"well-behaved", "path-inserted", "openid-only", "separate-host"} < set(good_names())
    assert not {"slack", "github", "figma", "google", "atlassian"} & set(good_names())


# --- further ways to differ -------------------------------------------------------------------------------------------


def test_a_user_who_has_to_log_in_is_sent_nowhere():
    asker = shaped(consent="login")
    asker.registered()
    answer = asker.consented()
    assert (answer.status, "Location" in answer.headers, asker.server.codes) == (200, False, {})


@pytest.mark.parametrize(("state", "brought"), [("returned", "s-1"), ("absent", None), ("altered", "s-1x")])
def test_what_becomes_of_the_state_is_data(state, brought):
    asker = shaped(state=state)
    asker.registered()
    assert asker.sent_back().get("state") == brought
    assert "state" not in asker.sent_back(state="")


def test_redirects_within_the_server_lead_to_the_same_consent():
    asker = shaped(hops=2)
    asker.registered()
    answer, places = asker.consented(), []
    while not answer.headers["Location"].startswith(CALLBACK):
        places.append(answer.headers["Location"])
        answer = asker.fetched(places[-1])
    assert len(places) == 2
    assert dict(parse_qsl(urlsplit(answer.headers["Location"]).query))["state"] == "s-1"


def test_a_parameter_that_is_refused_is_refused_everywhere():
    asker = shaped(refuses=("resource",))
    asker.registered()
    assert asker.sent_back(resource="https://exa.test/mcp")["error"] == "invalid_request"
    tokens = asker.tokens()
    assert asker.refreshed(tokens["refresh_token"], resource="https://exa.test/mcp").body["error"] == "invalid_request"
    assert asker.refreshed(tokens["refresh_token"]).status == 200


@pytest.mark.parametrize(("says", "scope"), [("granted", "read"), ("empty", ""), ("never", None)])
def test_what_is_said_of_the_scope_is_data(says, scope):
    assert shaped(says_scope=says).tokens(scope="read").get("scope") == scope


def test_a_lifetime_may_be_kept_to_oneself():
    asker = shaped(expires_in_as="absent")
    tokens = asker.tokens()
    assert "expires_in" not in tokens
    assert [asker.called(tokens["access_token"], NOW + at).status for at in (3599, 3600)] == [200, 401]


def test_metadata_may_name_the_issuer_otherwise():
    asker = shaped(issuer_ending="/")
    assert (asker.metadata()["issuer"], asker.server.issuer) == ("https://exa.test/", "https://exa.test")


def test_a_clock_that_is_ahead_shows_in_what_it_stamps_and_in_how_long_others_take_its_tokens():
    asker = shaped(skew_seconds=600.0)
    assert asker.registered().body["client_id_issued_at"] == NOW + 600
    tokens = asker.tokens()
    assert [asker.called(tokens["access_token"], NOW + at).status for at in (4199, 4200)] == [200, 401]
    access, _ = asker.server.issue("cid", "", 60, now=NOW)
    assert [asker.server.accepts(access, NOW + at) for at in (659, 660)] == [True, False]


@pytest.mark.parametrize(("skew", "last"), [(600.0, 2999), (-600.0, 4199)])
def test_a_resource_whose_clock_is_off_ends_a_token_at_another_time(skew, last):
    profile = profile_named("exa")
    asker = Asker(profile._replace(resource=profile.resource._replace(skew_seconds=skew)))
    access = asker.tokens()["access_token"]
    assert [asker.called(access, NOW + at).status for at in (last, last + 1)] == [200, 401]


def test_a_resource_may_refuse_under_another_status_and_ask_for_its_own_audience():
    profile = profile_named("exa")
    changed = profile.resource._replace(status=403, challenge="none", checks_audience=True)
    asker = Asker(profile._replace(resource=changed))
    refused = asker.called(None)
    assert (refused.status, "WWW-Authenticate" in refused.headers) == (403, False)
    url = profile.resource.url
    assert asker.called(asker.tokens(resource=url)["access_token"]).status == 200
    assert asker.called(asker.tokens()["access_token"]).status == 403


def test_metadata_may_change_between_two_requests():
    asker = Asker("well-behaved")
    asker.server.answer_next(
        "metadata", "ok", Answer(says={"token_endpoint": "https://evil.test/token"}), "wrong-issuer"
    )
    said = [asker.metadata() for _ in range(4)]
    assert [each["token_endpoint"] for each in said] == [
        "https://good.test/token", "https://evil.test/token", "https://good.test/token", "https://good.test/token",
    ]  # fmt: skip
    assert [each["issuer"] for each in said].index("https://elsewhere.test/") == 2
    place = "https://good.test/.well-known/oauth-protected-resource"
    asker.protected.answer_next("metadata", Answer(says={"authorization_servers": ["https://evil.test"]}), "404-html")
    asker.protected.answer_always("metadata", "503")
    answers = [asker.fetched(place) for _ in range(3)]
    assert [each.status for each in answers] == [200, 404, 503]
    assert answers[0].body["authorization_servers"] == ["https://evil.test"]


def test_a_resource_can_be_scripted_and_only_what_follows_the_rules_reaches_its_server():
    asker = Asker("exa")
    access = asker.tokens()["access_token"]
    asker.protected.answer_next("resource", "401-html", "drop-before", "drop-after", "ok")
    url = asker.protected.resource.url
    assert asker.protected.breaks_next("POST", url) is None
    assert [asker.called(access).status for _ in range(4)] == [401, 0, 0, 200]
    assert len(asker.protected.server.requests) == 2  # type: ignore[attr-defined]
    assert [each.status for each in asker.protected.requests] == [401, 0, 0, 200]
    asker.protected.answer_next("resource", "drop-before")
    assert asker.protected.breaks_next("POST", url) == "reset-after"
    with pytest.raises(ValueError, match="metadata, resource"):
        asker.protected.answer_next("token", "ok")


# --- data files -------------------------------------------------------------------------------------------------------

FILE = 'about = "x"\nissuer = "https://x.test"\n'


def test_a_new_provider_is_one_data_file():
    profile = read_profile("new", f'{FILE}[provider]\naccess_seconds = inf\nhops = 1\nmetadata_without = ["issuer"]\n')
    asker = Asker(profile)
    assert profile.resource == Resource("https://x.test/mcp")
    assert "issuer" not in asker.metadata()
    asker.registered()
    hop = asker.consented().headers["Location"]
    code = dict(parse_qsl(urlsplit(asker.fetched(hop).headers["Location"]).query))["code"]
    assert "expires_in" not in asker.redeemed(code).body


def test_a_file_may_be_like_another_and_changes_what_it_says():
    profile = read_profile("new", 'like = "slack"\nabout = "x"\n[provider]\naccess_seconds = 5\n')
    assert (profile.about, profile.issuer, profile.clients) == (
        "x",
        "https://slack.test",
        profile_named("slack").clients,
    )
    assert Asker(profile).tokens()["authed_user"]["expires_in"] == 5


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('issuer = "https://x.test"', "about must be a text"),
        (f"{FILE}speed = 1", "a profile has no 'speed'"),
        (f"{FILE}[provider]\nspeed = 1", "provider has no 'speed'"),
        (f'{FILE}[provider]\naccess_seconds = "long"', "access_seconds must be of the kind of 3600.0"),
        (f"{FILE}[provider]\nrotates = 1", "rotates must be of the kind of True"),
        (f"{FILE}[provider]\ngrace_seconds = true", "grace_seconds must be"),
        (f'{FILE}[provider]\nreuse = "no"', "reuse must be one of"),
        (f'{FILE}[provider]\nnests = {{ x = "y" }}', "nests may name"),
        (f"{FILE}[provider]\nauth_methods = []", "auth_methods must not be empty"),
        (f'{FILE}[[clients]]\nsecret = "x"', "client_id"),
        (f'{FILE}[resource]\nchallenge = "x"', "challenge must be one of"),
        (f"{FILE}[behaviour]\nspeed = 1", "speed"),
        ('like = "nobody"', "no provider is called 'nobody'"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_by_name(text, told):
    with pytest.raises(ValueError, match=told):
        read_profile("new", text).stage()


def test_a_provider_is_found_by_name_alone():
    assert provider_named("linear").grace_seconds == 1800
    for name in ("nobody", "../providers/slack", ""):
        with pytest.raises(ValueError, match="no provider is called"):
            provider_named(name)
