"""Old bugs around token chains that whole scenarios show, and monitors that would look away."""

from __future__ import annotations

import errno

from harness.reference.credentials.writers import store_file
from harness.reference.session.injection import hand_over as hand_over_rule
from harness.reference.session.injection import inject as inject_rule
from harness.requirements.variants import variant
from harness.scenario import holes

RECONCILE = "harness.reference.credentials.reconcile"
INJECTION = "harness.reference.session.injection"
STORE_FILE = "harness.reference.credentials.writers.store_file"
CHAINS, LOSSES = "harness.scenario.chains", "harness.scenario.losses"
BURNED = ("refresh-chain-never-burned",)


@variant(
    f"{RECONCILE}:Reconciler.adopt",
    catches=("reconcile-survives-relaunch", "reconcile-idle-gap-scenario", "reconcile-spawn-reconciles-first"),
)
async def nothing_is_adopted(self, key):
    """The row is written over whatever a runtime has renewed."""
    return


@variant(f"{INJECTION}:inject", catches=("writers-written-at-every-spawn",))
async def a_follow_up_is_given_nothing(world, order, ready, judged, variables):
    """What the first turn was given is thought to be there still."""
    if order.follow_up is None:
        await inject_rule(world, order, ready, judged, variables)


@variant(f"{INJECTION}:hand_over", catches=("gate-only-fatal-class",))
async def a_store_that_cannot_be_written_ends_the_spawn(world, writer, servers):
    """One broken file keeps every session of the host from starting."""
    written = await hand_over_rule(world, writer, servers)
    if servers and not written:
        raise OSError(errno.EACCES, "the credential store cannot be written")
    return written


@variant(f"{STORE_FILE}:changed", catches=("writers-missing-store-not-error", "store-corrupt-store"))
async def what_cannot_be_read_is_thrown_away(world, path, change, mode):
    """The account's tokens go with it."""
    document, result = change(store_file.document_of(await store_file.read_text(world, path)))
    if document is not None:
        await store_file.replace(world, path, document, mode)
    return result


# --- monitors that would look away: a rule that is broken would pass for a race


@variant(f"{CHAINS}:Monitor._judged_by", catches=BURNED)
def whatever_is_presented_was_a_race(self, attempt, store):
    """Nobody is ever asked what he had read."""
    return "", holes.READ_THEN_ROTATED


@variant("harness.scenario.duties:seen_in_time", catches=BURNED)
def whoever_has_looked_once_has_looked(looks, since, now):
    """A look of yesterday excuses today's request."""
    return list(looks)


@variant(f"{CHAINS}:Monitor._knew", catches=BURNED)
def a_newer_pair_that_was_read_is_a_gap_of_the_rule(self, chain, read):
    """The expiries are not compared."""
    return "", holes.NO_LATER


@variant("harness.scenario.duties:duty", catches=BURNED)
def nobody_has_to_look_anywhere(seeker, store, family):
    """Every store is another's business."""
    return holes.ONE_SESSION


@variant(f"{CHAINS}:Monitor._overwritten", catches=BURNED)
def every_overwriting_is_a_race(self, actor, path, chain, before, after):
    """Whoever had read the newer one may write the older one over it."""
    return "", holes.OVERWRITTEN


@variant(f"{LOSSES}:befell", catches=BURNED)
def every_answer_may_have_been_lost(events, given):
    """What a program threw away was lost on the way."""
    return True


@variant(f"{LOSSES}:is_given_up", catches=BURNED)
def a_row_may_drop_what_it_likes(monitor, chain, newest, events):
    """A chain that is in no row any more was given up."""
    return True


@variant("harness.scenario.chain_invariants:is_settled", catches=("refresh-ambiguous-never-in-band",))
def everybody_knows_what_became_of_it(stage, attempt, since):
    """A request without an answer was answered."""
    return True


@variant("harness.scenario.foreign:is_ours", catches=("store-other-blocks-kept",))
def every_entry_is_ours(key, entry, known):
    """Names and addresses are not compared."""
    return True


@variant(f"{CHAINS}:Monitor._taken_away", catches=BURNED)
def whatever_goes_out_of_the_keyring_was_a_race(self, actor, path, chain, row):
    """Whoever hands a token in to Pi need not have looked what was there."""
    return "", holes.OVERWRITTEN


@variant(f"{LOSSES}:is_dropped_by", catches=BURNED)
def a_consent_of_anybody_excuses_everybody(monitor, chain, events, names):
    """The one by which the tokens came, too."""
    server = monitor.server_of.get(chain)
    return any(event.name in names and event.details.get("server") == server for event in events)


@variant(f"{CHAINS}:Monitor._replaced", catches=BURNED)
def a_row_may_have_any_grant(self, actor, chain, before, after):
    """An older grant over a newer one is taken for a consent."""
    return


@variant(f"{CHAINS}:Monitor._under_way", catches=BURNED)
def nobody_else_is_presenting_it(self, attempt):
    """A token that somebody presents just now counts as unspent."""
    return ""
