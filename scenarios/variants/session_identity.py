"""Known-bad variants of what a spawn remembers of a credential, and of the door behind an edit of the selection."""

from __future__ import annotations

from dataclasses import replace

from harness.reference.credentials import owners, table
from harness.reference.session import rows
from harness.reference.session.blocking import MARKER
from harness.reference.session.injection import Change, place_in
from harness.reference.session.injection import hand_over as hand_over_rule
from harness.reference.session.injection import identified as identified_rule
from harness.reference.session.selection_edit import edit_selection as edit_selection_rule
from harness.reference.session.selection_edit import fail_idle as fail_idle_rule
from harness.reference.session.selection_edit import is_idle as is_idle_rule
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


# --- what a spawn remembers


@variant(f"{INJECTION}:forget_old_keys", catches=("reconcile-uses-resolved-identity",))
async def the_old_entry_stays(world, writer, moved):
    """Leaves a second entry for the same row."""
    return


@variant(f"{INJECTION}:given_up", catches=("reconcile-two-rows-one-name",))
async def the_row_of_before_loses_what_was_renewed_of_its_copy(world, writer, reconciler, servers):
    """Takes an entry over without a look at whose it was."""
    known = await owners.owners(world)
    places = {server.credential_key: place_in(writer, server) for server in servers}
    changes = (Change(place, row, known.get(place)) for row, place in places.items())
    return tuple(change for change in changes if change.before != owners.Owner(change.row))


@variant(f"{INJECTION}:note_owners", catches=("reconcile-two-rows-one-name",))
async def an_entry_is_whose_it_was_first(world, writer, changes, staged):
    """Notes an owner once, and none that comes later."""
    for change in changes:
        await owners.note(world, change.place, change.before or owners.Owner(change.row))


@variant(f"{INJECTION}:has_stayed", catches=("reconcile-two-rows-one-name",))
async def whoever_has_written_owns_what_stayed(world, writer, credential):
    """Takes it for certain that what was handed over is what lies there."""
    return False


@variant(f"{INJECTION}:note_successors", catches=("reconcile-two-rows-one-name", "refresh-chain-never-burned"))
async def whose_a_copy_is_is_noted_once_it_lies_there(world, changes, staged):
    """Whoever dies in between leaves one that is anybody's who has its key."""
    return


@variant("harness.reference.credentials.reconcile:settle_owners", catches=("reconcile-two-rows-one-name",))
async def what_a_death_has_left_open_stays_open(world, writers, rows):
    """Waits for the next spawn, while a runtime renews what was written."""
    return


@variant("harness.reference.credentials.owners:rivals", catches=("reconcile-two-rows-one-name",))
async def what_nobody_has_noted_is_every_rows_that_has_its_key(world, row, writer):
    """Takes an older row's copy over into the row of a new consent."""
    return ()


@variant("harness.reference.credentials.owners:Owner.of", catches=("reconcile-two-rows-one-name",))
def the_row_of_before_keeps_an_entry_until_its_note_is_changed(self, pair):
    """Does not look at what lies there."""
    return self.row


@variant("harness.reference.credentials.retire:delete_copies", catches=("reconcile-two-rows-one-name",))
async def the_copy_under_its_key_goes_whosever_it_is(world, row, writers):
    """Takes another row's copy away with that of the retired one."""
    for writer in writers:
        await writer.delete(world, [writer.key_for(row)])


@variant(f"{INJECTION}:identified", catches=("reconcile-uses-resolved-identity",))
def the_row_keeps_its_first_address(row, server, runtime):
    """Remembers the keys alone: what the runtime rotates is refused for its URL."""
    return replace(identified_rule(row, server, runtime), server_url=row.server_url)


@variant(f"{INJECTION}:note_identity", catches=("refresh-throttle-keys-on-updated-at",))
async def another_address_re_arms_the_throttle(world, row, server, runtime):
    """Saves the row as after a rotation: the job leaves it alone for four hours."""
    await table.change(
        world, row.credential_key, lambda stored: None if stored is None else identified_rule(stored, server, runtime)
    )


def replaced_by(row):
    """A change to this row, whatever is stored."""
    return lambda _stored: row


@variant(f"{INJECTION}:hand_over", catches=("reconcile-uses-resolved-identity",))
async def the_store_is_asked_for_the_new_key_alone(world, writer, servers):
    """Notes the new address before it has taken over what the runtime rotated at the old one."""
    for server in servers:
        row = await table.find(world, server.credential_key)
        if row is not None:
            await table.change(world, row.credential_key, replaced_by(identified_rule(row, server, writer.runtime)))
    return await hand_over_rule(world, writer, servers)


# --- an edit


@variant(
    f"{EDIT}:fail_idle",
    catches=("resume-three-doors", "resume-door-edit-idle-only", "resume-door-edit-plugins",
             "resume-door-edit-keeps-owed-turn"),
)  # fmt: skip
async def an_edit_fails_nobody(world, session, blocked):
    """Leaves an idle session as it was although a new server needs a human."""
    return ()


@variant(f"{EDIT}:is_idle", catches=("resume-door-edit-idle-only", "resume-door-edit-plugins"))
def a_running_session_is_failed_too(values):
    """Whatever it is doing."""
    return True


@variant(f"{EDIT}:edit_selection", catches=("resume-door-edit-plugins",))
async def only_the_sessions_own_list_is_looked_at(world, session, deps, *, servers=None, plugin_servers=None):
    """Writes the plugins' servers down and asks nobody."""
    if plugin_servers is not None:
        await rows.change(world, session, lambda values: {**values, "plugin_servers": list(plugin_servers)})
    return await edit_selection_rule(world, session, deps, servers=servers)


@variant(f"{EDIT}:replaced", catches=("resume-door-edit-keeps-owed-turn", "resume-door-edit-plugins"))
async def an_edit_forgets_what_is_owed(world, session, given):
    """Clears the marker."""
    seen = []

    def changed(values):
        seen.append(values)
        kept = {key: value for key, value in rows.metadata(values).items() if key != MARKER}
        return {**rows.with_metadata(values, kept), **given}

    await rows.change(world, session, changed)
    return seen[-1]


@variant(f"{EDIT}:fail_idle", catches=("resume-door-edit-no-owed-turn",))
async def an_edit_owes_the_first_message_again(world, session, blocked):
    """Invents a turn."""
    names = await fail_idle_rule(world, session, blocked)
    await rows.change(
        world, session, lambda values: rows.with_metadata(values, {**rows.metadata(values), MARKER: "again"})
    )
    return names


@variant(f"{EDIT}:is_idle", catches=("resume-door-edit-idle-only",))
def who_waits_for_the_next_try_counts_as_idle(values):
    """Fails a session that goes on by itself."""
    return is_idle_rule({**values, "metadata": {}})
