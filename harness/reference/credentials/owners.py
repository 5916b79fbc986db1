"""Whose copy lies in a runtime's store, where several rows have one key there.

Codex takes no note of a server's headers, and Pi of nothing but its name: the rows of two configs of one server (before
and after an edit of the catalog, credential-key-unique-per-row) have one entry between them. It is of the row that was
handed over last. What a runtime renews of it is that row's alone: taken over into two rows, one chain would be renewed
twice, and a single-use token burned (refresh-chain-never-burned, reconcile-two-rows-one-name).
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.reference.credentials.row import Credential
from harness.reference.credentials.writers.protocol import Writer
from harness.world import World

TABLE = "mcp_oauth_store_owners"
NOBODY = ""
"""While an entry is being replaced by another row's: whoever dies in between leaves it to no row."""


def place_of(writer: Writer, key: str) -> str:
    """What stands for an entry. A session's own directory has its own; the keyring is one for all."""
    directory = getattr(writer, "directory", "") if writer.enumerable else ""
    return f"{writer.runtime} {directory} {key}"


async def owners(world: World) -> Mapping[str, str]:
    """The credential keys of the rows by what stands for the entries that were handed over."""
    return {row.key: str(row.values["credential_key"]) for row in await world.store.rows(TABLE)}


def is_anothers(known: Mapping[str, str], row: Credential, writer: Writer) -> bool:
    """Whether the entry under this row's key is known to be another row's. Of an unknown one the key decides."""
    return known.get(place_of(writer, writer.key_for(row)), row.credential_key) != row.credential_key


async def note(world: World, place: str, credential_key: str) -> None:
    """Write down whose an entry is."""
    transaction = await world.store.begin()
    await transaction.put(TABLE, place, {"credential_key": credential_key})
    await transaction.commit()
