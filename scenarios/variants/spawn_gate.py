"""Known-bad variants of the check before a spawn, of what a block leaves, and of what is injected."""

from __future__ import annotations

import json
from typing import cast

from harness.reference.credentials import table
from harness.reference.credentials.authorized import key_of as key_of_rule
from harness.reference.credentials.state import state_at
from harness.reference.credentials.writers import needs_auth
from harness.reference.oauth.capability import oauth_capable
from harness.reference.oauth.check import Check, check_oauth_requirement, undetermined
from harness.reference.oauth.consent import hosted_callback
from harness.reference.oauth.requirement import Determination, recorded
from harness.reference.oauth.server import remote_server
from harness.reference.readiness.contained import contained
from harness.reference.session import rows
from harness.reference.session.blocking import Blocked, required
from harness.reference.session.blocking import blocked_lines as blocked_lines_rule
from harness.reference.session.blocking import blocked_values as blocked_values_rule
from harness.reference.session.blocking import offered as offered_rule
from harness.reference.session.gate import Judged, Status
from harness.reference.session.gate import answer_of as answer_of_rule
from harness.reference.session.gate import ask as ask_rule
from harness.reference.session.gate import check as check_rule
from harness.reference.session.gate import is_listed as is_listed_rule
from harness.reference.session.gate import reason_to_block as reason_to_block_rule
from harness.reference.session.gate import status_of as status_of_rule
from harness.reference.session.injection import inject as inject_rule
from harness.reference.session.timeline import Line
from harness.requirements.variants import variant

GATE = "harness.reference.session.gate"
BLOCKING = "harness.reference.session.blocking"
INJECTION = "harness.reference.session.injection"
AUTHORIZED = "harness.reference.credentials.authorized"
PROMPTS = "harness.reference.session.prompts"
JOB = "harness.reference.session.job"


# --- when, and who


@variant(f"{GATE}:check", catches=("gate-runs-before-every-spawn", "resume-door-follow-up-owes-message"))
async def only_the_first_turn_is_checked(world, order, ready):
    """Lets a follow-up start on a dead credential."""
    return Judged() if order.follow_up is not None else await check_rule(world, order, ready)


@variant(f"{GATE}:is_listed", catches=("gate-looks-at-remote-types-only",))
def a_server_that_streams_is_not_looked_at(entry):
    """Omits `sse`."""
    return entry.type != "sse" and is_listed_rule(entry)


@variant(f"{GATE}:is_listed", catches=("gate-skips-static-header-servers", "gate-single-predicate"))
def every_remote_server_is_looked_at(entry):
    """Whatever headers it has."""
    return entry.remote and entry.unavailable is None


@variant(f"{GATE}:is_listed", catches=("gate-skips-declared-unavailable",))
def a_declared_server_is_looked_at_too(entry):
    """Parks a session on a server that nobody can authorize."""
    return oauth_capable(entry.raw)


@variant(f"{GATE}:listed_servers", catches=("gate-selection-is-session-set",))
def the_whole_catalog_is_judged(order, ready):
    """Walks the catalog."""
    return tuple(
        remote_server(entry, order.lookup) for entry in order.catalog.entries.values() if is_listed_rule(entry)
    )


@variant(f"{GATE}:listed_servers", catches=("gate-excludes-injected-servers",))
def injected_servers_are_judged_as_others(order, ready):
    """Takes whatever name is on the list."""
    entries = (order.catalog.find(name) for name in ready.selected)
    return tuple(remote_server(entry, order.lookup) for entry in entries if entry is not None and is_listed_rule(entry))


@variant(f"{GATE}:is_possible", catches=("gate-skips-declared-unavailable",))
def a_server_that_the_runtime_cannot_have_is_looked_at_too(runtime, entry):
    """Parks a session on a server that no sign-in brings into it."""
    return True


# --- judging by what is stored


@variant(f"{GATE}:verdict", catches=("gate-valid-credential-skips-probe",))
def every_server_is_asked_each_time(status):
    """Probes whatever is stored."""
    return "ask"


@variant(f"{GATE}:adopted", catches=("gate-expired-refresh-before-judging",))
async def the_stored_token_is_spent_before_the_runtimes_is_looked_at(world, reconciler, key):
    """Refreshes with a token that the runtime has rotated away."""
    return await table.find(world, key)


@variant(f"{GATE}:renewed", catches=("gate-expired-refresh-before-judging",))
async def an_expired_row_is_judged_as_it_is(world, rows):
    """Tries no refresh."""
    return dict(rows)


@variant(f"{GATE}:status_of", catches=("gate-near-expiry-not-blocking",))
def what_expires_soon_is_invalid(row, now, *, preregistered=False):
    """Blocks on an active credential."""
    status = status_of_rule(row, now, preregistered=preregistered)
    soon = row is not None and state_at(row, now).needs_refresh
    return status._replace(credential_valid=False, refresh_failed=True) if soon else status


@variant(f"{INJECTION}:is_renewed_here", catches=("gate-near-expiry-not-blocking",))
def nothing_is_renewed_at_the_injection(row, now):
    """Hands over a token with minutes left."""
    return False


@variant(f"{GATE}:reason_to_block", catches=("gate-requires-reauth-blocks",))
def a_dead_credential_is_probed(status):
    """Falls through to the probe, which may not know, and the session starts without a token."""
    return None if status.requires_reauth else reason_to_block_rule(status)


@variant(f"{GATE}:reason_to_block", catches=("gate-refresh-failed-blocks",))
def a_failed_renewal_is_probed(status):
    """Takes a token endpoint that is down for no reason to stop."""
    return None if status.refresh_failed else reason_to_block_rule(status)


@variant(f"{GATE}:is_preregistered", catches=("gate-preregistered-blocks-no-probe",))
def a_client_by_hand_says_nothing(order, server):
    """Asks the server, whose bare answer is 400."""
    return False


# --- asking


@variant(f"{GATE}:ask", catches=("gate-probes-live-when-unknown",))
async def a_recorded_answer_spares_the_probe(world, order, server):
    """Takes the record for a cache."""
    known = await recorded(world, server.credential_key)
    if known is None:
        return await ask_rule(world, order, server)
    answer = cast("Determination", known.determination)
    return Check(answer == "advertised_required", answer)


@variant(f"{GATE}:answer_of", catches=("gate-advertised-required-blocks",))
def a_challenge_without_metadata_is_no_requirement(world, server, task):
    """Blocks only where documents were found."""
    found = answer_of_rule(world, server, task)
    return undetermined("no metadata") if found.required and found.discovered is None else found


@variant(f"{GATE}:blocks", catches=("gate-not-required-proceeds", "gate-probe-exception-never-blocks"))
def a_server_that_could_not_be_asked_blocks(determination):
    """Lets an unreachable optional server stop the session."""
    return determination != "advertised_not_required"


@variant(f"{GATE}:answer_of", catches=("gate-probe-exception-never-blocks",))
def a_probe_that_raises_is_a_requirement(world, server, task):
    """Fails the session on an exception."""
    crashed = task.done and contained(task.result).error is not None
    return Check(required=True, determination="advertised_required") if crashed else answer_of_rule(world, server, task)


@variant(f"{GATE}:ask_all", catches=("gate-probe-bounded",))
async def servers_are_asked_one_after_the_other(world, order, servers):
    """Waits for each silent server in turn, however long."""
    reasons = {}
    for server in servers:
        found = await ask_rule(world, order, server)
        reasons[server.name] = "asks for a sign-in" if found.required else None
    return reasons


@variant(f"{GATE}:ask_all", catches=("gate-record-no-secrets",))
async def the_whole_answer_of_a_probe_is_recorded(world, order, servers):
    """Registers a client for each spawn, and keeps its secret in the session."""
    reasons = {}
    for server in servers:
        found = await check_oauth_requirement(
            world, server, configured=None, redirect_uri=hosted_callback(None), registers=True
        )
        reasons[server.name] = json.dumps([found.discovered, found.client]) if found.required else None
    return reasons


# --- blocked


@variant(f"{GATE}:check", catches=("gate-one-blocked-blocks-all",))
async def the_usable_servers_run_without_the_blocked_one(world, order, ready):
    """Spawns with what there is."""
    judged = await check_rule(world, order, ready)
    return judged._replace(blocked=()) if judged.usable else judged


@variant(f"{GATE}:check", catches=("gate-blocked-session-fails-fast",))
async def the_runtime_prints_its_login_instruction(world, order, ready):
    """Spawns anyway."""
    return (await check_rule(world, order, ready))._replace(blocked=())


@variant(f"{GATE}:check", catches=("gate-blocked-records-servers",))
async def every_listed_server_is_recorded(world, order, ready):
    """An Authorize button on servers that need none."""
    judged = await check_rule(world, order, ready)
    everyone = tuple(Blocked(each.name, each.entry.url, each.credential_key, "blocked") for each in judged.listed)
    return judged._replace(blocked=everyone if judged.blocked else ())


@variant(f"{BLOCKING}:blocked_values", catches=("gate-clears-running-job-on-block",))
def the_job_stays_recorded(values, servers, turn):
    """The orphan sweep takes the session for alive."""
    return {**blocked_values_rule(values, servers, turn), "running_job_id": values.get("running_job_id")}


@variant(f"{BLOCKING}:handed_back", catches=("resume-door-follow-up-owes-message", "resume-prompt-conservation"))
def the_message_is_lost_with_the_job(turn):
    """Lets the job return and forgets its argument."""
    return {}


@variant(f"{BLOCKING}:owed_message", catches=("resume-nudge-dropped", "resume-nudge-keeps-older-marker"))
def every_prompt_is_handed_back(turn):
    """A stale "carry on" is delivered hours later."""
    return turn.follow_up


@variant(f"{BLOCKING}:blocked_values", catches=("resume-door-first-turn-owes-nothing",))
def a_first_turn_is_owed_as_a_follow_up(values, servers, turn):
    """Stamps the stored prompt, for a conversation that does not exist."""
    after = blocked_values_rule(values, servers, turn)
    if turn.follow_up is not None:
        return after
    return rows.with_metadata(after, {**rows.metadata(after), "pending_follow_up_prompt": str(values.get("prompt"))})


@variant(f"{BLOCKING}:blocked_lines", catches=("resume-follow-up-log-line",))
def a_follow_up_is_told_as_a_first_turn(values, servers, turn):
    """One wording for both."""
    lines = blocked_lines_rule(values, servers, turn)
    names = ", ".join(server.server_name for server in servers)
    return [Line("error", "blocked", f"OAuth authorization required for MCP servers: {names}"), *lines[1:]]


@variant(f"{BLOCKING}:blocked_lines", catches=("resume-follow-up-timeline-notice", "resume-prompt-conservation"))
def nothing_is_said_of_the_message(values, servers, turn):
    """The human believes that it arrived."""
    return blocked_lines_rule(values, servers, turn)[:1]


@variant(f"{BLOCKING}:block", catches=("resume-marker-before-fail",))
async def the_session_fails_first_and_the_message_is_stamped_afterwards(world, session, servers, turn):
    """Two writes, and a crash in between."""
    failed = turn._replace(follow_up=None)
    await rows.change(world, session, lambda values: blocked_values_rule(values, servers, failed))
    await rows.change(world, session, lambda values: blocked_values_rule(values, servers, turn))
    world.events.emit("session.blocked", servers=[server.server_name for server in servers])


@variant(f"{BLOCKING}:block", catches=("resume-nothing-requeues-blocked-job",))
async def a_blocked_job_is_enqueued_again(world, session, servers, turn):
    """It spins on the gate."""
    await rows.change(world, session, lambda values: blocked_values_rule(values, servers, turn))
    transaction = await world.store.begin()
    await transaction.put("jobs", "again", {"session": session, "kind": "follow_up", "prompt": turn.follow_up})
    await transaction.commit()


@variant(f"{PROMPTS}:is_nudge", catches=("resume-nudge-definition",))
def whatever_the_system_wrote_is_a_nudge(prompt, prompts):
    """Loses the message about a merge conflict."""
    return prompt is not None and (prompt.startswith(("The ", "There ")) or prompts.recovery in prompt)


@variant(f"{PROMPTS}:is_nudge", catches=("resume-heartbeat-not-stamped", "resume-nudge-definition"))
def a_beat_is_a_message_as_any_other(prompt, prompts):
    """A late beat is replayed."""
    return prompt is not None and prompt.startswith(prompts.recovery)


@variant(f"{JOB}:delivered", catches=("resume-marker-meaning",))
async def the_marker_outlives_the_delivery(world, order):
    """The message is delivered once more by whoever finds it."""
    return


# --- the page, and the predicate


@variant(f"{BLOCKING}:offered", catches=("gate-ui-offers-authorize",))
def one_button_for_all(values, authorized):
    """Renders a single action."""
    return offered_rule(values, authorized)[:1]


@variant(f"{BLOCKING}:offered", catches=("gate-banner-filters-stale-entries", "gate-required-entry-shape"))
def the_list_is_rendered_as_stored(values, authorized):
    """A button that can only redirect straight back."""
    return required(values)


@variant(f"{AUTHORIZED}:is_unexpired", catches=("gate-authorized-predicate",))
def any_row_counts(expires_at, now):
    """Expired or not."""
    return True


@variant(f"{AUTHORIZED}:key_of", catches=("gate-authorized-key-resolution",))
def rows_are_found_by_name(required, entry):
    """The catalog's key whatever was recorded, and none beside it."""
    return None if entry is None else key_of_rule({"server_name": required.get("server_name")}, entry)


@variant(f"{AUTHORIZED}:key_of", catches=("gate-required-entry-shape", "gate-authorized-key-resolution"))
def an_entry_without_a_key_is_not_read(required, entry):
    """Drops what the failure classifier wrote."""
    return key_of_rule(required, entry) if required.get("credential_key") else None


# --- injecting


@variant(f"{INJECTION}:clear_needs_auth", catches=("gate-inject-clears-needs-auth",))
async def the_memory_of_refusals_is_left(world, writer, names):
    """Clears it only after a failure."""
    return


@variant(f"{INJECTION}:clear_needs_auth", catches=("gate-needs-auth-clear-best-effort",))
async def a_memory_that_cannot_be_cleared_aborts_the_spawn(world, writer, names):
    """Lets the error through."""
    await needs_auth.struck_off(world, writer.directory, names)


@variant(f"{INJECTION}:clear_needs_auth", catches=("gate-needs-auth-clear-by-name", "gate-inject-clears-needs-auth"))
async def the_memory_is_searched_by_credential_key(world, writer, names):
    """Never finds anything."""
    await writer.clear_needs_auth(world, [f"{name}|0123456789abcdef" for name in names])


@variant(f"{INJECTION}:inject", catches=("gate-needs-auth-clear-whole-spawn",))
async def only_servers_with_a_row_are_struck_off(world, order, ready, judged, variables):
    """A namesake's refusal keeps a server with a key of its own away."""
    if judged.usable:
        await inject_rule(world, order, ready, judged, variables)


@variant(f"{GATE}:status_of", catches=("gate-requires-reauth-blocks",))
def a_row_is_a_valid_credential(row, now, *, preregistered=False):
    """Whatever its expiry says."""
    return Status(row is not None, row is not None, has_preregistered_oauth=preregistered)
