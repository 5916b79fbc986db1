"""Discovery over hostile servers: whatever they answer, it ends, asks little, and tells nobody anything."""

from __future__ import annotations

import json
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.reference.catalog.entry import read_entry
from harness.reference.oauth.challenges import challenges
from harness.reference.oauth.check import MAXIMUM_REQUESTS, Check, check_oauth_requirement
from harness.reference.oauth.endpoints import acceptable_endpoint, shown_endpoint
from harness.reference.oauth.metadata import read_object, resource_indicator, resource_metadata_url
from harness.reference.oauth.requirement import MCP_TYPES, determination
from harness.reference.oauth.server import RemoteServer
from harness.reference.oauth.transport import InsecureEndpointError, form_target
from harness.reference.oauth.urls import read_url
from harness.world import NotSent, Request, Response, World, header
from harness.world.model import Fault
from scenarios.units.oauth_run import run_world

HOSTS = ("mcp.test", "as.test", "evil.test")
SECRETS = ("t0k3n", "s3cr3t")
RESOURCE, SERVER = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"

urls = st.one_of(
    st.builds(
        "{}://{}{}".format, st.sampled_from(["https", "http"]), st.sampled_from(HOSTS), st.sampled_from(["", "/t/"])
    ),
    st.sampled_from(
        [
            "ftp://evil.test/x", "file:///etc/passwd", "javascript:alert(1)", "http://127.0.0.1:9/x", "https://",
            "https://[::1", "https://id:s3cr3t@evil.test/t", "https://evil.test/%zz", "//evil.test", "https://h:99999/t",
            "https://evil.test/a b", "https://evil.test/\n", "https://\ud800.test", "http://" + "a" * 9_000 + ".test",
        ]
    ),
    st.text(max_size=20),
)  # fmt: skip
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8) | urls,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
MEMBERS = (
    "authorization_endpoint", "token_endpoint", "registration_endpoint", "issuer", "resource", "scopes_supported",
    "token_endpoint_auth_methods_supported",
)  # fmt: skip
documents = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(MEMBERS, urls | junk),
        "authorization_servers": st.lists(urls | junk, max_size=3) | junk,
        "scopes_supported": st.lists(st.text(max_size=4) | junk, max_size=3),
    },
)
raw_bodies = st.sampled_from(
    [
        b"", b"<html>", b"[" * 50_000, b'{"a":' * 20_000, b"\xff\xfe{}", b'{"token_endpoint":"\\ud800"}',
        b'{"token_endpoint": NaN}', b'{"token_endpoint": 1e999, "issuer": -Infinity}', b"9" * 6_000,
        b'{"token_endpoint": "https://as.test/t", "token_endpoint": "http://127.0.0.1/t"}',
        b'{"client_id": "c", "client_id": "d", "client_secret": "s3cr3t"}', b'{"x": "' + b"y" * 1_100_000 + b'"}',
    ]
)  # fmt: skip
bodies = documents.map(lambda each: json.dumps(each).encode()) | raw_bodies | st.binary(max_size=20)
header_texts = st.one_of(
    urls.map(lambda url: f'Bearer resource_metadata="{url}"'),
    st.sampled_from(["Bearer", 'Basic realm="Bearer"', "bearer, Basic", 'Bearer realm="\\"', "Bearer " * 500]),
    st.text(max_size=30),
)
statuses = st.one_of(st.just(200), st.sampled_from([201, 204, 302, 307, 401, 404, 500]), st.integers(200, 599))
answers = st.builds(
    lambda status, challenge, kind, where, body: Response(
        status, {"WWW-Authenticate": challenge, "Content-Type": kind, "Location": where}, body
    ),
    statuses,
    header_texts,
    st.sampled_from(["application/json", "text/event-stream", "text/html", ""]),
    urls,
    bodies,
)


class Hostile:
    """All hosts at once: each request gets the next of some answers, for ever."""

    def __init__(self, given_answers: list[Response]) -> None:
        self.given = given_answers
        self.requests: list[Request] = []

    def handle(self, request: Request, now: float, who: str) -> Response:
        self.requests.append(request)
        return self.given[(len(self.requests) - 1) % len(self.given)]


def checked(hostile: Any, *, registers: bool, path_forms: bool, faults: tuple[Fault, ...] = ()) -> Any:
    """One check of a server whose entry holds secrets."""
    url = "https://id:s3cr3t@mcp.test/mcp"
    entry = read_entry("mcp", {"type": "http", "url": url})
    server = RemoteServer("mcp", url, "mcp|k", entry, {"X-Note": "t0k3n"}, {})

    async def program(world: World) -> Check:
        return await check_oauth_requirement(
            world,
            server,
            configured=None,
            redirect_uri="https://zimmer.test/cb",
            registers=registers,
            path_forms=path_forms,
        )

    places = [f"{scheme}://{host}" for scheme in ("https", "http") for host in (*HOSTS, "127.0.0.1:9", "127.0.0.1")]
    return run_world(program, servers={**dict.fromkeys(places, hostile), "ftp://evil.test": hostile}, faults=faults)


@pytest.mark.requirement(
    "flow-discovery-errors-contained",
    "flow-discovery-usable-document",
    "https-remote-names-loopback",
    "https-post-json-registration",
    "requirement-no-token-needed",
)
@given(st.lists(answers, min_size=1, max_size=6), st.booleans(), st.booleans())
def test_whatever_is_answered_a_check_ends_within_its_requests_and_tells_no_secret(
    given_answers, registers, path_forms
):
    hostile = Hostile(given_answers)
    ran = checked(hostile, registers=registers, path_forms=path_forms)
    told: Check = ran.result
    asked = hostile.requests
    assert len(asked) <= MAXIMUM_REQUESTS + (12 if path_forms else 0)
    assert sum(request.method == "POST" for request in asked) <= int(registers)
    for request in asked:
        scheme = urlsplit(request.url).scheme
        assert scheme == "https" if request.method == "POST" else scheme in ("http", "https")
        assert header(request.headers, "Authorization") is None or request.method == "POST"
        written = f"{request.url} {request.headers} {request.body!r}"
        assert "t0k3n" not in written
        assert "id:s3cr3t@" not in written
    assert all(secret not in ran.told for secret in SECRETS)
    # What it found can be written down, and a browser can be sent there.
    json.dumps(told.discovered, allow_nan=False, ensure_ascii=False).encode()
    found = told.discovered
    if found is not None:
        assert found.authorization_endpoint is None or read_url(found.authorization_endpoint) is not None
        assert told.required
    assert told.required == (told.determination == "advertised_required")
    if told.determination == "advertised_not_required":
        assert 200 <= cast("int", told.status) < 300


@given(
    st.lists(answers, min_size=1, max_size=3),
    st.lists(st.sampled_from(["refused", "dns", "tls", "open-timeout", "reset-before", "reset-after"]), max_size=3),
    st.integers(1, 6),
)
@pytest.mark.requirement("flow-discovery-errors-contained")
def test_no_error_of_the_network_leaves_a_check(given_answers, actions, every):
    faults = tuple(
        Fault(cast("Any", action), port="http", label=f"*{'abcdefmt'[every % 8]}*", times=every) for action in actions
    )
    assert isinstance(checked(Hostile(given_answers), registers=True, path_forms=False, faults=faults).result, Check)


kinds = st.sampled_from(
    ["application/json", "text/event-stream", "Application/JSON; charset=utf-8", "text/html", "", "application/jsonp"]
)


@pytest.mark.requirement("requirement-quiet-direction-narrow")
@given(
    status=st.integers(100, 599),
    kind=st.none() | kinds | st.text(max_size=12),
    challenge=header_texts,
    fails=st.booleans(),
)
@example(status=200, kind="application/json", challenge="Bearer", fails=False)
@example(status=400, kind="application/json", challenge="", fails=False)
@example(status=200, kind="text/html", challenge="", fails=False)
@example(status=401, kind="application/json", challenge="Basic", fails=False)
def test_nothing_but_a_2xx_of_an_mcp_type_says_that_oauth_is_not_required(status, kind, challenge, fails):
    said = determination(
        NotSent("refused")
        if fails
        else Response(status, {"WWW-Authenticate": challenge, **({} if kind is None else {"Content-Type": kind})})
    )
    media_type = (kind or "").split(";")[0].strip(" \t").lower()
    quiet = not fails and 200 <= status < 300 and media_type in MCP_TYPES
    assert (said == "advertised_not_required") is quiet


@given(bodies | st.binary())
def test_a_body_is_read_or_is_no_document(body):
    read = read_object(body)
    assert read is None or isinstance(read, dict)


@given(header_texts | st.text())
def test_a_challenge_is_read_whatever_it_is(value):
    assert all(isinstance(each.scheme, str) for each in challenges(value))
    named = resource_metadata_url(value)
    assert named is None or read_url(named) is not None


@given(urls | st.text())
def test_a_url_is_read_or_is_none_and_reading_it_again_changes_nothing(text):
    url = read_url(text)
    if url is not None:
        assert read_url(url.text) == url
        assert "@" not in url.origin
        indicator = resource_indicator(None, text)
        assert indicator == resource_indicator(None, url.text)


@pytest.mark.requirement("https-predicate", "https-post-form-raises", "https-secrets-not-in-logs")
@given(urls | st.text() | st.text().map(lambda text: f"https://{text}"))
def test_an_endpoint_is_posted_to_over_tls_or_not_at_all(text):
    if acceptable_endpoint(text):
        target = form_target(text)
        assert urlsplit(target.url).scheme == "https"
        assert urlsplit(target.url).hostname
        assert "@" not in urlsplit(target.url).netloc
        return
    with pytest.raises(InsecureEndpointError) as refused:
        form_target(text)
    assert "s3cr3t" not in str(refused.value)
    assert "\n" not in shown_endpoint(text)
