"""Sessions that say they run while nobody works for them: which are taken up again, and what stays of their notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness.reference.session import rows as sessions
from harness.reference.session.blocking import Blocked
from harness.reference.session.job import run_session
from harness.reference.session.order import Order
from harness.reference.session.prompt_block import TAG
from harness.reference.session.prompts import FixedPrompts, is_nudge
from harness.reference.session.resume_decision import Facts, decide
from harness.reference.session.sweep import is_orphaned, sweep_orphans
from harness.world import World
from harness.world.model import Seeded
from scenarios.units.failed_handshakes_run import CLOSED, FILES, Handshakes
from scenarios.units.oauth_run import Ran, run_world
from scenarios.units.spawn_gate_run import SESSION
from scenarios.units.test_session_prompts import SPENT, fields

PROMPTS = FixedPrompts()
MARKER, UNDELIVERED = "pending_follow_up_prompt", "oauth_undelivered_follow_up_prompt"
ORPHAN: Mapping[str, Any] = {"status": "running", "session_id": "c", "metadata": {"paused_by": "mcp_retry"}}


def swept(values: Mapping[str, Any], *alive: str, jobs: Mapping[str, Any] | None = None, **more: Any) -> Ran:
    """The world after a sweep; its result is who was taken up."""

    async def sweeps(world: World) -> Any:
        return await sweep_orphans(world, alive, PROMPTS)

    queued = {("jobs", key): row for key, row in (jobs or {}).items()}
    return run_world(sweeps, rows={(sessions.TABLE, SESSION): values, **queued}, **more)


@pytest.mark.requirement("resume-undelivered-reapable")
def test_a_session_without_a_conversation_may_be_taken_up_once_its_message_is_given_up():
    blocked = Blocked("a", "https://a.test/mcp").entry()
    noted = {"failure_reason": "oauth_required", "oauth_required_servers": [blocked], MARKER: "do X"}
    parked = {"status": "failed", "metadata": noted}
    waits = {"status": "waiting", "metadata": {MARKER: "do X"}}
    assert swept(waits).result == ()
    resumed = decide(parked, Facts(authorized=lambda _entry: True, named="a"))
    assert (resumed.result, resumed.values["metadata"].get(UNDELIVERED)) == ("resumed", "do X")
    ran = swept(resumed.values)
    assert ran.result == (SESSION,)
    row = ran.row(sessions.TABLE, SESSION) or {}
    assert row["metadata"][UNDELIVERED] == "do X"
    (job,) = ran.rows("jobs").values()
    assert (job["kind"], job["prompt"]) == ("new_session", None)


@pytest.mark.parametrize(
    ("values", "is_one"),
    [
        (ORPHAN, True),
        ({**ORPHAN, "status": "waiting"}, True),
        ({**ORPHAN, "status": "needs_input"}, False),
        ({**ORPHAN, "status": "failed"}, False),
        ({**ORPHAN, "metadata": {MARKER: "do X"}}, False),
        ({**ORPHAN, "metadata": {MARKER: " "}}, True),
        ({**ORPHAN, "metadata": {UNDELIVERED: "do X"}}, True),
        ({**ORPHAN, "status": "waiting", "metadata": {"oauth_required_servers": [{"server_name": "a"}]}}, False),
    ],
)
def test_an_orphan_says_that_it_works_and_is_promised_to_nobody(values, is_one):
    assert is_orphaned(values) is is_one


def test_a_session_that_somebody_works_for_or_that_has_a_job_is_left_alone():
    assert swept(ORPHAN, SESSION).result == ()
    queued = swept(ORPHAN, jobs={"j": {"session": SESSION, "kind": "follow_up", "prompt": "do X"}})
    assert (queued.result, list(queued.rows("jobs"))) == ((), ["j"])


def test_an_orphan_is_nudged_and_says_so_in_its_timeline():
    ran = swept(ORPHAN)
    ((job_id, job),) = ran.rows("jobs").items()
    assert (job["kind"], is_nudge(job["prompt"], PROMPTS)) == ("follow_up", True)
    row = ran.row(sessions.TABLE, SESSION) or {}
    assert (row["status"], row["running_job_id"], row["metadata"]) == ("waiting", job_id, {})
    assert [line["kind"] for line in row["timeline"]] == ["orphan_reaped"]


@pytest.mark.parametrize("seed", range(20))
def test_of_two_sweeps_at_once_one_takes_it_up(seed):
    async def sweeps(world: World) -> None:
        await sweep_orphans(world, (), PROMPTS)

    ran = swept(ORPHAN, others={"another": sweeps}, decisions=Seeded(seed, run=0.5, stall=0.3))
    assert len(ran.rows("jobs")) == 1


@pytest.mark.requirement("failure-stale-orphan-keeps-record")
def test_a_sweep_keeps_the_record_of_what_is_left_out_so_that_no_ladder_begins_again():
    async def story(world: World, given: Order) -> None:
        await run_session(world, given)
        await sessions.change(world, SESSION, lambda values: {**values, "status": "running"})
        assert await sweep_orphans(world, (), given.prompts) == (SESSION,)
        (job,) = await world.store.rows("jobs")
        await run_session(world, Order(**{**fields(given), "follow_up": job.values["prompt"]}))

    run = Handshakes(FILES, [{"files": CLOSED}], answers=[1, 2, 3], prompt="Do A", metadata=SPENT, program=story)
    assert run.record.keys() == {"files"}
    assert run.retried == []
    assert "mcp_retry_count" not in run.metadata
    assert len(run.words) == 3
    assert all(words[-1].count(f"<{TAG}>") == 1 for words in run.words[1:])
