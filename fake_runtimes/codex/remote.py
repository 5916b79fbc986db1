"""Codex and a server behind a URL: the stored token, the look-ups it causes, and another try when nobody listens."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from fake_runtimes.client import Connection, Failure, Identity, connect_http
from fake_runtimes.codex.credentials import find_entry
from fake_runtimes.codex.exec_facts import exec_facts
from fake_runtimes.codex.texts import NotStarted
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.profile import CodexProfile
from harness.world import Ambiguous, NotSent, Request, World, header

EXPIRES_WITHIN_SECONDS = 30.0
REAUTHENTICATION = "reauthenticationRequired"
# Three attempts in about 1.3 s were measured; the two pauses are those of the program's source.
RETRY_PAUSES_SECONDS = (0.25, 1.0)
RETRIED = ("refused", "dns", "reset")
LOOK_UP_SECONDS = 5.0


class Stored(NamedTuple):
    """A server's stored credential: a token that is sent, or one that has expired.

    A token without a client is sent, but nobody counts as logged in by it.
    """

    token: str | None = None
    expired: bool = False
    client: bool = False

    @property
    def found(self) -> bool:
        """Whether there is an entry at all."""
        return self.expired or self.token is not None

    @property
    def logged_in(self) -> bool:
        """Whether the program says so."""
        return self.token is not None and self.client


def wants_stored(server: LoadedServer) -> bool:
    """Whether a stored token is looked for: a header of the configuration goes before it."""
    return server.transport == "http" and server.starts and header(server.headers, "Authorization") is None


def stored_credential(store_text: str, server: LoadedServer, now_seconds: float) -> Stored:
    """What the store holds for a server. A token counts as expired 30 seconds early; no time is no expiry.

    Nothing is renewed here: a token that has expired is as good as one without a refresh token.
    """
    found = find_entry(store_text, server) if store_text else None
    if found is None:
        return Stored()
    _, entry = found
    expires_at_ms = entry.get("expires_at")
    if isinstance(expires_at_ms, int | float) and expires_at_ms / 1000 - now_seconds <= EXPIRES_WITHIN_SECONDS:
        return Stored(expired=True)
    return Stored(entry["access_token"], client=bool(entry["client_id"]))


def expired(server: LoadedServer, profile: CodexProfile) -> NotStarted:
    """A server whose credential has expired: its token is not even tried."""
    text = exec_facts(profile).reauthentication.format(name=server.name)
    cause = f"OAuth tokens for server {server.name} cannot be refreshed; authorization required"
    return NotStarted("credential", text, cause, REAUTHENTICATION)


async def connect_remote(
    world: World,
    server: LoadedServer,
    token: str | None,
    identity: Identity,
    budget_seconds: float,
    profile: CodexProfile,
) -> Connection | Failure:
    """Connect, with a stored token if there is one. Where nobody listens it is tried again, within the budget."""
    headers = dict(server.headers)
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
        await look_up_metadata(world, server.url or "", identity, exec_facts(profile).metadata_requests)
    until = world.clock.now() + budget_seconds
    for pause in (*RETRY_PAUSES_SECONDS, None):
        left = until - world.clock.now()
        outcome = await connect_http(world, server, headers, identity, left, budget_seconds)
        if isinstance(outcome, Connection) or pause is None or outcome.kind not in RETRIED or outcome.stage == "list":
            break
        left = until - world.clock.now()
        await world.clock.sleep(min(pause, left))
        if pause >= left:
            return outcome._replace(kind="timeout")
    return outcome


async def look_up_metadata(world: World, url: str, identity: Identity, metadata_requests: int) -> None:
    """What is asked before a stored token is used. Whatever is answered, the token is sent."""
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    resource = f"{origin}/.well-known/oauth-protected-resource{parts.path.rstrip('/')}"
    for address in (url, *[resource] * metadata_requests, f"{origin}/.well-known/oauth-authorization-server"):
        request = Request("GET", address, {"User-Agent": identity.user_agent})
        try:
            answer = await world.http.open(
                request, open_timeout_seconds=LOOK_UP_SECONDS, read_timeout_seconds=LOOK_UP_SECONDS
            )
            await answer.close()
        except (NotSent, Ambiguous):
            continue
