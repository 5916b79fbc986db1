"""Remote servers in a run of the fake Pi: tokens, the words of failures, probes, the older transport."""

from __future__ import annotations

import hashlib
import json

import pytest

from fake_runtimes.plan import Plan
from fake_servers.mcp import Behaviour, HttpServer
from harness.world import Response
from harness.world.model import Fault
from scenarios.sign_in import SignInServer
from scenarios.units.fake_pi_run import BOTH, HOME, run_pi, turn

URL = "https://mcp.test/mcp"
ORIGIN = "https://mcp.test"
GATEWAY = ["mcp", "mcpScript"]
ACCOUNT = f"sha256-{hashlib.sha256(b's').hexdigest()}"
HANDED_IN = f"{HOME}/.pi/agent/mcp-oauth/{ACCOUNT}/tokens.json"
KEPT = f"/run/keyring/pi-mcp-adapter.oauth/{ACCOUNT}"
NEEDS_AUTH = ["MCP: Failed to connect to s: OAuth authentication required. Run /mcp-auth s."]
CHALLENGE = {"WWW-Authenticate": "Bearer"}
LOCKED = Behaviour(requires_bearer=("AT1",))
UNDETERMINED = "authentication may be required; MCP endpoint shape could not be determined"
NO_MCP = "this URL does not appear to speak MCP"
POSTING = "Error POSTing to endpoint: "
BY_PROFILE = pytest.mark.parametrize("profile", BOTH, ids=lambda profile: profile.version)


def credential(access="AT1", url=URL):
    return json.dumps({"tokens": {"accessToken": access, "expiresAt": 1}, "serverUrl": url}, separators=(",", ":"))


def remote(server, entry=None, **options):
    return run_pi({"s": {"url": URL, **(entry or {})}}, servers={ORIGIN: server}, **options)


def methods(server):
    """What the server was asked, by method and JSON-RPC method."""
    return [(seen.method, seen.rpc_method) for seen in server.requests]


@BY_PROFILE
def test_a_good_remote_server_is_greeted_once_and_offered(profile):
    server = HttpServer(Behaviour(supports_get=True))
    ran = remote(server, profile=profile, plan=Plan((turn(("s", "echo")),)))
    assert ran.calls() == ["ok"]
    assert ran.requests() == [(0.0, [*GATEWAY, "mcp__s"])]
    posted = ["initialize", "notifications/initialized", "tools/list", "tools/call"]
    assert [method for verb, method in methods(server) if verb == "POST"] == posted
    assert [verb for verb, method in methods(server) if method is None] == ["GET"]
    assert server.requests[0].headers["User-Agent"] == "undici"


def test_an_eager_remote_server_gets_two_initialize():
    server = HttpServer()
    remote(server, {"lifecycle": "eager"})
    assert methods(server).count(("POST", "initialize")) == 2


@BY_PROFILE
def test_a_token_that_is_handed_in_is_sent_taken_over_and_its_file_removed(profile):
    server = SignInServer(LOCKED)
    ran = remote(server, profile=profile, files={HANDED_IN: credential()})
    assert ran.stderr == []
    assert {seen.headers.get("Authorization") for seen in server.requests} == {"Bearer AT1"}
    assert ran.file(HANDED_IN) is None
    assert ran.file(KEPT) == credential()
    again = remote(SignInServer(LOCKED), files={KEPT: credential()})
    assert again.stderr == []


@BY_PROFILE
def test_what_the_store_holds_beats_the_file_which_is_removed_unread(profile):
    server = SignInServer(LOCKED)
    ran = remote(server, profile=profile, files={HANDED_IN: credential(), KEPT: credential("dead")})
    assert ran.stderr == NEEDS_AUTH
    assert ran.file(HANDED_IN) is None
    assert json.loads(ran.file(KEPT))["tokens"]["accessToken"] == "dead"


@BY_PROFILE
def test_a_token_for_another_url_is_none_and_its_file_is_gone(profile):
    ran = remote(SignInServer(LOCKED), profile=profile, files={HANDED_IN: credential(url=f"{URL}/")})
    assert (ran.stderr, ran.file(HANDED_IN)) == (NEEDS_AUTH, None)


@pytest.mark.parametrize(
    ("env", "settings", "place"),
    [
        ({"MCP_OAUTH_DIR": " /tokens "}, {"oauthDir": "elsewhere"}, "/tokens"),
        ({}, {"oauthDir": "elsewhere"}, "/clone/elsewhere"),
        ({"PI_CODING_AGENT_DIR": "/agent"}, {}, "/agent/mcp-oauth"),
    ],
)
def test_the_directory_of_handed_in_tokens_is_found(env, settings, place):
    files = {f"{place}/{ACCOUNT}/tokens.json": credential()}
    assert remote(SignInServer(LOCKED), env=env, settings=settings, files=files).stderr == []


def test_a_store_that_cannot_be_read_fails_the_server_and_keeps_the_file():
    locked = [Fault("eacces", port="files", label=f"read {KEPT}")]
    ran = remote(SignInServer(LOCKED), files={HANDED_IN: credential()}, faults=locked)
    store = "Failed to read OAuth credentials for s from the OS secure credential store"
    probe = f"probe: endpoint returned text/plain (401) — {UNDETERMINED}"
    assert ran.stderr == [f"MCP: Failed to connect to s: {store} — {probe}"]
    assert ran.file(HANDED_IN) == credential()


@BY_PROFILE
def test_a_server_that_wants_a_token_is_not_offered_and_tells_how_to_get_one(profile):
    plan = Plan((turn(("s", "echo")),))
    ran = remote(SignInServer(LOCKED), profile=profile, plan=plan)
    assert ran.stderr == NEEDS_AUTH
    assert ran.requests() == [(0.0, GATEWAY)]
    how = 'Run mcp({ action: "auth-start", server: "s" }) to get a browser URL'
    where = "or /mcp-auth s in an interactive local session."
    assert ran.calls() == [f'Server "s" requires OAuth authentication. {how}, {where}']
    own = remote(SignInServer(LOCKED), plan=plan, settings={"authRequiredMessage": "Ask ops about ${server}."})
    assert own.calls() == ["Ask ops about s."]


STATIC = {"headers": {"X-Key": "k"}}
HTML = "text/html; charset=utf-8"


@BY_PROFILE
@pytest.mark.parametrize(
    ("behaviour", "entry", "words", "shape"),
    [
        (
            Behaviour(status=401, body='{"e":1}'),
            STATIC,
            POSTING + '{"e":1}',
            f"application/json (401) — {UNDETERMINED}",
        ),
        (Behaviour(status=401, body="x"), {"auth": False}, POSTING + "x", f"text/plain (401) — {UNDETERMINED}"),
        (Behaviour(status=403, body="no"), {"oauth": False}, POSTING + "no", f"text/plain (403) — {NO_MCP}"),
        (Behaviour(status=500, body="<p>", content_type=HTML), {}, POSTING + "<p>", f"HTML (500) — {NO_MCP}"),
        (Behaviour(status=404), {}, "SSE error: Non-200 status code (405)", f"an untyped response (405) — {NO_MCP}"),
    ],
)
def test_an_error_status_is_told_with_what_its_probes_found(profile, behaviour, entry, words, shape):
    server = HttpServer(behaviour)
    ran = remote(server, entry, profile=profile)
    assert ran.stderr == [f"MCP: Failed to connect to s: {words} — probe: endpoint returned {shape}"]
    asked_again = ["initialize"] if behaviour.status in (401, 404) else []
    assert probes(server) == ["server/discover", *asked_again, *([None] if behaviour.status == 404 else [])]


def test_a_server_that_is_busy_is_not_probed():
    server = HttpServer(Behaviour(status=503, body="later"))
    ran = remote(server, plan=Plan((turn(("s", "echo")),)))
    assert ran.stderr == ["MCP: s temporarily unavailable (HTTP 503); retry later"]
    assert ran.calls() == ['Server "s" not available (last failed 1s ago)']
    assert probes(server) == []


def probes(server):
    """The requests that came without the client's own headers."""
    return [seen.rpc_method for seen in server.requests if "User-Agent" not in seen.headers]


@pytest.mark.parametrize("status", [404, 405, 406, 415])
def test_the_older_transport_is_tried_after_some_answers(status):
    class Older(HttpServer):
        def handle(self, request, now, who):
            response = super().handle(request, now, who)
            posted_to_stream = request.method == "POST" and "session_id" not in request.url
            return response._replace(status=status) if posted_to_stream else response

    ran = remote(Older(transport="sse"), plan=Plan((turn(("s", "echo")),)))
    assert (ran.stderr, ran.calls()) == ([], ["ok"])


def test_the_transport_of_an_entry_may_be_the_older_one():
    server = HttpServer(transport="sse")
    assert remote(server, {"httpTransport": "sse"}).stderr == []
    assert server.requests[0].method == "GET"
    posted = HttpServer(transport="sse")
    remote(posted, {"type": "sse"})
    assert posted.requests[0].method == "POST"


@pytest.mark.parametrize("action", ["refused", "dns", "reset-before"])
def test_a_connection_that_cannot_be_made_is_a_failed_fetch(action):
    ran = remote(HttpServer(), faults=[Fault(action, port="http")])
    assert ran.stderr == ["MCP: Failed to connect to s: fetch failed"]


def test_a_remote_server_that_hangs_is_given_up_at_its_budget_and_probed_in_vain():
    server = HttpServer(Behaviour(initialize="never", discover="never"))
    ran = remote(server, {"requestTimeoutMs": 7000}, plan=Plan((turn(seconds=60.0),)))
    assert ran.stderr == ["MCP: Failed to connect to s: Request timed out"]
    assert ran.failures() == [("s", 12.0)]


def test_a_token_that_dies_under_a_live_connection_fails_the_call_alone():
    server = SignInServer(LOCKED)
    revoked = [Fault("answer", port="http", label=f"POST {URL}", after_seconds=0.5, answer=Response(401, CHALLENGE))]
    plan = Plan((turn(("s", "echo")), turn()))
    ran = remote(server, files={HANDED_IN: credential()}, faults=revoked, plan=plan)
    assert ran.calls()[0].startswith(
        "Failed to call tool: Re-authentication required for MCP server: s\n\nExpected parameters:"
    )
    assert ran.requests()[1][1] == [*GATEWAY, "mcp__s"]
