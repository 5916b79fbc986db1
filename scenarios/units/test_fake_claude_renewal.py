"""How the fake Claude renews a stored token, what it writes back, and what a refusal leaves; in a model world."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fake_runtimes.claude import unread
from fake_runtimes.claude.credentials import lookup_key
from fake_runtimes.claude.stored import MARGIN_SECONDS, granted, wants_renewal
from fake_runtimes.granting import Refused, tokens_of
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.plan import Plan, ToolCall, Turn
from fake_runtimes.profile import ClaudeProfile, load_profile
from fake_servers.mcp import Behaviour
from harness.world import Response, World
from harness.world.model import Fault
from harness.world.model.simulation import DEFAULT_START_SECONDS
from scenarios.claude_runs import CACHE_FILE, NEW, OLD, STORE_FILE, ClaudeRun
from scenarios.sign_in import SignInServer, as_json
from scenarios.sign_in import granted as grant

BOTH = pytest.mark.parametrize("profile", [OLD, NEW])
URL = "https://srv.test/mcp"
SERVER = LoadedServer("srv", "http", url=URL)
KEY = lookup_key(SERVER)
GUARDED = Behaviour(requires_bearer=("new",))
NOW_MS = int(DEFAULT_START_SECONDS * 1000)
HOUR_MS = 3_600_000
NEXT = grant("new", expires_in=3600, refresh_token="next", scope="read write")
PAGE = Response(503, {"Content-Type": "text/html"}, b"<html>later</html>")


def held(left_seconds: float = -10.0, **more: Any) -> dict[str, Any]:
    """A stored entry that can be renewed."""
    expires = NOW_MS + int(left_seconds * 1000)
    return {
        "accessToken": "old",
        "expiresAt": expires,
        "refreshToken": "once",
        "clientId": "c",
        "scope": "read",
        **more,
    }


def renewing(
    profile: str, entry: dict[str, Any], *grants: Response, behaviour: Behaviour = GUARDED, **run: Any
) -> ClaudeRun:
    """A run over one server whose credential is stored; `grants` are what its token endpoint answers, in order."""
    store = {"claudeAiOauth": {"kept": 1}, "mcpOAuth": {"other|1": {"accessToken": "x"}, KEY: entry}}
    env = {"MCP_CONNECTION_NONBLOCKING": "0", **run.pop("env", {})}
    return ClaudeRun(
        profile, {}, {"srv": behaviour}, files={STORE_FILE: json.dumps(store)}, grants=grants, env=env, **run
    )


def entry_of(run: ClaudeRun) -> dict[str, Any]:
    """What is stored after a run."""
    found: dict[str, Any] = json.loads(run.text(STORE_FILE))["mcpOAuth"][KEY]
    return found


def spent(run: ClaudeRun) -> list[str]:
    """The refresh tokens that were presented."""
    server = run.servers["srv"]
    assert isinstance(server, SignInServer)
    return [asked["refresh_token"] for asked in server.asked]


def bearers(run: ClaudeRun) -> list[str | None]:
    """What the requests to the server bore."""
    return [seen.headers.get("Authorization") for seen in run.servers["srv"].requests if seen.method == "POST"]


@pytest.mark.requirement("reconcile-runtimes-do-refresh")
@BOTH
def test_a_lapsed_token_is_renewed_before_it_is_shown_and_the_pair_is_written_back(profile):
    run = renewing(profile, held(harness=1), NEXT)
    assert run.statuses() == {"srv": "connected"}
    assert (spent(run), set(bearers(run))) == (["once"], {"Bearer new"})
    assert entry_of(run) == {
        "accessToken": "new",
        "refreshToken": "next",
        "clientId": "c",
        "scope": "read write",
        "expiresAt": NOW_MS + HOUR_MS,
        "harness": 1,
        "serverName": "srv",
        "serverUrl": URL,
    }
    whole = json.loads(run.text(STORE_FILE))
    assert (whole["claudeAiOauth"], whole["mcpOAuth"]["other|1"]) == ({"kept": 1}, {"accessToken": "x"})
    stat = run.simulation.tree.stat(STORE_FILE, 0)
    assert stat is not None
    assert stat.mode == 0o600


@pytest.mark.parametrize(("left_seconds", "renews"), [(299.9, True), (300.0, False), (-1.0, True)])
@BOTH
def test_a_token_is_renewed_with_less_than_five_minutes_left(profile, left_seconds, renews):
    both = Behaviour(requires_bearer=("old", "new"))
    assert spent(renewing(profile, held(left_seconds), NEXT, behaviour=both)) == (["once"] if renews else [])


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ({"refreshToken": "r", "expiresAt": (MARGIN_SECONDS - 1) * 1000}, True),
        ({"refreshToken": "r", "expiresAt": MARGIN_SECONDS * 1000}, False),
        ({"expiresAt": 0}, False),
        ({"refreshToken": "r"}, False),
        ({"refreshToken": "r", "expiresAt": "no time"}, False),
        ({"refreshToken": "r", "expiresAt": True}, False),
    ],
)
def test_what_wants_a_renewal(entry, wanted):
    assert wants_renewal(entry, 0.0) == wanted


@pytest.mark.parametrize(
    ("tokens", "after"),
    [
        ({}, {"refreshToken": "old-refresh"}),
        ({"refresh_token": "r2", "expires_in": 1.5}, {"refreshToken": "r2", "expiresAt": 11500}),
        ({"scope": "a b"}, {"refreshToken": "old-refresh", "scope": "a b"}),
        ({"expires_in": 0}, {"refreshToken": "old-refresh", "expiresAt": 10000}),
    ],
)
def test_what_a_grant_does_not_say_is_not_kept_but_for_the_refresh_token(tokens, after):
    entry = {"accessToken": "a", "refreshToken": "old-refresh", "expiresAt": 1, "scope": "s"}
    named = {"serverName": "srv", "serverUrl": URL, "accessToken": "b"}
    assert granted(entry, {"access_token": "b", **tokens}, SERVER, 10.0) == {**named, **after}


@BOTH
def test_a_token_that_is_refused_before_it_expires_is_renewed_once_and_the_request_sent_again(profile):
    run = renewing(profile, held(7200), NEXT)
    assert (run.statuses(), spent(run)) == ({"srv": "connected"}, ["once"])
    assert (bearers(run)[0], bearers(run)[1]) == ("Bearer old", "Bearer new")
    stamped = {"issuer": "https://srv.test/as"} if profile == NEW else {}
    assert {name: value for name, value in entry_of(run).items() if name == "issuer"} == stamped
    assert entry_of(run)["discoveryState"]["authorizationServerUrl"] == "https://srv.test/as"


@BOTH
def test_a_refused_grant_empties_the_entry_and_the_session_remembers_it_for_fifteen_minutes(profile):
    run = renewing(profile, held())
    assert (run.statuses(), spent(run)) == ({"srv": "needs-auth"}, ["once"])
    entry = entry_of(run)
    assert (entry["accessToken"], entry["expiresAt"], entry["clientId"]) == ("", 0, "c")
    assert "refreshToken" not in entry
    assert json.loads(run.text(CACHE_FILE)) == {"srv": {"timestamp": NOW_MS}}
    told = [text for level, text in run.log("srv") if "invalid_grant" in text and level == "debug"]
    assert told == [f"Token refresh failed with invalid_grant: {'invalid_grant' if profile == NEW else ''}"]


@BOTH
def test_a_refused_client_is_forgotten_with_its_tokens(profile):
    run = renewing(profile, held(), as_json({"error": "invalid_client"}, 401))
    assert run.statuses() == {"srv": "needs-auth"}
    assert {"accessToken", "serverName", "serverUrl", "discoveryState"} == set(entry_of(run))


@pytest.mark.parametrize(("profile", "times"), [(OLD, 7), (NEW, 11)])
def test_an_authorization_server_out_of_order_gets_the_same_refresh_token_many_times(profile, times):
    run = renewing(profile, held(), *[PAGE] * 20)
    assert (run.statuses(), spent(run)) == ({"srv": "needs-auth"}, ["once"] * times)
    assert entry_of(run)["refreshToken"] == "once"
    cached = json.loads(run.text(CACHE_FILE))["srv"]
    assert cached["ttlMs"] == 90_000
    pauses = [text for _, text in run.log("srv") if "retrying" in text][:2]
    assert pauses == [f"Token refresh failed, retrying in {n}000ms (attempt {n}/3)" for n in (1, 2)]


@pytest.mark.parametrize(("profile", "times"), [(OLD, 5), (NEW, 20)])
def test_an_answer_that_is_lost_has_the_refresh_token_spent_again_by_the_layer_below(profile, times):
    lost = [Fault("reset-after", port="http", label="POST https://srv.test/as/token", times=None)]
    run = renewing(profile, held(), *[NEXT] * 30, faults=lost)
    assert (run.statuses(), len(spent(run))) == ({"srv": "needs-auth"}, times)


@pytest.mark.parametrize(("profile", "status"), [(OLD, "needs-auth"), (NEW, "failed")])
def test_a_code_that_oauth_does_not_know_is_final_in_the_newer_version(profile, status):
    run = renewing(profile, held(7200), *[as_json({"error": "rate_limited"}, 429)] * 3)
    assert run.statuses() == {"srv": status}
    assert entry_of(run)["refreshToken"] == "once"


@BOTH
def test_without_a_client_one_is_registered_and_renews(profile):
    entry = held(7200)
    del entry["clientId"]
    run = renewing(profile, entry, NEXT)
    assert run.statuses() == {"srv": "connected"}
    assert run.servers["srv"].registered == 1
    assert (entry_of(run)["clientId"], entry_of(run)["redirectUri"]) == ("registered", "http://localhost:3118/callback")


@BOTH
def test_nobody_is_registered_for_a_server_without_a_credential(profile):
    run = ClaudeRun(profile, {}, {"srv": GUARDED})
    assert (run.statuses(), run.servers["srv"].registered) == ({"srv": "needs-auth"}, 0)
    assert entry_of(run)["accessToken"] == ""


def another(token: str, at_seconds: float):
    """Another process that puts its own pair into the store."""

    async def push(world: World) -> None:
        await world.clock.sleep(at_seconds)
        pair = held(3600, accessToken=token, refreshToken="other")
        await world.files.write_atomic(STORE_FILE, json.dumps({"mcpOAuth": {KEY: pair}}).encode())

    return push


@BOTH
def test_tokens_that_came_into_the_store_meanwhile_are_as_good_as_new_ones(profile):
    refused = as_json({"error": "invalid_grant"}, 400)._replace(after_seconds=1.0)
    run = renewing(profile, held(), refused, beside=another("new", 0.5))
    assert (run.statuses(), spent(run)) == ({"srv": "connected"}, ["once"])
    assert (entry_of(run)["accessToken"], entry_of(run)["refreshToken"]) == ("new", "other")


@BOTH
def test_a_renewal_that_is_granted_overwrites_what_came_meanwhile(profile):
    run = renewing(profile, held(), NEXT._replace(after_seconds=1.0), beside=another("pushed", 0.5))
    assert (entry_of(run)["accessToken"], entry_of(run)["refreshToken"]) == ("new", "next")


@BOTH
def test_after_a_refusal_the_refresh_token_that_came_meanwhile_is_spent_as_well(profile):
    refused = as_json({"error": "invalid_grant"}, 400)._replace(after_seconds=1.0)
    both = Behaviour(requires_bearer=("new", "good"))
    run = renewing(profile, held(7200), refused, behaviour=both, beside=another("good", 0.5))
    assert spent(run) == ["once", "other"]
    assert run.statuses() == {"srv": "connected" if profile == NEW else "failed"}
    assert entry_of(run)["refreshToken"] == "other"


@BOTH
def test_a_call_whose_token_is_refused_goes_through_with_a_new_one(profile):
    plan = Plan((Turn((ToolCall("srv", "echo"),), seconds=3.0),))
    revoked = Fault("answer", port="http", label=f"POST {URL}", after_seconds=1.0, answer=Response(401), times=1)
    run = renewing(profile, held(7200), NEXT, behaviour=Behaviour(), plan=plan, faults=[revoked])
    assert (run.events("tool.call")[0]["ok"], spent(run)) == (True, ["once"])


@BOTH
def test_two_processes_ask_for_one_token(profile):
    slow = NEXT._replace(after_seconds=1.0)
    run = renewing(profile, held(), slow, beside=second(profile))
    assert (run.statuses(), spent(run)) == ({"srv": "connected"}, ["once"])
    assert set(bearers(run)) == {"Bearer new"}


@BOTH
def test_whoever_waited_and_finds_an_emptied_entry_presents_nothing(profile):
    refused = as_json({"error": "invalid_grant"}, 400)._replace(after_seconds=1.0)
    run = renewing(profile, held(), refused, beside=second(profile))
    assert spent(run) == ["once"]
    assert run.statuses() == {"srv": "needs-auth"}


def second(profile: str):
    """Another Claude at the same time."""
    from fake_runtimes.claude.command import program

    async def run(world: World) -> None:
        await program(load_profile(profile), Plan())(world, ("claude", "mcp", "list"))

    return run


# --- an answer that cannot be read


@pytest.mark.parametrize(
    ("members", "expires_in"),
    [
        ({}, None),
        ({"expires_in": "3600"}, 3600),
        ({"expires_in": " 1.5e1 "}, 15),
        ({"expires_in": None}, 0),
        ({"expires_in": True}, 1),
        ({"expires_in": ""}, 0),
        ({"expires_in": []}, 0),
    ],
)
def test_a_time_of_new_tokens_is_the_number_that_javascript_makes_of_it(members, expires_in):
    answer = as_json({"access_token": "a", "token_type": "mac", **members})
    tokens = tokens_of(answer)
    assert not isinstance(tokens, Refused)
    assert tokens.get("expires_in") == expires_in


@pytest.mark.parametrize(
    "members",
    [
        {"access_token": None},
        {"access_token": 1},
        {"token_type": None},
        {"refresh_token": None},
        {"refresh_token": 5},
        {"id_token": 5},
        {"scope": ["read"]},
        {"expires_in": "one hour"},
        {"expires_in": {}},
    ],
)
def test_what_does_not_fit_is_no_pair_and_nothing_that_passes_by_itself(members):
    whole = {"access_token": "a", "token_type": "Bearer", "refresh_token": "r", "scope": "s", **members}
    answer = as_json(whole)
    assert tokens_of(answer) == Refused("", "", passing=False, unread=answer)
    assert tokens_of(as_json(whole, 503)) == Refused("", "", passing=True, unread=as_json(whole, 503))


CUT = b'{"access_token": "at-1234", "refresh_token": "rt-98'


@pytest.mark.parametrize(
    ("profile", "why"), [(OLD, "Failed to parse JSON"), (NEW, "JSON Parse error: Unterminated string")]
)
def test_a_pair_that_is_cut_off_is_asked_for_once_in_each_renewal_and_its_tokens_are_not_told(profile, why):
    run = renewing(profile, held(), *[Response(200, {"Content-Type": "application/json"}, CUT)] * 20)
    assert (run.statuses(), spent(run)) == ({"srv": "needs-auth"}, ["once"] * 3)
    assert entry_of(run)["refreshToken"] == "once"
    told = {text for _, text in run.log("srv") if "Token refresh failed: " in text}
    assert told == {f"Token refresh failed: {why}"}


@BOTH
def test_a_refusal_that_is_cut_off_is_told_without_what_is_called_like_a_secret(profile):
    run = renewing(profile, held(), *[Response(400, {}, CUT)] * 20)
    told = {text for _, text in run.log("srv") if "Raw body" in text}
    body = 'Raw body: {"access_token": "[REDACTED]", "refresh_token": [REDACTED]'
    assert {text.partition(". ")[2] for text in told} == {body}


def words(answer: Response, profile: str) -> str:
    """What a version of Claude says of an answer that it cannot read."""
    loaded = load_profile(profile)
    assert isinstance(loaded, ClaudeProfile)
    return unread.words(answer, loaded)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "Unexpected EOF"),
        (b'{"a":', "Unexpected EOF"),
        (b"<html>", "Unrecognized token '<'"),
        (b"oops=1", 'Unexpected identifier "oops"'),
        (b'{"a": 1', "Expected '}'"),
        (b'{"a": 1, ', "Property name must be a string literal"),
        (b'{"a"', "Expected ':' before value in object property definition"),
        (b"{}{}", "Unable to parse JSON string"),
    ],
)
def test_a_refusal_that_is_no_json_is_told_in_the_words_of_the_programs_engine(body, why):
    told = words(Response(400, {}, body), NEW)
    assert told.startswith(f"HTTP 400: Invalid OAuth error response: SyntaxError: JSON Parse error: {why}. Raw body: ")


def test_an_empty_pair_is_told_alike_by_all_and_one_that_does_not_fit_with_its_types_by_the_newer():
    assert words(Response(204), OLD) == "Unexpected end of JSON input"
    fault = {"expected": "object", "code": "invalid_type", "path": []}
    for profile, message in ((OLD, "Invalid input"), (NEW, "Invalid input: expected object, received array")):
        told = words(Response(200, {}, b"[]"), profile).removeprefix("token response rejected by SDK schema: ")
        assert json.loads(told) == [{**fault, "message": message}]
