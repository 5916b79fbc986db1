"""No byte goes to a token or registration endpoint without https: a plain socket counts who connects to it."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from harness.scenario.process.stage import ProcessStage
from harness.scenario.production import play
from harness.scenario.reading import read_scenario
from harness.scenario.tiers import PROCESS
from harness.scenario.variants import find_variant, in_place
from harness.scenario.verdicts import Verdict
from scenarios.listening import Listener
from scenarios.playing import slower, told

CLEARTEXT = ("http://127.0.0.1:9155", "http://localhost:9155", "http://afar.test")
HEAD = """
schema = 1
id = "wire"
title = "Endpoints that others can read"
runtime = ["claude", "codex", "pi"]
app_host = "zimmer.example.com"
struck = ["tickets"]
time_scale = 50

[catalog.tickets]
type = "streamable-http"
url = "https://tickets.test/mcp"

[authorization.desk-as]
provider = "well-behaved"

[authorization.read-by-others]
issuer = "{origin}"

[server.tickets]
protected_by = "desk-as"
"""
DISCOVERED = """
[authorization.desk-as.set.metadata]
{endpoint}_endpoint = "{origin}/{path}"

[[step]]
start = "S"

[[step]]
authorize = "tickets"
session = "S"

[[step]]
authorize = "tickets"

[[step]]
job = "refresh"

[[expect]]
event = "oauth.refused"
times = 2

[[expect]]
event = "session.blocked"
where = { servers = "tickets" }
times = 1

[[expect]]
received = "desk-as"
method = "authorize"
never = true
"""
STORED = """
[[credential]]
server = "tickets"
issued_by = "read-by-others"
expires_in_seconds = {seconds}
held_by = ["orchestrator"]

[[step]]
job = "refresh"

[[step]]
start = "S"

[[expect]]
event = "credential.refreshed"
never = true

[[expect]]
received = "read-by-others"
never = true
"""
REGISTERED = """
[registered.tickets]
client_id = "ours"
client_secret = "a-secret-of-ours"
authorization_endpoint = "https://desk-as.test/authorize"
token_endpoint = "{origin}/token"

[[step]]
authorize = "tickets"

[[expect]]
event = "oauth.refused"
where = { server = "tickets", text = "*is not https*" }
times = 1
"""
WAYS = {
    "a discovered token endpoint": DISCOVERED.replace("{endpoint}", "token").replace("{path}", "token"),
    "a discovered registration endpoint": DISCOVERED.replace("{endpoint}", "registration").replace(
        "{path}", "register"
    ),
    "the token endpoint of a client by hand": REGISTERED,
    "a stored row that is due": STORED.replace("{seconds}", "60"),
    "a stored row that has lapsed": STORED.replace("{seconds}", "-60"),
}
REGISTRATION = "a discovered registration endpoint"


@pytest.fixture
def listener(monkeypatch):
    """A socket behind every origin without https, whatever else would be there."""
    with Listener() as listener:
        served = ProcessStage.served

        @contextmanager
        def with_the_socket(stage):
            with served(stage) as endpoints:
                yield {origin: listener.port if origin in CLEARTEXT else port for origin, port in endpoints.items()}

        monkeypatch.setattr(ProcessStage, "served", with_the_socket)
        yield listener


def run(way: str, origin: str, runtime: str = "claude"):
    """Real processes, asked to send there."""
    return play(asked_to_send(way, origin), runtime, tier=PROCESS)


def run_in_time(way: str, origin: str, runtime: str = "claude"):
    """The same; where it does not pass, what comes of it with more time."""
    report = run(way, origin, runtime)
    if report.verdict is Verdict.PASS:
        return report
    return play(slower(asked_to_send(way, origin)), runtime, tier=PROCESS)


def asked_to_send(way: str, origin: str):
    """The scenario."""
    return read_scenario((HEAD + WAYS[way]).replace("{origin}", origin))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "origin", [CLEARTEXT[0], *(pytest.param(each, marks=pytest.mark.nightly) for each in CLEARTEXT[1:])]
)
def test_nobody_connects_to_an_endpoint_without_https(origin, way, listener):
    report = run_in_time(way, origin)
    assert report.verdict is Verdict.PASS, told(report)
    assert listener.connections == 0


@pytest.mark.parametrize("runtime", ["codex", "pi"])
def test_nobody_connects_on_the_other_runtimes_either(runtime, listener):
    for way in WAYS:
        report = run_in_time(way, CLEARTEXT[0], runtime)
        assert report.verdict is Verdict.PASS, (way, *told(report))
    assert listener.connections == 0


def test_the_socket_is_where_an_unguarded_registration_goes(listener):
    """With one guard gone the socket is connected to: so it is what the others are kept from."""
    with in_place(find_variant("https_transport.tls_is_a_flag")):
        run(REGISTRATION, CLEARTEXT[0])
    assert listener.connections > 0


@pytest.mark.parametrize(
    "bug",
    [
        "oauth_authorize.http_will_do",
        "https_transport.a_local_server_may_stay_in_cleartext",
        "https_transport.tls_is_a_flag",
        "https_transport.the_form_is_sent_before_it_is_refused",
        "https_rows.the_request_comes_before_the_check",
    ],
)
def test_no_single_guard_alone_keeps_tokens_from_it(bug, listener):
    with in_place(find_variant(bug)):
        for way in set(WAYS) - {REGISTRATION}:
            run(way, CLEARTEXT[0])
    assert listener.connections == 0
