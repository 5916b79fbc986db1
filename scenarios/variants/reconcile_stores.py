"""Known-bad variants of where and when adoption looks: keys, directories, the keyring, the spawn, the refresh job."""

from __future__ import annotations

from fake_runtimes.pi.tokens import read_entry as pi_read_entry
from fake_servers.oauth.tokens import Ledger
from harness.reference.credentials import table
from harness.reference.credentials.cron import renew as renew_rule
from harness.reference.credentials.cron import run_refresh_job as run_refresh_job_rule
from harness.reference.credentials.key import claude_config as claude_config_rule
from harness.reference.credentials.reconcile import Reconciler
from harness.reference.credentials.reconcile import adopt_from as adopt_from_rule
from harness.reference.credentials.writers.claude import ClaudeWriter
from harness.reference.credentials.writers.codex import CodexWriter
from harness.reference.credentials.writers.needs_auth import clear as clear_rule
from harness.reference.credentials.writers.pi import PiWriter
from harness.reference.credentials.writers.pi import entry_of as pi_entry_of_rule
from harness.reference.credentials.writers.pi_store import PiStore
from harness.reference.credentials.writers.protocol import StagedCredential
from harness.reference.credentials.writers.registry import claude_directory as claude_directory_rule
from harness.reference.credentials.writers.registry import registered_writers as registered_writers_rule
from harness.reference.credentials.writers.registry import session_writer as session_writer_rule
from harness.reference.prepare.budgets import pi_entry as pi_entry_rule
from harness.reference.session.gate import check as check_rule
from harness.reference.session.injection import inject as inject_rule
from harness.reference.session.job import launch as launch_rule
from harness.reference.session.spawn import environment_of, spawn_runtime
from harness.requirements.variants import variant

KEY = "harness.reference.credentials.key"
WRITERS = "harness.reference.credentials.writers"
REGISTRY = f"{WRITERS}.registry"
CRON = "harness.reference.credentials.cron"
GATE = "harness.reference.session.gate"

entry_rule, succeed_rule, write_rule = PiStore.entry, Ledger.succeed, CodexWriter.write
"""The rules themselves: on the classes stands whichever variant is tried."""


# --- keys -------------------------------------------------------------------------------------------------------------


@variant("harness.reference.credentials.reconcile:by_what_was_written", catches=("reconcile-uses-resolved-identity",))
def every_copy_is_for_the_last_address(row, pair, runtime):
    """Compares with the URL that was written last for any runtime: another one's renewal is refused, and burned."""
    return pair


@variant(
    f"{WRITERS}.claude:ClaudeWriter.key_for",
    catches=("reconcile-key-claude", "reconcile-key-miss-is-silent-guarded", "reconcile-key-agreement-contract"),
)
def claudes_store_is_keyed_by_the_bare_name(self, row):
    """Looks for what was never written there."""
    return row.server_name


@variant(
    f"{WRITERS}.codex:CodexWriter.key_for",
    catches=("reconcile-key-codex", "reconcile-key-agreement-contract", "reconcile-key-from-config-or-row"),
)
def codex_has_the_protocol_key(self, row):
    """Right for an http server without headers, a silent miss for every other."""
    return row.credential_key


@variant(
    f"{WRITERS}.pi:PiWriter.key_for",
    catches=("reconcile-key-pi", "reconcile-key-from-config-or-row", "reconcile-key-agreement-contract"),
)
def pi_has_the_protocol_key(self, row):
    """Uses the row's key for every store: Pi is never found."""
    return row.credential_key


@variant(f"{KEY}:codex_config", catches=("reconcile-key-codex-coincidence", "reconcile-key-codex"))
def codex_hashes_the_type_and_the_headers(config, variables):
    """Takes the keys for the same."""
    return claude_config_rule(config, variables)


@variant(
    f"{WRITERS}.claude:ClaudeWriter.key_for",
    catches=("reconcile-uses-resolved-identity",),
)
def the_key_of_the_raw_entry_is_used(self, row):
    """Looks under the catalog's key, placeholders and all: nothing is ever adopted."""
    return row.credential_key


# --- reading ----------------------------------------------------------------------------------------------------------


@variant(f"{REGISTRY}:session_writer", catches=("reconcile-enumerable-flag",))
def every_store_can_be_listed(world, runtime, variables, *, directory=None, keychain=None):
    """Says of Pi's that it can, too."""
    writer = session_writer_rule(world, runtime, variables, directory=directory, keychain=keychain)
    return PiWriter(writer.directory, writer.store, enumerable=True) if isinstance(writer, PiWriter) else writer


@variant(f"{WRITERS}.pi_store:PiStore.get", catches=("reconcile-pi-probe-through-helper",))
async def the_keyring_is_read_without_the_helper(self, world, account, until):
    """Opens what lies beneath it."""
    try:
        return (await world.files.read(f"/run/keyring/pi-mcp-adapter.oauth/{account}")).decode()
    except OSError:
        return None


@variant(f"{WRITERS}.pi_store:PiStore.entry", catches=("reconcile-pi-probe-two-second-bound",))
async def a_probe_may_take_its_time(self, world, account, until):
    """Lets a locked keyring hold the spawn."""
    return await entry_rule(self, world, account, until + 60.0)


@variant(f"{WRITERS}.pi_store:manifest_of", catches=("reconcile-pi-probe-chunked-entry",))
def every_entry_is_whole(text):
    """Parses a manifest as an entry."""
    return


@variant(f"{WRITERS}.pi_store:joined", catches=("reconcile-pi-probe-chunked-entry",))
def the_digest_is_not_looked_at(manifest, parts):
    """Takes whatever parts are there."""
    return "".join(part or "" for part in parts)


@variant(
    "harness.reference.credentials.reconcile:Reconciler.adopt", catches=("reconcile-unreachable-store-is-nothing",)
)
async def a_store_that_cannot_be_read_ends_it(self, key):
    """Stops at the first that fails, so that no other is read."""
    latest = None
    for store in self._stores:
        try:
            await store.writer.read(self._world, None if store.writer.enumerable else [key])
        except Exception:  # noqa: BLE001 - a bad rule is bad for every failure
            return latest
        latest = await adopt_from_rule(self._world, store, key) or latest
    return latest


@variant(f"{WRITERS}.claude:fresher_on_disk", catches=("reconcile-merge-protects-valid-entry",))
def any_later_entry_stays(disk_ms, ours_ms, now_ms):
    """Keeps an entry whose own token has expired: then nobody sees that adoption is missing."""
    return isinstance(disk_ms, int | float) and (ours_ms is None or ours_ms <= disk_ms)


@variant(f"{WRITERS}.codex:CodexWriter.write", catches=("reconcile-codex-written-not-trusted",))
async def codexs_later_entry_stays(self, world, credentials):
    """Merges Codex's store as Claude's is."""
    held = await self.read(world)
    wanted = [each for each in credentials if not stays(held.get(each.credential_key), each)]
    return await write_rule(self, world, wanted) if wanted else None


def stays(pair, credential: StagedCredential):
    """Whether what is there expires later."""
    return pair is not None and (pair.expires_at or 0) * 1000 >= (credential.expires_at_ms or 0)


@variant("fake_runtimes.pi.tokens:token_for", catches=("reconcile-pi-fake-url-guard",))
def pi_looks_at_the_account_alone(url, text):
    """A fake with which a server that moved seems to work."""
    entry = pi_read_entry(text)
    tokens = None if entry is None else entry.get("tokens")
    return None if tokens is None else str(tokens["accessToken"])


@variant("fake_servers.oauth.tokens:Ledger.succeed", catches=("reconcile-rotation-kills-prior-token",))
def an_old_refresh_token_stays_good(self, parent, scope, now, expires_at, *, rotates):
    """A provider that gives a new one and goes on taking the one before."""
    made = succeed_rule(self, parent, scope, now, expires_at, rotates=rotates)
    self.generations[self._places[parent.access]] = parent
    return made


# --- whose directory --------------------------------------------------------------------------------------------------


@variant(f"{REGISTRY}:claude_directory", catches=("reconcile-scoped-on-own-dir", "reconcile-scoped-reads-own-dir"))
def the_hosts_directory_is_used_always(place):
    """Takes no notice of the session's own."""
    return f"{place.home}/.claude"


@variant(f"{REGISTRY}:claude_directory", catches=("reconcile-scoped-off-global-file",))
def every_session_gets_a_directory(place):
    """Separates sessions that are to share one."""
    own = claude_directory_rule(place)
    return f"{own}-of-a-session" if own.endswith("/.claude") else own


@variant(f"{WRITERS}.needs_auth:clear", catches=("reconcile-scoped-single-writer",))
async def the_hosts_memory_is_cleared(world, directory, names):
    """Shares the cache and its lock with all sessions."""
    return await clear_rule(world, f"{world.env.variables['HOME']}/.claude", names)


@variant(f"{REGISTRY}:registered_writers", catches=("reconcile-scoped-cron-global",))
def the_job_walks_the_sessions_directories(world, keychain=None):
    """Looks into what belongs to running sessions."""
    return (*registered_writers_rule(world, keychain), ClaudeWriter("/sessions/a/claude"))


# --- when -------------------------------------------------------------------------------------------------------------


@variant(
    f"{GATE}:adopted",
    catches=("reconcile-spawn-reconciles-first", "reconcile-survives-relaunch", "reconcile-idle-gap-scenario"),
)
async def the_gate_judges_the_row_as_it_is(world, reconciler, key):
    """Leaves adoption to the injection: the session is parked, or a spent token presented, before it."""
    return await table.find(world, key)


@variant(f"{REGISTRY}:session_writer", catches=("reconcile-spawn-reads-own-runtime",))
def every_spawn_reads_claudes_store(world, runtime, variables, *, directory=None, keychain=None):
    """Sees no rotation of any other runtime."""
    return session_writer_rule(world, "claude", variables, directory=directory, keychain=keychain)


@variant("harness.reference.session.job:launch", catches=("reconcile-relaunch-order",))
async def the_process_is_started_first(world, order):
    """Writes credentials for a process that has read its own already."""
    from harness.reference.session.prepare import prepare_with_retries

    ready = await prepare_with_retries(world, order)
    await spawn_runtime(world, order, ready)
    judged = await check_rule(world, order, ready)
    await inject_rule(world, order, ready, judged, environment_of(world, order, ready).variables)
    return await launch_rule(world, order)


@variant(f"{CRON}:adopt", catches=("reconcile-cron-before-each-refresh", "reconcile-cron-reads-every-runtime"))
async def the_job_adopts_nothing(world, writers, key):
    """Presents what a runtime has rotated away."""


@variant(f"{CRON}:run_refresh_job", catches=("reconcile-cron-before-each-refresh",))
async def the_job_reconciles_once_at_its_start(world, writers, **options):
    """Misses what is rotated while an earlier row takes its time."""
    for row in await table.all_rows(world):
        await Reconciler(world, writers).adopt(row.credential_key)
    await run_refresh_job_rule(world, (), **options)


@variant(f"{CRON}:renew", catches=("reconcile-no-mid-session-push",))
async def the_job_pushes_what_it_refreshed(world, writers, row, run):
    """Writes into the stores of sessions that run."""
    await renew_rule(world, writers, row, run)
    after = await table.find(world, row.credential_key) or row
    for writer in writers:
        pushed = StagedCredential(
            writer.key_for(row), row.server_name, row.server_url, row.client_id, after.access_token
        )
        await writer.write(world, [pushed])


@variant("harness.reference.prepare.budgets:pi_entry", catches=("reconcile-no-runtime-refresh-switch",))
def oauth_is_switched_off(entry, declared_raw):
    """Means to pin the staged token, and turns OAuth off for the server."""
    return {**pi_entry_rule(entry, declared_raw), "oauth": False}


@variant(f"{WRITERS}.pi:entry_of", catches=("reconcile-key-miss-is-silent-guarded",))
def pis_tokens_are_written_in_another_shape(credential):
    """Writes what its own reader does not find."""
    entry = pi_entry_of_rule(credential)
    return {**{name: value for name, value in entry.items() if name != "tokens"}, "token": entry["tokens"]}
