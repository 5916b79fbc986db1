"""How Codex renews a stored token: whether it may, the request, and what is written back under a lock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_runtimes.codex import bugs
from fake_runtimes.codex.credentials import (
    ISSUER,
    Entry,
    find_entry,
    has_expired,
    lookup_key,
    read_store,
    sha256,
    written,
)
from fake_runtimes.codex.discovery import Authorization, UnreachableError, discover
from fake_runtimes.codex.home import CREDENTIALS, Held, read_credentials
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.oauth import JSON, form_request, parsed
from fake_runtimes.profile import CodexProfile
from fake_runtimes.text import json_stringify
from harness.world import Ambiguous, NotSent, Response, World, header

LOCKS = "mcp-oauth-locks"
STORE_LOCK = "file-store"
STORE_MODE = 0o600
TOKEN_SECONDS = 30.0
REFUSED_GRANT = "invalid_grant"
NOT_SENT, NOT_READ = "Request failed", "Failed to parse server response"
EMPTY, NO_JSON = (
    "Other error: server returned empty response body",
    'Other error: unexpected response Content-Type: "{kind}", should be `application/json`',
)


class Looked(NamedTuple):
    """A server's stored credential. `token` is sent. `expired`: it is not, and cannot be renewed; `failed` is why a
    renewal came to nothing, `lost` why none was tried. `client`: somebody counts as logged in by it.
    """

    token: str | None = None
    expired: bool = False
    failed: str = ""
    client: bool = False
    lost: str = ""


class Refused(NamedTuple):
    """Why there is no new token: the code where the server gave one, and the words."""

    error: str
    text: str


class Renewing(NamedTuple):
    """What a renewal needs to know of its surroundings."""

    world: World
    held: Held
    profile: CodexProfile
    user_agent: str

    async def found(self, server: LoadedServer) -> dict[str, Any] | None:
        """The stored entry of a server as it is now."""
        text = await read_credentials(self.world, self.held)
        found = find_entry(text, server, knows_issuer=self.profile.renewal_needs_issuer) if text else None
        return None if found is None else found[1]

    async def look_up(self, server: LoadedServer) -> Looked:
        """The token to send, renewed if it has expired. The file is read anew for every connection."""
        entry = await self.found(server)
        if entry is None:
            return Looked()
        authorization = await self.authorization(server)
        client = bool(entry["client_id"])
        unknown = authorization is None and not self.profile.renewal_needs_issuer
        if unknown or not has_expired(entry, self.world.clock.now()):
            return Looked(entry["access_token"], client=client)
        return await self.renew(server, entry, authorization)

    async def renew(self, server: LoadedServer, entry: Entry, authorization: Authorization | None) -> Looked:
        """A new token in place of this entry's, unless another process has got one meanwhile."""
        if entry.get("refresh_token") and not bugs.uses_refresh_token(self.held.bugs):
            return Looked(lost=bugs.AUTHORIZATION_REQUIRED)
        if authorization is None or not self.may_renew(entry, authorization):
            return Looked(expired=True)
        path = f"{self.held.home}/{LOCKS}/{sha256(lookup_key(server))}.lock"
        await self.world.files.make_directory(f"{self.held.home}/{LOCKS}")
        lock = await self.world.files.lock(path)
        try:
            now = await self.found(server)
            if now is not None and now["access_token"] != entry["access_token"]:
                return Looked(now["access_token"], client=bool(now["client_id"]))
            for _ in range(self.profile.renewal_lookups - 1):
                await self.authorization(server)
            return await self.renewed(server, entry, authorization)
        finally:
            if lock is not None:
                await lock.release()

    async def authorization(self, server: LoadedServer) -> Authorization | None:
        """One round of looking for the authorization server."""
        try:
            return await discover(self.world, server.url or "", self.user_agent)
        except UnreachableError:
            return None

    def may_renew(self, entry: Entry, authorization: Authorization) -> bool:
        """Whether there is a refresh token, and nothing says that another server has given it."""
        if not entry.get("refresh_token"):
            return False
        return not self.profile.renewal_needs_issuer or entry.get(ISSUER) == authorization.issuer

    async def renewed(self, server: LoadedServer, entry: Entry, authorization: Authorization) -> Looked:
        """Ask for a new token and keep it."""
        granted = granted_by(await self.answer(server, entry, authorization))
        if not isinstance(granted, Refused):
            after = following(entry, granted, self.world.clock.now())
            await self.store(server, after)
            return Looked(after["access_token"], client=bool(after["client_id"]))
        if granted.error == REFUSED_GRANT and self.profile.drops_refused_grant:
            await self.store(server, {**entry, "refresh_token": None})
            return Looked(expired=True)
        text = f"{self.profile.renewal_failure_text.format(name=server.name)}OAuth token refresh failed: {granted.text}"
        return Looked(failed=text, client=bool(entry["client_id"]))

    async def answer(self, server: LoadedServer, entry: Entry, authorization: Authorization) -> Response | None:
        """What the token endpoint answers; None where there is no answer."""
        form = {"grant_type": "refresh_token", "refresh_token": entry["refresh_token"]}
        if entry.get("scopes"):
            form["scope"] = " ".join(entry["scopes"])
        form["client_id"] = entry["client_id"]
        if self.profile.renewal_names_resource:
            form["resource"] = server.url or ""
        request = form_request(authorization.token_endpoint, form, self.user_agent)
        try:
            return await self.world.http.send(
                request, open_timeout_seconds=TOKEN_SECONDS, read_timeout_seconds=TOKEN_SECONDS
            )
        except (NotSent, Ambiguous):
            return None

    async def store(self, server: LoadedServer, entry: Entry) -> None:
        """Write an entry under the server's own key, in some versions under that by which it was found.

        The others stay, with the fields that the version knows.
        """
        knows_issuer = self.profile.renewal_needs_issuer
        lock = await self.world.files.lock(f"{self.held.home}/{LOCKS}/{STORE_LOCK}.lock")
        try:
            text = await read_credentials(self.world, self.held)
            there = find_entry(text, server, knows_issuer=knows_issuer) if self.profile.entries_by_address else None
            key = lookup_key(server) if there is None else there[0]
            entries = {**(read_store(text, knows_issuer=knows_issuer) or {}), key: entry}
            kept = {key: written(entries[key], knows_issuer=knows_issuer) for key in sorted(entries)}
            path = f"{self.held.home}/{CREDENTIALS}"
            await self.world.files.write_atomic(path, json_stringify(kept).encode(), mode=STORE_MODE)
        except OSError:
            return
        finally:
            if lock is not None:
                await lock.release()


def granted_by(answer: Response | None) -> Mapping[str, Any] | Refused:
    """The tokens of an answer, or why there are none."""
    if answer is None:
        return Refused("", NOT_SENT)
    document = parsed(answer.body)
    if answer.status == 200:
        kind = header(answer.headers, "Content-Type")
        if not answer.body:
            return Refused("", EMPTY)
        if kind is not None and not kind.lower().startswith(JSON):
            return Refused("", NO_JSON.format(kind=kind))
        return document if document is not None and is_fit(document) else Refused("", NOT_READ)
    error = (document or {}).get("error")
    if not isinstance(error, str):
        return Refused("", NOT_READ)
    described = (document or {}).get("error_description")
    words = f"{error}: {described}" if isinstance(described, str) else error
    return Refused(error, f"Server returned error response: {words}")


def is_fit(document: Mapping[str, Any]) -> bool:
    """Whether an answer has the members of new tokens, each of its kind; one that may be left out may be null."""
    needed = all(isinstance(document.get(name), str) for name in ("access_token", "token_type"))
    texts = all(isinstance(document.get(name), str | None) for name in ("refresh_token", "scope"))
    seconds = document.get("expires_in")
    whole = seconds is None or (isinstance(seconds, int) and not isinstance(seconds, bool) and seconds >= 0)
    return needed and texts and whole


def following(entry: Entry, granted: Mapping[str, Any], now_seconds: float) -> dict[str, Any]:
    """The entry with what was granted: a refresh token that is not repeated stays, an expiry that is not told goes."""
    seconds, scope = granted.get("expires_in"), granted.get("scope")
    return {
        **entry,
        "access_token": granted["access_token"],
        "expires_at": None if seconds is None else int((now_seconds + seconds) * 1000),
        "refresh_token": granted.get("refresh_token") or entry["refresh_token"],
        "scopes": scope.split() if isinstance(scope, str) else entry.get("scopes", []),
    }
