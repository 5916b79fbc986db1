"""The MCP SDK's own OAuth client against the fake authorization server, over sockets with TLS: it completes the flow
with each well-behaved shape, refreshes when time has passed, and does the same with each bad answer every time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from fake_servers.mcp import Behaviour, HttpServer
from fake_servers.mounts import Mount, TestAuthority
from fake_servers.oauth import AuthorizationServer, Protected, Provider, Resource, Site, profile_named
from fake_servers.oauth.profiles import good_names
from fake_servers.oauth.site import Server
from harness.world import Request, Response
from harness.world.sites import origin

ISSUER = "https://as.test"
MCP = "https://mcp.test/mcp"
CALLBACK = "http://localhost:3030/callback"
LIMIT_SECONDS = 20.0
MODES = ("legacy", "auto")


class Memory(TokenStorage):
    """Keeps what an SDK's client stores."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Ahead:
    """A clock that can be put forward, for the servers and for the SDK."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def time(self) -> float:
        return time.time() + self.seconds

    def serving(self, server: Server) -> Server:
        """The server as it is at this clock's time."""
        return SimpleNamespace(handle=lambda request, now, who: server.handle(request, now + self.seconds, who))


class Resolved(httpx2.AsyncBaseTransport):
    """Sends what is for the origin of a mount to its address; the certificate is checked for the name."""

    def __init__(self, mount: Mount, authority: TestAuthority) -> None:
        self._mount = mount
        self._inner = httpx2.AsyncHTTPTransport(verify=authority.client_context())

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host, port = self._mount.addresses[origin(str(request.url))]
        extensions = {**request.extensions, "sni_hostname": request.url.host}
        sent = httpx2.Request(
            request.method,
            request.url.copy_with(host=host, port=port),
            headers=request.headers,
            stream=request.stream,
            extensions=extensions,
        )
        return await self._inner.handle_async_request(sent)

    async def aclose(self) -> None:
        await self._inner.aclose()


class Shape(NamedTuple):
    """Where what is said: by a provider, by a resource, at one origin or two."""

    issuer: str = ISSUER
    provider: Provider = Provider()
    resource: Resource = Resource(MCP)


class Stage:
    """One authorization server, one resource, one SDK's client with what it keeps."""

    def __init__(self, shape: Shape, clock: Ahead) -> None:
        self.clock, self.memory = clock, Memory()
        self.authorization = AuthorizationServer(shape.issuer, shape.provider)
        self.resource = Protected(HttpServer(Behaviour(discover="answer")), self.authorization, shape.resource)
        self.url = shape.resource.url
        self.servers: dict[str, Server] = {origin(self.url): self.resource, origin(shape.issuer): self.authorization}
        if origin(shape.issuer) == origin(self.url):
            self.servers = {origin(self.url): Site(self.authorization, self.resource)}
        self.asked: list[str] = []
        self.failure: BaseException | None = None

    def visit(self, authority: TestAuthority, mode: str = "auto", then: Callable[[], None] = lambda: None) -> None:
        """Connect, list, call; after `then` call again. What it raised is kept in `failure`."""

        async def go() -> None:
            servers = {place: self.clock.serving(Noted(server, self.asked)) for place, server in self.servers.items()}
            async with Mount(servers, authority=authority) as mount:
                metadata = OAuthClientMetadata(client_name="SDK", redirect_uris=[AnyUrl(CALLBACK)])
                transport = Resolved(mount, authority)
                browser = Browser(transport)
                auth = OAuthClientProvider(self.url, metadata, self.memory, browser.open, browser.result)
                with anyio.fail_after(LIMIT_SECONDS):
                    async with (
                        httpx2.AsyncClient(auth=auth, transport=transport, timeout=LIMIT_SECONDS) as http,
                        Client(streamable_http_client(self.url, http_client=http), mode=mode) as client,
                    ):
                        assert [tool.name for tool in (await client.list_tools()).tools] == ["echo"]
                        await client.call_tool("echo", {})
                        then()
                        await client.call_tool("echo", {})

        self.failure = None
        try:
            anyio.run(go)
        except BaseException as error:  # noqa: BLE001 - whatever ends a client is what the test looks at
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            self.failure = error

    def pass_an_hour(self) -> None:
        self.clock.seconds += 3601.0

    @property
    def grants(self) -> list[tuple[str | None, int | None, int | None]]:
        """What came to the token endpoint: the grant, the generation presented, the generation given."""
        return [(each.grant_type, each.generation, each.issued) for each in self.authorization.received("token")]


class Noted:
    """A server that notes the paths it is asked for."""

    def __init__(self, server: Server, asked: list[str]) -> None:
        self._server, self._asked = server, asked

    def handle(self, request: Request, now: float, who: str) -> Response:
        self._asked.append(f"{request.method} {urlsplit(request.url)._replace(query='').geturl()}")
        return self._server.handle(request, now, who)


class Browser:
    """Goes where a user is sent, and brings back what the redirect says."""

    def __init__(self, transport: Resolved) -> None:
        self._transport = transport
        self._location = ""

    async def open(self, url: str) -> None:
        answer = await self._transport.handle_async_request(httpx2.Request("GET", url))
        assert answer.status_code == 302
        self._location = answer.headers["Location"]
        await answer.aclose()

    async def result(self) -> AuthorizationCodeResult:
        got = {key: values[0] for key, values in parse_qs(urlsplit(self._location).query).items()}
        return AuthorizationCodeResult(code=got.get("code", ""), state=got.get("state"), iss=got.get("iss"))


@pytest.fixture(scope="module", name="authority")
def _authority(tmp_path_factory):
    return TestAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(name="clock")
def _clock(monkeypatch):
    clock = Ahead()
    for module in ("mcp.client.auth.oauth2", "mcp.shared.auth_utils"):
        monkeypatch.setattr(f"{module}.time", clock)
    return clock


GOOD_ONES = {
    "plain": Shape(),
    "public clients": Shape(provider=Provider(auth_methods=("none",))),
    "secret in the form": Shape(provider=Provider(auth_methods=("client_secret_post",))),
    "issuer with a path": Shape(f"{ISSUER}/tenant"),
    "openid below the issuer": Shape(f"{ISSUER}/tenant", Provider(metadata_at=("openid-appended",))),
    "openid at the root": Shape(provider=Provider(metadata_at=("openid-root",))),
    "endpoints elsewhere": Shape(provider=Provider(paths={"token": "/oauth/v2/token", "register": "/clients"})),
    "issuer in the redirect": Shape(provider=Provider(sends_issuer=True)),
    "lifetime as text": Shape(provider=Provider(expires_in_as="text")),
    "tokens that last": Shape(provider=Provider(access_seconds=None)),
    "offline access": Shape(provider=Provider(refresh="offline_access", scopes=("read", "offline_access"))),
    "resource at the root": Shape(resource=Resource(MCP, ("root",))),
    "found without a word": Shape(resource=Resource(MCP, challenge="none")),
    "scopes of the resource": Shape(resource=Resource(MCP, scopes=("read",), requires_scopes=True)),
    "one origin": Shape("https://mcp.test"),
    "one origin, older": Shape("https://mcp.test", resource=Resource(MCP, (), challenge="none")),
    **{name: Shape(profile_named(name).issuer, profile_named(name).provider, profile_named(name).resource)
       for name in good_names()},
}  # fmt: skip


def test_the_sdk_is_led_to_every_profile_that_is_said_to_be_good():
    assert set(good_names()) <= set(GOOD_ONES)
    assert {"well-behaved", "path-inserted", "openid-only", "separate-host"} <= set(good_names())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", GOOD_ONES.values(), ids=GOOD_ONES)
def test_the_sdk_completes_the_flow_with_every_good_shape(shape, mode, clock, authority):
    stage = Stage(shape, clock)
    stage.visit(authority, mode)
    assert stage.failure is None
    assert stage.grants == [("authorization_code", None, 1)]
    assert len(stage.authorization.clients) == 1
    [code] = stage.authorization.received("token")
    assert code.fields.get("resource") == (shape.resource.url if shape.resource.metadata_at or mode == "auto" else None)
    [generation] = stage.authorization.tokens
    assert stage.memory.tokens is not None
    assert (stage.memory.tokens.access_token, stage.memory.tokens.refresh_token) == (
        generation.access,
        generation.refresh,
    )
    assert {each.token for each in stage.resource.requests if each.status < 400} == {generation.access}


def test_the_sdk_asks_in_this_order(clock, authority):
    stage = Stage(Shape(), clock)
    stage.visit(authority)
    assert stage.asked[:7] == [
        f"POST {MCP}",
        "GET https://mcp.test/.well-known/oauth-protected-resource/mcp",
        f"GET {ISSUER}/.well-known/oauth-authorization-server",
        f"POST {ISSUER}/register",
        f"GET {ISSUER}/authorize",
        f"POST {ISSUER}/token",
        f"POST {MCP}",
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rotates", [True, False])
def test_the_sdk_refreshes_when_the_token_has_expired(rotates, mode, clock, authority):
    stage = Stage(Shape(provider=Provider(rotates=rotates)), clock)
    stage.visit(authority, mode, stage.pass_an_hour)
    assert stage.failure is None
    assert stage.grants == [("authorization_code", None, 1), ("refresh_token", 1, 2)]
    assert stage.authorization.received("token")[-1].fields["resource"] == MCP
    assert stage.memory.tokens is not None
    holder = stage.authorization.tokens[1 if rotates else 0]
    assert stage.memory.tokens.refresh_token == holder.refresh
    assert stage.resource.requests[-1].generation == 2


# The answer to a refresh, and what the SDK asks the token endpoint for then.
REFRESHED = {
    "ok-without-refresh": ["refresh_token"],
    "ok-without-expiry": ["refresh_token"],
    "invalid_grant": ["refresh_token", "authorization_code"],
    "invalid_client": ["refresh_token", "authorization_code"],
    "invalid_request": ["refresh_token", "authorization_code"],
    "429": ["refresh_token", "authorization_code"],
    "503-html": ["refresh_token", "authorization_code"],
    "400-html": ["refresh_token", "authorization_code"],
    "200-error": ["refresh_token", "authorization_code"],
}


@pytest.mark.parametrize("name", REFRESHED)
def test_whatever_keeps_the_sdk_from_refreshing_it_asks_for_consent_again(name, clock, authority):
    """It takes a server that is away for a grant that is dead."""
    stage = Stage(Shape(), clock)

    def expire() -> None:
        stage.authorization.answer_next("token", name)
        stage.pass_an_hour()

    stage.visit(authority, then=expire)
    assert stage.failure is None
    assert [grant for grant, _, _ in stage.grants] == ["authorization_code", *REFRESHED[name]]
    assert len(stage.authorization.clients) == 1


@pytest.mark.parametrize(("name", "committed"), [("drop-before", False), ("drop-after", True)])
def test_a_lost_answer_ends_the_sdks_call_and_its_store_keeps_the_old_pair(name, committed, clock, authority):
    stage = Stage(Shape(), clock)

    def expire() -> None:
        stage.authorization.answer_next("token", name)
        stage.pass_an_hour()

    stage.visit(authority, then=expire)
    assert isinstance(stage.failure, httpx2.TransportError)
    assert stage.grants == [("authorization_code", None, 1), ("refresh_token", 1, 2 if committed else None)]
    assert stage.memory.tokens is not None
    assert stage.memory.tokens.refresh_token == stage.authorization.tokens[0].refresh


def test_a_token_that_is_refused_early_is_not_refreshed(clock, authority):
    stage = Stage(Shape(), clock)
    stage.visit(authority, then=lambda: stage.authorization.revoke_access(stage.authorization.tokens[0].access))
    assert stage.failure is None
    assert [grant for grant, _, _ in stage.grants] == ["authorization_code", "authorization_code"]


def test_a_prepared_credential_needs_no_consent(clock, authority):
    stage = Stage(Shape(), clock)
    access, refresh = stage.authorization.issue("cid", "read write", 3600, now=clock.time())
    stage.memory.client = OAuthClientInformationFull(client_id="cid", redirect_uris=[AnyUrl(CALLBACK)])
    stage.memory.tokens = OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600)
    stage.visit(authority)
    assert stage.failure is None
    assert stage.authorization.requests == []


LIES = {
    "another resource": Shape(resource=Resource(MCP, resource="https://other.test/mcp")),
    "another issuer": Shape(provider=Provider(metadata={"issuer": "https://other.test"})),
    "a slash behind the issuer": Shape(f"{ISSUER}/tenant", Provider(metadata={"issuer": f"{ISSUER}/tenant/"})),
    "an issuer it does not say in the redirect": Shape(
        provider=Provider(metadata={"authorization_response_iss_parameter_supported": True})
    ),
}


@pytest.mark.parametrize("shape", LIES.values(), ids=LIES)
def test_the_sdk_gives_no_code_to_a_server_that_is_not_what_it_says(shape, clock, authority):
    stage = Stage(shape, clock)
    stage.visit(authority)
    assert isinstance(stage.failure, OAuthFlowError)
    assert stage.authorization.received("token") == []
