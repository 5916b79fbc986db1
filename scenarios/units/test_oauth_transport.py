"""The one door from OAuth to the network: which endpoints may be posted to, and what is sent."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

import anyio
import httpx
import pytest
import respx

from fake_servers.mounts import Mount, TestAuthority
from harness.reference.oauth import transport
from harness.reference.oauth.clients import Client
from harness.reference.oauth.discovery import Discovered
from harness.reference.oauth.endpoints import acceptable_endpoint, shown_endpoint
from harness.reference.oauth.exchange import exchanged
from harness.reference.oauth.registration import register
from harness.reference.oauth.transport import (
    MOST_BODY_BYTES,
    REQUEST_TIMEOUT_SECONDS,
    TOTAL_TIMEOUT_SECONDS,
    USER_AGENT,
    InsecureEndpointError,
    form_target,
    get,
    post_form,
    post_json,
)
from harness.world import Ambiguous, NotSent, Request, Response, StreamEvent, World, header
from harness.world.live import live_world
from harness.world.model import Fault
from harness.world.outside.setting import Pace, Setting
from scenarios.units.oauth_run import START_SECONDS, Answers, run_world

TOKEN = "https://as.test/token"
FORM = {"grant_type": "refresh_token", "refresh_token": "r-s3cr3t", "client_id": "c"}
CLEARTEXT = [
    "http://127.0.0.1:9000/token",
    "http://localhost/token",
    "http://localhost:9000/token",
    "http://[::1]/token",
    "http://as.test/token",
    "as.test/token",
    "https://",
    "",
    None,
]


def found(**given: Any) -> Discovered:
    """An authorization server that was discovered."""
    plain = Discovered("https://as.test/authorize", TOKEN, None, None, (), "https://mcp.test/mcp", ())
    return plain._replace(**given)


def everything_answers(by_request: dict[str, Any] | None = None) -> Answers:
    return Answers(by_request or {})


def servers(answers: Answers) -> dict[str, Answers]:
    """The same answers at every origin that a cleartext endpoint could lead to."""
    places = ("http://127.0.0.1:9000", "http://localhost", "http://localhost:9000", "http://[::1]", "http://as.test")
    return {**answers.origins(TOKEN), **dict.fromkeys((*places, "http://::1"), answers)}


# --- which endpoints ----------------------------------------------------------------------------------------


@pytest.mark.requirement("https-predicate", "https-predicate-strict-whitespace")
@pytest.mark.parametrize(
    ("endpoint", "accepted"),
    [
        (TOKEN, True),
        ("HTTPS://as.test/token", True),
        ("https://[::1]/token", True),
        ("https://as.test", True),
        ("https://as.test:8443/t?a=b&c=%20#f", True),
        ("https://[::1/token", False),
        ("https://[1.2.3.4]/token", False),
        ("https:///token", False),
        ("https://@/token", False),
        ("https://a@b@h/token", False),
        ("https://h/tok\ten", False),
        ("https://h/t\x00", False),
        ("https://h/t\u00a0", False),
        (" https://h/t", False),
        ("https://h/é", False),
        ("https://\ud800/t", False),
        ("", False),
    ],
)
def test_only_a_whole_https_uri_with_a_host_is_acceptable(endpoint, accepted):
    assert acceptable_endpoint(endpoint) is accepted


@pytest.mark.requirement(
    "https-post-form-raises",
    "https-no-loopback-exception",
    "https-post-json-registration",
    "https-remote-names-loopback",
    "https-no-config-switch",
)
@pytest.mark.parametrize("endpoint", CLEARTEXT)
@pytest.mark.parametrize("post", ["post_form", "post_json"])
def test_nothing_is_opened_for_an_endpoint_that_is_not_https_whatever_the_environment_says(endpoint, post):
    answers = everything_answers()

    async def program(world: World) -> str:
        switched_on = SimpleNamespace(
            http=world.http, tasks=world.tasks, env=SimpleNamespace(variables=defaultdict(lambda: "1"))
        )
        try:
            await getattr(transport, post)(switched_on, endpoint, FORM)
        except InsecureEndpointError as error:
            return str(error)
        return "posted"

    ran = run_world(program, servers=servers(answers))
    assert "is not an https URL" in ran.result
    assert answers.requests == []
    assert ran.named("request") == []


@pytest.mark.requirement("https-no-config-switch")
def test_whether_an_endpoint_is_refused_depends_on_its_text_alone(monkeypatch):
    for name in ("ALLOW_INSECURE_OAUTH", "OAUTHLIB_INSECURE_TRANSPORT", "RAILS_ENV", "APP_HOST"):
        monkeypatch.setenv(name, "test")
    assert [acceptable_endpoint(endpoint) for endpoint in CLEARTEXT] == [False] * len(CLEARTEXT)
    with pytest.raises(InsecureEndpointError):
        form_target("http://localhost:3000/token")


@pytest.mark.requirement("https-userinfo-permitted", "https-userinfo-is-basic-auth")
@pytest.mark.parametrize(
    ("endpoint", "url", "pair"),
    [
        ("https://cid:s3cret@as.test/token", TOKEN, "cid:s3cret"),
        ("https://cid:s%40%2Fc%3Aret@as.test/token", TOKEN, "cid:s@/c:ret"),
        ("https://cid:a+b@as.test:443/token", TOKEN, "cid:a+b"),
        ("https://cid@as.test/token?tenant=x#f", f"{TOKEN}?tenant=x", "cid:"),
        ("https://:s3cret@as.test", "https://as.test/", ":s3cret"),
        ("https://@as.test/token", TOKEN, None),
        ("https://:@as.test/token", TOKEN, None),
        ("https://as.test:8443/token", "https://as.test:8443/token", None),
        ("https://as.test:0/token", "https://as.test:0/token", None),
        ("https://as.test:/token", TOKEN, None),
    ],
)
def test_userinfo_goes_into_the_authorization_header_and_nowhere_else(endpoint, url, pair):
    authorization = None if pair is None else f"Basic {base64.b64encode(pair.encode()).decode()}"
    assert acceptable_endpoint(endpoint)
    assert form_target(endpoint) == (url, authorization)
    answers = everything_answers()

    async def program(world: World) -> None:
        await post_form(world, endpoint, FORM)
        await post_json(world, endpoint, FORM)

    run_world(program, servers=answers.origins(url))
    assert [request.url for request in answers.requests] == [url, url]
    assert [header(request.headers, "Authorization") for request in answers.requests] == [authorization] * 2


# --- what is sent -------------------------------------------------------------------------------------------


@pytest.mark.requirement("https-post-form-tls-from-uri")
def test_each_kind_of_request_says_who_sends_it_and_nothing_of_a_credential():
    answers = everything_answers()

    async def program(world: World) -> None:
        await get(world, "http://user:secret@mcp.test/mcp?a=[1]#f")
        await post_form(world, TOKEN, {**FORM, "odd": "a b&c=\ud800"})
        await post_json(world, TOKEN, {"redirect_uris": ["é\ud800"]})

    run_world(program, servers=answers.origins(TOKEN, "http://mcp.test"))
    asked, posted, registered = answers.requests
    assert (asked.method, asked.url, asked.body) == ("GET", "http://mcp.test/mcp?a=[1]", b"")
    assert asked.headers == {"User-Agent": USER_AGENT, "Accept": "application/json"}
    assert (posted.method, posted.url) == ("POST", TOKEN)
    assert posted.headers == {"User-Agent": USER_AGENT, "Content-Type": "application/x-www-form-urlencoded"}
    assert dict(parse_qsl(posted.body.decode())) == {**FORM, "odd": "a b&c=?"}
    assert registered.headers["Content-Type"] == "application/json"
    assert json.loads(registered.body) == {"redirect_uris": ["é\ud800"]}
    assert all(request.url.startswith("https://") for request in answers.requests if request.method == "POST")


@pytest.mark.parametrize("url", ["ftp://mcp.test/x", "mcp.test", "https://${TENANT}.test/mcp", "", "https://h/a b"])
def test_a_url_that_is_not_http_is_never_asked(url):
    answers = everything_answers()

    async def program(world: World) -> str:
        try:
            await get(world, url)
        except NotSent as error:
            return error.reason
        return "asked"

    assert run_world(program, servers=answers.origins("ftp://mcp.test")).result == "dns"
    assert answers.requests == []


@pytest.mark.requirement("https-redirect-not-followed")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_post_follows_no_redirect(status):
    away = Response(status, {"Location": "http://h.test/t"})
    answers = Answers(
        {f"POST {TOKEN}": away, "POST http://h.test/t": Response(200), "GET http://h.test/t": Response(200)}
    )

    async def program(world: World) -> list[Any]:
        client = await register(world, found(registration_endpoint=TOKEN), "https://zimmer.test/cb")
        return [(await post_form(world, TOKEN, FORM)).status, client]

    assert run_world(program, servers=answers.origins()).result == [status, None]
    assert answers.asked == [f"POST {TOKEN}"] * 2


# --- limits -------------------------------------------------------------------------------------------------


class Recording:
    """A world whose transport notes the limits of each request."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.limits: list[tuple[str, float, float]] = []
        self.http, self.tasks, self.events, self.clock = self, world.tasks, world.events, world.clock

    async def send(self, request: Request, *, open_timeout_seconds: float, read_timeout_seconds: float) -> Response:
        self.limits.append((request.method, open_timeout_seconds, read_timeout_seconds))
        return await self.world.http.send(
            request, open_timeout_seconds=open_timeout_seconds, read_timeout_seconds=read_timeout_seconds
        )


@pytest.mark.requirement("flow-timeouts-30s")
def test_every_kind_of_call_has_thirty_seconds_to_connect_and_for_each_silence():
    async def program(world: World) -> list[Any]:
        recording: Any = Recording(world)
        await get(recording, "https://mcp.test/mcp")
        await post_form(recording, TOKEN, FORM)
        await register(recording, found(registration_endpoint=TOKEN), "https://zimmer.test/cb")
        return list(recording.limits)

    answers = everything_answers()
    ran = run_world(program, servers=answers.origins(TOKEN, "https://mcp.test"))
    assert ran.result == [("GET", 30.0, 30.0), ("POST", 30.0, 30.0), ("POST", 30.0, 30.0)]


@pytest.mark.requirement("flow-timeouts-30s")
def test_an_answer_that_never_comes_is_waited_for_thirty_seconds():
    hanging = Answers({f"POST {TOKEN}": Response(200, after_seconds=1e9)})

    async def program(world: World) -> tuple[str, float]:
        try:
            await post_form(world, TOKEN, FORM)
        except Ambiguous as error:
            return error.reason, world.clock.now() - START_SECONDS
        return "answered", 0.0

    assert run_world(program, servers=hanging.origins()).result == ("timeout", REQUEST_TIMEOUT_SECONDS)


@pytest.mark.requirement("flow-trickling-as-bounded")
def test_an_answer_that_trickles_for_ever_is_given_up():
    drops = [StreamEvent(".", after_seconds=20.0)] * 1_000
    trickling = Answers({f"POST {TOKEN}": Response(200, events=drops)})

    async def program(world: World) -> tuple[str, float]:
        try:
            await post_form(world, TOKEN, FORM)
        except Ambiguous as error:
            return error.reason, world.clock.now() - START_SECONDS
        return "answered", 0.0

    assert run_world(program, servers=trickling.origins()).result == ("timeout", TOTAL_TIMEOUT_SECONDS)


@pytest.mark.requirement("flow-trickling-as-bounded")
def test_an_answer_that_breaks_off_when_it_was_given_up_long_ago_ends_nothing():
    drops = [StreamEvent(".", after_seconds=20.0)] * 4
    broken = Answers({f"POST {TOKEN}": Response(200, events=[*drops, StreamEvent(".", after_seconds=1e6)])})

    async def program(world: World) -> str:
        try:
            await post_form(world, TOKEN, FORM)
        except Ambiguous as error:
            await world.clock.sleep(300.0)
            return error.reason
        return "answered"

    ran = run_world(program, servers=broken.origins())
    assert (ran.result, ran.lost) == ("timeout", [])


@pytest.mark.requirement("flow-exchange-only-200", "flow-trickling-as-bounded")
def test_what_is_longer_than_is_read_holds_nothing_and_its_status_counts():
    """Its beginning could be taken for the whole: a form that is cut off in the middle of a token."""

    def seen(length: int, kind: str, status: int = 200) -> tuple[int, object]:
        whole = (
            b'{"access_token": "n"}'.ljust(length)
            if kind == transport.JSON_TYPE
            else b"access_token=".ljust(length, b"n")
        )
        answers = Answers({f"POST {TOKEN}": Response(status, {"Content-Type": kind}, whole)})

        async def program(world: World) -> Response:
            return await post_form(world, TOKEN, FORM)

        answer = run_world(program, servers=answers.origins()).result
        return answer.status, exchanged(answer)

    for kind in (transport.JSON_TYPE, transport.FORM_TYPE):
        assert seen(MOST_BODY_BYTES, kind)[1] is not None
        assert seen(MOST_BODY_BYTES + 1, kind) == (200, None)
        assert seen(MOST_BODY_BYTES + 1, kind, 400) == (400, None)


# --- what the log may say -----------------------------------------------------------------------------------


@pytest.mark.requirement("https-secrets-not-in-logs")
@pytest.mark.parametrize(
    ("endpoint", "shown"),
    [
        ("http://id:s3cr3t@h.test/t", "http://***@h.test/t"),
        ("http://as/t", "http://as/t"),
        ("http://as.test/t?key=s3cr3t#s3cr3t", "http://as.test/t"),
        ("http://id:s3cr3t/?#s3cr3t@h.test/t", "http://***@h.test/t"),
        ("id:s3cr3t@h.test/t", "***@h.test/t"),
        ("http://h.test/\n\x1b[31m", "http://h.test/\ufffd\ufffd[31m"),
        (None, ""),
    ],
)
def test_an_endpoint_is_shown_without_what_may_be_secret_in_it(endpoint, shown):
    assert shown_endpoint(endpoint) == shown
    assert "s3cr3t" not in str(InsecureEndpointError(endpoint)) + repr(InsecureEndpointError(endpoint))


@pytest.mark.requirement("https-secrets-not-in-logs")
@pytest.mark.parametrize("status", [201, 500, None])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_neither_the_grant_nor_a_client_secret_nor_userinfo_is_told_to_anybody(status, scheme):
    answer = Response(status or 200, body=json.dumps({"client_id": "c", "client_secret": "s3cr3t"}).encode())
    answers = Answers({f"POST {TOKEN}": answer})
    faults = [Fault("reset-after", port="http")] if status is None else []

    async def program(world: World) -> Any:
        endpoint = f"{scheme}://id:s3cr3t@as.test/token"
        client = await register(world, found(registration_endpoint=endpoint), "https://zimmer.test/cb")
        try:
            await post_form(world, endpoint, {**FORM, "client_secret": "s3cr3t"})
        except (InsecureEndpointError, Ambiguous) as error:
            world.events.emit("log", level="error", text=f"{error} {error!r}")
        return client, repr(form_target("https://id:s3cr3t@as.test/token"))

    ran = run_world(program, servers=answers.origins(), faults=faults)
    assert "s3cr3t" not in ran.told + ran.result[1]
    assert (ran.result[0] is not None) is (status == 201 and scheme == "https")
    if ran.result[0] is None:
        assert [event for event in ran.named("log") if "Dynamic Client Registration failed" in event["text"]]


# --- the live transport -------------------------------------------------------------------------------------


def live(body: Any, **setting: Any) -> Any:
    """What a body answers in a live world."""

    async def entered() -> Any:
        async with live_world(Setting(**setting)) as world:
            return await body(world)

    return anyio.run(entered)


@pytest.mark.requirement("flow-timeouts-30s", "https-redirect-not-followed", "https-post-form-tls-from-uri")
def test_the_live_transport_sends_the_same_request_within_the_same_limits():
    async def body(world: World) -> Response:
        return await post_form(world, "https://cid:s3cret@as.test/token", FORM)

    with respx.mock(assert_all_called=False) as routes:
        token = routes.post(TOKEN).mock(return_value=httpx.Response(307, headers={"Location": "http://h.test/t"}))
        elsewhere = routes.route(host="h.test").mock(return_value=httpx.Response(200))
        answer = live(body)
    assert answer.status == 307
    assert token.call_count == 1
    assert not elsewhere.called
    sent = token.calls[0].request
    assert sent.extensions["timeout"]["read"] == REQUEST_TIMEOUT_SECONDS
    assert sent.url == TOKEN
    assert (sent.headers["Host"], sent.headers["Authorization"]) == ("as.test", "Basic Y2lkOnMzY3JldA==")
    assert sent.content == transport.encoded_form(FORM)


class Heard:
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def handle(self, request: Request, now: float, who: str) -> Response:
        self.requests.append(request)
        return Response(200, body=b'{"client_id": "c"}')


@pytest.mark.requirement("https-post-form-tls-from-uri", "https-post-form-raises", "https-post-json-registration")
def test_no_byte_of_a_grant_reaches_a_server_without_a_trusted_certificate_or_without_tls(tmp_path):
    authority = TestAuthority(tmp_path)
    secure, cleartext = Heard(), Heard()
    origins = {"https://127.0.0.1:0": secure, "http://127.0.0.1:0": cleartext}
    with Mount(origins, authority=authority) as mount:
        trusted, bare = (mount.url(f"{scheme}://127.0.0.1:0/token") for scheme in ("https", "http"))

        async def body(world: World) -> list[str]:
            outcomes = []
            for endpoint in (trusted, bare):
                try:
                    await post_form(world, endpoint, FORM)
                    outcomes.append("posted")
                except (NotSent, InsecureEndpointError) as error:
                    outcomes.append(getattr(error, "reason", "insecure"))
            registered = await register(world, found(registration_endpoint=bare), "https://zimmer.test/cb")
            return [*outcomes, str(registered)]

        pace = Pace(10.0, 0.0, 0.0)
        assert live(body, pace=pace) == ["tls", "insecure", "None"]
        assert secure.requests == []
        assert live(body, pace=pace, certificates=str(authority.path)) == ["posted", "insecure", "None"]
    assert [request.body for request in secure.requests] == [transport.encoded_form(FORM)]
    assert cleartext.requests == []


def test_a_client_is_shown_as_it_is_registered():
    answers = Answers({f"POST {TOKEN}": Response(200, body=b'{"client_id": "c", "client_secret": "s"}')})

    async def program(world: World) -> Client | None:
        return await register(world, found(registration_endpoint=TOKEN), "https://zimmer.test/cb")

    assert run_world(program, servers=answers.origins()).result == Client("c", "s")
