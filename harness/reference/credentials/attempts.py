"""Which refresh token was last presented, and when: for whoever waits for a row's lock while another one presents it.

Source: requirements refresh-ambiguous-never-in-band, refresh-transient-no-in-band-retry. A refresh whose answer is lost
leaves the row as it was, so the next holder of its lock would find it due and present the same token at once. What is
noted here is committed before the request is sent: it survives whoever dies in the middle of it. Only who holds the
row's lock writes.
"""

from __future__ import annotations

from hashlib import sha256

from harness.reference.credentials.row import Credential
from harness.world import World

TABLE = "mcp_oauth_refresh_attempts"


def token_digest(refresh_token: str | None) -> str:
    """What stands for a token, which itself need not be kept twice."""
    return sha256((refresh_token or "").encode("utf-8", "surrogatepass")).hexdigest()


async def note(world: World, row: Credential) -> None:
    """Write down that the row's token is about to be presented."""
    transaction = await world.store.begin()
    values = {"refresh_token_digest": token_digest(row.refresh_token), "at": world.clock.now()}
    await transaction.put(TABLE, row.credential_key, values)
    await transaction.commit()


async def attempted_since(world: World, row: Credential, since: float) -> bool:
    """Whether the token that the row holds now was presented at that time or later, in seconds since the epoch."""
    transaction = await world.store.begin()
    noted = await transaction.get(TABLE, row.credential_key)
    await transaction.rollback()
    if noted is None or noted.values["refresh_token_digest"] != token_digest(row.refresh_token):
        return False
    return bool(noted.values["at"] >= since)
