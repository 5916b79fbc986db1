"""Old or plausible bugs around the words of a turn, and around sessions that nobody works for."""

from __future__ import annotations

from dataclasses import replace

from harness.reference.session import rows
from harness.reference.session.blocking import MARKER, Turn
from harness.reference.session.blocking import without_conversation as without_conversation_rule
from harness.reference.session.command_line import Said
from harness.reference.session.command_line import command_line as command_line_rule
from harness.reference.session.prompt_block import with_block
from harness.reference.session.prompts import is_nudge
from harness.reference.session.sweep import taken_up as taken_up_rule
from harness.requirements.variants import variant

COMMAND_LINE = "harness.reference.session.command_line"
BLOCKING = "harness.reference.session.blocking"
SWEEP = "harness.reference.session.sweep"
JOB = "harness.reference.session.job"
LADDER = "harness.reference.session.ladder"


# --- what is said


@variant(f"{COMMAND_LINE}:reclassified", catches=("resume-job-reclassifies-no-session",))
async def the_message_is_sent_all_the_same(world, order, owed):
    """An agent that has never seen its task answers to what is said about it."""
    return order


@variant(f"{COMMAND_LINE}:keep_undelivered", catches=("resume-silent-substitution-forbidden",))
async def the_prompts_are_swapped_silently(world, session, owed):
    """Runs the first turn, and says nothing of the message."""


@variant(f"{COMMAND_LINE}:continuing", catches=("resume-no-original-rerun", "failure-nudge-system-recovery"))
def every_turn_is_a_new_conversation(runtime, conversation):
    """Forgets what was said before."""
    return ()


@variant(f"{COMMAND_LINE}:said_now", catches=("failure-nudge-never-started-runs-original",))
def who_was_never_heard_is_told_to_carry_on(order, first, conversation):
    """Says that it may have been interrupted to an agent that has never seen its task."""
    return Said(order.follow_up or order.prompts.recovery, conversation)


@variant(f"{JOB}:go_on", catches=("failure-nudge-system-recovery",))
async def the_original_prompt_is_replayed(world, order, decision, launched):
    """Two hours of work are begun from the start."""
    return replace(order, follow_up=None)


# --- the block


@variant(f"{COMMAND_LINE}:command_line", catches=("failure-block-on-every-prompt",))
def only_a_nudge_has_the_block(order, values):
    """Tells the agent once, in the turn that follows the outage."""
    if is_nudge(order.follow_up, order.prompts):
        return command_line_rule(order, values)
    return command_line_rule(order, rows.with_metadata(values, {}))


@variant(f"{COMMAND_LINE}:command_line", catches=("failure-block-not-persisted",))
def the_block_is_kept_with_the_prompt(order, values):
    """Appends it to what is stored, to which it is appended again."""
    kept = replace(order, prompt=with_block(order.prompt or "", rows.metadata(values).get(rows.DEGRADED) or ()))
    return command_line_rule(kept, values)


copies: dict[str, rows.Values] = {}


@variant(f"{COMMAND_LINE}:command_line", catches=("failure-block-gone-after-retire",))
def the_block_is_made_from_a_copy_of_the_session(order, values):
    """The row as it was when the session began."""
    if order.follow_up is None:
        copies[order.session] = rows.metadata(values)
    return command_line_rule(order, rows.with_metadata(values, copies.get(order.session, rows.metadata(values))))


# --- what is owed


@variant(f"{BLOCKING}:owed_message", catches=("failure-nudge-not-a-pending-follow-up",))
def a_nudge_is_owed_as_a_message_is(turn: Turn):
    """Delivers the recovery text later as if a human had sent it."""
    return turn.follow_up


@variant(f"{LADDER}:after_stability", catches=("failure-ladder-reset-after-stable",))
def a_ladder_is_never_handed_back(metadata):
    """A server that flaps once a day is left out on the fourth day."""
    return metadata


# --- orphans


@variant(f"{BLOCKING}:without_conversation", catches=("resume-undelivered-reapable",))
def the_marker_is_left_standing(values, owed):
    """Promises a delivery that never comes, so that the orphan waits for ever."""
    moved, warning = without_conversation_rule(values, owed)
    return rows.with_metadata(moved, {**rows.metadata(moved), MARKER: owed}), warning


@variant(f"{SWEEP}:is_orphaned", catches=("resume-undelivered-reapable",))
def a_delivery_in_flight_is_no_reason_to_wait(values):
    """Takes up a session to which a message is on its way."""
    return values.get("status") in ("running", "waiting")


@variant(f"{SWEEP}:taken_up", catches=("failure-stale-orphan-keeps-record",))
def the_sweep_forgets_everything(values):
    """Resets the whole metadata, so that the dead server burns its ladder again."""
    return rows.with_metadata(taken_up_rule(values), {})
