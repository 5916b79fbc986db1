"""Known-bad variants of how a server is left out: the ladder, the record, the words of a child, what is told."""

from __future__ import annotations

import re

from harness.reference.session import ladder, rows
from harness.reference.session.failed_handshakes import decided as decided_rule
from harness.reference.session.failed_handshakes import lines_of as lines_of_rule
from harness.reference.session.gate import Judged
from harness.reference.session.job import heal_failed as heal_failed_rule
from harness.reference.session.ladder import climb as climb_rule
from harness.reference.session.ladder import retired as retired_rule
from harness.reference.session.ladder import with_verdicts as with_verdicts_rule
from harness.reference.session.prompt_block import block as block_rule
from harness.reference.session.refusals import AUTH_ERROR, REFUSED_CREDENTIAL, STDERR_MARKER
from harness.reference.session.refusals import is_refusal as is_refusal_rule
from harness.reference.session.refusals import is_stderr_rejected as is_stderr_rejected_rule
from harness.reference.session.refusals import segments as segments_rule
from harness.reference.session.routes import cause_of as cause_of_rule
from harness.reference.session.stale import is_stale as is_stale_rule
from harness.requirements.variants import variant

ROUTES = "harness.reference.session.routes"
PASS = "harness.reference.session.failed_handshakes"
REFUSALS = "harness.reference.session.refusals"
LADDER = "harness.reference.session.ladder"
INJECTION = "harness.reference.session.injection"
EDIT = "harness.reference.session.selection_edit"
BLOCK = "harness.reference.session.prompt_block"
SHOWN = "harness.reference.session.shown_errors"
STALE = "harness.reference.session.stale"
JOB = "harness.reference.session.job"


# --- what is told, and what is kept


@variant(f"{PASS}:lines_of", catches=("gate-static-rejection-log", "failure-static-log-names-variables"))
def a_server_failed_is_all_that_is_said(decision, failures, classes):
    """Names neither the words nor the variables."""
    return [line._replace(text="A server failed.") for line in lines_of_rule(decision, failures, classes)]


@variant(f"{SHOWN}:redacted", catches=("gate-static-rejection-log", "failure-record-no-secret-values"))
def the_words_are_copied_verbatim(text, secrets):
    """Whatever the server was given in confidence."""
    return text


@variant(f"{PASS}:lines_of", catches=("failure-log-level-not-error",))
def every_failure_is_an_error(decision, failures, classes):
    """Wakes somebody for a server that heals itself."""
    return [line._replace(level="error") for line in lines_of_rule(decision, failures, classes)]


@variant(f"{ROUTES}:all_on", catches=("failure-single-resume-per-pass",))
def every_server_is_on_both_ways(taken, names):
    """Enqueues a job for each."""
    return dict.fromkeys(names, "degrade")


@variant(f"{PASS}:decided", catches=("failure-mixed-pass-single-write", "failure-ladder-counter-fields"))
async def the_record_is_written_after_the_retry(world, order, failures, classes, turn):
    """Two writes, with a point between them at which a crash forgets the verdict."""
    calm = {name: found for name, found in classes.items() if found != "rejected"}
    rejected = [failure for failure in failures if classes.get(failure.name) == "rejected"]
    await decided_rule(world, order, [each for each in failures if each not in rejected], calm, turn)
    await world.clock.sleep(0.5)
    return await decided_rule(world, order, rejected, classes, turn)


@variant(f"{LADDER}:with_verdicts", catches=("failure-record-replaces-same-name", "failure-record-key-and-fields"))
def verdicts_are_appended(record, verdicts, at):
    """Lists a server twice."""
    made = with_verdicts_rule((), verdicts, at)
    return [*record, *made]


@variant(
    f"{LADDER}:left_out",
    catches=("failure-exhaustion-reason-text", "failure-record-own-reason", "failure-exhaustion-degrades",
             "gate-verdict-per-server"),
)  # fmt: skip
def the_last_reason_counts_for_all(metadata, failed, now_seconds, reason=ladder.EXHAUSTED):
    """Tells one reason for the whole pass."""
    noted = [{**each, "reason": reason} for each in metadata.get(ladder.DEGRADED) or ()]
    verdicts = [ladder.LeftOut(name, error, ladder.REJECTED) for name, error in failed.items()]
    record = with_verdicts_rule(noted, verdicts, ladder.stamp(now_seconds))
    return {**metadata, ladder.PAUSED_BY: "recovery", ladder.DEGRADED: record}


@variant(f"{LADDER}:with_verdicts", catches=("failure-record-error-kept",))
def only_the_name_is_recorded(record, verdicts, at):
    """Drops what was said."""
    return with_verdicts_rule(record, [verdict._replace(error=None) for verdict in verdicts], at)


@variant(f"{LADDER}:news", catches=("failure-record-repeat-is-noop", "failure-record-old-plus-new"))
def what_is_left_out_is_news_again(metadata, failed):
    """Terminates and resumes for the same dead server, and stamps it anew."""
    return dict(failed)


@variant(
    f"{LADDER}:climb",
    catches=("failure-ladder-three-attempts", "failure-ladder-total-schedule", "failure-ladder-bounded",
             "failure-ladder-empty-set-retries", "failure-ladder-backoff-is-not-stable"),
)  # fmt: skip
def a_fourth_retry_is_allowed(metadata, new, now_seconds):
    """Counts from minus one."""
    before = ladder.retries_made(metadata)
    made = climb_rule({**metadata, ladder.COUNT: before - 1, ladder.DEGRADED: []}, new, now_seconds)
    kept = {**made.metadata, ladder.DEGRADED: metadata.get(ladder.DEGRADED) or made.metadata.get(ladder.DEGRADED) or []}
    count = min(before + 1, 4) if made.route == "retry" else before
    return made._replace(metadata={**kept, ladder.COUNT: count})


@variant(f"{LADDER}:climb", catches=("failure-ladder-delays", "failure-ladder-total-schedule"))
def the_delays_double_once_more(metadata, new, now_seconds):
    """60, 120 and 240 seconds."""
    made = climb_rule(metadata, new, now_seconds)
    return made._replace(after_seconds=made.after_seconds * 2)


@variant(
    f"{LADDER}:retired",
    catches=("failure-retire-on-connected", "failure-retire-only-connected", "failure-retire-others-stay"),
)
def the_first_that_reconnects_clears_the_record(metadata, connected):
    """Forgets those that are still dead."""
    return retired_rule(metadata, ladder.recorded_names(metadata))


@variant(f"{LADDER}:retired", catches=("failure-retire-on-connected",))
def nothing_retires_a_record(metadata, connected):
    """Keeps saying that the tools are gone."""
    return metadata


@variant(
    f"{STALE}:is_stale",
    catches=("failure-stale-excludes-record", "failure-stale-keys-members", "failure-stale-cleared-as-a-set"),
)
def a_recovery_forgets_who_is_left_out(key):
    """Lets the dead server burn the ladder again."""
    return key == ladder.DEGRADED or (is_stale_rule(key) and key != ladder.COUNT)


# --- the heal


@variant(
    f"{JOB}:heal_failed", catches=("failure-heal-on-retry", "failure-heal-on-degrade", "failure-heal-whole-failed-set")
)
async def nothing_is_healed(world, order, errors):
    """Spawns over the same broken tree."""
    return


@variant(f"{JOB}:heal_failed", catches=("failure-heal-whole-failed-set", "failure-replay-slack-and-npx"))
async def only_what_is_retried_is_healed(world, order, errors):
    """Leaves the tree of a server whose key was refused."""
    await heal_failed_rule(world, order, tuple(error for error in errors if not is_stderr_rejected_rule(error)))


# --- the child's own words


@variant(
    f"{REFUSALS}:is_stderr_rejected",
    catches=("failure-stderr-example-blob", "failure-stderr-dialects", "failure-stderr-marker-and-phrase",
             "failure-stderr-newline-not-a-separator", "failure-stderr-phrases", "failure-stderr-marker-any-case",
             "failure-replay-slack-and-npx"),
)  # fmt: skip
def a_childs_words_are_not_read(error):
    """Burns the ladder on a dead key."""
    return False


@variant(
    f"{REFUSALS}:is_stderr_rejected",
    catches=("failure-stderr-same-segment", "failure-stderr-marker-and-phrase"),
)
def marker_and_phrase_may_stand_anywhere(error):
    """Lets the transport's words pass for the child's."""
    text = error or ""
    return STDERR_MARKER.search(text) is not None and REFUSED_CREDENTIAL.search(text) is not None


@variant(f"{REFUSALS}:segments", catches=("failure-stderr-newline-not-a-separator", "failure-stderr-example-blob"))
def lines_are_segments(error):
    """Looks at the marker's own line alone."""
    return tuple(line for part in segments_rule(error) for line in part.replace(": BrightData", ":\n").split("\n"))


@variant(f"{REFUSALS}:is_refusal", catches=("failure-stderr-never-broad-words",))
def the_broad_words_count_for_a_child_too(text):
    """Leaves out a server that mentions a number."""
    return AUTH_ERROR.search(text) is not None or is_refusal_rule(text)


@variant(f"{REFUSALS}:is_refusal", catches=("failure-stderr-not-permission-denied", "failure-stderr-phrases"))
def anything_denied_is_a_refusal(text):
    """Takes the operating system for a provider."""
    return re.search(r"denied|credential|invalid", text, re.IGNORECASE) is not None


@variant(f"{REFUSALS}:is_of_transport", catches=("failure-stderr-marker-any-case",))
def the_marker_has_one_spelling(part):
    """Compares with the case."""
    return "Server stderr:" not in part


@variant(
    f"{ROUTES}:cause_of", catches=("failure-stderr-oauth-capable-keeps-ladder", "gate-post-spawn-nonauth-not-oauth")
)
def a_child_speaks_for_every_server(failing):
    """Parks or leaves out a server that takes OAuth over what it printed."""
    return "unauthorized" if is_stderr_rejected_rule(failing.error) else cause_of_rule(failing)


# --- the prompt


@variant(f"{BLOCK}:with_block", catches=("failure-block-wrapper", "failure-block-bullets", "failure-block-own-reason"))
def nobody_is_told(prompt, record):
    """Lets the agent find out from a tool that is not there."""
    return prompt


@variant(f"{BLOCK}:with_block", catches=("failure-block-absent-when-empty", "failure-block-blank-prompt"))
def a_block_is_always_there(prompt, record):
    """Behind nothing, of nobody."""
    return f"{prompt}\n\n{block_rule(record)}"


@variant(f"{BLOCK}:bullet", catches=("failure-block-bullets", "failure-block-own-reason"))
def one_sentence_for_all(entry):
    """Tells of rejected credentials, whatever it was."""
    return f"- {entry['name']} — their credentials were rejected: "


@variant(f"{BLOCK}:block", catches=("failure-block-instruction",))
def the_list_has_no_instruction(record):
    """Leaves it to the agent what to make of it."""
    lines = block_rule(record).split("\n")
    return "\n".join((*lines[:-2], lines[-1]))


@variant(f"{BLOCK}:flat", catches=("failure-block-cannot-be-broken-out",))
def the_words_of_a_server_go_in_as_they_are(text):
    """Lets a server speak to the agent."""
    return str(text or "")


# --- around the pass


@variant(f"{LADDER}:handed_back", catches=("failure-retire-rearms-ladder",))
def a_spent_counter_survives(metadata):
    """Leaves a server out again at its next blip."""
    return metadata


@variant(f"{JOB}:retire", catches=("failure-record-free-reconnect", "failure-retire-rearms-ladder"))
async def a_mended_server_stays_left_out(world, order, connected):
    """Notes nothing of a server that has come back."""
    return


@variant(f"{LADDER}:climb", catches=("failure-ladder-first-success-ends", "failure-replay-uncalled-fallback"))
def a_server_is_recorded_with_its_first_retry(metadata, new, now_seconds):
    """Writes it off, and forgets to take it back."""
    made = climb_rule(metadata, new, now_seconds)
    return made._replace(route="degrade", after_seconds=0, metadata=ladder.left_out(metadata, new, now_seconds, "gone"))


@variant(f"{PASS}:decided", catches=("failure-record-config-untouched",))
async def a_server_that_is_left_out_leaves_the_selection(world, order, failures, classes, turn):
    """Deletes it, so that it never comes back."""
    decision = await decided_rule(world, order, failures, classes, turn)
    gone = decision.on("degrade")
    await rows.change(
        world,
        order.session,
        lambda values: {**values, "mcp_servers": [name for name in rows.chosen(values) if name not in gone]},
    )
    return decision


@variant("harness.reference.session.gate:is_listed", catches=("failure-gate-remote-may-need-oauth",))
def only_one_type_may_need_a_sign_in(entry):
    """Checks `http` alone."""
    return entry.type == "http"


@variant(
    "harness.reference.session.gate:check",
    catches=("failure-gate-before-spawn", "failure-gate-parks-session", "failure-gate-block-not-degrade"),
)
async def nobody_is_asked_before_the_spawn(world, order, ready):
    """Starts, and leaves out whoever fails."""
    await rows.change(
        world,
        order.session,
        lambda values: rows.with_metadata(values, ladder.left_out(rows.metadata(values), {"notion": None}, 0.0)),
    )
    return Judged()


@variant(f"{LADDER}:is_settled", catches=("failure-ladder-hang-is-not-stable",))
def a_process_that_is_up_is_stable(selected, connected, recorded):
    """Hands the budget back while a server hangs: the ladder never ends."""
    return True


@variant(f"{SHOWN}:without_tokens", catches=("failure-record-no-secret-values",))
def only_what_was_stored_is_a_secret(text):
    """Keeps the token of an answer that nobody could read, as the runtime has logged it."""
    return text
