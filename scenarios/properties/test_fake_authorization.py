"""The fake providers, whoever asks them whatever: what is sent can be sent, nobody is led astray, no token revives."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode, urlsplit

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fake_servers.oauth import ANSWERS, AuthorizationServer, Provider, profile_named, profile_names
from fake_servers.oauth.site import breaks_next
from harness.world import Request
from harness.world.sites import origin
from scenarios.units.fake_oauth_run import CALLBACK, FORM, NOW, Asker

PROFILES = st.sampled_from(profile_names())
ENDPOINTS = ("authorize", "token", "register", "revoke", "metadata")
NAMES = st.sampled_from([
    "grant_type", "code", "redirect_uri", "client_id", "client_secret", "code_verifier", "code_challenge", "state",
    "code_challenge_method", "response_type", "scope", "user_scope", "resource", "refresh_token", "token", "hop",
])  # fmt: skip
WORDS = st.one_of(
    st.text(max_size=12),
    st.sampled_from([
        "authorization_code", "refresh_token", "code", "S256", "zimmer", "client-1", CALLBACK, "https://evil.test/",
        "javascript:alert(1)", "//evil.test", f"{CALLBACK}#x", "9" * 5000, "1", "\r\nSet-Cookie: a=b",
    ]),
)  # fmt: skip
FIELDS = st.lists(st.tuples(NAMES, WORDS), max_size=8)
BODIES = st.one_of(
    FIELDS.map(lambda pairs: urlencode(pairs, errors="replace").encode()),
    st.dictionaries(st.sampled_from(["redirect_uris", "client_name", "grant_types", "token_endpoint_auth_method"]),
                    st.one_of(WORDS, st.lists(WORDS, max_size=3), st.none(), st.integers())).map(
        lambda document: json.dumps(document).encode()
    ),
    st.binary(max_size=40),
)  # fmt: skip
HEADERS = st.dictionaries(
    st.sampled_from(["Content-Type", "Accept", "Authorization"]),
    st.sampled_from([FORM, "application/json", "", "Basic !", "Basic YTpi", "Bearer x", "*/*"]),
)


@given(PROFILES, st.sampled_from(ENDPOINTS), st.sampled_from(["GET", "POST", "PUT"]), FIELDS, HEADERS, BODIES)
def test_whatever_a_provider_is_sent_its_answer_can_be_sent_and_leads_nobody_astray(
    name, endpoint, method, query, headers, body
):
    asker = Asker(name)
    if asker.can_register:
        asker.registered()
    server = asker.server
    place = "/.well-known/oauth-authorization-server" if endpoint == "metadata" else f"/{endpoint}"
    url = (
        f"{origin(asker.profile.issuer)}{place}"
        if endpoint in asker.profile.provider.absent
        else address(asker, endpoint)
    )
    sent = f"{url}?{urlencode(query, errors='replace')}"
    response = server.handle(Request(method, sent, headers, body), NOW, "client")
    assert 200 <= response.status < 500
    assert all(value.isascii() and value.isprintable() for value in response.headers.values())
    location = response.headers.get("Location", "")
    own = f"{url}?"
    known = [uri for client in server.clients.values() for uri in client.redirect_uris]
    anywhere = any(not client.redirect_uris for client in server.clients.values())
    assert not location or location.startswith((own, *known)) or anywhere
    assert server.tokens == ()


def address(asker: Asker, endpoint: str) -> str:
    """Where an endpoint of a profile is."""
    if endpoint == "metadata":
        return f"{origin(asker.profile.issuer)}/.well-known/oauth-authorization-server"
    return asker.server.endpoint_url(endpoint)


@given(PROFILES, st.lists(st.sampled_from(sorted(ANSWERS)), max_size=6))
def test_a_scripted_refusal_spends_nothing_at_any_provider(name, answers):
    """However many answers are scripted, exactly those that follow the rules have an effect, and each is told."""
    profile = profile_named(name)
    stage = profile.stage(token_answers=tuple(answers))
    server = stage.authorization
    _, refresh = server.issue("cid", " ".join(profile.provider.scopes), 3600, resource=profile.resource.url, now=NOW)
    form = {"grant_type": "refresh_token", "client_id": "cid", "resource": profile.resource.url}
    url = server.endpoint_url("token")
    for answer in answers:
        before = len(server.tokens)
        holder = next(each for each in reversed(server.tokens) if each.refresh)
        drops = breaks_next(server, "POST", url)
        body = urlencode({**form, "refresh_token": holder.refresh or ""}).encode()
        headers = {"Content-Type": FORM, "Accept": "application/json"}
        response = server.handle(Request("POST", url, headers, body), NOW, "client")
        assert (drops is not None) == (response.status == 0) == (answer in ("drop-before", "drop-after"))
        assert (len(server.tokens) > before) == ANSWERS[answer].follows_rules == server.requests[-1].processed
    assert server.generation(refresh) is not None


class Families(RuleBasedStateMachine):
    """A strict server under two holders of one family, who refresh with whatever they have seen."""

    def __init__(self) -> None:
        super().__init__()
        self.server = AuthorizationServer("https://as.test", Provider())
        access, refresh = self.server.issue("cid", "read write", 3600, now=NOW)
        self.now = NOW
        self.seen: list[str] = [refresh]
        self.access: list[str] = [access]
        self.good: str | None = refresh

    def ask(self, token: str) -> Any:
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": "cid"}
        request = Request("POST", "https://as.test/token", {"Content-Type": FORM}, urlencode(form).encode())
        return self.server.handle(request, self.now, "client")

    @rule(data=st.data())
    def refresh_with_any(self, data: st.DataObject) -> None:
        token = data.draw(st.sampled_from(self.seen))
        response = self.ask(token)
        if token == self.good:
            body = json.loads(response.body)
            self.good = body["refresh_token"]
            self.seen.append(body["refresh_token"])
            self.access.append(body["access_token"])
        else:
            assert (response.status, json.loads(response.body)["error"]) == (400, "invalid_grant")
            self.good = None

    @precondition(lambda self: self.good is not None)
    @rule(answer=st.sampled_from(["503-html", "invalid_grant", "drop-before", "429"]))
    def fail_without_effect(self, answer: str) -> None:
        self.server.answer_next("token", answer)
        self.ask(self.good or "")

    @precondition(lambda self: self.good is not None)
    @rule()
    def lose_an_answer(self) -> None:
        """The pair that was lost is one that nobody holds."""
        self.server.answer_next("token", "drop-after")
        assert self.ask(self.good or "").status == 0
        self.good = self.server.tokens[-1].refresh
        self.access.append(self.server.tokens[-1].access)

    @rule(seconds=st.sampled_from([1.0, 1800.0, 4000.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def at_most_one_refresh_token_is_good(self) -> None:
        alive = [each.refresh for each in self.server.tokens if each.spent_at is None and not each.refresh_revoked]
        assert alive == ([] if self.good is None else [self.good])

    @invariant()
    def a_dead_family_lets_nobody_in(self) -> None:
        if self.good is None:
            assert not any(self.server.accepts(token, self.now) for token in self.access)

    @invariant()
    def every_access_token_ends_by_itself(self) -> None:
        assert not any(self.server.accepts(token, self.now + 3600) for token in self.access)


TestFamilies = Families.TestCase


@given(st.sampled_from(sorted(ANSWERS)), PROFILES)
def test_a_page_or_an_answer_never_tells_a_secret_of_the_client(answer, name):
    asker = Asker(name)
    asker.server.answer_next("authorize", answer)
    if asker.can_register:
        asker.registered()
    if not asker.client:
        return
    told = asker.consented()
    secret = asker.client.get("client_secret")
    assert not secret or secret not in told.text + told.headers.get("Location", "")
    assert urlsplit(told.headers.get("Location", "")).scheme in ("", "http", "https")
