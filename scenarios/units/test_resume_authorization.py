"""A completed authorization: the parked session goes on with what it owes, the live one is told, all others stay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.reference.credentials import table
from harness.reference.oauth import web
from harness.reference.session import rows as sessions
from harness.reference.session.blocking import Blocked
from harness.reference.session.job import run_session
from harness.reference.session.jobs import Job
from harness.reference.session.resume import resume_after_authorization
from harness.reference.session.resume_decision import deliver_follow_up
from harness.reference.session.stale import STALE_RETRY_KEYS, without_stale_keys
from harness.world.model import Fault, Seeded
from scenarios.units.oauth_run import START_SECONDS
from scenarios.units.spawn_gate_run import (
    CACHE,
    CLONE,
    HOUR,
    SESSION,
    STORE,
    Session,
    answers_json,
    credential,
    deps_of,
    key_of,
    order_of,
    refuses,
    remote,
)

NAMES = ("a", "b")
CATALOG = {name: remote(name) for name in NAMES}
FLOWS = "mcp_oauth_pending_flows"


def parked(*names, status="failed", reason="oauth_required", **more):
    """The row of a session that waits for these servers; `more` are notes and columns."""
    noted = more.pop("metadata", {})
    required = [Blocked(name, CATALOG[name]["url"], key_of(CATALOG[name], name)).entry() for name in names]
    metadata = {"failure_reason": reason, "oauth_required_servers": required, **noted}
    return {"status": status, "metadata": metadata, "prompt": "Do A", **more}


def resumed(row, *active, named=None, rows=None, **more):
    """The world after the completion of one authorization."""

    async def completes(world, order):
        return await resume_after_authorization(world, SESSION, deps_of(CATALOG), named)

    return Session(
        CATALOG,
        row=row,
        credentials=[credential(name) if isinstance(name, str) else name for name in active],
        more_rows=rows,
        program=more.pop("program", completes),
        **more,
    )


def flow(state, seconds, session=SESSION, server="elsewhere"):
    """A pending flow of the session."""
    values = {
        "state": state,
        "server_name": server,
        "server_url": "https://elsewhere.test/mcp",
        "code_verifier": "v",
        "authorization_endpoint": "https://as.test/authorize",
        "token_endpoint": "https://as.test/token",
        "client_id": "c",
        "redirect_uri": "https://zimmer.example.com/mcp_oauth/callback",
        "expires_at": START_SECONDS + seconds,
        "mcp_server_config": {"type": "http"},
        "credential_key": "elsewhere|0",
        "runtime_keys": {},
        "session": session,
    }
    return {(FLOWS, state): values}


# --- when


@pytest.mark.requirement(
    "gate-completion-resumes-session", "gate-ui-offers-authorize", "resume-only-when-all-authorized",
    "resume-clears-block-metadata", "resume-nothing-owed-replays",
)  # fmt: skip
def test_the_last_outstanding_server_resumes_the_session_and_the_ones_before_leave_the_list():
    one = resumed(parked("a", "b"), "a", named="a")
    assert (one.ran.result, one.row["status"], one.required, one.jobs) == ("partial", "failed", ["b"], [])
    both = resumed(parked("a", "b"), "a", "b", named="b")
    assert (both.ran.result, both.row["status"], both.required) == ("resumed", "waiting", [])
    (job,) = both.jobs
    assert (job["kind"], job["session"], job["prompt"]) == ("new_session", SESSION, None)
    assert both.row["prompt"] == "Do A"
    cleared = {key: both.metadata[key] for key in ("oauth_complete", "failure_reason", "oauth_required_servers")}
    assert cleared == {"oauth_complete": True, "failure_reason": None, "oauth_required_servers": None}
    assert both.ran.named("session.resumed") == [{"servers": ["a", "b"]}]
    assert both.row["running_job_id"] in both.ran.rows("jobs")


@pytest.mark.requirement("resume-only-when-all-authorized")
def test_an_expired_row_and_an_entry_without_a_key_keep_it_parked():
    expired = resumed(parked("a", "b"), "a", credential("b", -1.0), named="a")
    assert (expired.ran.result, expired.required) == ("partial", ["b"])
    row = parked("a")
    row["metadata"]["oauth_required_servers"].append({"server_name": "no-url"})
    assert resumed(row, "a", named="a").required == ["no-url"]


@pytest.mark.requirement("resume-waits-for-open-flow")
@pytest.mark.parametrize(
    ("more", "result"),
    [
        (flow("s", 3600.0), "partial"),
        (flow("s", -3600.0), "resumed"),
        (flow("s", 3600.0, "another"), "resumed"),
        (flow("s", 3600.0, None), "resumed"),
    ],
    ids=["open", "expired", "of another session", "of none"],
)
def test_a_consent_that_is_under_way_for_the_session_keeps_it_parked(more, result):
    session = resumed(parked("a"), "a", named="a", rows=more)
    assert session.ran.result == result
    assert len(session.jobs) == (result == "resumed")


@pytest.mark.requirement("resume-waits-for-open-flow")
@pytest.mark.parametrize("required", [("a",), ("a", "b")])
def test_a_consent_begun_for_the_same_server_in_another_tab_is_over_and_keeps_nothing_parked(required):
    session = resumed(parked(*required), "a", named="a", rows=flow("s", 3600.0, server="a"))
    assert session.ran.result == ("resumed" if required == ("a",) else "partial")
    assert session.ran.rows(FLOWS) == {}
    kept = resumed(parked("a"), "a", named="a", rows=flow("s", 3600.0, "another", server="a"))
    assert list(kept.ran.rows(FLOWS)) == ["s"]


@pytest.mark.requirement("resume-not-blocked-states", "reconnect-respawn-only-blocked")
@pytest.mark.parametrize(
    ("row", "result"),
    [
        (parked("a", reason="process_failed"), "not_blocked"),
        (parked("a", status="waiting", reason=None), "resumed"),
        (parked(status="waiting", reason=None), "not_blocked"),
        (parked("a", status="running", reason=None), "not_blocked"),
        (parked("a", status="archived", reason=None), "not_blocked"),
        (parked("a", status="needs_input", reason=None), "not_blocked"),
    ],
)
def test_only_a_parked_session_is_resumed(row, result):
    session = resumed(row, "a")
    assert session.ran.result == result
    assert len(session.jobs) == (result == "resumed")


@pytest.mark.requirement("resume-idempotent-under-race")
def test_of_two_completions_at_the_same_time_one_resumes():
    async def completes(world):
        world.events.emit("answered", result=await resume_after_authorization(world, SESSION, deps_of(CATALOG), "b"))

    for seed in range(30):
        session = resumed(
            parked("a", "b"), "a", "b", named="a", others={"other": completes}, decisions=Seeded(seed, run=0.5)
        )
        results = sorted([session.ran.result, session.ran.named("answered")[0]["result"]])
        assert results == ["not_blocked", "resumed"]
        assert len(session.jobs) == 1


# --- what runs


@pytest.mark.requirement(
    "resume-asks-marker-first", "resume-owed-delivers-follow-up", "resume-no-original-rerun", "resume-owed-prompt-raw"
)
def test_a_message_that_is_owed_is_what_runs_and_nothing_else():
    row = parked("a", session_id="uuid", transcript="x", metadata={"pending_follow_up_prompt": "do X"})
    session = resumed(row, "a", named="a")
    assert (session.ran.result, session.row["status"]) == ("resumed", "running")
    (job,) = session.jobs
    assert (job["kind"], job["prompt"], job["images"]) == ("follow_up", "do X", [])
    assert session.metadata["pending_follow_up_prompt"] == "do X"
    assert session.metadata.get("failure_reason") is None


@pytest.mark.requirement(
    "resume-no-session-id-runs-first-turn", "resume-no-session-id-warning", "resume-undelivered-moved",
    "resume-silent-substitution-forbidden",
)  # fmt: skip
@pytest.mark.parametrize("session_id", [None, ""])
def test_without_a_conversation_the_first_turn_runs_and_the_message_is_quoted_and_kept(session_id):
    row = parked("a", session_id=session_id, metadata={"pending_follow_up_prompt": "do X"})
    session = resumed(row, "a", named="a")
    assert (session.row["status"], [job["kind"] for job in session.jobs]) == ("waiting", ["new_session"])
    lines = [line for line in session.row.get("timeline", ()) if line["kind"] == "undelivered_follow_up"]
    assert [(line["level"], line["text"].endswith("do X")) for line in lines] == [("warn", True)]
    assert "pending_follow_up_prompt" not in session.metadata
    assert session.metadata["oauth_undelivered_follow_up_prompt"] == "do X"


@pytest.mark.requirement("resume-no-session-id-quote-cap")
def test_a_very_long_message_is_quoted_in_part_and_kept_whole():
    text = "y" * 10_000
    session = resumed(parked("a", metadata={"pending_follow_up_prompt": text}), "a", named="a")
    quoted = session.row["timeline"][0]["text"]
    assert quoted.count("y" * 4000) == 1
    assert "y" * 4001 not in quoted
    assert "cut after 4000" in quoted
    assert session.metadata["oauth_undelivered_follow_up_prompt"] == text


@pytest.mark.requirement("resume-undelivered-never-consumed")
def test_a_message_that_could_not_be_delivered_is_never_taken_for_one_that_is_owed():
    kept = {"oauth_undelivered_follow_up_prompt": "do X"}
    session = resumed(parked("a", session_id="uuid", metadata=kept), "a", named="a")
    assert [job["kind"] for job in session.jobs] == ["new_session"]
    assert session.metadata["oauth_undelivered_follow_up_prompt"] == "do X"


@pytest.mark.requirement("resume-deliver-order", "resume-marker-survives-recovery-keys")
def test_a_delivered_message_drops_the_whole_set_of_stale_keys_and_no_other():
    noted = dict.fromkeys(STALE_RETRY_KEYS, 1)
    kept: dict[str, Any] = {
        "oauth_undelivered_follow_up_prompt": "old",
        "mcp_degraded_servers": [],
        "oauth_required_servers": None,
    }
    after = deliver_follow_up({"status": "failed", "metadata": {**noted, **kept}}, "do X")
    assert after == {"status": "running", "metadata": {**kept, "pending_follow_up_prompt": "do X"}}
    assert without_stale_keys({"pending_follow_up_prompt": "p", **kept}) == {"pending_follow_up_prompt": "p", **kept}


@pytest.mark.requirement("resume-attachments-first-turn-only", "reconnect-transcript-empty-gate")
@pytest.mark.parametrize(
    ("transcript", "images"), [("", ["image 1"]), (None, ["image 1"]), ("x", [])], ids=["empty", "absent", "begun"]
)
def test_attachments_go_with_a_first_turn_that_has_not_begun(transcript, images):
    session = resumed(parked("a", transcript=transcript, attachments=["image 1"]), "a", named="a")
    assert session.jobs[0]["images"] == images
    assert session.timeline == (["attachments_carried"] if images else [])


@pytest.mark.requirement("resume-attachments-first-turn-only", "reconnect-follow-up-says-left-behind")
@pytest.mark.parametrize("attachments", [["image 1"], []])
def test_a_delivered_message_carries_none_and_says_so_where_there_are_any(attachments):
    row = parked(
        "a", session_id="u", transcript="", attachments=attachments, metadata={"pending_follow_up_prompt": "do X"}
    )
    session = resumed(row, "a", named="a")
    assert session.jobs[0]["images"] == []
    assert session.timeline == (["attachments_not_carried"] if attachments else [])


@pytest.mark.requirement("resume-repeat-block-keeps-marker")
def test_a_resumed_message_that_is_blocked_again_stays_owed_until_it_is_delivered():
    async def twice(world, order):
        await run_session(world, order_of(CATALOG, follow_up="do X"))
        await table.change(world, key_of(CATALOG["a"], "a"), lambda _: credential("a"))
        await resume_after_authorization(world, SESSION, deps_of(CATALOG), "a")
        await table.change(world, key_of(CATALOG["a"], "a"), lambda _: credential("a", -1.0, refresh_token=None))
        await run_session(world, order_of(CATALOG, follow_up="do X"))
        again = await sessions.read(world, SESSION)
        world.events.emit("again", marker=again["metadata"]["pending_follow_up_prompt"], status=again["status"])
        await table.change(world, key_of(CATALOG["a"], "a"), lambda _: credential("a"))
        await resume_after_authorization(world, SESSION, deps_of(CATALOG), "a")
        await run_session(world, order_of(CATALOG, follow_up="do X"))

    session = Session(CATALOG, refuses("a"), chosen=("a",), row={"session_id": "u"}, program=twice)
    assert session.ran.named("again") == [{"marker": "do X", "status": "failed"}]
    assert [job["prompt"] for job in session.jobs] == ["do X", "do X"]
    assert session.spawns == 1
    assert "pending_follow_up_prompt" not in session.metadata


# --- a live session


LIVE = {"status": "running", "mcp_servers": ["a"], "metadata": {}, "clone": CLONE, "runtime": "claude"}


@pytest.mark.requirement(
    "resume-live-session-reconnect-notice", "reconnect-live-injects-now", "reconnect-live-clears-needs-auth",
    "reconnect-live-status-unchanged",
)  # fmt: skip
@pytest.mark.parametrize("status", ["running", "needs_input"])
def test_a_live_session_gets_the_credential_and_a_notice_and_no_job(status):
    async def twice(world, order):
        await resume_after_authorization(world, SESSION, deps_of(CATALOG), "a")
        return await resume_after_authorization(world, SESSION, deps_of(CATALOG), "a")

    remembered = json.dumps({name: {"timestamp": 1} for name in ("a", "b")})
    session = resumed({**LIVE, "status": status}, "a", "b", program=twice, files={CACHE: remembered})
    assert session.ran.result == "reconnect_pending"
    assert (session.row["status"], session.jobs) == (status, [])
    assert session.metadata["mcp_oauth_reconnect"]["servers"] == ["a"]
    assert session.timeline == ["reconnect_notice"]
    assert session.tokens() == {"a": "access-of-a"}
    assert list(json.loads(session.text(CACHE) or "{}")) == ["b"]


@pytest.mark.requirement("resume-live-session-reconnect-notice")
def test_a_server_that_the_session_does_not_use_changes_nothing():
    session = resumed(LIVE, "a", "b", named="b")
    assert (session.ran.result, session.tokens()) == ("not_blocked", {})
    assert session.row == LIVE


@pytest.mark.requirement("reconnect-live-injection-best-effort")
def test_a_store_that_cannot_be_written_leaves_the_notice_standing():
    session = resumed(LIVE, "a", named="a", faults=[Fault("enospc", port="files", label=f"write {STORE}*")])
    assert session.ran.result == "reconnect_pending"
    assert session.metadata["mcp_oauth_reconnect"]["servers"] == ["a"]
    assert session.tokens() == {}


@pytest.mark.requirement("reconnect-notice-cleared-by-spawn")
def test_the_next_spawn_that_injects_spends_the_notice_and_a_blocked_one_does_not():
    noticed = {"metadata": {"mcp_oauth_reconnect": {"servers": ["a"], "authorized_at": "t"}}}
    spent = Session(CATALOG, refuses("a"), chosen=("a",), row=noticed, credentials=[credential("a")])
    assert spent.spawns == 1
    assert "mcp_oauth_reconnect" not in spent.metadata
    blocked = Session(CATALOG, refuses("a"), chosen=("a",), row=noticed)
    assert blocked.metadata.get("mcp_oauth_reconnect", {}).get("servers") == ["a"]


# --- an Authorize click on a server that is authorized already


def clicked(row, *active, **more):
    """The world after that click on the session's page."""

    async def clicks(world, order):
        return await web.initiate(world, deps_of(CATALOG), server_name="a", session=SESSION)

    return resumed(row, *active, program=clicks, **more)


@pytest.mark.requirement("gate-initiate-short-circuits")
def test_an_active_credential_starts_no_flow_and_goes_straight_back():
    session = clicked(parked("a", "b"), "a")
    answer = session.ran.result
    assert (answer.status, answer.location, answer.notice) == (302, f"/sessions/{SESSION}", True)
    assert answer.message == "a is already authorized."
    assert session.ran.rows(FLOWS) == {}
    assert session.asked == []


@pytest.mark.requirement("gate-initiate-short-circuit-retries", "reconnect-parked-release-via-own-initiate")
def test_the_click_hands_the_credential_over_and_resumes_when_nothing_is_outstanding():
    remembered = json.dumps({name: {"timestamp": 1} for name in ("a", "z")})
    session = clicked(parked("a", "b"), "a", "b", files={CACHE: remembered})
    assert session.ran.result.message == "a is already authorized — retrying the session."
    steps = [event.name for event in session.ran.events if event.name in
             ("credential.injected", "needs_auth.cleared", "session.resumed")]  # fmt: skip
    assert steps == ["credential.injected", "needs_auth.cleared", "session.resumed"]
    assert session.tokens() == {"a": "access-of-a"}
    assert (session.row["status"], len(session.jobs)) == ("waiting", 1)


@pytest.mark.requirement("gate-initiate-short-circuit-retries", "reconnect-reinject-failure-keeps-parked")
def test_a_credential_that_cannot_be_handed_over_leaves_the_session_parked_and_promises_nothing():
    full = Fault("enospc", port="files", label=f"write {STORE}*")
    session = clicked(parked("a"), "a", faults=[full])
    assert session.ran.result.message == "a is already authorized."
    assert (session.row["status"], session.jobs) == ("failed", [])


# --- the whole way


@pytest.mark.requirement("gate-completion-resumes-session", "resume-door-follow-up-owes-message")
def test_from_the_block_over_the_consent_to_the_turn_that_was_owed():
    endpoints = {
        "authorization_endpoint": "https://a.test/authorize",
        "token_endpoint": "https://as.test/token",
        "registration_endpoint": "https://as.test/register",
    }
    answers = {
        **refuses("a"),
        "GET https://a.test/.well-known/oauth-authorization-server": answers_json(200, **endpoints),
        "POST https://as.test/register": answers_json(201, client_id="minted"),
        "POST https://as.test/token": answers_json(200, access_token="fresh", refresh_token="r", expires_in=HOUR),
    }

    async def the_whole_way(world, order):
        await run_session(world, order)
        started = await web.initiate(world, deps_of(CATALOG), server_name="a", session=SESSION)
        await web.callback(world, deps_of(CATALOG), {"state": started.flow_state or "", "code": "c"})
        (job,) = await world.store.rows("jobs")
        await run_session(world, order_of(CATALOG, follow_up=job.values["prompt"]))

    session = Session(CATALOG, answers, chosen=("a",), row={"session_id": "u"}, follow_up="do X", program=the_whole_way)
    assert (session.spawns, session.tokens()) == (1, {"a": "fresh"})
    assert [job["prompt"] for job in session.jobs] == ["do X"]
    assert "pending_follow_up_prompt" not in session.metadata
    for secret in ("fresh", "code_verifier"):
        assert secret not in session.ran.told + json.dumps(session.row)


@pytest.mark.requirement("resume-no-original-rerun")
def test_a_job_holds_the_prompt_of_a_follow_up_alone():
    assert Job("new_session").values(SESSION, 0.0)["prompt"] is None
    assert Job("follow_up", "do X").values(SESSION, 0.0)["prompt"] == "do X"
