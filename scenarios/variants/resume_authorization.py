"""Known-bad variants of what a completed authorization does to its session."""

from __future__ import annotations

from harness.reference.oauth.flows import all_flows
from harness.reference.session import jobs, rows
from harness.reference.session.blocking import MARKER, UNDELIVERED, is_failed_on_oauth, required
from harness.reference.session.blocking import blocked_values as blocked_values_rule
from harness.reference.session.injection import NOTICE
from harness.reference.session.jobs import Job
from harness.reference.session.ladder import stamp
from harness.reference.session.resume import decide_under_lock as decide_under_lock_rule
from harness.reference.session.resume import facts_of
from harness.reference.session.resume import handed_over as handed_over_rule
from harness.reference.session.resume_decision import Decided, decide
from harness.reference.session.resume_decision import attachments as attachments_rule
from harness.reference.session.resume_decision import delivered as delivered_rule
from harness.reference.session.resume_decision import instead_of as instead_of_rule
from harness.reference.session.resume_decision import progressed as progressed_rule
from harness.reference.session.resume_decision import replayed as replayed_rule
from harness.reference.session.resume_decision import resumed as resumed_rule
from harness.reference.session.resume_decision import to_be_reconnected as to_be_reconnected_rule
from harness.reference.session.stale import STALE_RETRY_KEYS
from harness.reference.session.timeline import Line
from harness.requirements.variants import variant

DECISION = "harness.reference.session.resume_decision"
RESUME = "harness.reference.session.resume"
BLOCKING = "harness.reference.session.blocking"
INJECTION = "harness.reference.session.injection"


@variant(f"{DECISION}:progressed", catches=("gate-completion-resumes-session", "resume-only-when-all-authorized"))
def the_session_stays_failed(values, facts):
    """Stores the credential and does no more."""
    decided = progressed_rule(values, facts)
    return Decided("partial", values) if decided.result == "resumed" else decided


@variant(
    f"{DECISION}:progressed",
    catches=("resume-only-when-all-authorized", "gate-completion-resumes-session", "resume-waits-for-open-flow"),
)
def the_first_authorization_resumes(values, facts):
    """Parks again at the gate."""
    return resumed_rule(values)


@variant(f"{RESUME}:open_flows", catches=("resume-waits-for-open-flow",))
def open_consents_are_not_looked_at(flows, session, now, completed):
    """Two tabs race the resume."""
    return ()


@variant(f"{RESUME}:open_flows", catches=("resume-waits-for-open-flow",))
def an_expired_consent_holds_the_session_for_ever(flows, session, now, completed):
    """Looks at no expiry."""
    return tuple(flow for flow in flows if flow.session == session)


@variant(
    f"{RESUME}:rekeyed",
    catches=("gate-completion-resumes-session", "gate-ui-offers-authorize", "gate-fatal-is-human-resolvable"),
)
def a_list_keeps_the_key_of_before_an_edit(values, server_name, credential_key):
    """Waits for the credential of an entry that the catalog does not have any more."""
    return values


@variant(f"{RESUME}:close_flow", catches=("resume-waits-for-open-flow",))
async def the_other_tabs_consent_stays_open(world, transaction, session, server_name):
    """Leaves a consent that nobody needs, so that the next server's waits for it."""
    return False


@variant(f"{RESUME}:open_flows", catches=("resume-waits-for-open-flow",))
def the_other_tabs_consent_parks_the_session(flows, session, now, completed):
    """Waits for a consent to what was consented to a moment ago."""
    return tuple(flow for flow in flows if flow.session == session and flow.expires_at > now)


@variant(f"{DECISION}:unblocked", catches=("resume-clears-block-metadata", "gate-completion-resumes-session"))
def the_list_is_left(values):
    """A stale banner."""
    return rows.with_metadata(values, {**rows.metadata(values), "oauth_complete": True, "failure_reason": None})


@variant(f"{BLOCKING}:is_parked", catches=("resume-not-blocked-states", "reconnect-respawn-only-blocked"))
def whatever_has_the_list_is_parked(values):
    """Resumes a session that failed for another reason."""
    return bool(required(values))


@variant(f"{BLOCKING}:is_parked", catches=("resume-not-blocked-states", "reconnect-respawn-only-blocked"))
def a_waiting_session_is_not_parked(values):
    """Looks at failed ones alone."""
    return is_failed_on_oauth(values)


@variant(f"{RESUME}:decide_under_lock", catches=("resume-idempotent-under-race",))
async def the_decision_is_taken_without_a_lock(world, session, deployment, server_name):
    """Reads, decides, writes: two agents on one clone."""
    values = await rows.read(world, session)
    decided = decide(values, await facts_of(world, session, values, deployment, server_name))
    await all_flows(world)
    transaction = await world.store.begin()
    if decided.job is not None:
        await jobs.enqueue(transaction, jobs.new_id(world), session, decided.job, world.clock.now())
    await transaction.put(rows.TABLE, session, decided.values)
    await transaction.commit()
    return decided


# --- what runs


@variant(
    f"{DECISION}:resumed",
    catches=(
        "resume-asks-marker-first",
        "resume-owed-delivers-follow-up",
        "resume-no-original-rerun",
        "resume-repeat-block-keeps-marker",
    ),
)
def the_stored_prompt_always_runs(values):
    """Drops the message without a word, and does the work again."""
    return replayed_rule(values)


@variant(f"{DECISION}:delivered", catches=("resume-owed-prompt-raw", "resume-owed-delivers-follow-up"))
def the_marker_holds_what_was_built(values, owed):
    """Wraps the message, and wraps it again next time."""
    return delivered_rule(values, f"<info>\n{owed}")


@variant(f"{DECISION}:replayed", catches=("resume-nothing-owed-replays",))
def an_empty_follow_up_runs(values):
    """Where nothing is owed."""
    return replayed_rule(values)._replace(job=Job("follow_up", ""))


@variant(f"{DECISION}:instead_of", catches=("resume-no-session-id-runs-first-turn",))
def the_message_is_delivered_into_nothing(values, owed):
    """The job takes it for a fresh start."""
    return delivered_rule(values, owed)


@variant(
    f"{DECISION}:instead_of",
    catches=("resume-no-session-id-warning", "resume-silent-substitution-forbidden", "resume-prompt-conservation"),
)
def the_substitution_is_silent(values, owed):
    """Says nothing."""
    return instead_of_rule(values, owed)._replace(lines=())


@variant(f"{DECISION}:instead_of", catches=("resume-undelivered-moved",))
def the_marker_is_copied_and_stands(values, owed):
    """Promises a delivery that will not come."""
    decided = instead_of_rule(values, owed)
    noted = {**rows.metadata(decided.values), MARKER: owed}
    return decided._replace(values=rows.with_metadata(decided.values, noted))


@variant(f"{BLOCKING}:quoting", catches=("resume-no-session-id-quote-cap",))
def a_message_is_quoted_without_a_bound(what, message):
    """However long."""
    return Line("warn", "undelivered_follow_up", f"{what}:\n{message}")


@variant(f"{DECISION}:resumed", catches=("resume-undelivered-never-consumed",))
def what_was_not_delivered_is_owed_after_all(values):
    """Falls back to the text that was kept."""
    kept = rows.metadata(values).get(UNDELIVERED)
    return resumed_rule(values) if kept is None else delivered_rule(values, kept)


@variant(
    "harness.reference.session.stale:without_stale_keys",
    catches=("resume-deliver-order", "resume-marker-survives-recovery-keys"),
)
def the_marker_is_stale_too(metadata):
    """Loses the message on a deploy."""
    gone = {*STALE_RETRY_KEYS, MARKER, UNDELIVERED}
    return {key: kept for key, kept in metadata.items() if key not in gone}


@variant(f"{DECISION}:deliver_follow_up", catches=("resume-deliver-order",))
def stale_keys_are_kept(values, prompt):
    """The next failure finds its budget spent."""
    return rows.with_metadata({**values, "status": "running"}, {**rows.metadata(values), MARKER: prompt})


@variant(
    f"{DECISION}:first_turn_images", catches=("resume-attachments-first-turn-only", "reconnect-transcript-empty-gate")
)
def attachments_go_with_every_replay(values):
    """Whether the turn that they belong to has run or not."""
    return attachments_rule(values)


@variant(
    f"{DECISION}:delivered", catches=("resume-attachments-first-turn-only", "reconnect-follow-up-says-left-behind")
)
def attachments_stay_behind_in_silence(values, owed):
    """Drops them without a line."""
    return delivered_rule(values, owed)._replace(lines=())


# --- a live session


@variant(f"{DECISION}:to_be_reconnected", catches=("resume-live-session-reconnect-notice",))
def a_follow_up_is_enqueued_into_a_running_session(values, named, now):
    """Two processes on one session."""
    return to_be_reconnected_rule(values, named, now)._replace(job=Job("follow_up", "carry on"))


@variant(f"{DECISION}:to_be_reconnected", catches=("resume-live-session-reconnect-notice",))
def each_authorization_is_told_again(values, named, now):
    """Appends and logs each time."""
    decided = to_be_reconnected_rule(rows.with_metadata(values, {}), named, now)
    servers = [*(rows.metadata(values).get(NOTICE) or {}).get("servers", ()), named]
    notice = {NOTICE: {"servers": servers, "authorized_at": stamp(now)}}
    return decided._replace(values=rows.with_metadata(values, {**rows.metadata(values), **notice}))


@variant(f"{DECISION}:to_be_reconnected", catches=("reconnect-live-status-unchanged",))
def a_live_session_waits_from_now_on(values, named, now):
    """Moves it."""
    decided = to_be_reconnected_rule(values, named, now)
    return decided._replace(values={**decided.values, "status": "waiting"})


@variant(f"{DECISION}:to_be_reconnected", catches=("reconnect-live-injects-now", "reconnect-live-clears-needs-auth"))
def the_credential_waits_for_the_next_spawn(values, named, now):
    """Leaves the store and the memory of refusals as they are."""
    return to_be_reconnected_rule(values, named, now)._replace(is_injected=False)


@variant(f"{RESUME}:resume_after_authorization", catches=("reconnect-live-injection-best-effort",))
async def the_notice_waits_for_the_store(world, session, deployment, server_name):
    """A store that cannot be written leaves no trace of the renewed grant."""
    if not await handed_over_rule(world, session, deployment, server_name):
        return "not_blocked"
    return (await decide_under_lock_rule(world, session, deployment, server_name)).result


@variant(f"{INJECTION}:note_spawn", catches=("reconnect-notice-cleared-by-spawn",))
async def the_notice_outlives_the_spawn(world, order):
    """It speaks of a process that is gone."""
    return


@variant(f"{BLOCKING}:blocked_values", catches=("reconnect-notice-cleared-by-spawn",))
def a_blocked_turn_spends_the_notice(values, servers, turn):
    """Leaves no trace of the renewed grant."""
    kept = {key: value for key, value in rows.metadata(values).items() if key != NOTICE}
    return blocked_values_rule(rows.with_metadata(values, kept), servers, turn)


# --- an Authorize click on a server that is authorized already


@variant("harness.reference.oauth.initiation:is_authorized", catches=("gate-initiate-short-circuits",))
async def a_flow_is_always_started(world, entry):
    """Asks for a consent that is there."""
    return False


@variant(
    "harness.reference.oauth.web:is_retried",
    catches=("gate-initiate-short-circuit-retries", "reconnect-parked-release-via-own-initiate"),
)
async def the_click_does_nothing(world, deps, name, session):
    """Redirects straight back."""
    return False


@variant(
    "harness.reference.oauth.web:is_retried",
    catches=("gate-initiate-short-circuit-retries", "reconnect-reinject-failure-keeps-parked"),
)
async def a_retry_is_promised_whatever_comes_of_the_store(world, deps, name, session):
    """Resumes without the credential on disk."""
    decided = await decide_under_lock_rule(world, session, deps, name)
    return decided.result == "resumed"
