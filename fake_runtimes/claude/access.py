"""Claude Code's right to enter a remote server: the token of each request, its renewal, and what a refusal sets off.

One `Access` serves one connection. A token that has nearly run out is renewed before it is sent, under a lock that all
processes share, again and again where the answer leaves hope; two requests wait for one renewal. A refusal has the
authorization server looked for, a client registered where there is none, and one more renewal, without a second try.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fake_runtimes.claude import metadata, stored, unread
from fake_runtimes.claude.bearer import FILE_NAME
from fake_runtimes.claude.credentials import DIGEST_LENGTH, lookup_key, stored_entry
from fake_runtimes.claude.logs import hyphened
from fake_runtimes.claude.state import ServerState, SessionState
from fake_runtimes.claude.stored import Entry
from fake_runtimes.client import Failure, OverTimeError
from fake_runtimes.discovery import Discovered
from fake_runtimes.granting import (
    KNOWN,
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
from harness.world import Response, Task

STORE_LOCK = ".storage-write.lock"
STORE_MODE = 0o600
ATTEMPTS = 3
FIRST_PAUSE_MS = 1000
TOKENS, ALL = "tokens", "all"
BACK = "Token refresh failed, returning current tokens"
AGAIN = "Token refresh already in progress, reusing existing promise"
CLIENT_LOST = "Token refresh failed: DCR client expired or invalid; clearing stored client registration"
OVERTAKEN = "Another process landed fresh tokens; using those"
PRESERVED = "invalidateCredentials('tokens') preserved: concurrent rotation"
NOT_SENT = "Not sending the stored access token, because the server rejected it earlier in this session"
UNREGISTERED = "No client info found; deferring client registration to authentication time"
REDIRECT = "http://localhost:3118/callback"
RESENDS_AFTER_SECONDS = 0.5
"""Of a renewal ahead of time whose connection broke: the layer below posts it once more."""


class Access:
    """`shown` is the token of the last request; `withheld` one that is not shown any more."""

    def __init__(self, session: SessionState, state: ServerState, withheld: str | None = None) -> None:
        self.session, self.state, self.withheld = session, state, withheld
        self.world, self.server, self.log = session.world, state.server, state.log
        self.shown: str | None = None
        self._told = False
        self._for_renewal: Discovered | None = None
        self._for_refusal: Discovered | None = None
        self._renewing: Task | None = None

    # --- before a request

    async def token(self, until_seconds: float) -> str | None:
        """The token to send. Raises OverTimeError where its renewal takes longer than there is time."""
        entry = await self.entry()
        self.shown = None if entry is None else await self._token_of(entry, until_seconds)
        return self.shown

    async def _token_of(self, entry: Entry, until_seconds: float | None) -> str | None:
        now = self.world.clock.now()
        if stored.wants_renewal(entry, now):
            after: Entry = await self._renewed(entry, until_seconds) or entry
        else:
            left = stored.seconds_left(entry, now)
            if not entry.get("accessToken"):
                self.log.debug("No access token in storage")
                return None
            if left is not None and left <= 0:
                self.log.debug("Token expired without refresh token")
                return None
            after = entry
        token = str(after.get("accessToken") or "") or None
        if token is not None and token == self.withheld:
            self.log.debug(NOT_SENT)
            return None
        self._tell("Returning tokens")
        return token

    def _tell(self, text: str) -> None:
        """What is said of the stored tokens for every request; here once a connection."""
        if not self._told:
            self._told = True
            self.log.debug(text)

    async def entry(self) -> dict[str, Any] | None:
        """The stored entry as it is now."""
        text = await self.session.store_text()
        entry = None if text is None else stored_entry(text, self.server)
        if entry is None:
            self._tell("No token data found")
        return entry

    async def change(self, entry: Entry) -> None:
        """Write an entry. A failure is passed over (not measured)."""
        folder = self.session.homes.config
        try:
            lock = await self.world.files.lock(f"{folder}/{STORE_LOCK}")
        except OSError:
            return
        try:
            text = stored.store_with(await self.session.store_text(), self.server, entry)
            await self.world.files.write_atomic(f"{folder}/{FILE_NAME}", text.encode(), mode=STORE_MODE)
        except OSError:
            return
        finally:
            if lock is not None:
                await lock.release()

    # --- a renewal ahead of time

    async def _renewed(self, entry: Entry, until_seconds: float | None) -> Entry | None:
        """The entry after a renewal, one for all who ask; None where that failed."""
        running = self._renewing
        if running is None or running.done:
            left = int((stored.seconds_left(entry, self.world.clock.now()) or 0) // 1)
            self.log.debug(f"Token expires in {left}s, attempting proactive refresh")
            running = self._renewing = self.world.tasks.start(self._renew(entry), f"renewal of {self.server.name}")
        else:
            self.log.debug(AGAIN)
        after: Entry | None = await self._waited(running, until_seconds)
        if after is None:
            self.log.debug(BACK)
        return after

    async def _renew(self, entry: Entry) -> Entry | None:
        name, _, digest = lookup_key(self.server).rpartition("|")
        path = f"{self.session.homes.config}/mcp-refresh-{hyphened(name)}_{digest[:DIGEST_LENGTH]}.lock.lock"
        self.log.debug("Acquiring refresh lock (attempt 1)")
        try:
            lock = await self.world.files.lock(path)
        except OSError:
            lock = None  # without a lock it is renewed all the same (not measured)
        self.log.debug("Acquired refresh lock")
        try:
            now = await self.entry()
            if now is not None and overtakes(now, entry, self.world.clock.now()):
                return now
            latest = now or entry  # whoever was refused meanwhile has emptied it
            after = await self._attempts(latest) if latest.get("refreshToken") else None
        finally:
            if lock is not None:
                await lock.release()
            self.log.debug("Released refresh lock")
        if after is not None:
            self.log.debug("Token refreshed successfully")
        return after

    async def _attempts(self, entry: Entry) -> Entry | None:
        """Up to three requests, with longer and longer pauses."""
        for number in range(1, ATTEMPTS + 1):
            self.log.debug("Starting token refresh")
            client = await self._ready(entry)
            found = self._for_renewal
            if client is None or found is None:
                return None
            came = await renewed(
                self.world,
                self.server,
                found,
                client,
                entry["refreshToken"],
                self._user_agent,
                RESENDS_AFTER_SECONDS,
            )
            if not isinstance(came, Refused):
                self.log.debug("Token refresh successful")
                return await self._keep(came)
            if not self._is_tried_again(came) or number == ATTEMPTS:
                return await self._given_up(entry, came)
            pause_ms = FIRST_PAUSE_MS * 2 ** (number - 1)
            self.log.debug(f"Token refresh failed, retrying in {pause_ms}ms (attempt {number}/{ATTEMPTS})")
            await self.world.clock.sleep(pause_ms / 1000)
        return None

    async def _ready(self, entry: Entry) -> Client | None:
        """Who asks; looks for whom to ask, once."""
        if self._for_renewal is None:
            known, url = stored.known_server(entry), self.server.url or ""
            if known is not None:
                if not self.session.profile.stamps_issuer:
                    self.log.debug(f"Returning cached discovery state (authServer: {known[0]})")
                self.log.debug(f"Re-discovering metadata from persisted auth server URL: {known[0]}")
            self._for_renewal = await metadata.for_renewal(self.world, url, known, self._user_agent)
        if self._for_renewal is None:
            self.log.debug("Failed to discover OAuth metadata")
            return None
        client = stored.client_of(entry, self.server)
        self.log.debug("No client info found" if client is None else "Found client info")
        if client is None:
            self.log.debug("No client information available")
        return client

    def _is_tried_again(self, refused: Refused) -> bool:
        """Whether a moment may help."""
        if refused.lost:
            return self.session.profile.retries_lost_renewal
        return refused.passing or self._is_unknown(refused)

    def _is_unknown(self, refused: Refused) -> bool:
        """Whether this version takes a code that OAuth does not know for a fault of the server."""
        return bool(refused.code) and refused.code not in KNOWN and not self.session.profile.unknown_refusal_is_final

    async def _given_up(self, entry: Entry, refused: Refused) -> Entry | None:
        """A renewal that came to nothing. Tokens that came into the store meanwhile are as good as new ones."""
        if refused.code == REFUSED_GRANT:
            self.log.debug(f"Token refresh failed with invalid_grant: {self._words(refused)}")
            now = await self.entry()
            if now is not None and overtakes(now, entry, self.world.clock.now()):
                self.log.debug(OVERTAKEN)
                return now
            self.log.debug("No valid tokens in storage, clearing stored tokens")
            await self._invalidate(TOKENS)
        elif refused.code in REFUSED_CLIENT:
            self.log.debug(CLIENT_LOST)
            await self._invalidate(ALL)
        else:
            self.log.debug(f"Token refresh failed: {self._words(refused)}")
        return None

    # --- after a refusal

    async def refused(self, failure: Failure, until_seconds: float) -> Failure | None:
        """What a 401 sets off: None, and the request is sent once more; or the failure that it comes to."""
        work = self._settle(failure, self.shown is not None)
        task = self.world.tasks.start(work, f"sign-in of {self.server.name}")
        settled: Failure | None = await self._waited(task, until_seconds)
        return settled

    async def _settle(self, failure: Failure, had_token: bool) -> Failure | None:
        """Once, and once more after the first dead grant or client; a second one is an error."""
        came = await self._authorize(failure, last=False)
        if isinstance(came, Refused) and came.code in (REFUSED_GRANT, *REFUSED_CLIENT):
            came = await self._authorize(failure, last=True)
        if came is None:
            return None
        if self.session.profile.stamps_issuer and not had_token:
            entry = await self.entry()
            if entry is not None:
                await self.change(stored.rejected_without_token(entry, self.world.clock.now()))
        if isinstance(came, Refused):
            return failure._replace(kind="oauth", status=None, detail=self._words(came), body=came.code)
        return came

    async def _authorize(self, failure: Failure, *, last: bool) -> Failure | Refused | None:
        """One round: None is a new token, a failure the want of a person, Refused an error."""
        found = await self._discovered(failure)
        entry = await self._client(found)
        if not isinstance(entry, Mapping):
            return failure if entry is None else entry
        current = await self._current(entry)
        refresh_token, client = current.get("refreshToken"), stored.client_of(current, self.server)
        if not refresh_token or client is None:
            self.log.debug("Redirection handling is disabled, skipping redirect")
            return failure
        came = await renewed(self.world, self.server, found, client, refresh_token, self._user_agent)
        if not isinstance(came, Refused):
            await self._keep(came, found)
            return None
        if came.code == REFUSED_GRANT:
            if not last:
                await self._invalidate(TOKENS, used=refresh_token)
            return came
        if came.code in REFUSED_CLIENT:
            if not last:
                await self._invalidate(ALL)
            return came
        if not came.code or came.code == SERVER_ERROR or self._is_unknown(came):
            self.log.debug("Redirection handling is disabled, skipping redirect")
            return failure
        return came

    async def _current(self, entry: Entry) -> Entry:
        """The tokens as they are told to whoever renews after a refusal: renewed ahead of time where that is due."""
        now = self.world.clock.now()
        if stored.wants_renewal(entry, now):
            return await self._renewed(entry, None) or entry
        left = stored.seconds_left(entry, now)
        if not entry.get("accessToken"):
            self.log.debug("No access token in storage")
        elif left is not None and left <= 0:
            self.log.debug("Token expired without refresh token")
        return entry

    async def _discovered(self, failure: Failure) -> Discovered:
        """The authorization server, and a note of it in the store."""
        found = self._for_refusal
        if found is None:
            entry = await self.entry()
            known = None if entry is None else stored.known_server(entry)
            if known is not None:
                self.log.debug(f"Returning cached discovery state (authServer: {known[0]})")
            found = await metadata.for_refusal(
                self.world, self.server.url or "", failure.challenge, known, self._user_agent
            )
            self.log.debug(f"Saving discovery state (authServer: {found.server_url})")
            stamps = self.session.profile.stamps_issuer
            await self.change(stored.discovered(entry or {}, found, self.server, stamps_issuer=stamps))
            if stamps and found.metadata is not None:
                self._for_refusal = found  # the older version looks anew each time
        return found

    async def _client(self, found: Discovered) -> Entry | Refused | None:
        """The entry with a client in it, which may be registered for it; None: that is left to a person's sign-in."""
        entry = await self.entry() or {}
        if stored.client_of(entry, self.server) is not None:
            self.log.debug("Found client info")
            return entry
        if found.metadata is not None and not entry.get("refreshToken"):
            self.log.debug(UNREGISTERED)
            return None
        self.log.debug("No client info found")
        newer = self.session.profile.stamps_issuer
        came = await registered(self.world, found, client_metadata(self.server, native=newer), self._user_agent)
        if isinstance(came, Refused):
            return came
        if isinstance(came, Response):
            return Refused("", rejection(came)) if newer else Refused("", "", unread=came)
        after: Entry = stored.registered(entry, came, self.server, REDIRECT)
        if newer:
            after = stored.stamped(after, found)
        await self.change(after)
        return after

    # --- what both change

    async def _keep(self, tokens: Mapping[str, Any], found: Discovered | None = None) -> Entry:
        """Write new tokens, over whatever stands there by now."""
        self.log.debug("Saving tokens")
        if "expires_in" in tokens:
            self.log.debug(f"Token expires in: {tokens['expires_in']}")
        entry = await self.entry() or {}
        after = stored.granted(entry, tokens, self.server, self.world.clock.now())
        if found is not None and self.session.profile.stamps_issuer:
            after = stored.stamped(after, found)
        await self.change(after)
        return after

    async def _invalidate(self, scope: str, used: str | None = None) -> None:
        """Take tokens, or the client as well, out of the entry; not those that others have put there meanwhile."""
        entry = await self.entry()
        if entry is None:
            return
        if used is not None and entry.get("refreshToken") not in (used, None):
            self.log.debug(PRESERVED)
            return
        expired = self.session.profile.forgotten_has_expired
        await self.change(stored.emptied(entry) if scope == TOKENS else stored.forgotten(entry, has_expired=expired))
        self.log.debug(f"Invalidated credentials (scope: {scope})")

    def _words(self, refused: Refused) -> str:
        """What a version says of a refusal: the older one has no word for a code without a description."""
        if refused.lost:
            return refused.text or self.session.wording.reset[1]
        if refused.unread is not None:
            return unread.words(refused.unread, self.session.profile)
        return refused.text or (refused.code if self.session.wording.names_codes else "")

    async def _waited(self, task: Task, until_seconds: float | None) -> Any:
        """What a task comes to; it goes on where there is no more time to wait for it."""
        left = None if until_seconds is None else max(until_seconds - self.world.clock.now(), 0.0)
        await self.world.tasks.wait([task], timeout_seconds=left)
        if not task.done:
            raise OverTimeError
        return task.result()

    @property
    def _user_agent(self) -> str:
        return self.session.identity.user_agent


def overtakes(entry: Entry, old: Entry, now_seconds: float) -> bool:
    """Whether an entry holds other tokens than the old one did, and good ones."""
    token = entry.get("accessToken")
    return bool(token) and token != old.get("accessToken") and not stored.wants_renewal(entry, now_seconds)


def client_metadata(server: LoadedServer, *, native: bool) -> dict[str, Any]:
    """What is told of oneself to be registered."""
    return {
        "client_name": f"Claude Code ({server.name})",
        "redirect_uris": [REDIRECT],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        **({"application_type": "native"} if native else {}),
    }


def still_renewable(entry: Entry | None) -> bool:
    """Whether a refusal may pass by itself: a refresh token is left."""
    return bool(entry and entry.get("refreshToken"))
