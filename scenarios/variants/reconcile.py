"""Known-bad variants of adopting what a runtime has refreshed."""

from __future__ import annotations

from dataclasses import replace

from harness.reference.credentials import table
from harness.reference.credentials.adoption import adopted as adopted_rule
from harness.reference.credentials.adoption import is_not_later as is_not_later_rule
from harness.reference.credentials.adoption import is_of_another_server as is_of_another_server_rule
from harness.reference.credentials.adoption import taken_over as taken_over_rule
from harness.reference.credentials.reconcile import StoreReads, Taken
from harness.reference.credentials.reconcile import adopt_from as adopt_from_rule
from harness.reference.credentials.reconcile import adoptable as adoptable_rule
from harness.reference.credentials.reconcile import told as told_rule
from harness.requirements.variants import variant

ADOPTION = "harness.reference.credentials.adoption"
RECONCILE = "harness.reference.credentials.reconcile"

pair_rule = StoreReads.pair
"""The rule itself: on the class stands whichever variant is tried."""


# --- what is refused --------------------------------------------------------------------------------------------------


@variant(
    "harness.reference.credentials.reconcile:is_anothers_copy",
    catches=("refresh-chain-never-burned", "reconcile-two-rows-one-name"),
)
async def whatever_lies_under_the_key_is_the_rows(world, row, writer, pair):
    """Asks for the key alone, which two configs of one server share on Codex and Pi."""
    return False


@variant(f"{ADOPTION}:is_not_later", catches=("reconcile-adopt-strictly-later-expiry", "reconcile-chain-advances-only"))
def another_pair_is_enough(row, pair):
    """Adopts whenever the tokens differ: an older pair overwrites a fresh authorization."""
    return False


@variant(f"{ADOPTION}:is_not_later", catches=("reconcile-equal-expiry-keeps-row",))
def equal_is_later(row, pair):
    """Compares with >=."""
    return is_not_later_rule(row, pair) and pair.expires_at != row.expires_at


@variant(f"{ADOPTION}:is_not_later", catches=("reconcile-adopt-strictly-later-expiry",))
def whole_seconds_are_compared(row, pair):
    """Rounds both sides first."""
    return row.expires_at is not None and pair.expires_at is not None and int(pair.expires_at) <= int(row.expires_at)


@variant(f"{RECONCILE}:adoptable", catches=("reconcile-adopt-expired-pair",))
async def an_expired_pair_is_refused(world, row, pair):
    """The rule of `merge_preserving_fresher!`: after an idle time the good refresh token is lost."""
    if pair.expires_at is not None and pair.expires_at <= world.clock.now():
        return None
    return await adoptable_rule(world, row, pair)


@variant(f"{RECONCILE}:adoptable", catches=("reconcile-recovers-nulled-row",))
async def a_row_without_a_refresh_token_is_skipped(world, row, pair):
    """Takes it for dead for good."""
    return None if row.refresh_token is None else await adoptable_rule(world, row, pair)


@variant(f"{ADOPTION}:taken_over", catches=("reconcile-adopts-whole-pair",))
def the_rows_refresh_token_is_kept(row, pair):
    """Writes the access token and the expiry alone."""
    return replace(taken_over_rule(row, pair), refresh_token=row.refresh_token)


@variant(f"{ADOPTION}:taken_over", catches=("reconcile-adoption-clears-one-shot-flag",))
def the_one_shot_flag_stays(row, pair):
    """Goes on telling that the server issues no refresh token."""
    return replace(taken_over_rule(row, pair), refresh_token_unsupported=row.refresh_token_unsupported)


@variant(f"{ADOPTION}:taken_over", catches=("reconcile-adoption-leaves-other-columns",))
def the_entrys_url_is_taken_too(row, pair):
    """Copies what else stands in the entry."""
    return replace(taken_over_rule(row, pair), server_url=pair.server_url or "", scopes=None)


@variant(f"{ADOPTION}:row_never_expires", catches=("reconcile-refuse-row-without-expiry",))
def no_expiry_is_older_than_any(row):
    """Lets a stale pair from before the authorization come straight back."""
    return False


@variant(
    f"{ADOPTION}:is_of_another_server", catches=("reconcile-refuse-other-server-url", "reconcile-two-rows-one-name")
)
def the_key_alone_decides(row, pair):
    """Lets a server whose URL moved give its tokens to the old row."""
    return False


@variant(f"{ADOPTION}:is_of_another_server", catches=("reconcile-url-compare-byte-exact",))
def a_slash_at_the_end_makes_no_difference(row, pair):
    """Compares loosely."""
    loose = replace(pair, server_url=(pair.server_url or "").rstrip("/").lower())
    return is_of_another_server_rule(replace(row, server_url=row.server_url.rstrip("/").lower()), loose)


@variant(f"{ADOPTION}:is_of_another_server", catches=("reconcile-refuse-other-server-url",))
def an_entry_must_name_its_url(row, pair):
    """Refuses an entry that names none."""
    return pair.server_url != row.server_url


@variant(f"{ADOPTION}:is_incomplete", catches=("reconcile-refuse-incomplete-pair",))
def an_access_token_is_enough(pair):
    """Adopts what has no refresh token, and so drops the row's."""
    return not pair.access_token


@variant(f"{ADOPTION}:is_same_pair", catches=("reconcile-refuse-identical-pair",))
def the_same_pair_is_adopted_again(row, pair):
    """Starts the refresh job's pause again without a rotation."""
    return False


@variant(f"{ADOPTION}:has_no_expiry", catches=("reconcile-refuse-runtime-without-expiry",))
def an_entry_without_expiry_is_the_latest(pair):
    """Reads a missing expiry as never."""
    return False


@variant(f"{ADOPTION}:belongs_to_retired_chain", catches=("reconcile-scoped-revocation-limit",))
def what_was_retired_is_forgotten(row, pair, retirement):
    """Adopts the retired pair from a directory that retiring does not reach."""
    return False


@variant(f"{ADOPTION}:belongs_to_retired_chain", catches=("reconcile-scoped-revocation-limit",))
def only_the_very_pair_is_refused(row, pair, retirement):
    """Lets an older pair of the same chain come back."""
    return retirement is not None and row.refresh_token is None and pair.access_token == row.access_token


@variant(
    f"{ADOPTION}:holds_what_was_retired",
    catches=("reconcile-retired-credential-stays-dead", "gate-retire-then-reconcile-property"),
)
def an_authorization_makes_a_retirement_history(row, pair, retirement):
    """A retired pair that would have lived longer replaces what a human has authorized since."""
    return False


# --- when and how -----------------------------------------------------------------------------------------------------


async def written_over(world, compared, pair):
    """Takes the pair over whatever the row holds now."""
    after = await table.change(
        world, compared.credential_key, lambda row: None if row is None else taken_over_rule(row, pair)
    )
    return Taken("adopted", after)


@variant(
    f"{RECONCILE}:take_over",
    catches=("reconcile-adoption-rechecked-under-lock", "gate-retire-race-with-reconcile"),
)
async def compared_once_before_the_lock(world, compared, pair):
    """Overwrites whatever another process wrote meanwhile."""
    return await written_over(world, compared, pair)


@variant(
    f"{RECONCILE}:holds_pair_of", catches=("reconcile-adoption-rechecked-under-lock", "gate-retire-race-with-reconcile")
)
def the_row_is_only_compared_again(current, compared):
    """Asks whether the pair is later than the row as it is now: a retired row is older than anything."""
    return True


@variant(f"{RECONCILE}:take_over", catches=("reconcile-adoption-touches-updated-at",))
async def the_update_passes_by_the_time_of_change(world, compared, pair):
    """Leaves `updated_at`, so that the refresh job renews at once what was just adopted."""
    after = adopted_rule(compared, pair)
    await table.insert_unchecked(world, after or compared)
    return Taken("refused" if after is None else "adopted", after)


@variant(f"{RECONCILE}:adopt_from", catches=("reconcile-adoption-touches-updated-at",))
async def every_reconciliation_saves_the_row(world, store, key):
    """Starts the pause again each time, so that the job never refreshes anything."""
    adopted = await adopt_from_rule(world, store, key)
    row = await table.find(world, key)
    if adopted is None and row is not None:
        await table.insert_unchecked(world, replace(row, updated_at=world.clock.now()))
    return adopted


@variant(f"{RECONCILE}:told", catches=("reconcile-adopting-emits-log",))
def the_line_shows_the_entry(world, row, writer):
    """Logs what was in the row."""
    told_rule(world, replace(row, server_name=f"{row.server_name} {row.access_token}"), writer)


@variant(f"{RECONCILE}:told", catches=("reconcile-adopting-emits-log",))
def an_adoption_goes_unsaid(world, row, writer):
    """Says nothing."""


@variant(
    f"{RECONCILE}:Reconciler.adopt",
    catches=("reconcile-cron-store-order-irrelevant",),
)
async def each_store_is_compared_with_the_row_as_loaded(self, key):
    """The last store that has anything later wins."""
    row = await table.find(self._world, key)
    latest = None
    for store in self._stores:
        pair = None if row is None else await store.pair(row)
        if row is not None and pair is not None and adopted_rule(row, pair) is not None:
            latest = (await written_over(self._world, row, pair)).row
    return latest


@variant(
    f"{RECONCILE}:Reconciler.adopt",
    catches=("reconcile-cron-reads-every-runtime", "reconcile-codex-no-carve-out"),
)
async def only_the_first_store_is_read(self, key):
    """Reads Claude's store alone: a rotation on another runtime is burned."""
    return await adopt_from_rule(self._world, self._stores[0], key) if self._stores else None


@variant(f"{RECONCILE}:Reconciler.adopt", catches=("reconcile-codex-no-carve-out",))
async def codex_is_left_out_by_name(self, key):
    """Skips the runtime that was said not to refresh."""
    latest = None
    for store in self._stores:
        if store.writer.runtime != "codex":
            latest = await adopt_from_rule(self._world, store, key) or latest
    return latest


@variant(f"{RECONCILE}:StoreReads.pair", catches=("reconcile-listable-read-once",))
async def the_file_is_read_for_each_credential(self, row):
    """Keeps nothing."""
    key = self.writer.key_for(row)
    return (await self.writer.read(self._world, None if self.writer.enumerable else [key])).get(key)


@variant(f"{RECONCILE}:StoreReads.pair", catches=("reconcile-probe-memoized",))
async def only_what_was_found_is_kept(self, row):
    """Waits for a dead keyring once for each credential."""
    pair = await pair_rule(self, row)
    if pair is None:
        self.forget(row)
    return pair


@variant(f"{RECONCILE}:what_is_read", catches=("reconcile-probe-only-asked-keys",))
def everything_is_read_of_every_store(writer, key):
    """Asks a store without a listing for its listing."""
    return


@variant(f"{RECONCILE}:StoreReads.__init__", catches=("reconcile-constructing-is-free",))
def the_store_is_asked_at_once(self, world, writer):
    """Reads in the constructor."""
    self._world, self.writer = world, writer
    self._read = {}
    coroutine = writer.read(world, None)
    try:
        coroutine.send(None)
    except (StopIteration, OSError):
        coroutine.close()
    else:
        coroutine.close()


@variant(f"{RECONCILE}:warn", catches=("reconcile-update-error-is-nothing",))
def what_fails_is_an_error(world, text):
    """Pages somebody for what costs nothing."""
    world.events.emit("log", level="error", text=text)
