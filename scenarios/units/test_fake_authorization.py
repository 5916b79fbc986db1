"""The fake authorization server and what it protects: pure, in the model, and behind sockets with TLS."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import httpx
import pytest

from fake_servers.mcp import Behaviour, HttpServer
from fake_servers.mounts import Mount, TestAuthority
from fake_servers.oauth import ANSWERS, Answer, AuthorizationServer, Client, Protected, Provider, Resource, Site
from fake_servers.oauth.site import Server, breaks_next
from harness.world import Ambiguous, Request, Response, World
from harness.world.model import Fault
from harness.world.model.faults import Site as Place
from scenarios.worlds import alone, ran

ISSUER = "https://as.test"
MCP = "https://mcp.test/mcp"
FORM = "application/x-www-form-urlencoded"
CALLBACK = "http://localhost:3118/callback"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
NOW = 1_700_000_000.0
LIMIT_SECONDS = 20.0
GOOD, WELL_BEHAVED, ONE = Provider(), Behaviour(), Resource(MCP)
BOTH = ["authorization_code", "refresh_token"]
OAUTH, OPENID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
PROTECTED = "/.well-known/oauth-protected-resource"


class Got(NamedTuple):
    """An answer: its status, its JSON (None when it is none), its headers."""

    status: int
    body: Any
    headers: Mapping[str, str]


def got(response: Response) -> Got:
    kind = response.headers.get("Content-Type", "")
    return Got(response.status, json.loads(response.body) if kind == "application/json" else None, response.headers)


def fetched(server: Server, url: str, method: str = "GET", now: float = NOW, **headers: str) -> Got:
    return got(server.handle(Request(method, url, headers), now, "client"))


def posted(server: Server, url: str, now: float = NOW, /, **fields: str) -> Got:
    request = Request("POST", url, {"Content-Type": FORM}, urlencode(fields).encode())
    return got(server.handle(request, now, "client"))


def refreshed(server: AuthorizationServer, token: str, now: float = NOW, **fields: str) -> Got:
    asked = {"grant_type": "refresh_token", "refresh_token": token, "client_id": "cid", **fields}
    return posted(server, f"{ISSUER}/token", now, **asked)


def prepared(provider: Provider = GOOD, **options: Any) -> tuple[AuthorizationServer, str, str]:
    server = AuthorizationServer(ISSUER, provider, **options)
    return server, *server.issue("cid", "read write", 3600, now=NOW)


def registered(server: AuthorizationServer, base: str = ISSUER, **wanted: Any) -> Got:
    document = {"redirect_uris": [CALLBACK], "grant_types": BOTH,
                "token_endpoint_auth_method": "none", **wanted}  # fmt: skip
    request = Request("POST", f"{base}/register", {"Content-Type": "application/json"}, json.dumps(document).encode())
    return got(server.handle(request, NOW, "client"))


def authorized(server: AuthorizationServer, **fields: str) -> dict[str, str]:
    """What the redirect of an authorization request brings."""
    asked = {"response_type": "code", "client_id": "client-1", "redirect_uri": CALLBACK, "state": "s t&1",
             "code_challenge": CHALLENGE, "code_challenge_method": "S256", **fields}  # fmt: skip
    answer = fetched(server, f"{ISSUER}/authorize?{urlencode({key: value for key, value in asked.items() if value})}")
    assert answer.status == 302
    assert answer.headers["Location"].startswith(asked["redirect_uri"])
    return {key: values[0] for key, values in parse_qs(urlsplit(answer.headers["Location"]).query).items()}


def redeemed(server: AuthorizationServer, code: str, now: float = NOW, **fields: str) -> Got:
    asked = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "client_id": "client-1",
             "code_verifier": VERIFIER, **fields}  # fmt: skip
    return posted(server, f"{ISSUER}/token", now, **asked)


# --- metadata ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("issuer", "places", "served"),
    [
        (ISSUER, ("oauth-path",), [OAUTH]),
        (ISSUER, ("openid-root",), [OPENID]),
        (ISSUER, (), []),
        (f"{ISSUER}/tenant", ("oauth-path",), [f"{OAUTH}/tenant"]),
        (f"{ISSUER}/tenant", ("oauth-root", "openid-path"), [OAUTH, f"{OPENID}/tenant"]),
        (f"{ISSUER}/tenant", ("openid-appended", "/else"), [f"/tenant{OPENID}", "/else"]),
        (f"{ISSUER}/tenant/", ("oauth-path",), [f"{OAUTH}/tenant"]),
    ],
)
def test_metadata_is_where_the_data_says_and_nowhere_else(issuer, places, served):
    server = AuthorizationServer(issuer, Provider(metadata_at=places))
    candidates = [OAUTH, OPENID, f"{OAUTH}/tenant", f"{OPENID}/tenant", f"/tenant{OPENID}", "/else", OAUTH + "/x"]
    found = [path for path in candidates if fetched(server, ISSUER + path).status == 200]
    assert found == [path for path in candidates if path in served]
    assert [each.endpoint for each in server.requests].count("metadata") == len(served)


def test_metadata_announces_what_is_there():
    provider = Provider(absent=("register",), paths={"token": "/oauth/token"}, sends_issuer=True,
                        metadata={"scopes_supported": None, "issuer": "https://other.test"})  # fmt: skip
    server = AuthorizationServer(f"{ISSUER}/tenant", provider)
    assert fetched(server, f"{ISSUER}{OAUTH}/tenant").body == {
        "issuer": "https://other.test",
        "authorization_endpoint": f"{ISSUER}/tenant/authorize",
        "token_endpoint": f"{ISSUER}/oauth/token",
        "revocation_endpoint": f"{ISSUER}/tenant/revoke",
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_post", "client_secret_basic"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }
    paths = ["/tenant/register", "/tenant/token", "/tenant/revoke", "/oauth/token"]
    assert [fetched(server, ISSUER + path).status for path in paths] == [404, 404, 405, 405]


def test_an_openid_document_has_what_openid_demands():
    document = fetched(AuthorizationServer(ISSUER, Provider(metadata_at=("openid-root",))), ISSUER + OPENID).body
    assert {"jwks_uri", "subject_types_supported", "id_token_signing_alg_values_supported"} <= set(document)


def test_an_issuer_that_is_a_path_is_of_the_origin_that_is_asked():
    server = AuthorizationServer("/tenant")
    document = fetched(server, f"http://127.0.0.1:81{OAUTH}/tenant").body
    assert document["issuer"] == "http://127.0.0.1:81/tenant"
    assert document["token_endpoint"] == "http://127.0.0.1:81/tenant/token"
    server.issuer = ISSUER
    assert fetched(server, ISSUER + OAUTH).body["issuer"] == ISSUER


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        (Provider(reuse="no"), "reuse"), (Provider(absent=("jwks",)), "absent"), (Provider(paths={"x": "/x"}), "paths"),
        (Provider(metadata_at=("root",)), "metadata_at"), (Provider(consent="asked"), "consent"),
    ],
)  # fmt: skip
def test_a_provider_that_cannot_be_is_refused_by_the_name_of_the_field(provider, name):
    with pytest.raises(ValueError, match=name):
        AuthorizationServer(ISSUER, provider)


# --- registration and consent -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "offered", "given"),
    [
        ("none", ("none", "client_secret_post"), "none"),
        ("none", ("client_secret_post",), "client_secret_post"),
        ("client_secret_basic", ("none", "client_secret_basic"), "client_secret_basic"),
        (None, ("none", "client_secret_basic"), "none"),
    ],
)
def test_a_client_registers_and_gets_a_method_that_is_offered(wanted, offered, given):
    server = AuthorizationServer(ISSUER, Provider(auth_methods=offered))
    answer = registered(server, token_endpoint_auth_method=wanted, client_name="Zimmer")
    assert (answer.status, answer.headers["Cache-Control"]) == (201, "no-store")
    assert (answer.body["client_id"], answer.body["client_name"]) == ("client-1", "Zimmer")
    assert answer.body["redirect_uris"] == [CALLBACK]
    assert answer.body["token_endpoint_auth_method"] == given
    assert ("client_secret" in answer.body) == (given != "none")
    assert server.requests[-1].fields["client_name"] == "Zimmer"
    assert registered(server).body["client_id"] == "client-2"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"{", "invalid_client_metadata"), (b"[]", "invalid_client_metadata"), (b"\xff", "invalid_client_metadata"),
        (b"[" * 100_000, "invalid_client_metadata"),
        (b"{}", "invalid_redirect_uri"), (b'{"redirect_uris": []}', "invalid_redirect_uri"),
        (b'{"redirect_uris": ["/cb"]}', "invalid_redirect_uri"),
        (b'{"redirect_uris": ["https://a.test/#f"]}', "invalid_redirect_uri"),
        (b'{"redirect_uris": ["http://[::1"]}', "invalid_redirect_uri"),
        (b'{"redirect_uris": ["https://a.test/\\u00e9"]}', "invalid_redirect_uri"),
        (b'{"redirect_uris": [7], "client_id": {}}', "invalid_redirect_uri"),
        (b'{"redirect_uris": ["https://a.test/"], "grant_types": ["implicit"]}', "invalid_client_metadata"),
    ],
)  # fmt: skip
def test_a_bad_registration_is_told_why(body, error):
    server = AuthorizationServer(ISSUER)
    answer = got(server.handle(Request("POST", f"{ISSUER}/register", {}, body), NOW, "client"))
    assert (answer.status, answer.body["error"], server.clients) == (400, error, {})


def test_consent_is_given_at_once_and_the_state_comes_back():
    server = AuthorizationServer(ISSUER, Provider(sends_issuer=True))
    registered(server)
    answer = authorized(server)
    assert (answer["state"], answer["iss"], answer["code"]) == ("s t&1", ISSUER, next(iter(server.codes)))


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"), ({"code_challenge": ""}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"), ({"code_challenge_method": ""}, "invalid_request"),
        ({"scope": "read offline_access"}, "invalid_scope"), ({"resource": "https://mcp.test/#x"}, "invalid_target"),
    ],
)  # fmt: skip
def test_a_bad_authorization_request_of_a_known_client_is_redirected_with_the_error(fields, error):
    server = AuthorizationServer(ISSUER)
    registered(server)
    answer = authorized(server, **fields)
    assert (answer["error"], answer["state"], server.codes) == (error, "s t&1", {})


def test_a_user_may_deny():
    server = AuthorizationServer(ISSUER, Provider(consent="denied"))
    registered(server)
    assert authorized(server)["error"] == "access_denied"


@pytest.mark.parametrize(
    ("client_id", "uri", "status"),
    [
        ("client-1", CALLBACK, 302), ("client-1", "http://localhost:40000/callback", 302), ("client-2", CALLBACK, 400),
        ("client-1", "http://localhost:3118/callback/", 400), ("client-1", "http://127.0.0.1:3118/callback", 400),
        ("client-1", "https://evil.test/callback", 400), ("client-1", "", 400), ("client-1", "http://[", 400),
    ],
)  # fmt: skip
def test_nobody_is_sent_where_the_client_did_not_register(client_id, uri, status):
    server = AuthorizationServer(ISSUER)
    registered(server)
    query = urlencode({"response_type": "code", "client_id": client_id, "redirect_uri": uri,
                       "code_challenge": CHALLENGE, "code_challenge_method": "S256"})  # fmt: skip
    answer = fetched(server, f"{ISSUER}/authorize?{query}")
    assert (answer.status, "Location" in answer.headers) == (status, status == 302)


# --- the code ---------------------------------------------------------------------------------------------------------


def test_a_code_gives_tokens_once_and_its_replay_ends_them():
    server = AuthorizationServer(ISSUER)
    registered(server)
    code = authorized(server, scope="read", resource=MCP)["code"]
    answer = redeemed(server, code, resource=MCP)
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-store")
    [generation] = server.tokens
    assert answer.body == {"access_token": generation.access, "token_type": "Bearer", "expires_in": 3600,
                           "refresh_token": generation.refresh, "scope": "read"}  # fmt: skip
    assert (generation.family, generation.number, generation.resource) == (1, 1, MCP)
    assert server.accepts(generation.access, NOW + 3599)
    assert not server.accepts(generation.access, NOW + 3600)
    assert not server.accepts(generation.refresh or "", NOW)
    assert redeemed(server, code).body["error"] == "invalid_grant"
    assert not server.accepts(generation.access, NOW)
    assert server.tokens[0].refresh_revoked
    last = server.received("token")[-1]
    assert (last.grant_type, last.client_id, last.auth_method, last.fields["code"]) == (
        "authorization_code", "client-1", "none", code,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "seconds", "error"),
    [
        ({"code_verifier": "w" * 43}, 0.0, "invalid_grant"), ({"redirect_uri": CALLBACK + "2"}, 0.0, "invalid_grant"),
        ({"client_id": "client-2"}, 0.0, "invalid_grant"), ({"code": "code-9"}, 0.0, "invalid_grant"),
        ({}, 600.0, "invalid_grant"), ({"resource": "https://other.test"}, 0.0, "invalid_target"),
        ({"client_id": "nobody"}, 0.0, "invalid_client"), ({"grant_type": "password"}, 0.0, "unsupported_grant_type"),
        ({"grant_type": ""}, 0.0, "invalid_request"),
    ],
)  # fmt: skip
def test_a_code_is_good_for_its_own_client_verifier_redirect_and_time_alone(fields, seconds, error):
    server = AuthorizationServer(ISSUER)
    registered(server)
    registered(server)
    code = authorized(server, resource=MCP)["code"]
    answer = redeemed(
        server, fields.get("code", code), NOW + seconds, **{k: v for k, v in fields.items() if k != "code"}
    )
    assert (answer.status, answer.body["error"]) == (401 if error == "invalid_client" else 400, error)
    assert server.tokens == ()
    assert redeemed(server, code, NOW + 599).status == 200


def test_a_verifier_without_a_challenge_is_refused():
    server = AuthorizationServer(ISSUER, Provider(requires_pkce=False))
    registered(server)
    code = authorized(server, code_challenge="", code_challenge_method="")["code"]
    assert redeemed(server, code).body["error"] == "invalid_grant"
    assert redeemed(server, code, code_verifier="").status == 400


@pytest.mark.parametrize(
    ("refresh", "scope", "grants", "given"),
    [
        ("always", "read", BOTH, True), ("always", "read", ["authorization_code"], False),
        ("never", "read", BOTH, False), ("offline_access", "read", BOTH, False),
        ("offline_access", "read offline_access", BOTH, True),
    ],
)  # fmt: skip
def test_a_refresh_token_is_given_to_whom_the_data_says(refresh, scope, grants, given):
    server = AuthorizationServer(ISSUER, Provider(refresh=refresh, scopes=("read", "offline_access")))
    registered(server, grant_types=grants)
    assert ("refresh_token" in redeemed(server, authorized(server, scope=scope)["code"]).body) == given


def basic(name: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{quote(name, safe='')}:{quote(secret, safe='')}".encode()).decode()


@pytest.mark.parametrize(
    ("method", "presented", "status"),
    [
        ("client_secret_basic", {"Authorization": basic("cid", "s:1")}, 200),
        ("client_secret_basic", {"client_secret": "s:1"}, 401),
        ("client_secret_basic", {"Authorization": basic("cid", "no")}, 401),
        ("client_secret_basic", {"Authorization": "Basic !"}, 401),
        ("client_secret_basic", {}, 401),
        ("client_secret_post", {"client_secret": "s:1"}, 200),
        ("client_secret_post", {"client_secret": "no"}, 401),
        ("client_secret_post", {"Authorization": basic("cid", "s:1")}, 401),
    ],
)
def test_a_confidential_client_says_its_secret_in_the_way_it_registered(method, presented, status):
    server = AuthorizationServer(ISSUER, clients=[Client("cid", "s:1", auth_method=method)])
    _, refresh = server.issue("cid")
    fields = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": "cid",
              **{key: value for key, value in presented.items() if key != "Authorization"}}  # fmt: skip
    headers = {"Content-Type": FORM, **{key: value for key, value in presented.items() if key == "Authorization"}}
    answer = got(server.handle(Request("POST", f"{ISSUER}/token", headers, urlencode(fields).encode()), NOW, "client"))
    assert answer.status == status
    assert ("WWW-Authenticate" in answer.headers) == (status == 401 and "Authorization" in presented)
    seen = "client_secret_basic" if "Authorization" in presented else "client_secret_post"
    assert server.requests[-1].auth_method == (seen if presented else "none")


def test_a_form_is_a_form_and_each_parameter_comes_once():
    server, _, refresh = prepared()
    twice = f"grant_type=refresh_token&client_id=cid&refresh_token={refresh}&refresh_token=x".encode()
    for kind, body in ((FORM, twice), ("application/json", b"{}"), ("", b"")):
        answer = got(server.handle(Request("POST", f"{ISSUER}/token", {"Content-Type": kind}, body), NOW, "client"))
        assert (answer.status, answer.body["error"]) == (400, "invalid_request")
    assert server.requests[0].fields["refresh_token"] == refresh
    assert refreshed(server, refresh).status == 200


# --- refreshing -------------------------------------------------------------------------------------------------------


def test_a_refresh_rotates_and_the_spent_token_ends_the_family_when_it_comes_again():
    server, access, first = prepared()
    second = refreshed(server, first, NOW + 10).body
    assert server.accepts(access, NOW + 20)
    third = refreshed(server, second["refresh_token"], NOW + 20).body
    assert len({first, second["refresh_token"], third["refresh_token"]}) == 3
    assert [(each.number, each.spent_at) for each in server.tokens] == [(1, NOW + 10), (2, NOW + 20), (3, None)]
    answer = refreshed(server, first, NOW + 30)
    assert (answer.status, answer.body["error_description"]) == (400, "Invalid refresh token")
    assert not any(server.accepts(token, NOW + 31) for token in (access, second["access_token"], third["access_token"]))
    assert refreshed(server, third["refresh_token"]).body["error"] == "invalid_grant"
    assert [(each.family, each.generation, each.issued, each.status) for each in server.requests] == [
        (1, 1, 2, 200), (1, 2, 3, 200), (1, 1, None, 400), (1, 3, None, 400),
    ]  # fmt: skip


def test_the_reuse_of_one_family_leaves_the_others():
    server, _, first = prepared()
    access, other = server.issue("cid", now=NOW)
    refreshed(server, first)
    refreshed(server, first)
    assert server.accepts(access, NOW)
    assert refreshed(server, other).status == 200


@pytest.mark.parametrize(
    ("provider", "at", "status", "lives"),
    [
        (Provider(reuse="refused"), 10.0, 400, True),
        (Provider(grace_seconds=1800.0), 1799.0, 200, True),
        (Provider(grace_seconds=1800.0), 1800.0, 400, False),
        (Provider(rotates=False), 10.0, 200, True),
    ],
)
def test_what_reuse_does_is_data(provider, at, status, lives):
    server, _, first = prepared(provider)
    second = refreshed(server, first).body
    assert refreshed(server, first, NOW + at).status == status
    assert server.accepts(second["access_token"], NOW + at) == lives
    assert ("refresh_token" in second) == provider.rotates


def test_grace_counts_from_the_first_use():
    server, _, first = prepared(Provider(grace_seconds=100.0))
    statuses = [refreshed(server, first, NOW + at).status for at in (0.0, 60.0, 120.0)]
    assert (statuses, server.tokens[0].spent_at) == ([200, 200, 400], NOW)


def test_a_rotation_may_end_the_access_tokens_before_it():
    server, access, refresh = prepared(Provider(rotation_revokes_access=True))
    made = refreshed(server, refresh).body
    assert not server.accepts(access, NOW)
    assert server.accepts(made["access_token"], NOW)
    assert refreshed(server, made["refresh_token"]).status == 200


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"client_id": "other"}, "invalid_grant"), ({"client_id": "nobody"}, "invalid_client"),
        ({"scope": "read admin"}, "invalid_scope"), ({"refresh_token": ""}, "invalid_request"),
    ],
)  # fmt: skip
def test_a_refresh_token_is_good_for_its_own_client_and_scope(fields, error):
    server, access, refresh = prepared(clients=[Client("other")])
    token = fields.pop("refresh_token", refresh)
    assert refreshed(server, token, **fields).body["error"] == error
    assert refreshed(server, access).body["error"] == "invalid_grant"
    assert refreshed(server, refresh, scope="read").body["scope"] == "read"


@pytest.mark.parametrize(
    ("provider", "said"),
    [
        (Provider(), 3600), (Provider(access_seconds=1.0), 1), (Provider(access_seconds=0.0), 0),
        (Provider(expires_in_as="text"), "3600"), (Provider(access_seconds=None), None),
    ],
)  # fmt: skip
def test_the_lifetime_is_said_as_the_data_says_and_is_true(provider, said):
    server, _, refresh = prepared(provider)
    body = refreshed(server, refresh).body
    assert body.get("expires_in") == said
    end = NOW + (float(said) if said is not None else 1e9)
    assert server.accepts(body["access_token"], end) == (said is None)


def test_a_prepared_token_can_be_long_dead_or_last():
    server, access, _ = prepared()
    with pytest.raises(ValueError, match="now"):
        AuthorizationServer(ISSUER).issue("cid", "", 60)
    dead, _ = server.issue("cid", "", -5.0, now=NOW)
    lasting, _ = server.issue("cid")
    assert [server.accepts(token, NOW) for token in (access, dead, lasting)] == [True, False, True]
    server.revoke_access(access)
    server.revoke_family(lasting)
    assert not server.accepts(access, NOW)
    assert not server.accepts(lasting, NOW)
    with pytest.raises(ValueError, match="no token"):
        server.revoke_access("x")


def test_two_servers_have_no_token_in_common():
    servers = [AuthorizationServer("", name=name) for name in ("one", "two")]
    tokens = [token for server in servers for token in server.issue("cid")]
    assert len(set(tokens)) == 4


@pytest.mark.parametrize("kind", ["access", "refresh", "unknown", "foreign", "missing"])
def test_revocation_ends_what_is_the_clients_own_and_tells_nothing_of_the_rest(kind):
    server, access, refresh = prepared(clients=[Client("other")])
    token = {"access": access, "refresh": refresh, "unknown": "x", "foreign": refresh, "missing": ""}[kind]
    client = "other" if kind == "foreign" else "cid"
    assert posted(server, f"{ISSUER}/revoke", token=token, client_id=client).status == (
        400 if kind == "missing" else 200
    )
    assert server.accepts(access, NOW) == (kind not in ("access", "refresh"))
    assert refreshed(server, refresh).status == (400 if kind == "refresh" else 200)


# --- scripted answers -------------------------------------------------------------------------------------------------

JSON, HTML = "application/json", "text/html; charset=utf-8"
# Name, status, content type, error in the body, whether the rules had their effect.
SCRIPTED: list[tuple[str, int, str, str | None, bool]] = [
    ("ok", 200, JSON, None, True),
    ("ok-without-refresh", 200, JSON, None, True),
    ("ok-without-expiry", 200, JSON, None, True),
    ("ok-slow", 200, JSON, None, True),
    ("ok-truncated", 200, JSON, None, True),
    ("ok-created", 201, JSON, None, True),
    ("ok-as-503", 503, JSON, None, True),
    ("ok-as-302", 302, JSON, None, True),
    ("wrong-issuer", 200, JSON, None, True),
    ("token-endpoint-http", 200, JSON, None, True),
    ("registration-endpoint-http", 200, JSON, None, True),
    ("invalid_grant", 400, JSON, "invalid_grant", False),
    ("invalid_client", 401, JSON, "invalid_client", False),
    ("unauthorized_client", 400, JSON, "unauthorized_client", False),
    ("invalid_request", 400, JSON, "invalid_request", False),
    ("temporarily_unavailable", 400, JSON, "temporarily_unavailable", False),
    ("429", 429, JSON, "rate_limited", False),
    ("429-date", 429, HTML, None, False),
    ("429-invalid_grant", 429, JSON, "invalid_grant", False),
    ("503-invalid_grant", 503, JSON, "invalid_grant", False),
    ("400-json", 400, JSON, None, False),
    ("422-client", 422, JSON, None, False),
    ("200-error", 200, JSON, "invalid_grant", False),
    ("200-html", 200, HTML, None, False),
    ("200-empty", 200, JSON, None, False),
    ("200-list", 200, JSON, None, False),
    ("200-deep", 200, JSON, None, False),
    ("204", 204, JSON, None, False),
    ("302", 302, "text/plain", None, False),
    ("307", 307, "text/plain", None, False),
    *((str(status), status, JSON, None, False) for status in (400, 401, 403, 404, 408, 422, 500, 502, 503, 504)),
    *((f"{status}-html", status, HTML, None, False) for status in (400, 401, 403, 404, 408, 422, 500, 502, 503, 504)),
]
# Name, and the fields of a grant's answer that it says otherwise; ABSENT: it does not say them.
ABSENT = object()
SAID: list[tuple[str, dict[str, object]]] = [
    ("ok-expires-text", {"expires_in": "3600"}), ("ok-expires-zero", {"expires_in": 0}),
    ("ok-expires-negative", {"expires_in": -60}), ("ok-expires-huge", {"expires_in": 10**18}),
    ("ok-expires-fraction", {"expires_in": 3599.5}), ("ok-expires-unsaid", {"expires_in": ABSENT}),
    ("ok-expires-nan", {"expires_in": "NaN"}), ("ok-expires-words", {"expires_in": "one hour"}),
    ("ok-expires-true", {"expires_in": True}), ("ok-type-lower", {"token_type": "bearer"}),
    ("ok-type-mac", {"token_type": "mac"}), ("ok-type-absent", {"token_type": ABSENT}),
    ("ok-access-blank", {"access_token": ""}), ("ok-access-absent", {"access_token": ABSENT}),
    ("ok-refresh-blank", {"refresh_token": ""}),
]  # fmt: skip


def test_every_scripted_answer_has_a_test():
    assert {name for name, *_ in [*SCRIPTED, *SAID]} | {"drop-before", "drop-after"} == set(ANSWERS)


@pytest.mark.parametrize(("name", "status", "kind", "error", "processed"), SCRIPTED)
def test_a_scripted_answer_is_for_one_request_and_a_refusal_changes_nothing(name, status, kind, error, processed):
    server, _, refresh = prepared(token_answers=[name])
    form = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": "cid"}
    response = server.handle(
        Request("POST", f"{ISSUER}/token", {"Content-Type": FORM}, urlencode(form).encode()), NOW, ""
    )
    assert (response.status, response.headers["Content-Type"]) == (status, kind)
    assert error_of(response.body) == error
    assert (server.requests[-1].processed, server.requests[-1].status) == (processed, status)
    assert len(server.tokens) == 1 + processed
    if not processed:
        assert refreshed(server, refresh).status == 200
    assert ("Retry-After" in response.headers) == (status == 429)
    assert response.headers.get("Location") == ("https://elsewhere.test/" if status in (302, 307) else None)


def error_of(body: bytes) -> str | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found.get("error") if isinstance(found, dict) else None


@pytest.mark.parametrize(("name", "fields"), SAID)
@pytest.mark.parametrize("provider", [GOOD, Provider(nests={"refresh_token": "authed_user"})])
def test_an_answer_may_say_something_else_than_what_is_true(name, fields, provider):
    server, _, refresh = prepared(provider, token_answers=[name])
    body = refreshed(server, refresh).body
    said = body.get("authed_user", body)
    assert {key: said.get(key, ABSENT) for key in fields} == fields
    made = server.tokens[-1]
    kept = {"access_token": made.access, "refresh_token": made.refresh, "expires_in": 3600, "token_type": "Bearer"}
    assert {key: said[key] for key in kept if key not in fields} == {k: v for k, v in kept.items() if k not in fields}
    assert server.accepts(made.access, NOW + 3599)
    assert not server.accepts(made.access, NOW + 3600)


def test_a_body_may_be_cut_and_an_answer_may_take_long():
    server, _, refresh = prepared(Provider(rotates=False))
    form = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": "cid"}
    request = Request("POST", f"{ISSUER}/token", {"Content-Type": FORM}, urlencode(form).encode())
    server.answer_next("token", "ok", "ok-truncated", "ok-slow")
    whole, cut, slow = (server.handle(request, NOW, "") for _ in range(3))
    assert len(cut.body) == len(whole.body) // 2
    assert cut.body.startswith(b'{"access_token": "access-')
    assert (whole.after_seconds, slow.after_seconds > 30) == (0.0, True)


def test_metadata_may_lie_for_one_request():
    server = AuthorizationServer(ISSUER)
    names = ["wrong-issuer", "token-endpoint-http", "registration-endpoint-http", "ok"]
    server.answer_next("metadata", *names)
    said = [fetched(server, ISSUER + OAUTH).body for _ in names]
    truth = said[-1]
    assert [{key: value for key, value in each.items() if value != truth[key]} for each in said] == [
        {"issuer": "https://elsewhere.test/"}, {"token_endpoint": "http://elsewhere.test/token"},
        {"registration_endpoint": "http://elsewhere.test/register"}, {},
    ]  # fmt: skip


def test_what_an_answer_says_otherwise_is_no_part_of_a_refusal():
    server, _, _ = prepared(token_answers=["ok-expires-zero"])
    assert refreshed(server, "stale").body == {"error": "invalid_grant", "error_description": "Invalid refresh token"}


def test_a_form_may_be_said_otherwise_too():
    server, _, refresh = prepared(Provider(answers_as="form-unless-asked"), token_answers=["ok-expires-zero"])
    form = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": "cid"}
    request = Request("POST", f"{ISSUER}/token", {"Content-Type": FORM}, urlencode(form).encode())
    body = parse_qs(server.handle(request, NOW, "").body.decode())
    assert (body["expires_in"], body["access_token"]) == (["0"], [server.tokens[-1].access])


@pytest.mark.parametrize("endpoint", ["metadata", "register", "authorize", "token", "revoke"])
def test_each_endpoint_can_be_away_slow_or_broken(endpoint):
    server = AuthorizationServer(ISSUER)
    url = f"{ISSUER}{OAUTH}" if endpoint == "metadata" else f"{ISSUER}/{endpoint}"
    method = "GET" if endpoint in ("metadata", "authorize") else "POST"
    server.answer_next(endpoint, "404", "ok-slow", "503-html", "drop-before")
    responses = [server.handle(Request(method, url), NOW, "") for _ in range(4)]
    assert [responses[0].status, responses[2].status, responses[3].status] == [404, 503, 0]
    assert responses[1].after_seconds == 40.0
    server.answer_always(endpoint, "drop-after")
    assert server.breaks_next(method, url) == "reset-after"


def test_an_answer_without_a_refresh_token_leaves_the_old_one_good():
    server, _, refresh = prepared(token_answers=["ok-without-refresh"])
    assert "refresh_token" not in refreshed(server, refresh).body
    assert "refresh_token" in refreshed(server, refresh).body


def test_an_answer_without_an_expiry_gives_a_token_that_lasts():
    server, _, refresh = prepared(token_answers=["ok-without-expiry"])
    body = refreshed(server, refresh).body
    assert "expires_in" not in body
    assert server.accepts(body["access_token"], NOW + 1e9)


def test_scripts_are_for_each_endpoint_and_may_have_no_end():
    server, _, refresh = prepared()
    server.answer_next("metadata", "503-html", Answer(after_seconds=40.0))
    server.answer_always("token", "500-html")
    server.answer_next("token", Answer(502, "later", "text/plain", processed=True))
    assert [fetched(server, ISSUER + OAUTH).status for _ in range(3)] == [503, 200, 200]
    assert [refreshed(server, refresh).status for _ in range(3)] == [502, 500, 500]
    assert [each.spent_at for each in server.tokens] == [NOW, None]
    slow = AuthorizationServer(ISSUER)
    slow.answer_next("metadata", Answer(after_seconds=40.0))
    assert slow.handle(Request("GET", ISSUER + OAUTH), NOW, "").after_seconds == 40.0
    for wrong in (lambda: server.answer_next("jwks"), lambda: server.answer_next("token", "teapot"),
                  lambda: server.answer_always("token", Answer(drops="late"))):  # fmt: skip
        with pytest.raises(ValueError, match=r"must be one of|there are|is one of"):
            wrong()


def test_a_providers_own_words_tell_the_error():
    server, _, refresh = prepared(Provider(descriptions={"invalid_grant": "OAuth grant revoked"}))
    server.revoke_family(refresh)
    assert refreshed(server, refresh).body["error_description"] == "OAuth grant revoked"


# --- the protected resource -------------------------------------------------------------------------------------------


def protected(resource: Resource = ONE, behaviour: Behaviour = WELL_BEHAVED, **options: Any) -> Protected:
    return Protected(HttpServer(behaviour), AuthorizationServer(ISSUER), resource, **options)


def hello(token: str | None = None, url: str = MCP) -> Request:
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    return Request("POST", url, headers, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("resource", "served"),
    [
        (Resource(MCP), [f"{PROTECTED}/mcp"]), (Resource(MCP, ("root",)), [PROTECTED]), (Resource(MCP, ()), []),
        (Resource(MCP, ("path", "root", "/prm")), [f"{PROTECTED}/mcp", PROTECTED, "/prm"]),
        (Resource("https://mcp.test"), [PROTECTED]),
    ],
)  # fmt: skip
def test_the_metadata_of_a_resource_is_where_the_data_says(resource, served):
    server = protected(resource)
    candidates = [f"{PROTECTED}/mcp", PROTECTED, "/prm", f"{PROTECTED}/other"]
    assert [path for path in candidates if fetched(server, f"https://mcp.test{path}").status == 200] == served
    if served:
        document = fetched(server, f"https://mcp.test{served[0]}").body
        assert (document["resource"], document["authorization_servers"]) == (resource.url, [ISSUER])


def test_what_a_resource_says_of_itself_may_be_false():
    resource = Resource(MCP, resource="https://other.test/mcp", authorization_servers=("https://evil.test/",),
                        scopes=("a",), metadata={"bearer_methods_supported": None, "resource_name": "N"})  # fmt: skip
    assert fetched(protected(resource), f"https://mcp.test{PROTECTED}/mcp").body == {
        "resource": "https://other.test/mcp", "authorization_servers": ["https://evil.test/"],
        "scopes_supported": ["a"], "resource_name": "N",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("resource", "token", "challenge"),
    [
        (Resource(MCP), None, f'Bearer resource_metadata="https://mcp.test{PROTECTED}/mcp"'),
        (Resource(MCP), "no",
         f'Bearer error="invalid_token", resource_metadata="https://mcp.test{PROTECTED}/mcp"'),
        (Resource(MCP, ("root",), scopes=("a", "b"), names_error=False), "no",
         f'Bearer resource_metadata="https://mcp.test{PROTECTED}", scope="a b"'),
        (Resource(MCP, challenge="plain"), None, "Bearer"),
        (Resource(MCP, challenge="plain"), "no", 'Bearer error="invalid_token"'),
        (Resource(MCP, challenge="none"), "no", None),
        (Resource(MCP, ()), None, "Bearer"),
    ],
)  # fmt: skip
def test_a_challenge_says_what_the_data_says(resource, token, challenge):
    server = protected(resource)
    answer = got(server.handle(hello(token), NOW, "client"))
    assert (answer.status, answer.headers.get("WWW-Authenticate")) == (401, challenge)
    assert answer.body == {"error": "invalid_token" if token else "unauthorized"}


def test_only_a_token_that_is_good_now_is_let_in():
    server = protected(tokens=("static",))
    authorization = server.authorization
    access, refresh = authorization.issue("cid", "", 60, now=NOW)
    tokens = [access, "static", refresh, None, "x"]
    assert [server.handle(hello(token), NOW, "client").status for token in tokens] == [200, 200, 401, 401, 401]
    assert server.handle(hello(access), NOW + 60, "cron").status == 401
    again, _ = authorization.issue("cid")
    authorization.revoke_access(again)
    assert server.handle(hello(again), NOW, "client").status == 401
    first, last = server.requests[0], server.requests[-2]
    assert (first.token, first.family, first.generation, first.status) == (access, 1, 1, 200)
    assert (last.at, last.who, last.status) == (NOW + 60, "cron", 401)
    assert len(server.server.requests) == 2  # type: ignore[attr-defined]


def test_a_token_of_another_server_is_not_let_in():
    access, _ = AuthorizationServer("https://other.test").issue("cid")
    assert protected().handle(hello(access), NOW, "client").status == 401


def test_a_token_without_the_scope_is_told_which_one():
    server = protected(Resource(MCP, scopes=("read", "write"), requires_scopes=True))
    narrow, wide = (server.authorization.issue("cid", scope)[0] for scope in ("read", "write read"))
    answer = got(server.handle(hello(narrow), NOW, "client"))
    assert answer.status == 403
    assert 'error="insufficient_scope"' in answer.headers["WWW-Authenticate"]
    assert 'scope="read write"' in answer.headers["WWW-Authenticate"]
    assert server.handle(hello(wide), NOW, "client").status == 200


@pytest.mark.parametrize("resource", [Resource(MCP, ("root", "nowhere")), Resource(MCP, challenge="basic")])
def test_a_resource_that_cannot_be_is_refused(resource):
    with pytest.raises(ValueError, match=r"metadata_at|challenge"):
        protected(resource)


def test_one_origin_may_hold_an_authorization_server_and_several_resources():
    authorization = AuthorizationServer("", name="shared")
    first, second = (Protected(HttpServer(), authorization, Resource(path)) for path in ("/a/mcp", "/b/mcp"))
    site = Site(authorization, first, second, paths={"/open": HttpServer(), "/open/deep/": protected()})
    access, _ = authorization.issue("cid")
    base = "http://127.0.0.1:81"
    for path in ("/a/mcp", "/b/mcp"):
        document = fetched(site, f"{base}{PROTECTED}{path}").body
        assert (document["resource"], document["authorization_servers"]) == (f"{base}{path}", [base])
        assert site.handle(hello(access, base + path), NOW, "client").status == 200
        assert site.handle(hello(None, base + path), NOW, "client").status == 401
    assert fetched(site, base + OAUTH).body["issuer"] == base
    assert site.handle(hello(None, f"{base}/open"), NOW, "client").status == 200
    assert site.handle(hello(None, f"{base}/open/deep"), NOW, "client").status == 401
    assert fetched(site, f"{base}/opened").status == 404
    assert (site.serves(f"{base}/opened"), site.serves(f"{base}/open/x")) == (False, True)
    assert (len(first.requests), len(second.requests), len(site.requests)) == (2, 2, 10)


# --- broken connections -----------------------------------------------------------------------------------------------


def network_of(server: object) -> Fault:
    """The fault of the model by which a server's own breaks are felt there."""

    class Broken(Fault):
        def matches(self, site: Place) -> bool:
            method, _, url = site.label.partition(" ")
            return super().matches(site) and breaks_next(server, method, url) == self.action

    return Broken("reset-after", port="http")


DROPS = [("drop-before", 0, 200), ("drop-after", 1, 400)]


@pytest.mark.parametrize(("name", "spent", "then"), DROPS)
def test_a_dropped_answer_is_ambiguous_in_the_model_whoever_asks(name, spent, then):
    """Two actors ask at once: the second request is dropped, whichever that is."""
    server, _, refresh = prepared(token_answers=["503-html", name])

    async def ask(world: World) -> Any:
        fields = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": "cid"}
        request = Request("POST", f"{ISSUER}/token", {"Content-Type": FORM}, urlencode(fields).encode())
        try:
            return (await world.http.send(request, open_timeout_seconds=5, read_timeout_seconds=5)).status
        except Ambiguous as error:
            return error.reason

    finished = ran(bodies={"cron": ask, "claude": ask}, servers={ISSUER: server}, faults=(network_of(server),))
    assert sorted(finished.results.values(), key=str) == [503, "reset"]
    assert [each.status for each in server.requests] == [503, 0]
    assert {each.who for each in server.requests} == {"cron", "claude"}
    assert (len(server.tokens) - 1, server.requests[-1].processed) == (spent, bool(spent))
    assert alone(ask, servers={ISSUER: server}, faults=(network_of(server),)) == then


@pytest.mark.parametrize(("drops", "arrived"), [("before", 0), ("after", 1)])
def test_a_resource_that_drops_still_tells_of_itself(drops, arrived):
    server = protected(behaviour=Behaviour(drops=drops), tokens=("t",))
    site = Site(server)
    assert breaks_next(site, "POST", MCP) == "reset-after"
    assert breaks_next(site, "GET", f"https://mcp.test{PROTECTED}/mcp") is None
    assert [site.handle(hello(token), NOW, "client").status for token in ("t", None)] == [0, 0]
    assert len(server.server.requests) == arrived  # type: ignore[attr-defined]
    assert fetched(site, f"https://mcp.test{PROTECTED}/mcp").status == 200
    assert breaks_next(Site(), "GET", MCP) is None


# --- behind sockets ---------------------------------------------------------------------------------------------------


@pytest.fixture(name="mounted")
def _mounted(tmp_path):
    """Serves an authorization server and a resource over TLS, and gives the way to ask them."""
    authority = TestAuthority(tmp_path)
    authorization = AuthorizationServer(ISSUER)
    resource = Protected(HttpServer(), authorization, Resource(MCP, scopes=("read",)))
    with (
        Mount({ISSUER: authorization, "https://mcp.test": resource}, authority=authority) as mount,
        httpx.Client(verify=authority.client_context(), trust_env=False, timeout=LIMIT_SECONDS) as client,
    ):

        def ask(method: str, url: str, **options: Any) -> httpx.Response:
            return client.request(
                method, mount.url(url), extensions={"sni_hostname": urlsplit(url).hostname or ""}, **options
            )

        yield authorization, resource, ask


def test_a_client_goes_from_the_challenge_to_the_tool_over_tls(mounted):
    authorization, resource, ask = mounted
    refused = ask("POST", MCP, json={})
    assert refused.status_code == 401
    place = refused.headers["WWW-Authenticate"].partition('resource_metadata="')[2].partition('"')[0]
    [issuer] = ask("GET", place).json()["authorization_servers"]
    found = ask("GET", f"{issuer}{OAUTH}").json()
    registration = {"redirect_uris": [CALLBACK], "grant_types": BOTH}
    client = ask("POST", found["registration_endpoint"], json=registration).json()
    query = {"response_type": "code", "client_id": client["client_id"], "redirect_uri": CALLBACK, "state": "x",
             "code_challenge": CHALLENGE, "code_challenge_method": "S256", "resource": MCP}  # fmt: skip
    sent = ask("GET", found["authorization_endpoint"], params=query)
    assert sent.status_code == 302
    code = parse_qs(urlsplit(sent.headers["Location"]).query)["code"][0]
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
    secret = (client["client_id"], client["client_secret"])
    tokens = ask("POST", found["token_endpoint"], data=form, auth=secret).json()
    bearer = {"Authorization": f"Bearer {tokens['access_token']}", "Content-Type": "application/json"}
    assert ask("POST", MCP, content=hello().body, headers=bearer).json()["result"]["serverInfo"]["name"] == "server"
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    assert ask("POST", found["token_endpoint"], data=form, auth=secret).json()["refresh_token"] != form["refresh_token"]
    assert ask("POST", found["token_endpoint"], data=form, auth=secret).json()["error"] == "invalid_grant"
    assert ask("POST", MCP, content=hello().body, headers=bearer).status_code == 401
    assert abs(authorization.requests[-1].at - time.time()) < LIMIT_SECONDS
    assert [each.generation for each in resource.requests] == [None, 1, 1]


@pytest.mark.parametrize(("name", "spent", "then"), DROPS)
def test_a_dropped_answer_is_a_reset_over_tls(mounted, name, spent, then):
    authorization, _, ask = mounted
    _, refresh = authorization.issue("cid")
    authorization.answer_next("token", name)
    form = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": "cid"}
    with pytest.raises(httpx.TransportError, match=r"reset|disconnected"):
        ask("POST", f"{ISSUER}/token", data=form)
    assert len(authorization.tokens) == 1 + spent
    assert ask("POST", f"{ISSUER}/token", data=form).status_code == then


HOSTILE: list[Callable[[AuthorizationServer], Request]] = [
    lambda _: Request("GET", f"{ISSUER}/authorize?client_id=%FF&redirect_uri=http://%5B&state=%0d%0aX:1"),
    lambda _: Request("GET", f"{ISSUER}/authorize?client_id=open&redirect_uri=http%3A%2F%2F%5B"),
    lambda _: Request("GET", f"{ISSUER}/authorize?client_id=open&redirect_uri=https%3A%2F%2Fa.test%2F%0d%0aX%3A1"),
    lambda _: Request("GET", f"{ISSUER}/authorize?client_id=open&redirect_uri=https%3A%2F%2Fa.test%2F%C3%A9"),
    lambda _: Request("POST", f"{ISSUER}/token", {"Content-Type": FORM, "Authorization": "Basic /w=="}, b"\xff=\xff"),
    lambda _: Request("POST", f"{ISSUER}/register", {}, b'{"redirect_uris": [{}], "refresh_token": []}'),
    lambda _: Request("PUT", f"{ISSUER}/revoke"),
    lambda _: Request("GET", f"{ISSUER}//token?%zz"),
]


@pytest.mark.parametrize("make", HOSTILE)
def test_whatever_is_sent_gets_an_answer_that_can_be_sent(make):
    server = AuthorizationServer(ISSUER, clients=[Client("open")])
    response = server.handle(make(server), NOW, "client")
    assert 400 <= response.status < 500
    assert all("\n" not in value and value.isascii() for value in response.headers.values())
