"""Changes that would close accepted holes: no bugs, but what the documents do not ask for today. What each does to the
scenario of its hole is told in `harness/scenario/HOLES.md`.
"""

from __future__ import annotations

import json

from fake_runtimes.claude.credentials import DIGEST_LENGTH
from fake_runtimes.claude.logs import hyphened
from fake_runtimes.codex.credentials import sha256
from harness.reference.credentials import table
from harness.reference.credentials.cron import adopt as adopt_rule
from harness.reference.credentials.key import pi_account
from harness.reference.credentials.reconcile import Reconciler
from harness.reference.credentials.reconcile import compare as compare_rule
from harness.reference.credentials.refresh import refresh as refresh_rule
from harness.reference.credentials.retire import note
from harness.reference.credentials.table import store as store_rule
from harness.reference.credentials.writers import claude, store_file
from harness.reference.credentials.writers.claude import ClaudeWriter
from harness.reference.credentials.writers.pi import CHANGE_SECONDS, READ_SECONDS, entry_of
from harness.reference.credentials.writers.pi_store import SERVICE, UnreachableError
from harness.reference.credentials.writers.protocol import StagedCredential
from harness.reference.credentials.writers.registry import registered_writers
from harness.reference.credentials.writers.store_file import locked as locked_rule
from harness.reference.credentials.writers.tool import ask
from harness.reference.session.gate import adopted as adopted_rule
from harness.reference.session.injection import hand_over as hand_over_rule
from harness.requirements.variants import proposal
from harness.scenario import holes

REFRESH = "harness.reference.credentials.refresh:refresh"
CLAUDES_SAVE, CODEXS_SAVE = ".storage-write.lock", "mcp-oauth-locks/file-store.lock"


@proposal(REFRESH, closes=(holes.STALE_UNDER_RUNTIME, holes.READ_THEN_ROTATED, holes.NOT_YET_WRITTEN))
async def refresh_under_the_runtimes_lock(world, key, *, reason, seen=None, since=None, retries_left=True):
    """Holds the locks under which the runtimes renew this server's token, looks into their stores, renews, and puts
    what it got where they had the old one.
    """
    row = await table.find(world, key)
    writers = registered_writers(world)
    locks = [await world.files.lock(path) for path in ([] if row is None else await renewal_locks(world, row, writers))]
    try:
        await Reconciler(world, writers).adopt(key)
        outcome = await refresh_rule(world, key, reason=reason, seen=seen, since=since, retries_left=retries_left)
        if outcome.result == "refreshed" and outcome.row is not None:
            await put_into_stores(world, outcome.row, writers)
        return outcome
    finally:
        for lock in locks:
            await lock.release()


async def renewal_locks(world, row, writers):
    """The files that the runtimes lock while they renew; Pi's adapter locks none."""
    paths = []
    for writer in writers:
        key = writer.key_for(row)
        if writer.runtime == "claude":
            name, _, digest = key.rpartition("|")
            paths.append(f"{writer.directory}/mcp-refresh-{hyphened(name)}_{digest[:DIGEST_LENGTH]}.lock.lock")
        elif writer.runtime == "codex":
            paths.append(f"{writer.directory}/mcp-oauth-locks/{sha256(key)}.lock")
    for path in paths:
        await world.files.make_directory(path.rpartition("/")[0])
    return paths


async def put_into_stores(world, row, writers):
    """The new pair in every store that has an entry for it."""
    for writer in writers:
        key = writer.key_for(row)
        if key not in await writer.read(world, None if writer.enumerable else [key]):
            continue
        staged = StagedCredential(
            key, row.server_name, row.server_url, row.client_id, row.access_token, row.refresh_token,
            None if row.expires_at is None else round(row.expires_at * 1000), row.scopes, row.issuer,
            () if row.redirect_uri is None else (row.redirect_uri,),
        )  # fmt: skip
        await writer.write(world, [staged])


@proposal("harness.reference.credentials.writers.store_file:locked", closes=(holes.OVERWRITTEN,))
async def stores_are_written_under_the_runtimes_lock(world, directory):
    """Joins the lock under which the runtime saves the same file."""
    lock = await locked_rule(world, directory)
    theirs = CODEXS_SAVE if directory.endswith(".codex") else CLAUDES_SAVE
    await world.files.make_directory(f"{directory}/{theirs}".rpartition("/")[0])
    return Both(lock, await world.files.lock(f"{directory}/{theirs}"))


class Both:
    """Two locks as one."""

    def __init__(self, *locks):
        self.locks = locks

    async def release(self):
        """In the reverse order."""
        for lock in reversed(self.locks):
            await lock.release()


@proposal("harness.reference.session.gate:adopted", closes=(holes.OTHER_RUNTIME,))
async def a_spawn_reads_every_store(world, reconciler, key):
    """As the scheduled job does: what another kind of runtime has renewed is known before anything is presented."""
    await adopted_rule(world, reconciler, key)
    await Reconciler(world, registered_writers(world)).adopt(key)
    return await table.find(world, key)


@proposal("harness.reference.credentials.cron:adopt", closes=(holes.ONE_SESSION,))
async def the_job_reads_the_sessions_directories(world, writers, key):
    """Knows where sessions with a directory of their own keep what they renew."""
    home = f"{world.env.variables['HOME']}/own"
    own = [ClaudeWriter(f"{home}/{name}") for name in await world.files.names(home)]
    await adopt_rule(world, (*writers, *own), key)


@proposal("harness.reference.credentials.cron:adopt", closes=(holes.NOT_READABLE,))
async def a_refresh_waits_for_every_store(world, writers, key):
    """A store that cannot be read leaves the row to the next run: better late than spent."""
    row = await table.find(world, key)
    for writer in writers if row is not None else ():
        await writer.read(world, None if writer.enumerable else [writer.key_for(row)])
    await adopt_rule(world, writers, key)


@proposal("harness.reference.session.injection:hand_over", closes=(holes.STALE_UNDER_RUNTIME,))
async def what_was_handed_over_is_compared_again(world, writer, servers):
    """A row that has moved on meanwhile is handed over once more, before the runtime is started."""
    written = await hand_over_rule(world, writer, servers)
    for server in servers:
        row = await table.find(world, server.credential_key)
        held = await writer.read(world, None if writer.enumerable else [writer.key_for(row)]) if row else {}
        pair = held.get(server.runtime_keys[writer.runtime])
        if row is not None and pair is not None and pair.access_token != row.access_token:
            return await hand_over_rule(world, writer, servers)
    return written


@proposal("harness.reference.credentials.reconcile:compare", closes=(holes.OLD_GRANT,))
async def only_the_rows_own_client_is_taken_over(world, store, key):
    """Leaves a pair where it is whose entry names another client than the row: it belongs to a grant of before."""
    row = await table.find(world, key)
    if row is not None and await client_beside(world, store.writer, row) not in (None, row.client_id):
        return None
    return await compare_rule(world, store, key)


async def client_beside(world, writer, row):
    """The client that a runtime's entry for a row names; None where there is no entry, or none is named."""
    key = writer.key_for(row)
    if writer.runtime == "pi":
        try:
            text = await writer.store.entry(world, pi_account(key), world.clock.now() + READ_SECONDS)
        except UnreachableError:
            return None
        return store_file.document_of(text).get("clientInfo", {}).get("clientId")
    document = await store_file.read_document(world, writer.path)
    if writer.runtime == "codex":
        return document.get(key, {}).get("client_id")
    return claude.entries_of(document).get(key, {}).get("clientId")


@proposal("harness.reference.credentials.table:store", closes=(holes.OLD_GRANT,))
async def a_consent_notes_what_it_replaces(world, granted):
    """Notes the pair that it replaces where retired ones are noted, so that no store's copy of it is taken back."""
    row = await table.find(world, granted.credential_key)
    if row is not None:
        await note(world, row)
    return await store_rule(world, granted)


@proposal("harness.reference.credentials.writers.pi:PiWriter._staged", closes=(holes.REPUBLISHED,))
async def the_entry_is_put_into_the_keyring_itself(self, world, credential):
    """By the adapter's helper, which can write there too: all sessions then read one key, and change just that."""
    account, payload = pi_account(credential.server_name), json.dumps(entry_of(credential))
    request = {"operation": "write", "service": SERVICE, "account": account, "payload": payload}
    answer = await ask(world, self.store.runner, json.dumps(request), world.clock.now() + CHANGE_SECONDS)
    return answer is not None and answer.exit_code == 0
