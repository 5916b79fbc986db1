"""Discovery: which documents are asked for, in which order, which of them count, and with which client a flow goes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from harness.reference.catalog.entry import read_entry
from harness.reference.oauth.check import MAXIMUM_REQUESTS, Check, check_oauth_requirement
from harness.reference.oauth.clients import Client
from harness.reference.oauth.discovery import Discovered, discover
from harness.reference.oauth.metadata import (
    MAXIMUM_DOCUMENT_BYTES,
    has_bearer_challenge,
    origin_server_urls,
    resource_document_urls,
    resource_indicator,
    resource_metadata_url,
)
from harness.reference.oauth.registration import registration_body
from harness.reference.oauth.server import RemoteServer, remote_server
from harness.reference.oauth.urls import read_url
from harness.reference.secrets.placeholders import MissingVariableError
from harness.world import Request, Response, World, header
from harness.world.model import Fault
from scenarios.units.oauth_run import Answers, Ran, run_world

HOST = "https://mcp.test"
URL = f"{HOST}/mcp"
CALLBACK = "https://zimmer.test/mcp_oauth/callback"
RESOURCE = "/.well-known/oauth-protected-resource"
SERVER = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"
STANDARD = [f"GET {HOST}{path}" for path in (RESOURCE, SERVER, OPENID)]
ENDPOINTS = {"authorization_endpoint": "https://as.test/authorize", "token_endpoint": "https://as.test/token"}
METHODS = "token_endpoint_auth_methods_supported"
REGISTER = {"registration_endpoint": "https://as.test/register"}


def document(**members: Any) -> Response:
    """A metadata document."""
    return Response(200, {"Content-Type": "application/json"}, json.dumps(members).encode())


def challenged(value: str) -> Response:
    return Response(401, {"WWW-Authenticate": value})


def server_at(url: str = URL, **fields: Any) -> RemoteServer:
    entry = read_entry("mcp", {"type": "http", "url": url, **fields})
    return remote_server(entry, {"TENANT": "acme", "TEAM": "blue"}.get)


class Checked:
    """One check against servers that answer by URL."""

    def __init__(
        self,
        answers: Mapping[str, Any],
        *,
        server: RemoteServer | None = None,
        configured: Client | None = None,
        faults: tuple[Fault, ...] = (),
        origins: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        self.server = server or server_at()
        self.answers = Answers({f"GET {key}" if "://" in key.split(" ")[0] else key: a for key, a in answers.items()})

        async def program(world: World) -> Check:
            return await check_oauth_requirement(
                world, self.server, configured=configured, redirect_uri=CALLBACK, **options
            )

        places = (self.server.url, "https://as.test", "https://other.test", "https://evil.test", *origins)
        self.ran: Ran = run_world(program, servers=self.answers.origins(*places), faults=faults)
        self.check: Check = self.ran.result

    @property
    def asked(self) -> list[str]:
        return self.answers.asked

    @property
    def found(self) -> Discovered:
        assert self.check.discovered is not None
        return self.check.discovered


# --- order ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("flow-discovery-order")
@pytest.mark.parametrize(
    ("url", "at"),
    [
        ("https://mcp.test:8443/mcp?a=b", "https://mcp.test:8443"),
        ("https://mcp.test:443/mcp", "https://mcp.test"),
        ("http://mcp.test:80/a/b", "http://mcp.test"),
        ("http://mcp.test:8080", "http://mcp.test:8080"),
        ("https://user:secret@mcp.test/mcp#f", "https://mcp.test"),
    ],
)
def test_the_three_documents_are_asked_for_at_the_origin_of_the_url(url, at):
    # Whatever stands there, the OpenID document is the last and is asked only where the other is not usable.
    openid = Checked({f"{at}{OPENID}": document(**ENDPOINTS)}, server=server_at(url), origins=(at,))
    assert openid.asked == [f"GET {at}{path}" for path in (RESOURCE, SERVER, OPENID)]
    own = Checked({f"{at}{SERVER}": document(**ENDPOINTS)}, server=server_at(url), origins=(at,))
    assert own.asked == [f"GET {at}{path}" for path in (RESOURCE, SERVER)]
    assert openid.check.required
    assert own.check.required


@pytest.mark.requirement("flow-discovery-order")
def test_an_address_keeps_its_brackets_and_its_port():
    url = read_url("https://[::1]:9/mcp")
    assert url is not None
    assert resource_document_urls(url) == (f"https://[::1]:9{RESOURCE}",)
    assert origin_server_urls(url) == (f"https://[::1]:9{SERVER}", f"https://[::1]:9{OPENID}")


@pytest.mark.requirement("requirement-adv-required-discovery")
def test_an_authorization_server_at_the_origin_is_enough_and_the_server_itself_is_not_asked():
    checked = Checked({f"{HOST}{SERVER}": document(**ENDPOINTS)})
    assert checked.check.determination == "advertised_required"
    assert f"GET {URL}" not in checked.asked


@pytest.mark.requirement("flow-discovery-via-resource-document")
def test_the_first_listed_server_is_asked_and_no_other():
    listing = document(authorization_servers=["https://as.test/tenant1", "https://other.test"], resource=URL)
    checked = Checked(
        {
            f"{HOST}{RESOURCE}": listing,
            f"https://as.test/tenant1{OPENID}": document(**ENDPOINTS),
            f"https://other.test{SERVER}": document(**ENDPOINTS),
        }
    )
    named = [f"GET https://as.test{SERVER}", f"GET https://as.test/tenant1{OPENID}"]
    assert checked.asked == [*STANDARD, *named]
    assert checked.check.required
    nowhere = Checked({f"{HOST}{RESOURCE}": listing, f"https://other.test{SERVER}": document(**ENDPOINTS)})
    assert nowhere.asked == [*STANDARD, *named, f"GET {URL}"]
    assert not nowhere.check.required


@pytest.mark.requirement("flow-discovery-via-resource-document")
@pytest.mark.parametrize(
    "listed",
    [[], None, {}, "https://as.test", [7], [None, "https://as.test"], ["ftp://as.test"], ["as.test"], ["https://"]],
)
def test_a_resource_document_without_a_usable_first_entry_leads_nowhere(listed):
    checked = Checked({f"{HOST}{RESOURCE}": document(authorization_servers=listed)})
    assert checked.asked == [*STANDARD, f"GET {URL}"]
    assert not checked.check.required


@pytest.mark.requirement("flow-discovery-via-resource-document")
def test_a_path_of_the_issuer_is_kept_as_written():
    checked = Checked({f"{HOST}{RESOURCE}": document(authorization_servers=["https://as.test/t/"])})
    assert checked.asked[3:5] == [f"GET https://as.test{SERVER}", f"GET https://as.test/t/{OPENID}"]


@pytest.mark.requirement("flow-discovery-path-forms")
def test_the_forms_of_the_rfcs_for_paths_are_asked_first_where_that_mode_is_on():
    answers = {
        f"{HOST}{RESOURCE}/mcp": document(authorization_servers=["https://as.test/t"]),
        f"https://as.test{SERVER}/t": document(**ENDPOINTS),
    }
    checked = Checked(answers, path_forms=True)
    assert checked.asked == [
        f"GET {HOST}{RESOURCE}/mcp",
        f"GET {HOST}{SERVER}/mcp",
        f"GET {HOST}{SERVER}",
        f"GET {HOST}{OPENID}",
        f"GET https://as.test{SERVER}/t",
    ]
    assert checked.check.required
    assert not Checked(answers).check.required


# --- documents ------------------------------------------------------------------------------------------------


DEEP = b'{"token_endpoint": "https://as.test/t", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
UNUSABLE = {
    "html": Response(200, {"Content-Type": "text/html"}, b"<html>"),
    "declared json that is none": Response(200, {"Content-Type": "application/json"}, b"{token_endpoint"),
    "empty body": Response(200),
    "no endpoint": document(issuer="x"),
    "blank endpoints": document(authorization_endpoint=" ", token_endpoint=""),
    "endpoints of another kind": document(authorization_endpoint=7, token_endpoint=["https://as.test/t"]),
    "list": Response(200, body=b'["token_endpoint"]'),
    "text": Response(200, body=b'"token_endpoint"'),
    "null": Response(200, body=b"null"),
    "nan": Response(200, body=b'{"token_endpoint": "https://as.test/t", "x": NaN}'),
    "infinity": Response(200, body=b'{"token_endpoint": "https://as.test/t", "x": -Infinity}'),
    "deep": Response(200, body=DEEP),
    "huge number": Response(200, body=b'{"token_endpoint": "https://as.test/t", "x": ' + b"9" * 5_000 + b"}"),
    "huge": document(token_endpoint="https://as.test/t", padding="x" * MAXIMUM_DOCUMENT_BYTES),
    "no utf-8": Response(200, body=b'{"token_endpoint": "https://as.test/\xff"}'),
    "lone surrogate": Response(200, body=b'{"token_endpoint": "https://as.test/\\ud800"}'),
    "truncated": Response(200, body=json.dumps(ENDPOINTS).encode()[:-5]),
    "not modified": Response(304, body=json.dumps(ENDPOINTS).encode()),
    "created": Response(201, body=json.dumps(ENDPOINTS).encode()),
    "server error": Response(500, body=json.dumps(ENDPOINTS).encode()),
    "redirect": Response(302, {"Location": "https://other.test/moved"}),
    "hanging": Response(200, body=json.dumps(ENDPOINTS).encode(), after_seconds=1e6),
    "no answer": Response(101),
}


@pytest.mark.requirement("flow-discovery-usable-document", "flow-discovery-errors-contained")
@pytest.mark.parametrize("unusable", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_what_is_no_metadata_document_is_absent(unusable):
    moved = {"https://other.test/moved": document(**ENDPOINTS)}
    checked = Checked({f"{HOST}{SERVER}": unusable, f"{HOST}{OPENID}": document(**ENDPOINTS), **moved})
    assert checked.asked == STANDARD
    assert checked.check.required
    absent = Checked({f"{HOST}{path}": unusable for path in (RESOURCE, SERVER, OPENID)} | moved)
    assert absent.asked == [*STANDARD, f"GET {URL}"]
    assert absent.check == Check(required=False, determination="undetermined", status=404)


@pytest.mark.requirement("flow-discovery-usable-document")
@pytest.mark.parametrize("name", ["token_endpoint", "authorization_endpoint"])
def test_one_endpoint_makes_a_document_count(name):
    checked = Checked({f"{HOST}{SERVER}": document(**{name: "https://as.test/x"})})
    assert checked.asked == STANDARD[:2]
    assert checked.found._asdict() == {
        **Discovered(None, None, None, None, (), URL, ())._asdict(),
        name: "https://as.test/x",
    }


@pytest.mark.requirement("flow-discovery-usable-document")
def test_members_of_another_shape_are_left_out_and_of_a_repeated_one_the_last_counts():
    body = b"""{"token_endpoint": "https://as.test/old", "token_endpoint": "https://as.test/token",
        "authorization_endpoint": "javascript:alert(1)", "registration_endpoint": {}, "issuer": ["x"],
        "scopes_supported": ["a", 7, null, "\\ud800", "b"], "token_endpoint_auth_methods_supported": "none"}"""
    checked = Checked({f"{HOST}{SERVER}": Response(200, body=body)})
    assert checked.found == Discovered(
        None, "https://as.test/token", None, None, ("a", "b"), URL, (), lists_scopes=True
    )
    assert checked.check.client == Client("zimmer")


# --- challenges -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("flow-discovery-challenge-metadata", "requirement-adv-required-bearer-401")
def test_the_document_that_a_challenge_names_is_asked_for_and_its_server_resolved():
    prm = "https://other.test/prm"
    checked = Checked(
        {
            URL: challenged(f'Bearer realm="x", resource_metadata=" {prm} "'),
            prm: document(authorization_servers=["https://as.test"], scopes_supported=["prm:a"], resource=f"{HOST}/r"),
            f"https://as.test{SERVER}": document(**ENDPOINTS, **REGISTER, issuer="https://as.test"),
            "POST https://as.test/register": Response(201, body=b'{"client_id": "dcr"}'),
        }
    )
    assert checked.asked[3:] == [
        f"GET {URL}",
        f"GET {prm}",
        f"GET https://as.test{SERVER}",
        "POST https://as.test/register",
    ]
    assert (checked.found.scopes, checked.found.resource) == (("prm:a",), f"{HOST}/r")
    assert checked.check.client == Client("dcr")


@pytest.mark.requirement("flow-discovery-challenge-metadata")
@pytest.mark.parametrize(
    "challenge",
    ['Bearer resource_metadata="https://evil.test/x"', "Bearer", 'Bearer resource_metadata="ftp://h/x"'],
)
def test_without_a_usable_document_discovery_is_repeated_once_and_oauth_required_all_the_same(challenge):
    named = ["GET https://evil.test/x"] if "evil" in challenge else []
    checked = Checked({URL: challenged(challenge)})
    assert checked.asked == [*STANDARD, f"GET {URL}", *named, *STANDARD]
    assert checked.check == Check(required=True, determination="advertised_required", status=401)


@pytest.mark.requirement("flow-discovery-challenge-metadata")
def test_a_document_that_came_up_meanwhile_is_found_by_the_repetition():
    count = iter((Response(503), document(**ENDPOINTS)))
    checked = Checked({URL: challenged("Bearer"), f"{HOST}{SERVER}": lambda _: next(count)})
    assert checked.check.required
    assert checked.found.token_endpoint == "https://as.test/token"


@pytest.mark.requirement("flow-discovery-challenge-metadata", "requirement-bearer-scheme-case")
@pytest.mark.parametrize(
    ("value", "bearer", "url"),
    [
        ('Bearer realm="x", resource_metadata="https://h/prm"', True, "https://h/prm"),
        ("Bearer resource_metadata=https://h/x", True, None),
        ('Bearer resource_metadata="ftp://h/x"', True, None),
        ('Bearer resource_metadata=" https://h/x "', True, "https://h/x"),
        ('Bearer resource_metadata="https://h/a b"', True, None),
        ('Bearer resource_metadata=""', True, None),
        ('Bearer resource_metadata="https://h/a,b?c=d"', True, "https://h/a,b?c=d"),
        ('BEARER  Resource_Metadata = "http://h/x"', True, "http://h/x"),
        ('Bearer realm="x" resource_metadata="https://h/prm"', True, "https://h/prm"),
        ('Basic realm="a", Bearer realm="b", resource_metadata="https://h/x"', True, "https://h/x"),
        ('Bearer realm="resource_metadata=\\"https://evil.test\\""', True, None),
        ('Basic realm="a, Bearer b"', False, None),
        ('Basic realm="Bearer"', False, None),
        ('Basic realm="a\\", Bearer realm=b"', False, None),
        ('Basic realm="a, Bearer b\\', False, None),
        ("Basic realm=Bearer", False, None),
        ("Basic, Bearer", True, None),
        (", ,Bearer abc==", True, None),
        ("Bearer = x", False, None),
        ("Bearerx", False, None),
        ("DPoP algs=ES256", False, None),
        ("", False, None),
        (None, False, None),
        ("\ud800 Bearer", False, None),
    ],
)
def test_a_challenge_is_read_as_http_says(value, bearer, url):
    assert has_bearer_challenge(value) is bearer
    assert resource_metadata_url(value) == url


# --- resource and scopes --------------------------------------------------------------------------------------


@pytest.mark.requirement("flow-resource-indicator")
@pytest.mark.parametrize(
    ("named", "url", "indicator"),
    [
        ("https://mcp.notion.com", "https://mcp.notion.com/mcp", "https://mcp.notion.com"),
        (" ", "https://mcp.example.com/mcp/", "https://mcp.example.com/mcp"),
        (None, "https://mcp.example.com:8443/path?foo=bar", "https://mcp.example.com:8443/path"),
        (7, "http://h:80/a", "http://h/a"),
        (None, "https://h/a//", "https://h/a/"),
        (None, "https://h/", "https://h"),
        (None, "https://id:secret@H.Example/Path#f", "https://H.Example/Path"),
        (None, "http://h:443/a", "http://h:443/a"),
        ("\ud800", "https://h/a?b=[1]&c={d}", "https://h/a"),
        (None, "not a url", "not a url"),
    ],
)
def test_the_resource_indicator_is_the_documents_or_the_bare_url(named, url, indicator):
    assert resource_indicator({"resource": named}, url) == indicator
    if named is None:
        assert resource_indicator(None, url) == indicator


@pytest.mark.requirement("flow-resource-indicator")
def test_the_resource_document_of_a_server_that_is_its_own_authorization_server_counts_too():
    answers = {f"{HOST}{RESOURCE}": document(resource="https://mcp.test/r"), f"{HOST}{SERVER}": document(**ENDPOINTS)}
    assert Checked(answers).found.resource == "https://mcp.test/r"
    assert not Checked(answers).found.foreign_resource
    foreign = {**answers, f"{HOST}{RESOURCE}": document(resource="https://bank.test/api")}
    assert Checked(foreign).found.foreign_resource


@pytest.mark.requirement("flow-scopes-source")
@pytest.mark.parametrize(
    ("own", "resource", "named", "scopes"),
    [
        (["read", "write"], ["prm:a"], None, ("read", "write")),
        (None, ["prm:a"], None, ()),
        (None, ["prm:a"], ["as:b"], ("prm:a",)),
        (None, None, ["as:b"], ("as:b",)),
        (None, "prm:a", ["as:b"], ("as:b",)),
        ("a b", None, None, ()),
        (None, None, None, ()),
    ],
)
def test_the_scopes_are_those_of_the_document_that_led_there_and_nothing_is_added(own, resource, named, scopes):
    listed = {} if resource is None else {"scopes_supported": resource}
    answers = {f"{HOST}{RESOURCE}": document(authorization_servers=["https://as.test"], **listed)}
    if named is None and (own is not None or resource is not None):
        answers[f"{HOST}{SERVER}"] = document(**ENDPOINTS, **({} if own is None else {"scopes_supported": own}))
    else:
        theirs = {} if named is None else {"scopes_supported": named}
        answers[f"https://as.test{SERVER}"] = document(**ENDPOINTS, **theirs)
    assert Checked(answers).found.scopes == scopes


# --- the URL as runtimes read it ------------------------------------------------------------------------------


@pytest.mark.requirement("flow-uses-resolved-url")
def test_everything_is_asked_at_the_resolved_url_and_stored_under_the_raw_key():
    raw = {"type": "http", "url": "https://${TENANT}.test/mcp"}
    resolved = remote_server(read_entry("mcp", raw), {"TENANT": "acme"}.get)
    checked = Checked({f"https://acme.test{SERVER}": document(**ENDPOINTS)}, server=resolved)
    assert {request.url.split("/")[2] for request in checked.answers.requests} == {"acme.test"}
    assert checked.found.resource == "https://acme.test/mcp"
    assert resolved.credential_key != server_at("https://acme.test/mcp").credential_key
    with pytest.raises(MissingVariableError):
        remote_server(read_entry("mcp", raw), lambda _: None)


@pytest.mark.requirement("flow-uses-resolved-url")
@pytest.mark.parametrize("url", ["https://${TENANT}.test/mcp", "not a url", "", "ftp://h/x", "https://h/\ud800"])
def test_a_url_that_is_none_gets_no_request(url):
    unresolved = RemoteServer("mcp", url, "k", read_entry("mcp", {"type": "http", "url": url}), {}, {})

    async def program(world: World) -> tuple[Check, Discovered | None]:
        check = await check_oauth_requirement(world, unresolved, configured=None, redirect_uri=CALLBACK)
        return check, await discover(world, url)

    answers = Answers({})
    ran = run_world(program, servers=answers.origins(HOST, "ftp://h", "https://h"))
    assert ran.result == (
        Check(required=False, determination="undetermined", error="the server's URL cannot be asked"),
        None,
    )
    assert answers.requests == []
    assert ran.named("request") == []


# --- errors ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("flow-discovery-errors-contained", "requirement-connection-error-undetermined")
@pytest.mark.parametrize(
    ("action", "error"),
    [
        ("refused", "connection refused"),
        ("dns", "the host cannot be found"),
        ("tls", "no trusted TLS connection"),
        ("open-timeout", "timed out"),
        ("reset-before", "the connection broke off"),
        ("reset-after", "the connection broke off"),
    ],
)
def test_an_error_of_every_request_is_an_undetermined_answer_with_its_reason(action, error):
    checked = Checked({}, faults=(Fault(action, port="http"),))
    assert checked.check == Check(required=False, determination="undetermined", error=error)
    assert checked.check.detail == error


@pytest.mark.requirement("flow-discovery-errors-contained", "requirement-connection-error-undetermined")
def test_a_server_that_accepts_and_never_answers_is_given_thirty_seconds_a_request():
    silent = {f"{HOST}{path}": Response(200, after_seconds=1e9) for path in (RESOURCE, SERVER, OPENID, "/mcp")}
    checked = Checked(silent)
    assert checked.check == Check(required=False, determination="undetermined", error="timed out")
    assert checked.ran.simulation.now - 1_800_000_000 == 120.0


# --- registration ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("flow-registration-when", "flow-registration-in-requirement-check")
def test_a_client_is_registered_only_where_none_is_configured_and_registration_is_offered():
    answers = {f"{HOST}{SERVER}": document(**ENDPOINTS, **REGISTER)}
    registering = {**answers, "POST https://as.test/register": Response(201, body=b'{"client_id": "dcr"}')}
    registered = Checked(registering)
    assert registered.asked == [*STANDARD[:2], "POST https://as.test/register"]
    assert registered.check.client == Client("dcr")
    configured = Checked(registering, configured=Client("cid", "sec"))
    assert configured.asked == STANDARD[:2]
    assert configured.check.client == Client("cid", "sec")


@pytest.mark.requirement("flow-registration-not-orphaned")
def test_whoever_only_judges_registers_nobody():
    checked = Checked({f"{HOST}{SERVER}": document(**ENDPOINTS, **REGISTER)}, registers=False)
    assert checked.asked == STANDARD[:2]
    assert checked.check.client is None


@pytest.mark.requirement("flow-client-id-fallback")
def test_without_registration_the_client_is_the_literal_and_after_a_failed_one_there_is_none():
    assert Checked({f"{HOST}{SERVER}": document(**ENDPOINTS)}).check.client == Client("zimmer")
    assert Checked({f"{HOST}{SERVER}": document(**ENDPOINTS, registration_endpoint="")}).check.client == Client(
        "zimmer"
    )
    failing = {f"{HOST}{SERVER}": document(**ENDPOINTS, **REGISTER), "POST https://as.test/register": Response(500)}
    assert Checked(failing).check.client is None


@pytest.mark.requirement("https-registration-degrades", "https-post-json-registration", "https-remote-names-loopback")
@pytest.mark.parametrize(
    "endpoint",
    ["http://as.test/register", "http://127.0.0.1:9000/register", "http://localhost/r", "as.test", "mailto:x"],
)
def test_a_registration_endpoint_that_is_refused_is_a_failed_registration_and_no_error(endpoint):
    answers = {f"{HOST}{SERVER}": document(**ENDPOINTS, registration_endpoint=endpoint)}
    checked = Checked(answers, origins=("http://127.0.0.1:9000", "http://localhost", "http://as.test"))
    assert checked.asked == STANDARD[:2]
    assert checked.check.required
    assert checked.check.client is None
    assert checked.check.determination == "advertised_required"


@pytest.mark.requirement("https-applies-to-endpoint-not-server")
def test_a_server_on_http_is_discovered_and_its_token_endpoint_told_as_it_is():
    for endpoint in ("https://as.test/token", "http://localhost:9000/token"):
        local = server_at("http://localhost:9000/mcp")
        told = document(authorization_endpoint="http://localhost:9000/a", token_endpoint=endpoint)
        checked = Checked({f"http://localhost:9000{SERVER}": told}, server=local)
        assert checked.check.required
        assert checked.found.token_endpoint == endpoint
        assert checked.found.authorization_endpoint == "http://localhost:9000/a"


@pytest.mark.requirement("flow-registration-success")
@pytest.mark.parametrize(
    ("answer", "client"),
    [
        (Response(201, body=b'{"client_id": "dcr", "client_secret": "s"}'), Client("dcr", "s")),
        (Response(200, body=b'{"client_id": "dcr", "client_secret": ""}'), Client("dcr")),
        (Response(201, body=b'{"client_id": "dcr", "client_secret": 7}'), Client("dcr")),
        (Response(201, body=b'{"ok": 1}'), None),
        (Response(201, body=b'{"client_id": " "}'), None),
        (Response(201, body=b'{"client_id": 7}'), None),
        (Response(201, body=b'["client_id"]'), None),
        (Response(202, body=b'{"client_id": "dcr"}'), None),
        (Response(400, body=b'{"client_id": "dcr"}'), None),
        (Response(403, body=b"Forbidden"), None),
        (Response(307, {"Location": "https://other.test/r"}), None),
        (Response(201, after_seconds=1e9), None),
    ],
)
def test_a_registration_succeeds_with_a_client_id_and_one_of_two_statuses(answer, client):
    answers = {f"{HOST}{SERVER}": document(**ENDPOINTS, **REGISTER), "POST https://as.test/register": answer}
    checked = Checked(answers)
    assert checked.check.client == client
    assert checked.asked == [*STANDARD[:2], "POST https://as.test/register"]
    assert checked.check.required


@pytest.mark.requirement("flow-registration-body")
@pytest.mark.parametrize(
    ("members", "method", "scope"),
    [
        ({}, "none", None),
        ({"scopes_supported": ["user", "forms", "mcp"]}, "none", "user forms mcp"),
        ({"scopes_supported": "a b"}, "none", None),
        ({"scopes_supported": []}, "none", None),
        (
            {METHODS: ["client_secret_basic", "client_secret_post"]},
            "client_secret_post",
            None,
        ),
        ({METHODS: ["client_secret_basic"]}, "client_secret_basic", None),
        (
            {METHODS: ["private_key_jwt", "client_secret_basic"]},
            "private_key_jwt",
            None,
        ),
        ({METHODS: ["client_secret_post", "none"]}, "none", None),
        ({METHODS: []}, "none", None),
        ({METHODS: "none"}, "none", None),
    ],
)
def test_the_registration_body_names_one_redirect_both_grants_and_the_method(members, method, scope):
    checked = Checked({f"{HOST}{SERVER}": document(**ENDPOINTS, **REGISTER, **members)})
    (posted,) = (request for request in checked.answers.requests if request.method == "POST")
    body = {
        "redirect_uris": [CALLBACK],
        "client_name": "Claude Code (Zimmer)",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        **({} if scope is None else {"scope": scope}),
    }
    assert json.loads(posted.body) == body
    assert registration_body(CALLBACK, checked.found) == body


# --- bounds ---------------------------------------------------------------------------------------------------


def test_the_longest_check_is_as_long_as_it_says():
    def nowhere(_: Request) -> Response:
        return Response(404)

    misleading = document(authorization_servers=["https://as.test/t"])
    count = {"asked": 0}

    def late(_: Request) -> Response:
        count["asked"] += 1
        return document(**ENDPOINTS, **REGISTER) if count["asked"] == 3 else Response(404)

    checked = Checked(
        {
            f"{HOST}{RESOURCE}": misleading,
            URL: challenged('Bearer resource_metadata="https://other.test/prm"'),
            "https://other.test/prm": misleading,
            f"https://as.test{SERVER}": nowhere,
            f"https://as.test/t{OPENID}": late,
        }
    )
    assert len(checked.asked) == MAXIMUM_REQUESTS
    assert checked.asked[-1] == "POST https://as.test/register"
    assert all(header(request.headers, "Authorization") is None for request in checked.answers.requests)
