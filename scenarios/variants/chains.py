"""Old bugs around token chains that whole scenarios show, and monitors that would look away."""

from __future__ import annotations

import errno

from harness.reference.credentials.writers import store_file
from harness.reference.session.injection import hand_over as hand_over_rule
from harness.reference.session.injection import inject as inject_rule
from harness.requirements.variants import variant

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
    return None


@variant(f"{INJECTION}:inject", catches=("writers-written-at-every-spawn",))
async def a_follow_up_is_given_nothing(world, order, ready, judged, variables):
    """What the first turn was given is thought to be there still."""
    if order.follow_up is None:
        await inject_rule(world, order, ready, judged, variables)


@variant(f"{INJECTION}:hand_over", catches=("writers-failure-does-not-fail-spawn",))
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
