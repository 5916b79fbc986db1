"""McpOauthRuntimeReconciler: takes over what a runtime has refreshed, before Zimmer refreshes or injects (seed 002).

A spawn gives it the store of the session's runtime, the refresh job every registered one. A store is read when the
first credential wants it, and once: a readable file as a whole, a store without a listing key by key, each key once.
Whatever cannot be read or written is "nothing to adopt", never an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from harness.reference.credentials import table
from harness.reference.credentials.adoption import adopted
from harness.reference.credentials.key import Runtime
from harness.reference.credentials.owners import Owner, is_anothers, note, owners, place_of
from harness.reference.credentials.retire import retirement_of
from harness.reference.credentials.row import Credential, InvalidCredentialError
from harness.reference.credentials.writers.protocol import RuntimePair, Writer
from harness.reference.secrets.blank import is_blank
from harness.world import ReadTimeout, World

MOST_COMPARISONS = 3
"""How often one store is compared with a row that others change at the same time."""

FAILURES = (OSError, LookupError, RuntimeError, TypeError, ValueError, ReadTimeout, InvalidCredentialError)
"""What a store that is no store, or a row that cannot be written, may raise. A fault of the harness is none of them."""


class Reconciler:
    """Reconciles any number of credentials with some stores, in their order. Building one reads nothing.

    Make one for each spawn and for each row of the refresh job: what it has read grows old, and a copy that was read
    before its credential was retired and authorized again would look like any other.
    """

    def __init__(self, world: World, writers: Sequence[Writer]) -> None:
        self._world = world
        self._stores = tuple(StoreReads(world, writer) for writer in writers)

    async def adopt(self, key: str) -> Credential | None:
        """Take over the latest pair that a store holds; the row with it, None where nothing was adopted.

        Each store is compared with the row as the one before it has left it, so that their order does not matter
        (reconcile-cron-store-order-irrelevant). Never raises.
        """
        latest = None
        for store in self._stores:
            latest = await adopt_from(self._world, store, key) or latest
        return latest


class StoreReads:
    """What one runtime's store holds, as it was when it was first asked."""

    def __init__(self, world: World, writer: Writer) -> None:
        self._world, self.writer = world, writer
        self._read: dict[str | None, Mapping[str, RuntimePair]] = {}

    async def pair(self, row: Credential) -> RuntimePair | None:
        """The store's pair for a row. What raised or found nothing counts as read."""
        key = self.writer.key_for(row)
        asked = what_is_read(self.writer, key)
        if asked not in self._read:
            self._read[asked] = {}
            self._read[asked] = await read_store(self._world, self.writer, asked)
        pair = self._read[asked].get(key)
        return None if pair is None else by_what_was_written(row, pair, self.writer.runtime)

    def forget(self, row: Credential) -> None:
        """Let the next pair for this row be read anew."""
        self._read.pop(what_is_read(self.writer, self.writer.key_for(row)), None)


def what_is_read(writer: Writer, key: str) -> str | None:
    """All of a store that can be listed (None), of another exactly the key that is wanted."""
    return None if writer.enumerable else key


def by_what_was_written(row: Credential, pair: RuntimePair, runtime: Runtime) -> RuntimePair:
    """The pair with the row's URL where it names the one that this runtime was last given, and only there.

    The value of a placeholder may have changed since, and another runtime may have been given the new one: what this
    one renews of its copy is the head of the same chain (reconcile-uses-resolved-identity).
    """
    written = row.runtime_urls.get(runtime)
    if written is None or is_blank(pair.server_url):
        return pair
    if pair.server_url == written:
        return replace(pair, server_url=row.server_url)
    return replace(pair, server_url=written) if pair.server_url == row.server_url else pair


async def read_store(world: World, writer: Writer, asked: str | None) -> Mapping[str, RuntimePair]:
    """Read a store, whole or for one key. One that cannot be read holds nothing."""
    try:
        return await writer.read(world, None if asked is None else [asked])
    except FAILURES as error:
        warn(world, f"The credential store of {writer.runtime} could not be read ({type(error).__name__})")
        return {}


async def adopt_from(world: World, store: StoreReads, key: str) -> Credential | None:
    """Compare one store with the row, and take its pair over; None where that is not to be, or fails."""
    try:
        return await compare(world, store, key)
    except FAILURES as error:
        warn(world, f"Nothing was adopted for {key} from {store.writer.runtime} ({type(error).__name__})")
        return None


async def compare(world: World, store: StoreReads, key: str) -> Credential | None:
    """Adopt if the row, locked, still holds the pair that the store's was compared with.

    If others changed it meanwhile, what was read before says nothing about it any more: the copy may have been deleted
    since, with the credential retired. So both are read again.
    """
    for _ in range(MOST_COMPARISONS):
        row = await table.find(world, key)
        if row is None:
            return None
        pair = await store.pair(row)
        if pair is None or await adoptable(world, row, pair) is None:
            return None
        if await is_anothers_copy(world, row, store.writer, pair):
            return None
        taken = await take_over(world, row, pair)
        if taken.how == "adopted":
            told(world, row, store.writer)
            return taken.row
        if taken.how == "refused":
            return None
        store.forget(row)
    warn(world, f"Nothing was adopted for {key} from {store.writer.runtime} (the row keeps changing)")
    return None


async def adoptable(world: World, row: Credential, pair: RuntimePair) -> Credential | None:
    """The row as adopting would leave it. What was retired is only asked for where everything else allows it."""
    return None if adopted(row, pair) is None else adopted(row, pair, await retirement_of(world, row))


async def is_anothers_copy(world: World, row: Credential, writer: Writer, pair: RuntimePair) -> bool:
    """Whether what lies in the store was handed over for another row that has the same key there."""
    return await is_anothers(world, row, writer, pair)


async def settle_owners(world: World, writers: Sequence[Writer], rows: Sequence[Credential]) -> None:
    """Note what has taken another copy's place where somebody died before it could be: what lies there tells, as long
    as nobody has renewed it. Nothing is noted the other way round: whoever is about to write may be alive.
    """
    known = {place: owner for place, owner in (await owners(world)).items() if owner.successor}
    for row, writer in ((row, writer) for row in rows for writer in writers if known):
        key = writer.key_for(row)
        owner = known.get(place_of(writer, key))
        if owner is not None and owner.successor == row.credential_key:
            pair = (await read_store(world, writer, key)).get(key)
            if owner.of(pair) == owner.successor:
                await note(world, place_of(writer, key), Owner(owner.successor))


class Taken(NamedTuple):
    """What came of an adoption under the lock, and the row afterwards."""

    how: Literal["adopted", "refused", "row moved"]
    row: Credential | None = None


async def take_over(world: World, compared: Credential, pair: RuntimePair) -> Taken:
    """Write the pair if the row still is what it was compared with; tested again, on the row as it is now."""
    taken = Taken("row moved")

    def changed(current: Credential | None) -> Credential | None:
        nonlocal taken
        if current is None or not holds_pair_of(current, compared):
            taken = Taken("row moved")
            return current
        after = adopted(current, pair)
        taken = Taken("refused") if after is None else Taken("adopted", after)
        return after or current

    after = await table.change(world, compared.credential_key, changed)
    return taken._replace(row=after)


def holds_pair_of(current: Credential, compared: Credential) -> bool:
    """Whether nobody has refreshed, authorized or retired the row since (gate-retire-race-with-reconcile)."""
    return (current.access_token, current.refresh_token, current.expires_at, current.server_url) == (
        compared.access_token,
        compared.refresh_token,
        compared.expires_at,
        compared.server_url,
    )


def told(world: World, row: Credential, writer: Writer) -> None:
    """One line for one adoption: server and key, no token (reconcile-adopting-emits-log)."""
    text = f"Adopted the token pair that {writer.runtime} refreshed for {row.server_name} ({row.credential_key})"
    world.events.emit("log", level="info", text=text)
    world.events.emit("credential.adopted", server=row.server_name, runtime=writer.runtime)


def warn(world: World, text: str) -> None:
    """A line for the log. What failed is named by its kind: an error's text may hold anything."""
    world.events.emit("log", level="warn", text=text)
