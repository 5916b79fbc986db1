"""Which refresh token was last presented, and how often anything was: for whoever waits while another one presents it.

Source: requirements refresh-ambiguous-never-in-band, refresh-transient-no-in-band-retry. A refresh whose answer is lost
leaves the row as it was, so the next holder of its lock would find it due and present the same token at once. What is
noted here is committed before the request is sent: it survives whoever dies in the middle of it. That it has failed is
noted too, for whoever came while it was under way. It is a count, as no clock need be right: only of who died after the
request nothing tells but that somebody had to wait. Only who holds the row's lock writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Literal

from harness.reference.credentials.row import Credential
from harness.world import World

TABLE = "mcp_oauth_refresh_attempts"

WAITED_SECONDS = 1.0
"""Nobody waits so long for a row that nobody holds."""

Counts = Mapping[str, int]
"""By credential key: how often an attempt has begun or failed."""


def token_digest(refresh_token: str | None) -> str:
    """What stands for a token, which itself need not be kept twice."""
    return sha256((refresh_token or "").encode("utf-8", "surrogatepass")).hexdigest()


async def counts(world: World) -> Counts:
    """The counts as they are now: whoever begins remembers them."""
    return {row.key: int(row.values.get("count", 0)) for row in await world.store.rows(TABLE)}


Outcome = Literal["under way", "failed", "never left"]
"""Of a request that never left, whoever comes later need not know; who was there before leaves it to the repetition."""


async def note(world: World, row: Credential, outcome: Outcome = "under way") -> int:
    """Write down that the row's token is about to be presented, or what became of that; the count from now on."""
    transaction = await world.store.begin()
    before = await transaction.get(TABLE, row.credential_key)
    count = 0 if before is None else int(before.values.get("count", 0))
    count = count if outcome == "never left" else count + 1
    values = {
        "refresh_token_digest": token_digest(row.refresh_token),
        "count": count,
        "is_over": outcome != "under way",
    }
    await transaction.put(TABLE, row.credential_key, values)
    await transaction.commit()
    return count


async def attempted_since(world: World, row: Credential, began: Counts, waited_seconds: float) -> bool:
    """Whether the token that the row holds now was presented, or failed to be renewed, after the counts were taken.

    `waited_seconds` is how long its lock was waited for: an attempt that was not over then is over now, by a death.
    """
    transaction = await world.store.begin()
    noted = await transaction.get(TABLE, row.credential_key)
    await transaction.rollback()
    if noted is None or noted.values["refresh_token_digest"] != token_digest(row.refresh_token):
        return False
    if int(noted.values.get("count", 0)) != began.get(row.credential_key, 0):
        return True
    return not noted.values.get("is_over", True) and abs(waited_seconds) >= WAITED_SECONDS
