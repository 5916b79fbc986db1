"""Handing stored credentials to a runtime: into the store its process will read, its memory of refusals cleared.

Source: seed 002 "The gate", "Re-authorizing a server reaches a live session"; requirements gate-near-expiry-*,
gate-inject-clears-needs-auth, gate-needs-auth-clear-*, reconnect-live-injects-now, reconnect-notice-cleared-by-spawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.reference.credentials import owners, refresh, table
from harness.reference.credentials.adoption import token_digest
from harness.reference.credentials.key import Runtime
from harness.reference.credentials.owners import Owner
from harness.reference.credentials.reconcile import Reconciler
from harness.reference.credentials.row import TABLE, Credential, row_values
from harness.reference.credentials.state import state_at
from harness.reference.credentials.writers.protocol import RuntimePair, StagedCredential, Writer
from harness.reference.credentials.writers.registry import session_writer
from harness.reference.credentials.writers.staging import stage
from harness.reference.oauth.server import RemoteServer
from harness.reference.session import rows
from harness.reference.session.attempt import attempted, error_class
from harness.reference.session.blocking import REASON, is_failed_on_oauth
from harness.reference.session.gate import Judged
from harness.reference.session.order import Order
from harness.reference.session.prepare import PreparedClone
from harness.world import World

RUNNING = "running"
NOTICE = "mcp_oauth_reconnect"
"""In the metadata of a session whose server was authorized again while it ran: {servers, authorized_at}."""


async def inject(
    world: World, order: Order, ready: PreparedClone, judged: Judged, variables: Mapping[str, str]
) -> None:
    """Hand the usable credentials over before a spawn with these variables; nothing of it fails the spawn.

    The runtime's memory of refusals is cleared for every server of the spawn: a namesake of another project may have
    left an entry. Emits `credential.injected` (servers, runtime) and `needs_auth.cleared` (servers).
    """
    names = remote_names(ready)
    if not names:
        return
    writer = session_writer(world, order.runtime, variables, directory=order.clone)
    keys = {row.credential_key for row in judged.usable}
    await hand_over(world, writer, [server for server in judged.listed if server.credential_key in keys])
    await clear_needs_auth(world, writer, names)
    if judged.listed:
        await note_spawn(world, order)


def remote_names(ready: PreparedClone) -> tuple[str, ...]:
    """The servers of this spawn that a runtime may remember as refused: all that it reaches by URL."""
    entries = ready.prepared.servers.items()
    return tuple(name for name, entry in entries if isinstance(entry, Mapping) and "url" in entry)


async def note_spawn(world: World, order: Order) -> None:
    """The session runs from here on, on this runtime and in this clone; what was said of the process before is spent.

    One that was parked until now is parked no more: a later authorization must not start a second process beside this.
    """
    await rows.change(world, order.session, lambda values: spawned(values, order))


def spawned(values: rows.Values, order: Order) -> rows.Values:
    """The row of a session whose runtime is about to start."""
    gone = (NOTICE, *((REASON,) if is_failed_on_oauth(values) else ()))
    metadata = {key: kept for key, kept in rows.metadata(values).items() if key not in gone}
    noted = {"status": RUNNING, "runtime": order.runtime, "clone": order.clone}
    return {**rows.with_metadata(values, metadata), **noted}


async def hand_over(world: World, writer: Writer, servers: Sequence[RemoteServer]) -> tuple[str, ...]:
    """Write the active credentials of these servers; the names of those that were written.

    A store that cannot be written costs its servers, not the session.
    """
    reconciler, moved = Reconciler(world, (writer,)), list[Credential]()
    staged: dict[str, StagedCredential] = {}
    changes = await given_up(world, writer, reconciler, servers)
    for server in servers:
        row = await fresh_row(world, reconciler, server)
        if row is not None and is_injected(row, world.clock.now()):
            moved += [row] if is_moved(row, server, writer) else []
            await note_identity(world, row, server, writer.runtime)
            staged[row.credential_key] = stage(row, server, writer.runtime)
    if not staged:
        await note_owners(world, writer, changes, staged)
        return ()
    await forget_old_keys(world, writer, moved)
    await note_successors(world, changes, staged)
    done = await attempted(world, writer.write(world, tuple(staged.values())), "write credentials")
    if done.error is not None:
        tell_failure(world, "error", "the credentials could not be written", done.error)
        await note_owners(world, writer, changes, {})
        return ()
    await note_owners(world, writer, changes, staged)
    written = tuple(credential.server_name for credential in staged.values())
    world.events.emit("credential.injected", servers=list(written), runtime=writer.runtime)
    return written


class Change(NamedTuple):
    """An entry of a store that is to be this row's copy, and whose it was before (None: nobody knows)."""

    place: str
    row: str
    before: Owner | None


async def given_up(
    world: World, writer: Writer, reconciler: Reconciler, servers: Sequence[RemoteServer]
) -> tuple[Change, ...]:
    """The entries that change their row, after the row of before has what the runtime has renewed of its copy.

    First of all: whatever is done between the reading of a row and the writing of its copy may be overtaken.
    """
    known = await owners.owners(world)
    changes = list[Change]()
    for server in servers:
        place = place_in(writer, server)
        if known.get(place) != Owner(server.credential_key):
            before = await settled(world, writer, server, known.get(place))
            changes.append(Change(place, server.credential_key, before))
    for change in changes:
        if change.before not in (None, Owner(change.row)) and await table.find(world, change.row) is not None:
            await reconciler.adopt(change.before.row)
    return tuple(changes)


async def settled(world: World, writer: Writer, server: RemoteServer, owner: Owner | None) -> Owner | None:
    """Whose an entry is, also where somebody died while it changed its row: then what lies there tells."""
    if owner is None or not owner.successor:
        return owner
    return Owner(owner.of(await pair_under(world, writer, server.runtime_keys[writer.runtime])))


async def pair_under(world: World, writer: Writer, key: str) -> RuntimePair | None:
    """What the store has under a key. What cannot be read is not there."""
    done = await attempted(world, writer.read(world, [key]), "read credentials")
    return None if done.answer is None else done.answer.get(key)


def place_in(writer: Writer, server: RemoteServer) -> str:
    """What stands for a server's entry in a store."""
    return owners.place_of(writer, server.runtime_keys[writer.runtime])


async def note_successors(world: World, changes: Sequence[Change], staged: Mapping[str, StagedCredential]) -> None:
    """Whose the entries are about to be, before anything is written: whoever dies then leaves no copy of nobody's.

    One of which nobody knew whose it was would otherwise be taken for every row's that has its key.
    """
    for change in changes:
        credential = staged.get(change.row)
        if credential is not None:
            owner = Owner(change.row)
            if change.before not in (None, owner):
                owner = Owner(change.before.row, change.row, token_digest(credential.access_token))
            await owners.note(world, change.place, owner)


async def note_owners(
    world: World, writer: Writer, changes: Sequence[Change], staged: Mapping[str, StagedCredential]
) -> None:
    """Whose the entries are now. One that stayed, as nothing was handed over or what lay there is fresher, is whose it
    was.
    """
    for change in changes:
        credential = staged.get(change.row)
        if change.before is None:
            continue
        if credential is not None and not await has_stayed(world, writer, credential):
            await owners.note(world, change.place, Owner(change.row))
        else:
            await owners.note(world, change.place, change.before)


async def has_stayed(world: World, writer: Writer, credential: StagedCredential) -> bool:
    """Whether the copy of another row still lies there. What cannot be read is gone."""
    held = await pair_under(world, writer, credential.credential_key)
    return held is not None and held.access_token != credential.access_token


async def fresh_row(world: World, reconciler: Reconciler, server: RemoteServer) -> Credential | None:
    """A server's row: with the runtime's newer pair if it has one, and renewed if it expires soon."""
    key = server.credential_key
    await reconciler.adopt(key)
    row = await table.find(world, key)
    if row is None or not is_renewed_here(row, world.clock.now()):
        return row
    done = await attempted(world, refresh.refresh(world, key, reason="injection"), f"refresh {server.name}")
    if done.error is not None:
        tell_failure(world, "error", f"{server.name}: the refresh failed", done.error)
    return await table.find(world, key)


def is_renewed_here(row: Credential, now: float) -> bool:
    """Inside the margin before its end, and renewable. If that fails, an active token is injected all the same."""
    state = state_at(row, now)
    return state.needs_refresh and state.can_refresh


def is_injected(row: Credential, now: float) -> bool:
    """Only an active credential reaches a runtime."""
    return state_at(row, now).active


def is_moved(row: Credential, server: RemoteServer, writer: Writer) -> bool:
    """Whether this runtime files the server's credential under another key than last time."""
    return writer.key_for(row) != server.runtime_keys[writer.runtime]


async def note_identity(world: World, row: Credential, server: RemoteServer, runtime: Runtime) -> None:
    """Remember under which key this runtime has the credential from now on, and for which URL.

    The value of a placeholder may be another one than before. What is read back, compared, probed and retired later is
    what was written last (reconcile-uses-resolved-identity). No token changes by that, so the row's `updated_at` stays:
    the refresh job's pause counts the exposure of rotated tokens, and nothing was rotated.
    """
    if identified(row, server, runtime) == row:
        return
    transaction = await world.store.begin()
    try:
        stored = await table.read(transaction, row.credential_key, lock=True)
        after = None if stored is None else identified(stored, server, runtime)
        if after is None or after == stored:
            await transaction.rollback()
            return
        await transaction.put(TABLE, row.credential_key, row_values(after))
    except BaseException:
        await transaction.rollback()
        raise
    await transaction.commit()


def identified(row: Credential, server: RemoteServer, runtime: Runtime) -> Credential:
    """The row with what one runtime's store knows its credential by. The other runtimes' copies lie where they lay."""
    keys = {**row.runtime_keys, runtime: server.runtime_keys[runtime]}
    urls = {**dict.fromkeys(row.runtime_keys, row.server_url), **row.runtime_urls, runtime: server.url}
    other = {name: url for name, url in urls.items() if url != server.url}
    return replace(row, server_url=server.url, runtime_keys=keys, runtime_urls=other)


async def forget_old_keys(world: World, writer: Writer, moved: Sequence[Credential]) -> None:
    """Delete what this runtime's store still has under the keys of before, best effort.

    Not where it is the key of another row by now: two entries may have come to the same address.
    """
    if not moved:
        return
    kept = {writer.key_for(row) for row in await table.all_rows(world)}
    old = [key for key in dict.fromkeys(map(writer.key_for, moved)) if key not in kept]
    done = await attempted(world, writer.delete(world, old), "delete old keys")
    if done.error is not None:
        tell_failure(world, "warn", "copies of credentials under their old keys could not be deleted", done.error)


async def clear_needs_auth(world: World, writer: Writer, names: Sequence[str]) -> None:
    """Make the runtime forget that these servers, by their bare names, wanted a sign-in. Best effort."""
    done = await attempted(world, writer.clear_needs_auth(world, names), "clear needs-auth")
    if done.error is not None:
        tell_failure(world, "warn", "the runtime's memory of refused servers could not be cleared", done.error)
    elif done.answer:
        world.events.emit("needs_auth.cleared", servers=list(done.answer))


def tell_failure(world: World, level: str, what: str, error: str) -> None:
    """One log line."""
    world.events.emit("log", level=level, text=f"{what}: {error_class(error)}")
