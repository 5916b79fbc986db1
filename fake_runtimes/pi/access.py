"""Pi's right to enter a remote server: the token of each request, and what a refusal sets off.

The adapter never looks at a token's time: it renews what a server has refused. What it has read of the store it keeps
for the process, until a refusal; before it renews, it notes the issuer in what it has kept, over whatever the store
holds by then. A refresh token that is refused stays where it is; where another one has come into the store meanwhile,
that is spent at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_runtimes.client import Failure, OverTimeError
from fake_runtimes.discovery import Discovered, after_refusal
from fake_runtimes.granting import (
    REFUSED_CLIENT,
    REFUSED_GRANT,
    SERVER_ERROR,
    Client,
    Refused,
    registered,
    rejection,
    renewed,
)
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.pi.tokens import Entries
from harness.world import Response, World

USER_AGENT = "undici"
REDIRECT = "http://localhost:19876/callback"
REGISTRATION = {
    "redirect_uris": [REDIRECT],
    "client_name": "Pi Coding Agent",
    "client_uri": "https://github.com/nicobailon/pi-mcp-adapter",
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
    "token_endpoint_auth_method": "none",
    "application_type": "native",
}
ISSUER = "issuer"
OTHER_ISSUER = "OAuth authorization server issuer changed for {name}; clear credentials before authenticating again"
STUB = frozenset({"clientId", ISSUER})
"""Members of a client that say nothing of how it was registered: it counts as none."""


class Ground(NamedTuple):
    """What the accesses of one run share."""

    world: World
    entries: Entries


class Access:
    """One server's, for as long as it is connected. `ended`: nothing is shown any more."""

    def __init__(self, ground: Ground, server: LoadedServer) -> None:
        self.world, self.entries, self.server = ground.world, ground.entries, server
        self.ended = False
        self._found: Discovered | None = None

    async def token(self, until_seconds: float) -> str | None:  # noqa: ARG002 - nothing is renewed ahead of time
        """The stored token for exactly this url, whatever its expiry says."""
        return None if self.ended else token_in(await self.entries.kept(self.server))

    async def refused(self, failure: Failure, until_seconds: float) -> Failure | None:
        """A new token, the want of a person, or an error of the authorization server."""
        if self.ended:
            return failure
        task = self.world.tasks.start(self._settle(failure), f"sign-in of {self.server.name}")
        await self.world.tasks.wait([task], timeout_seconds=max(until_seconds - self.world.clock.now(), 0.0))
        if not task.done:
            raise OverTimeError
        settled: Failure | None = task.result()
        return settled

    async def _settle(self, failure: Failure) -> Failure | None:
        """Renew; after a refused grant once more, if the store has another one by now."""
        ready = await self._ready(failure)
        if isinstance(ready, Refused):
            return failed(failure, ready)
        client, entry = ready
        refused = await self._renew(client, entry)
        if isinstance(refused, Refused) and refused.code in (REFUSED_GRANT, *REFUSED_CLIENT):
            self.entries.forget(self.server)
            now = await self.entries.kept(self.server)
            other = refresh_token_in(now)
            if now is None or other is None or other == refresh_token_in(entry):
                self.ended = True
                return failure
            refused = await self._renew(client, now)
        if refused is None:
            return None
        if isinstance(refused, Refused) and refused.code and refused.code != SERVER_ERROR:
            return failed(failure, refused)
        self.ended = True
        self.entries.forget(self.server)
        return failure

    async def _ready(self, failure: Failure) -> tuple[Client, Mapping[str, Any]] | Refused:
        """The authorization server, and an entry with a client and its issuer."""
        if self._found is None:
            self._found = await after_refusal(self.world, self.server.url or "", failure.challenge, USER_AGENT)
        found = self._found
        entry = await self.entries.kept(self.server) or {}
        issuers = {entry.get(part, {}).get(ISSUER) for part in ("tokens", "clientInfo")} - {None, found.issuer}
        if issuers:
            return Refused("", OTHER_ISSUER.format(name=self.server.name))
        info = self._configured() or known_client(entry)
        if info is None:
            came = await registered(self.world, found, REGISTRATION, USER_AGENT)
            if isinstance(came, Response):
                return Refused("", rejection(came).rstrip())
            if isinstance(came, Refused):
                return came
            info = client_info(came)
        after = {**entry, "clientInfo": {**info, ISSUER: found.issuer}}
        if "tokens" in entry:
            after["tokens"] = {**entry["tokens"], ISSUER: found.issuer}
        if after != entry:
            await self.entries.keep(self.server, after)
        return Client(info["clientId"], info.get("clientSecret")), after

    def _configured(self) -> dict[str, Any] | None:
        """The client that the configuration names."""
        oauth = self.server.raw.get("oauth")
        own = oauth if isinstance(oauth, dict) else {}
        if not isinstance(own.get("clientId"), str) or not own["clientId"]:
            return None
        secret = {"clientSecret": own["clientSecret"]} if isinstance(own.get("clientSecret"), str) else {}
        return {"clientId": own["clientId"], **secret, "configPreRegistered": True}

    async def _renew(self, client: Client, entry: Mapping[str, Any]) -> Refused | bool | None:
        """One request: None where it worked, False where there is nothing to renew with."""
        refresh_token, found = refresh_token_in(entry), self._found
        if refresh_token is None or found is None:
            return False
        came = await renewed(self.world, self.server, found, client, refresh_token, USER_AGENT)
        if isinstance(came, Refused):
            return came
        seconds, scope = came.get("expires_in"), came.get("scope")
        timed = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        tokens = {
            "accessToken": came["access_token"],
            "refreshToken": came.get("refresh_token") or refresh_token,
            "expiresAt": round(self.world.clock.now() + seconds, 3) if timed and seconds is not None else None,
            "scope": scope if isinstance(scope, str) else None,
            ISSUER: found.issuer,
        }
        kept = {name: value for name, value in tokens.items() if value is not None}
        await self.entries.keep(self.server, {**entry, "tokens": kept})
        return None


def token_in(entry: Mapping[str, Any] | None) -> str | None:
    """The access token of an entry."""
    tokens = (entry or {}).get("tokens")
    return str(tokens["accessToken"]) if isinstance(tokens, dict) else None


def refresh_token_in(entry: Mapping[str, Any] | None) -> str | None:
    """The refresh token of an entry."""
    tokens = (entry or {}).get("tokens")
    token = tokens.get("refreshToken") if isinstance(tokens, dict) else None
    return token if isinstance(token, str) and token else None


def known_client(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """The client of an entry, where there is more of it than its id."""
    info = entry.get("clientInfo")
    return dict(info) if isinstance(info, dict) and not info.keys() <= STUB else None


def client_info(registration: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a registration."""
    named = {"clientId": "client_id", "clientSecret": "client_secret", "clientIdIssuedAt": "client_id_issued_at",
             "clientSecretExpiresAt": "client_secret_expires_at"}  # fmt: skip
    info = {name: registration[told] for name, told in named.items() if told in registration}
    return {**info, "redirectUris": registration.get("redirect_uris", [REDIRECT])}


def failed(failure: Failure, refused: Refused) -> Failure:
    """A connection that fails for its authorization server."""
    return failure._replace(kind="oauth", status=None, detail=refused.text or refused.code, body=refused.code)
