"""The browser that goes where a user is sent: what it follows, where it stops, whom it never asks."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest

from fake_servers.oauth import AuthorizationServer, Client, Provider, profile_named
from fake_servers.oauth.browser import Landed, consent
from harness.world import Request, Response, World
from harness.world.model import Fault
from scenarios.units.fake_oauth_run import CHALLENGE
from scenarios.worlds import alone

ISSUER = "https://as.test"
CALLBACK = "https://zimmer.test/mcp_oauth/callback"
NOT_GIVEN: Any = object()


def url_of(redirect_uri: str = CALLBACK, **fields: str) -> str:
    asked = {"response_type": "code", "client_id": "cid", "redirect_uri": redirect_uri, "state": "s",
             "code_challenge": CHALLENGE, "code_challenge_method": "S256", **fields}  # fmt: skip
    return f"{ISSUER}/authorize?{urlencode(asked)}"


def landed(url: str, servers: dict[str, Any], origins: Any = NOT_GIVEN, limit: int = 10, **options: Any) -> Landed:
    async def body(world: World) -> Landed:
        chosen = None if origins is NOT_GIVEN else origins
        return await consent(world, url, origins=chosen, limit=limit)

    result: Landed = alone(body, servers=servers, **options)
    return result


def visit(provider: Provider, url: str | None = None, **options: Any) -> Landed:
    """Go to an authorization server whose client is registered for the callback; nothing else exists."""
    server = AuthorizationServer(ISSUER, provider, clients=[Client("cid", redirect_uris=(CALLBACK,))])
    return landed(url or url_of(), {ISSUER: server}, **options)


@pytest.mark.parametrize("hops", [0, 1, 3])
def test_consent_ends_at_the_callback_which_nobody_is_asked_for(hops):
    result = visit(Provider(hops=hops))
    assert result.url is not None
    assert result.url.startswith(f"{CALLBACK}?")
    assert (result.status, result.parameters["state"], len(result.visited)) == (302, "s", hops + 1)
    assert all(place.startswith(f"{ISSUER}/authorize?") for place in result.visited)


def test_a_denial_comes_back_too():
    assert visit(Provider(consent="denied")).parameters["error"] == "access_denied"


def test_a_page_is_where_it_stays():
    result = visit(Provider(consent="login"))
    assert (result.url, result.status, "Log in" in result.page) == (None, 200, True)
    assert result.parameters == {}
    refused = visit(Provider(), url_of("https://evil.test/callback"))
    assert (refused.url, refused.status) == (None, 400)


def test_more_redirects_than_it_bears_end_nowhere():
    result = visit(Provider(hops=5), limit=3)
    assert (result.url, len(result.visited)) == (None, 4)
    assert visit(Provider(hops=3), limit=3).url is not None


class Pages:
    """Redirects from path to path; what is not listed is a page."""

    def __init__(self, **places: str) -> None:
        self.places = {f"/{path}": place for path, place in places.items()}
        self.asked: list[Request] = []

    def handle(self, request: Request, now: float, who: str) -> Response:
        self.asked.append(request)
        path = request.url.partition("://")[2].partition("/")[2].partition("?")[0]
        place = self.places.get(f"/{path}")
        return Response(200, body=b"here") if place is None else Response(307, {"location": place})


def test_only_the_given_origins_are_asked_and_whatever_is_elsewhere_is_where_it_landed():
    start, login, other = (Pages(a="https://login.test/b"), Pages(b="https://as.test/c"), Pages())
    servers = {ISSUER: start, "https://login.test": login, "https://zimmer.test": other}
    assert landed(f"{ISSUER}/a", servers).url == "https://login.test/b"
    assert (len(login.asked), len(start.asked)) == (0, 1)
    there = landed(f"{ISSUER}/a", servers, [f"{ISSUER}/", "https://login.test"])
    assert (there.url, there.page) == (None, "here")
    assert there.visited == (f"{ISSUER}/a", "https://login.test/b", f"{ISSUER}/c")


@pytest.mark.parametrize("place", ["b?x=1#y", "/b", "//as.test/b"])
def test_a_redirect_may_be_relative(place):
    pages = Pages(a=place)
    assert landed(f"{ISSUER}/a", {ISSUER: pages}).page == "here"
    assert pages.asked[-1].url.startswith(f"{ISSUER}/b")


def test_a_callback_at_the_servers_own_origin_is_not_asked_for_either():
    callback = f"{ISSUER}/mcp_oauth/callback"
    pages = Pages(authorize=f"{callback}?code=1&code=2&state=")
    result = landed(url_of(callback), {ISSUER: pages})
    assert (result.url, len(pages.asked)) == (f"{callback}?code=1&code=2&state=", 1)
    assert result.parameters == {"code": "1", "state": ""}


@pytest.mark.parametrize("action", ["refused", "reset-after", "open-timeout"])
def test_a_server_that_does_not_answer_is_a_status_of_zero(action):
    result = landed(f"{ISSUER}/a", {ISSUER: Pages()}, faults=(Fault(action, port="http"),))
    assert (result.url, result.status) == (None, 0)


def test_a_browser_asks_for_pages_and_presents_nothing():
    pages = Pages()
    landed(f"{ISSUER}/a", {ISSUER: pages})
    assert pages.asked[0].method == "GET"
    assert set(pages.asked[0].headers) == {"Accept", "User-Agent"}
    assert "json" not in pages.asked[0].headers["Accept"]


def test_a_profiles_servers_serve_it():
    stage = profile_named("slack").stage()
    query = {"response_type": "code", "client_id": stage.profile.clients[0].client_id, "code_challenge": CHALLENGE,
             "code_challenge_method": "S256", "redirect_uri": "http://localhost:3118/callback"}  # fmt: skip
    result = landed(f"{stage.authorization.endpoint_url('authorize')}?{urlencode(query)}", stage.servers)
    assert result.parameters["code"] == next(iter(stage.authorization.codes))
