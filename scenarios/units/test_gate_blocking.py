"""A session that was blocked: what its row, its timeline and its page say, and which message it is owed."""

from __future__ import annotations

import pytest

from harness.reference.credentials.authorized import is_server_authorized
from harness.reference.session.blocking import Blocked, offered
from harness.reference.session.gate import NEEDS_SIGN_IN
from harness.reference.session.prompts import FixedPrompts, is_nudge, recovery_prompt
from harness.world.model import Fault
from scenarios.units.spawn_gate_run import Session, credential, deps_of, key_of, refuses, remote

NOTION = remote("notion")
PROMPTS = FixedPrompts("You were interrupted. Carry on.", "Heartbeat: look around.")
GATE_ENTRY = Blocked("notion", "https://notion.test/mcp", key_of(NOTION, "notion"), NEEDS_SIGN_IN).entry()
CLASSIFIER_ENTRY = Blocked("notion", "https://notion.test/mcp", error="Unauthorized").entry()


def blocked(**more):
    """A session whose turn was blocked on notion."""
    return Session({"notion": NOTION}, refuses("notion"), prompts=PROMPTS, **more)


# --- the message that is owed


@pytest.mark.requirement("resume-door-first-turn-owes-nothing", "resume-follow-up-timeline-notice")
def test_a_blocked_first_turn_owes_nothing_since_the_session_holds_its_prompt():
    session = blocked(row={"prompt": "Do A"})
    assert "pending_follow_up_prompt" not in session.metadata
    assert session.row["prompt"] == "Do A"
    assert session.timeline == ["blocked"]


@pytest.mark.requirement(
    "resume-door-follow-up-owes-message", "resume-follow-up-log-line", "resume-follow-up-timeline-notice"
)
def test_a_blocked_follow_up_is_handed_back_and_said_to_be_undelivered():
    session = blocked(follow_up="Please also fix the tests")
    assert session.metadata.get("pending_follow_up_prompt") == "Please also fix the tests"
    assert session.metadata["failure_reason"] == "oauth_required"
    assert "Follow-up blocked: OAuth authorization required for MCP servers: notion" in session.log
    assert session.timeline == ["blocked", "not_delivered"]
    assert "has not been delivered" in session.row["timeline"][-1]["text"]


@pytest.mark.requirement("resume-follow-up-log-line")
def test_a_blocked_first_turn_is_not_called_a_follow_up():
    assert not any(line.startswith("Follow-up blocked") for line in blocked().log)


@pytest.mark.requirement("resume-marker-before-fail")
def test_wherever_the_block_is_interrupted_no_session_has_failed_without_its_message():
    seen = set()
    for place in ("begin", "lock row sessions/*", "put row sessions/*", "commit", "committed"):
        for nth in range(1, 9):
            session = blocked(follow_up="do X", faults=[Fault("kill", actor="zimmer", label=place, nth=nth)])
            state = (session.row.get("status"), session.metadata.get("pending_follow_up_prompt"))
            seen.add(state)
            assert state in ((None, None), ("failed", "do X")), (place, nth)
    assert seen == {(None, None), ("failed", "do X")}


@pytest.mark.requirement("resume-nudge-dropped", "resume-heartbeat-not-stamped")
@pytest.mark.parametrize(
    "prompt",
    [PROMPTS.recovery, recovery_prompt(PROMPTS.recovery, "deploy"), PROMPTS.heartbeat],
    ids=["recovery", "recovery with a reason", "heartbeat"],
)
def test_a_blocked_nudge_is_dropped_without_a_word(prompt):
    session = blocked(follow_up=prompt)
    assert "pending_follow_up_prompt" not in session.metadata
    assert (session.row["status"], session.metadata["failure_reason"]) == ("failed", "oauth_required")
    assert session.timeline == ["blocked"]


@pytest.mark.requirement("resume-nudge-keeps-older-marker")
def test_a_blocked_nudge_leaves_a_message_that_is_owed_already():
    session = blocked(follow_up=PROMPTS.heartbeat, row={"metadata": {"pending_follow_up_prompt": "do X"}})
    assert session.metadata["pending_follow_up_prompt"] == "do X"


@pytest.mark.requirement("resume-prompt-conservation")
def test_a_second_blocked_message_takes_the_place_of_the_first_which_the_timeline_keeps():
    session = blocked(follow_up="do Y", row={"metadata": {"pending_follow_up_prompt": "do X"}})
    assert session.metadata["pending_follow_up_prompt"] == "do Y"
    assert session.timeline == ["blocked", "undelivered_follow_up", "not_delivered"]
    assert session.row["timeline"][1]["text"].endswith("do X")
    again = blocked(follow_up="do X", row={"metadata": {"pending_follow_up_prompt": "do X"}})
    assert again.timeline == ["blocked", "not_delivered"]


@pytest.mark.requirement("resume-nudge-definition")
@pytest.mark.parametrize(
    ("prompt", "nudge"),
    [
        (PROMPTS.recovery, True),
        (f"{PROMPTS.recovery}\n\n(What triggered this nudge: deploy. No human sent it.)", True),
        (PROMPTS.heartbeat, True),
        ("The pull request was merged.", False),
        ("There is a merge conflict.", False),
        ("carry on please", False),
        (f"What does '{PROMPTS.recovery}' mean?", False),
        ("", False),
        (None, False),
    ],
)
def test_a_nudge_is_what_begins_as_one_of_the_two_fixed_prompts(prompt, nudge):
    assert is_nudge(prompt, PROMPTS) is nudge


@pytest.mark.requirement("resume-nothing-requeues-blocked-job")
def test_a_blocked_turn_enqueues_nothing():
    session = blocked(follow_up="do X")
    assert (session.jobs, session.spawns) == ([], 0)
    assert len(session.ran.named("session.blocked")) == 1
    assert session.seconds < 60.0


@pytest.mark.requirement("resume-marker-meaning")
def test_a_delivered_message_is_owed_no_more_and_one_that_was_not_still_is():
    owed = {"metadata": {"pending_follow_up_prompt": "do X"}}
    done = Session(
        {"notion": NOTION}, refuses("notion"), credentials=[credential("notion")], follow_up="do X", row=owed
    )
    assert done.spawns == 1
    assert "pending_follow_up_prompt" not in done.metadata
    other = Session(
        {"notion": NOTION}, refuses("notion"), credentials=[credential("notion")], follow_up="do Y", row=owed
    )
    assert other.metadata["pending_follow_up_prompt"] == "do X"
    died = Session(
        {"notion": NOTION},
        refuses("notion"),
        credentials=[credential("notion")],
        follow_up="do X",
        row=owed,
        faults=[Fault("enoent", label="spawn *")],
    )
    assert died.metadata["pending_follow_up_prompt"] == "do X"


# --- what the page offers


def parked(*names: str):
    """The row of a session that waits for these servers."""
    required = [{"server_name": name, "server_url": None} for name in names]
    return {"status": "failed", "metadata": {"failure_reason": "oauth_required", "oauth_required_servers": required}}


def left_behind(*names: str):
    """A list that outlived its reason."""
    return {"status": "needs_input", "metadata": {**parked(*names)["metadata"], "failure_reason": None}}


@pytest.mark.requirement("gate-ui-offers-authorize", "reconnect-parked-banner-offers-release")
def test_a_parked_session_offers_one_action_for_each_server_also_where_it_was_authorized_elsewhere():
    names = [each["server_name"] for each in offered(parked("a", "b"), lambda each: each["server_name"] == "a")]
    assert names == ["a", "b"]
    assert offered({"status": "failed", "metadata": {"failure_reason": "process_failed"}}, lambda _: False) == ()


@pytest.mark.requirement("gate-banner-filters-stale-entries")
def test_a_list_that_was_left_behind_offers_only_what_can_still_be_authorized():
    row = left_behind("a", "b")
    assert [each["server_name"] for each in offered(row, lambda each: each["server_name"] == "a")] == ["b"]
    assert offered(row, lambda _: True) == ()


@pytest.mark.requirement("gate-required-entry-shape")
@pytest.mark.parametrize("entry", [GATE_ENTRY, CLASSIFIER_ENTRY], ids=["of the gate", "of the classifier"])
@pytest.mark.parametrize("active", [True, False])
def test_entries_of_both_writers_are_read_alike(entry, active):
    assert {"server_name", "server_url", "error"} <= set(entry)
    noted = {"failure_reason": "oauth_required", "oauth_required_servers": [entry]}
    row = {"status": "failed", "metadata": noted}
    found = []

    async def asks(world, order):
        found.append(await is_server_authorized(world, deps_of({"notion": NOTION}).catalog, entry))

    Session({"notion": NOTION}, program=asks, credentials=[credential("notion")] if active else [], row=row)
    assert found == [active]
    stale = {**row, "status": "needs_input", "metadata": {**noted, "failure_reason": None}}
    assert len(offered(stale, lambda _: found[0])) == (0 if active else 1)


@pytest.mark.requirement("gate-authorized-predicate")
@pytest.mark.parametrize(("seconds", "authorized"), [(3600.0, True), (None, True), (0.0, False), (-1.0, False)])
def test_authorized_is_a_row_that_has_not_expired(seconds, authorized):
    async def asks(world, order):
        return await is_server_authorized(world, order.catalog, {"server_name": "notion"})

    with_row = Session({"notion": NOTION}, program=asks, credentials=[credential("notion", seconds)])
    assert with_row.ran.result is authorized
    assert Session({"notion": NOTION}, program=asks).ran.result is False


@pytest.mark.requirement("gate-authorized-key-resolution")
@pytest.mark.parametrize(
    ("entry", "authorized"),
    [
        ({"server_name": "off", "credential_key": key_of(NOTION, "notion")}, True),
        ({"server_name": "notion", "server_url": "https://elsewhere.test/mcp"}, True),
        ({"server_name": "notion", "credential_key": "notion|0000000000000000"}, False),
        ({"server_name": "off", "server_url": "https://off.test/mcp"}, True),
        ({"server_name": "off"}, False),
        ({"server_name": "off", "server_url": " "}, False),
        ({"server_url": "https://off.test/mcp"}, False),
    ],
)
def test_the_key_is_the_recorded_one_else_the_catalogs_else_over_the_recorded_address(entry, authorized):
    async def asks(world, order):
        return await is_server_authorized(world, order.catalog, entry)

    rows = [credential("notion"), credential("off", entry=remote("off", type="http"))]
    assert Session({"notion": NOTION}, program=asks, credentials=rows).ran.result is authorized
