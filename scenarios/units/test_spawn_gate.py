"""The OAuth check before a spawn: who is looked at, who blocks, who is asked, and what reaches the runtime's store."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from harness.reference.catalog.entry import read_entry
from harness.reference.credentials import table
from harness.reference.credentials.row import TABLE
from harness.reference.oauth.requirement import TABLE as REQUIREMENTS
from harness.reference.oauth.settings import OAuthSettings
from harness.reference.oauth.transport import REQUEST_TIMEOUT_SECONDS
from harness.reference.prepare.request import Prepared, Record
from harness.reference.session import gate
from harness.reference.session.gate import PROBE_LIMIT_SECONDS, is_listed, listed_servers
from harness.reference.session.job import run_session
from harness.reference.session.prepare import PreparedClone, prepare_with_retries
from harness.world import Response
from harness.world.model import Fault
from scenarios.units.oauth_run import START_SECONDS
from scenarios.units.spawn_gate_run import (
    CACHE,
    CLONE,
    HOME,
    HOUR,
    JSON,
    STORE,
    TOKEN,
    Session,
    answers_json,
    credential,
    key_of,
    order_of,
    refuses,
    remote,
    serves,
    stdio,
)

NOTION, LINEAR = remote("notion"), remote("linear")
RENEWED = answers_json(200, access_token="renewed", refresh_token="next", expires_in=3600)
ENDPOINTS = {
    "issuer": "https://notion.test",
    "authorization_endpoint": "https://notion.test/authorize",
    "token_endpoint": "https://notion.test/token",
    "registration_endpoint": "https://notion.test/register",
}
METADATA = {"GET https://notion.test/.well-known/oauth-authorization-server": answers_json(200, **ENDPOINTS)}
SILENT = Response(200, JSON, b"{}", after_seconds=100_000.0)


# --- when


@pytest.mark.requirement("gate-runs-before-every-spawn")
def test_every_turn_is_checked_before_its_process_starts():
    async def three_turns(world, order):
        await run_session(world, order)
        await table.change(world, key_of(NOTION, "notion"), lambda _: credential("notion"))
        await run_session(world, order)
        await world.files.remove(STORE)
        await table.change(world, key_of(NOTION, "notion"), lambda _: credential("notion", -1.0, refresh_token=None))
        await run_session(world, order_of({"notion": NOTION}, follow_up="and now this"))

    session = Session({"notion": NOTION}, refuses("notion"), program=three_turns)
    ends = [event.name for event in session.ran.events if event.name in ("session.blocked", "spawn", "session.ended")]
    assert ends == [
        *("session.blocked", "session.ended"),
        *("spawn", "session.ended"),
        *("session.blocked", "session.ended"),
    ]
    assert session.row["status"] == "failed"


# --- who is looked at


@pytest.mark.requirement("gate-looks-at-remote-types-only")
def test_the_three_remote_types_are_looked_at_and_a_program_never_is():
    catalog = {
        "files": stdio(),
        "a": remote("a", type="http"),
        "b": remote("b", type="streamable-http"),
        "c": remote("c", type="sse"),
    }
    session = Session(catalog, {**serves("a"), **serves("b"), **serves("c")})
    assert list(session.verdicts) == ["a", "b", "c"]
    assert not any("files" in request for request in session.asked)
    assert session.spawns == 1


@pytest.mark.requirement("gate-looks-at-remote-types-only")
def test_a_server_that_streams_blocks_as_any_other_without_a_credential():
    session = Session({"old": remote("old", type="sse")}, refuses("old"))
    assert (session.spawns, session.required) == (0, ["old"])


@pytest.mark.requirement("gate-skips-static-header-servers")
@pytest.mark.parametrize(
    ("headers", "listed"),
    [
        ({"authorization": "Bearer t"}, False),
        ({"X-API-Key": "${ZIMMER_PROD_API_KEY}"}, False),
        ({"X-Trace-Id": "1"}, True),
        ({"Authorization": ""}, True),
        ({}, True),
    ],
)
def test_a_server_with_a_key_of_its_own_is_neither_asked_nor_able_to_block(headers, listed):
    entry = remote("keyed", headers=headers)
    lookup = {"ZIMMER_PROD_API_KEY": "k"}.get
    dead = credential("keyed", -1.0, entry, lookup=lookup, refresh_token=None)
    session = Session({"keyed": entry}, refuses("keyed"), credentials=[dead], lookup=lookup)
    assert is_listed(read_entry("keyed", entry)) is listed
    assert session.spawns == (0 if listed else 1)
    assert ("keyed" in session.verdicts) is listed
    assert session.asked == []


@pytest.mark.requirement("gate-skips-declared-unavailable")
def test_a_declared_server_costs_its_own_tools_and_parks_nobody():
    catalog = {"notion": remote("notion", unavailable="No OAuth discovery."), "linear": LINEAR}
    session = Session(catalog, {**refuses("notion"), **serves("linear")})
    assert list(session.verdicts) == ["linear"]
    assert not any("notion" in request for request in session.asked)
    assert session.spawns == 1
    assert session.row.get("status") != "failed"


@pytest.mark.requirement("gate-selection-is-session-set")
def test_only_what_the_session_selects_is_judged_its_plugins_included():
    catalog = {name: remote(name) for name in ("a", "b", "c")}
    refused = {**refuses("a"), **refuses("b"), **refuses("c")}
    nothing = Session(catalog, refused, chosen=())
    assert (nothing.spawns, nothing.verdicts, nothing.asked) == (1, {}, [])
    plugin = Session(catalog, refused, chosen=(), plugin_servers=("b",))
    assert (plugin.spawns, plugin.verdicts, plugin.required) == (0, {"b": "blocked"}, ["b"])


@pytest.mark.requirement("gate-excludes-injected-servers")
def test_a_server_that_was_injected_is_not_listed_whatever_its_entry_says():
    order = order_of({"notion": NOTION, "zimmer-self-session": remote("zimmer-self-session")})
    servers: dict[str, dict[str, str]] = {name: {} for name in ("notion", "zimmer-self-session")}
    prepared = Prepared((), servers, ("zimmer-self-session",), (), Record(), (), ())
    ready = PreparedClone(prepared, None, {}, ("notion", "zimmer-self-session"), frozenset())
    assert [server.name for server in listed_servers(order, ready)] == ["notion"]


NUMBER_IN_HEADERS = {"headers": {"X-Trace": 1}}
NUMBER_AS_CLIENT = {"oauth": {"clientId": 5}}
DECLARED = {"unavailable": "No OAuth discovery."}


@pytest.mark.requirement("gate-skips-declared-unavailable")
@pytest.mark.parametrize(
    ("runtime", "name", "more", "asked"),
    [
        ("codex", "a.b", {}, False),
        ("claude", "a.b", {}, True),
        ("pi", "a.b", {}, True),
        ("claude", "workspace", {}, False),
        ("codex", "workspace", {}, True),
        ("pi", "workspace", {}, True),
        ("codex", "notion", NUMBER_IN_HEADERS, False),
        ("claude", "notion", NUMBER_IN_HEADERS, True),
        ("codex", "notion", NUMBER_AS_CLIENT, False),
        ("claude", "notion", NUMBER_AS_CLIENT, True),
        ("codex", "notion", DECLARED, False),
    ],
)
def test_nobody_is_asked_to_sign_in_for_a_server_that_the_sessions_runtime_cannot_have(runtime, name, more, asked):
    session = Session({name: remote(name, **more), "linear": LINEAR}, refuses(name), runtime=runtime)
    assert (session.spawns, session.required) == ((0, [name]) if asked else (1, []))
    assert (f"GET https://{name}.test/mcp" in session.asked) is asked


@pytest.mark.requirement("gate-excludes-injected-servers")
def test_a_session_with_an_injected_server_alone_asks_nobody():
    session = Session({"files": stdio()}, default_subagent_roots=("root",))
    assert (session.spawns, session.asked, session.verdicts) == (1, [], {})


# --- what is stored


@pytest.mark.requirement("gate-valid-credential-skips-probe")
@pytest.mark.parametrize("seconds", [HOUR, None])
def test_an_active_credential_passes_without_a_request_and_reaches_the_store(seconds):
    session = Session({"notion": NOTION}, refuses("notion"), credentials=[credential("notion", seconds)])
    assert (session.spawns, session.asked) == (1, [])
    assert session.tokens() == {"notion": "access-of-notion"}
    assert session.verdicts == {"notion": "usable"}


@pytest.mark.requirement("gate-valid-credential-skips-probe")
@pytest.mark.parametrize(
    ("runtime", "path"),
    [
        ("claude", STORE),
        ("codex", f"{HOME}/.codex/.credentials.json"),
    ],
)
def test_the_store_that_is_written_is_the_one_that_the_started_process_reads(runtime, path):
    kept = {"notion": NOTION}
    session = Session(kept, refuses("notion"), credentials=[credential("notion")], runtime=runtime)
    assert "access-of-notion" in (session.text(path) or "")
    elsewhere = {"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME"}[runtime]
    moved = Session(
        kept,
        refuses("notion"),
        credentials=[credential("notion")],
        runtime=runtime,
        files={f"{CLONE}/.env": f"{elsewhere}=/var/agent\n"},
    )
    assert "access-of-notion" in (moved.text("/var/agent/.credentials.json") or "")
    assert moved.text(path) is None


@pytest.mark.requirement("gate-expired-refresh-before-judging")
def test_an_expired_credential_is_renewed_once_and_then_judged():
    session = Session({"notion": NOTION}, {f"POST {TOKEN}": RENEWED}, credentials=[credential("notion", -HOUR)])
    assert (session.spawns, session.posts, session.asked) == (1, 1, [f"POST {TOKEN}"])
    assert session.tokens() == {"notion": "renewed"}


@pytest.mark.requirement("gate-expired-refresh-before-judging", "gate-requires-reauth-blocks")
def test_a_refused_renewal_blocks():
    session = Session(
        {"notion": NOTION},
        {f"POST {TOKEN}": answers_json(401, error="invalid_grant"), **serves("notion")},
        credentials=[credential("notion", -HOUR)],
    )
    assert (session.spawns, session.posts, session.required) == (0, 1, ["notion"])
    assert session.asked == [f"POST {TOKEN}"]


@pytest.mark.requirement("gate-expired-refresh-before-judging")
def test_what_the_runtime_has_renewed_is_taken_over_before_anything_is_posted():
    row = credential("notion", -HOUR)
    entry = {
        "serverName": "notion",
        "serverUrl": NOTION["url"],
        "accessToken": "rotated",
        "refreshToken": "head-of-the-chain",
        "expiresAt": int((START_SECONDS + HOUR) * 1000),
    }
    session = Session(
        {"notion": NOTION},
        {f"POST {TOKEN}": RENEWED},
        credentials=[row],
        files={STORE: json.dumps({"mcpOAuth": {row.runtime_keys["claude"]: entry}})},
    )
    assert (session.spawns, session.posts) == (1, 0)
    assert session.tokens() == {"notion": "rotated"}
    assert (session.ran.row(TABLE, row.credential_key) or {})["refresh_token"] == "head-of-the-chain"


@pytest.mark.requirement("gate-near-expiry-not-blocking")
def test_a_credential_that_expires_soon_passes_the_gate_untouched_and_is_renewed_when_it_is_injected():
    soon = [credential("notion", 600.0)]

    async def judged(world, order):
        return await gate.check(world, order, await prepare_with_retries(world, order))

    checked = Session({"notion": NOTION}, {f"POST {TOKEN}": RENEWED}, credentials=soon, program=judged)
    assert (checked.ran.result.blocked, checked.posts) == ((), 0)
    whole = Session({"notion": NOTION}, {f"POST {TOKEN}": RENEWED}, credentials=soon)
    assert (whole.spawns, whole.posts, whole.tokens()) == (1, 1, {"notion": "renewed"})
    failing = Session({"notion": NOTION}, {f"POST {TOKEN}": Response(503)}, credentials=soon)
    assert (failing.spawns, failing.posts, failing.tokens()) == (1, 1, {"notion": "access-of-notion"})


@pytest.mark.requirement("gate-requires-reauth-blocks")
@pytest.mark.parametrize(
    "more",
    [
        {"refresh_token": None},
        {"token_endpoint": "http://as.test/t"},
        {"token_endpoint": None},
        {"token_endpoint": "  "},
    ],
)
def test_what_cannot_be_renewed_blocks_without_a_request(more):
    row = replace(credential("notion", -HOUR), **more)
    session = Session(
        {"notion": NOTION},
        serves("notion"),
        more_rows={(TABLE, row.credential_key): {**asdict(row), "runtime_keys": dict(row.runtime_keys)}},
    )
    assert (session.spawns, session.asked, session.required) == (0, [], ["notion"])


@pytest.mark.requirement("gate-refresh-failed-blocks", "gate-expired-refresh-before-judging")
@pytest.mark.parametrize("action", ["slow", "refused", "reset-after"])
def test_a_renewal_that_fails_for_now_blocks_without_a_probe_and_keeps_the_token(action):
    row = credential("notion", -HOUR)
    session = Session(
        {"notion": NOTION},
        {f"POST {TOKEN}": RENEWED, **serves("notion")},
        credentials=[row],
        faults=[Fault(action, label=f"POST {TOKEN}", seconds=1000.0)],
    )
    assert (session.spawns, session.required) == (0, ["notion"])
    assert not any(request.startswith("GET") for request in session.asked)
    assert (session.ran.row(TABLE, row.credential_key) or {})["refresh_token"] == "refresh-of-notion"
    assert "could not be renewed now" in session.metadata["oauth_required_servers"][0]["error"]


@pytest.mark.requirement("gate-preregistered-blocks-no-probe")
def test_a_client_that_was_registered_by_hand_is_itself_the_answer():
    client = {
        "client_id": "123.456",
        "authorization_endpoint": "https://slack.test/authorize",
        "token_endpoint": "https://slack.test/token",
    }
    session = Session(
        {"slack": remote("slack")},
        {"GET https://slack.test/mcp": Response(400)},
        oauth=OAuthSettings(registered={"slack": client}),
    )
    assert (session.spawns, session.required, session.asked) == (0, ["slack"], [])
    stays = Session(
        {"slack": remote("slack")},
        {"GET https://slack.test/mcp": Response(400)},
        oauth=OAuthSettings(registered={"slack": {"client_id": "123.456"}}),
    )
    assert (stays.spawns, len(stays.asked) > 0) == (1, True)


# --- asking


@pytest.mark.requirement("gate-probes-live-when-unknown")
@pytest.mark.parametrize(
    ("recorded", "answers", "spawns"),
    [
        ("advertised_not_required", refuses("notion"), 0),
        ("advertised_required", serves("notion"), 1),
    ],
)
def test_the_server_is_asked_live_whatever_was_recorded_of_it(recorded, answers, spawns):
    known = {"server_name": "notion", "determination": recorded, "detail": None, "recorded_at": START_SECONDS - 60}
    session = Session({"notion": NOTION}, answers, more_rows={(REQUIREMENTS, key_of(NOTION, "notion")): known})
    assert session.spawns == spawns
    assert (session.ran.row(REQUIREMENTS, key_of(NOTION, "notion")) or {})["determination"] != recorded


@pytest.mark.requirement("gate-advertised-required-blocks")
@pytest.mark.parametrize(
    "answers",
    [METADATA, {**METADATA, **serves("notion")}, refuses("notion")],
    ids=["metadata at the origin", "metadata, and an answer without a token", "a challenge alone"],
)
def test_a_server_that_advertises_oauth_blocks(answers):
    session = Session({"notion": NOTION}, answers)
    assert (session.spawns, session.required) == (0, ["notion"])
    assert session.verdicts == {"notion": "blocked"}


@pytest.mark.requirement("gate-not-required-proceeds")
@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (Response(200, JSON, b"{}"), "advertised: not required"),
        (Response(404), "could not determine whether OAuth is required"),
        (Response(500), "could not determine whether OAuth is required"),
        (Response(401, {"WWW-Authenticate": "Basic"}), "could not determine whether OAuth is required"),
    ],
)
def test_any_other_answer_lets_the_session_start_and_the_log_says_which(answer, phrase):
    session = Session({"notion": NOTION}, {"GET https://notion.test/mcp": answer})
    assert (session.spawns, session.required) == (1, [])
    assert session.tokens() == {}
    assert any(phrase in line and "notion" in line for line in session.log)


@pytest.mark.requirement("gate-not-required-proceeds")
@pytest.mark.parametrize("action", ["refused", "dns", "tls", "slow", "reset-before"])
def test_a_server_that_cannot_be_reached_blocks_nobody(action):
    session = Session({"notion": NOTION}, refuses("notion"), faults=[Fault(action, label="GET *", seconds=1000.0)])
    assert (session.spawns, session.verdicts) == (1, {"notion": "proceeds"})


@pytest.mark.requirement("gate-probe-exception-never-blocks")
def test_a_probe_that_raises_counts_as_undetermined_and_is_told_without_its_text(monkeypatch):
    async def raises(*_arguments: Any, **_options: Any) -> Any:
        raise RuntimeError("the answer held token-of-somebody")

    monkeypatch.setattr(gate, "check_oauth_requirement", raises)
    session = Session({"notion": NOTION}, refuses("notion"))
    assert (session.spawns, session.verdicts) == (1, {"notion": "proceeds"})
    recorded = session.ran.row(REQUIREMENTS, key_of(NOTION, "notion")) or {}
    assert recorded["determination"] == "undetermined"
    assert any("notion" in line and "RuntimeError" in line for line in session.log)
    assert "token-of-somebody" not in session.ran.told + repr(recorded)


@pytest.mark.requirement("gate-probe-bounded")
def test_servers_that_never_answer_are_waited_for_together_and_not_for_long():
    catalog = {f"s{number}": remote(f"s{number}") for number in range(5)}
    one = Session({"s0": catalog["s0"]}, {"GET https://s0.test/mcp": SILENT})
    session = Session(catalog, {f"GET https://{name}.test/mcp": SILENT for name in catalog})
    assert session.spawns == 1
    assert session.seconds == pytest.approx(one.seconds)
    everything = Session(catalog, {}, faults=[Fault("slow", label="GET *", seconds=REQUEST_TIMEOUT_SECONDS - 0.5)])
    assert everything.spawns == 1
    assert everything.seconds <= PROBE_LIMIT_SECONDS + 10.0


# --- blocked


@pytest.mark.requirement("gate-one-blocked-blocks-all")
def test_one_blocked_server_keeps_the_others_credentials_out_of_the_store():
    catalog = {"linear": LINEAR, "notion": NOTION}
    session = Session(catalog, refuses("notion"), credentials=[credential("linear")], files={STORE: "{}"})
    assert (session.spawns, session.required) == (0, ["notion"])
    assert session.text(STORE) == "{}"
    assert session.ran.named("credential.injected") == []


@pytest.mark.requirement("gate-blocked-session-fails-fast")
def test_a_session_that_needs_authorization_fails_before_any_process_and_never_waits():
    session = Session({"notion": NOTION}, refuses("notion"))
    assert (session.row.get("status"), session.metadata.get("failure_reason")) == ("failed", "oauth_required")
    assert session.spawns == 0
    assert session.seconds < 10.0
    assert session.ran.named("session.blocked") == [{"servers": ["notion"]}]
    assert session.ran.named("session.ended") == [{"exit_code": 1}]


@pytest.mark.requirement("gate-blocked-records-servers")
def test_exactly_the_blocked_servers_are_recorded_with_name_and_address():
    catalog = {"a": remote("a"), "b": remote("b"), "c": remote("c")}
    session = Session(catalog, refuses("b"), credentials=[credential("a")])
    assert session.required == ["b"]
    entry = session.metadata["oauth_required_servers"][0]
    assert (entry["server_name"], entry["server_url"]) == ("b", "https://b.test/mcp")
    assert entry["credential_key"] == key_of(catalog["b"], "b")


@pytest.mark.requirement("gate-record-no-secrets")
def test_nothing_of_what_a_probe_found_is_kept_in_the_session():
    registered = answers_json(201, client_id="minted", client_secret="s3cr3t")
    entry = remote("notion", url="https://notion.test/mcp?key=${NOTION_KEY}")
    session = Session(
        {"notion": entry},
        {**METADATA, "POST https://notion.test/register": registered},
        lookup={"NOTION_KEY": "k3y-0f-n0t10n"}.get,
    )
    assert session.required == ["notion"]
    told = json.dumps(session.row) + session.ran.told.replace(" GET ", "")
    kept = set(session.metadata["oauth_required_servers"][0])
    assert kept <= {"server_name", "server_url", "credential_key", "error"}
    assert "s3cr3t" not in json.dumps(session.row) + "".join(session.log)
    assert "k3y-0f-n0t10n" not in json.dumps(session.row["metadata"]["oauth_required_servers"]) + "".join(session.log)
    assert "POST https://notion.test/register" not in session.asked
    assert "authorization_endpoint" not in told


@pytest.mark.requirement("gate-clears-running-job-on-block")
def test_a_blocked_session_has_no_job_in_flight():
    session = Session({"notion": NOTION}, refuses("notion"), row={"running_job_id": "job-1", "status": "running"})
    assert (session.row["running_job_id"], session.row["status"]) == (None, "failed")


# --- the runtime's memory of refusals


@pytest.mark.requirement("gate-inject-clears-needs-auth", "gate-needs-auth-clear-by-name")
def test_an_injected_server_is_struck_off_the_memory_and_others_of_other_sessions_stay():
    remembered = json.dumps({name: {"timestamp": 1} for name in ("notion", "linear")})
    session = Session(
        {"notion": NOTION}, refuses("notion"), credentials=[credential("notion")], files={CACHE: remembered}
    )
    assert list(json.loads(session.text(CACHE) or "{}")) == ["linear"]
    assert session.ran.named("needs_auth.cleared") == [{"servers": ["notion"]}]


@pytest.mark.requirement("gate-needs-auth-clear-whole-spawn")
def test_a_namesakes_refusal_is_forgotten_for_a_server_that_has_a_key_of_its_own():
    strad = remote("strad", headers={"X-API-Key": "k"})
    remembered = json.dumps({name: {"timestamp": 1} for name in ("strad", "other")})
    session = Session({"strad": strad}, files={CACHE: remembered})
    assert session.spawns == 1
    assert list(json.loads(session.text(CACHE) or "{}")) == ["other"]


@pytest.mark.requirement("gate-needs-auth-clear-best-effort")
@pytest.mark.parametrize("action", ["eacces", "enospc"])
def test_a_memory_that_cannot_be_cleared_costs_neither_the_credential_nor_the_spawn(action):
    session = Session(
        {"notion": NOTION},
        refuses("notion"),
        credentials=[credential("notion")],
        files={CACHE: json.dumps({"notion": {"timestamp": 1}})},
        faults=[Fault(action, port="files", label=f"*{CACHE}*")],
    )
    assert session.spawns == 1
    assert session.tokens() == {"notion": "access-of-notion"}
    assert any(event["level"] == "warn" for event in session.ran.named("log"))


@pytest.mark.requirement("gate-needs-auth-clear-best-effort")
def test_a_store_that_cannot_be_written_costs_its_servers_and_not_the_session():
    session = Session(
        {"notion": NOTION},
        refuses("notion"),
        credentials=[credential("notion")],
        files={CACHE: json.dumps({"notion": {"timestamp": 1}})},
        faults=[Fault("enospc", port="files", label=f"write {STORE}*")],
    )
    assert (session.spawns, session.tokens()) == (1, {})
    assert session.ran.named("credential.injected") == []
    assert any(event["level"] == "error" for event in session.ran.named("log"))


@pytest.mark.requirement("gate-selection-is-session-set")
def test_a_session_without_remote_servers_is_started_without_a_word_of_the_gate():
    session = Session({"files": stdio()}, credentials=[credential("notion")], files={CACHE: '{"files": {}}'})
    names = {event.name for event in session.ran.events}
    assert not {name for name in names if name.startswith(("gate.", "oauth.", "credential.", "needs_auth."))}
    assert session.text(CACHE) == '{"files": {}}'
    assert "runtime" not in session.row


# --- what the row says of a session that passed


@pytest.mark.requirement("resume-not-blocked-states")
@pytest.mark.parametrize(("fault", "status"), [(None, "needs_input"), ("enoent", "failed")])
def test_a_session_that_passed_runs_until_its_runtime_has_ended_and_is_parked_no_more(fault, status):
    required = [{"server_name": "notion", "server_url": None}]
    before = {"status": "failed", "metadata": {"failure_reason": "oauth_required", "oauth_required_servers": required}}
    seen: list[Any] = []

    async def looks(world):
        while not seen:
            row = (await world.store.rows("sessions"))[0].values
            seen.extend([row] if row["status"] == "running" else [])
            await world.clock.sleep(0.1)

    session = Session(
        {"notion": NOTION},
        serves("notion"),
        credentials=[credential("notion")],
        row=before,
        faults=[] if fault is None else [Fault(fault, label="spawn *")],
        others={"somebody": looks} if fault is None else {},
    )
    assert session.row["status"] == status
    assert "failure_reason" not in session.metadata
    assert session.required == ["notion"]
    assert all("failure_reason" not in row["metadata"] for row in seen)
