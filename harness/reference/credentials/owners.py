"""Whose copy lies in a runtime's store, where several rows have one key there.

Codex takes no note of a server's headers, and Pi of nothing but its name: the rows of two configs of one server (before
and after an edit of the catalog, credential-key-unique-per-row) have one entry between them. It is of the row that was
handed over last. What a runtime renews of it is that row's alone: taken over into two rows, one chain would be renewed
twice, and a single-use token burned (refresh-chain-never-burned, reconcile-two-rows-one-name).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.reference.credentials import table
from harness.reference.credentials.adoption import token_digest
from harness.reference.credentials.row import Credential
from harness.reference.credentials.writers.protocol import RuntimePair, Writer
from harness.reference.secrets.blank import is_blank
from harness.world import World

TABLE = "mcp_oauth_store_owners"


class Owner(NamedTuple):
    """The credential key of the row whose copy lies in an entry.

    `successor` is the row whose copy was about to take its place, `token` the digest of that one's access token; both
    empty once it has.
    """

    row: str
    successor: str = ""
    token: str = ""

    def of(self, pair: RuntimePair | None) -> str:
        """The row whose copy this pair is. What a runtime has renewed meanwhile was most likely its predecessor's."""
        if not self.successor or pair is None or not isinstance(pair.access_token, str):
            return self.row
        return self.successor if token_digest(pair.access_token) == self.token else self.row


def place_of(writer: Writer, key: str) -> str:
    """What stands for an entry. A session's own directory has its own; the keyring is one for all."""
    directory = getattr(writer, "directory", "") if writer.enumerable else ""
    return f"{writer.runtime} {directory} {key}"


async def owners(world: World) -> Mapping[str, Owner]:
    """Whose copies the entries are that were handed over, by what stands for them."""
    rows = await world.store.rows(TABLE)
    return {row.key: Owner(*(str(row.values.get(name, "")) for name in Owner._fields)) for row in rows}


async def is_anothers(world: World, row: Credential, writer: Writer, pair: RuntimePair) -> bool:
    """Whether the pair under this row's key is another row's. Of an entry that nobody has noted the key decides, where
    no other row has that: it may have been handed over before there were notes, or be the runtime's own.
    """
    owner = (await owners(world)).get(place_of(writer, writer.key_for(row)))
    if owner is not None:
        return owner.of(pair) != row.credential_key
    return bool(await rivals(world, row, writer))


async def is_kept(world: World, row: Credential, writer: Writer) -> bool:
    """Whether what lies under this row's key stays where the row is retired: it is another one's, as far as is known.

    It is looked at only where it decides. Raises what reading raises.
    """
    key = writer.key_for(row)
    owner = (await owners(world)).get(place_of(writer, key))
    if owner is not None and not owner.successor:
        return owner.row != row.credential_key
    others = await rivals(world, row, writer) if owner is None else ()
    pair = (await writer.read(world, [key])).get(key) if owner is not None or others else None
    if owner is not None:
        return owner.of(pair) != row.credential_key
    return pair is not None and pair.refresh_token in [other.refresh_token for other in others]


async def rivals(world: World, row: Credential, writer: Writer) -> tuple[Credential, ...]:
    """The other rows that have a chain and that this runtime files under the same key, for the same URL."""
    here = (writer.key_for(row), row.server_url)
    others = (each for each in await table.all_rows(world) if each.credential_key != row.credential_key)
    chains = (each for each in others if not is_blank(each.refresh_token))
    return tuple(each for each in chains if (writer.key_for(each), each.server_url) == here)


async def note(world: World, place: str, owner: Owner) -> None:
    """Write down whose an entry is."""
    transaction = await world.store.begin()
    await transaction.put(TABLE, place, owner._asdict())
    await transaction.commit()
