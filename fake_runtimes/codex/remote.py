"""Codex and a server behind a URL: the stored token, and another try when nobody listens or the server is busy."""

from __future__ import annotations

from typing import NamedTuple

from fake_runtimes.client import Connection, Failure, Identity, connect_http
from fake_runtimes.codex.renewal import Looked, Renewing
from fake_runtimes.codex.texts import UNAUTHORIZED, NotStarted, failed_to_start
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.profile import CodexProfile
from harness.world import World, header

REAUTHENTICATION = "reauthenticationRequired"
# Three attempts in about 1.3 s were measured; the two pauses are those of the program's source.
RETRY_PAUSES_SECONDS = (0.25, 1.0)
RETRIED = ("refused", "dns", "reset")
RETRIED_STATUSES, FIRST_SERVER_ERROR = (408, 429), 500


class Way(NamedTuple):
    """How a server is reached: as whom, and within which budget."""

    world: World
    profile: CodexProfile
    identity: Identity
    budget_seconds: float


def wants_stored(server: LoadedServer) -> bool:
    """Whether a stored token is looked for: a header of the configuration goes before it."""
    return server.transport == "http" and server.starts and header(server.headers, "Authorization") is None


def expired(server: LoadedServer, profile: CodexProfile) -> NotStarted:
    """A server whose credential has expired and is not renewed: its token is not even tried."""
    text = profile.reauthentication_text.format(name=server.name)
    cause = f"OAuth tokens for server {server.name} cannot be refreshed; authorization required"
    return NotStarted("credential", text, cause, REAUTHENTICATION)


async def connect_stored(way: Way, server: LoadedServer, renewing: Renewing) -> Connection | Failure | NotStarted:
    """Connect with what is stored, renewed where that has to be. A version renews what the server refuses as well."""
    looked = await renewing.look_up(server) if wants_stored(server) else Looked()
    outcome = await connect_looked(way, server, looked)
    if looked.token is None or not way.profile.renews_refused or not is_refused(outcome):
        return outcome
    again = await renew_refused(renewing, server)
    return outcome if again is None or again.lost else await connect_looked(way, server, again)


async def renew_refused(renewing: Renewing, server: LoadedServer) -> Looked | None:
    """A token in place of one that was refused; None where nothing is stored."""
    entry = await renewing.found(server)
    return None if entry is None else await renewing.renew(server, entry, await renewing.authorization(server))


async def connect_looked(way: Way, server: LoadedServer, looked: Looked) -> Connection | Failure | NotStarted:
    """Connect, with a token if there is one; with one that is not to be had the server is not even asked."""
    if looked.expired:
        return expired(server, way.profile)
    if looked.lost:
        return NotStarted("credential", failed_to_start(server.name, looked.lost), looked.lost, REAUTHENTICATION)
    if looked.failed:
        return NotStarted("renewal", failed_to_start(server.name, looked.failed), looked.failed)
    return await connect_remote(way, server, looked.token)


def is_refused(outcome: object) -> bool:
    """Whether a server has refused whoever came."""
    return isinstance(outcome, Failure) and outcome.status == UNAUTHORIZED


async def connect_remote(way: Way, server: LoadedServer, token: str | None) -> Connection | Failure:
    """Connect. Where nobody listens or the server is busy it is tried again, within the budget."""
    headers = {**server.headers, **({} if token is None else {"Authorization": f"Bearer {token}"})}
    clock = way.world.clock
    until = clock.now() + way.budget_seconds
    for pause in (*RETRY_PAUSES_SECONDS, None):
        left = until - clock.now()
        outcome = await connect_http(way.world, server, headers, way.identity, left, way.budget_seconds)
        if isinstance(outcome, Connection) or pause is None or not is_retried(outcome):
            break
        left = until - clock.now()
        await clock.sleep(min(pause, left))
        if pause >= left:
            return outcome._replace(kind="timeout")
    return outcome


def is_retried(failure: Failure) -> bool:
    """Whether the handshake is sent again."""
    if failure.stage == "list":
        return False
    status = failure.status or 0
    busy = status in RETRIED_STATUSES or status >= FIRST_SERVER_ERROR
    return failure.kind in RETRIED or (failure.kind == "status" and busy)
