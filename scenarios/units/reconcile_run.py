"""Stores of runtimes that are files of a world, a row, and who works on them: for tests of adoption and retiring."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from fake_servers.oauth.authorization import AuthorizationServer
from harness.reference.credentials import table
from harness.reference.credentials.key import Runtime
from harness.reference.credentials.reconcile import Reconciler
from harness.reference.credentials.retire import retire
from harness.reference.credentials.row import TABLE, Credential
from harness.reference.credentials.writers.protocol import RuntimePair, StagedCredential, Writer
from harness.world import Request, Response, World
from harness.world.errors import failure
from harness.world.sites import origin

NOW = 1_800_000_000.0
NAME, URL, KEY = "notion", "https://mcp.notion.com/mcp", "notion|3fad03f7abd02b9c"
ISSUER = "https://as.example.com"
CLIENT = "client-1"
RUNTIMES: tuple[Runtime, ...] = ("claude", "codex", "pi")
KEYS: Mapping[Runtime, str] = {"claude": KEY, "codex": "notion|bab21fabb59b2ee5", "pi": NAME}
HOUR = 3600.0


def row_of(**columns: Any) -> Credential:
    """A row whose token has an hour left."""
    given = {
        "credential_key": KEY,
        "server_name": NAME,
        "server_url": URL,
        "client_id": CLIENT,
        "access_token": "row-access",
        "refresh_token": "row-refresh",
        "token_endpoint": f"{ISSUER}/token",
        "expires_at": NOW + HOUR,
        "runtime_keys": dict(KEYS),
        "updated_at": NOW - 5 * HOUR,
    }
    return Credential(**{**given, **columns})


def pair_of(seconds: float | None = 2 * HOUR, **columns: Any) -> RuntimePair:
    """What a runtime refreshed: its token has so many seconds left."""
    expires_at = None if seconds is None else NOW + seconds
    given: dict[str, Any] = {"access_token": "new-access", "refresh_token": "new-refresh", "expires_at": expires_at}
    return RuntimePair(**{**given, **columns})


@dataclass
class Store(Writer):
    """A runtime's store in a file of the world, whose reading and writing others may come between.

    `enumerable` None: as the runtime's is. `breaks` says for each read, write or delete whether it raises.
    """

    of: Runtime
    path: str = ""
    listed: bool | None = None
    breaks: Callable[[str], Exception | None] = lambda _what: None
    calls: list[tuple[str, tuple[str, ...] | None]] = field(default_factory=list)

    @property
    def runtime(self) -> Runtime:
        return self.of

    @property
    def enumerable(self) -> bool:
        return self.of != "pi" if self.listed is None else self.listed

    @property
    def file(self) -> str:
        """Where it is kept."""
        return self.path or f"/stores/{self.of}.json"

    @property
    def reads(self) -> list[tuple[str, ...] | None]:
        """The keys of each read; None for all of it."""
        return [keys for what, keys in self.calls if what == "read"]

    def key_for(self, row: Credential) -> str:
        return row.runtime_keys[self.of]

    async def write(self, world: World, credentials: Sequence[StagedCredential]) -> str | None:
        pairs = {
            each.credential_key: RuntimePair(
                each.access_token,
                each.refresh_token,
                None if each.expires_at_ms is None else each.expires_at_ms / 1000,
                each.server_url,
            )
            for each in credentials
        }
        self._note("write", list(pairs))
        await self.change(world, lambda held: {**held, **pairs})
        return self.file

    async def read(self, world: World, keys: Sequence[str] | None = None) -> Mapping[str, RuntimePair]:
        self._note("read", keys)
        held = await self.held(world)
        return held if keys is None else {key: held[key] for key in keys if key in held}

    async def delete(self, world: World, keys: Sequence[str]) -> tuple[str, ...]:
        self._note("delete", keys)
        gone: list[str] = []

        def without(held: dict[str, RuntimePair]) -> dict[str, RuntimePair]:
            gone.extend(key for key in keys if key in held)
            return {key: pair for key, pair in held.items() if key not in keys}

        await self.change(world, without)
        return tuple(gone)

    async def clear_needs_auth(self, world: World, names: Sequence[str]) -> tuple[str, ...]:
        return ()

    async def held(self, world: World) -> dict[str, RuntimePair]:
        """What the file holds now."""
        try:
            text = await world.files.read(self.file)
        except FileNotFoundError:
            return {}
        return {key: RuntimePair(**pair) for key, pair in json.loads(text).items()}

    async def change(self, world: World, changed: Callable[[dict[str, RuntimePair]], dict[str, RuntimePair]]) -> None:
        """Read, change and write it under its lock."""
        lock = await world.files.lock(f"{self.file}.lock")
        assert lock is not None
        held = changed(await self.held(world))
        await world.files.write_atomic(self.file, text_of(held).encode(), mode=0o600)
        await lock.release()

    def _note(self, what: str, keys: Sequence[str] | None) -> None:
        self.calls.append((what, None if keys is None else tuple(keys)))
        error = self.breaks(what)
        if error is not None:
            raise error


def text_of(held: Mapping[str, RuntimePair]) -> str:
    """A store's file."""
    return json.dumps({key: asdict(pair) for key, pair in held.items()})


def holding(pair: RuntimePair | None, *runtimes: Runtime) -> dict[str, str]:
    """The files of the stores of these runtimes (all of them when none is named), each with a pair for the row."""
    found = {f"/stores/{name}.json": text_of({KEYS[name]: pair} if pair else {}) for name in runtimes or RUNTIMES}
    return {"/stores/.keep": "", **found}


def stores(*runtimes: Runtime) -> list[Store]:
    """The stores of these runtimes, all of them when none is named."""
    return [Store(name) for name in runtimes or RUNTIMES]


def stored(*rows: Credential) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Rows as a run is started with them."""
    return {(TABLE, row.credential_key): asdict(row) for row in rows}


def broken(what: str, error: Exception | None = None) -> Callable[[str], Exception | None]:
    """Every read, write or delete raises."""
    raised = error or failure(errno.EIO, "the store")
    return lambda asked: raised if asked == what else None


# --- who works on them


Program = Callable[[World], Coroutine[Any, Any, Any]]


async def started(world: World, at: float) -> None:
    """Begin after so many seconds, or at once."""
    if at:
        await world.clock.sleep(at)


def reconciling(*runtimes: Runtime, key: str = KEY, at: float = 0.0) -> Program:
    """A spawn's reconciliation (one runtime), or the refresh job's (all of them); `at` after so many seconds."""

    async def program(world: World) -> Credential | None:
        await started(world, at)
        return await Reconciler(world, stores(*runtimes)).adopt(key)

    return program


def retiring(*runtimes: Runtime) -> Program:
    """The provider has rejected the grant."""

    async def program(world: World) -> bool:
        return await retire(world, KEY, stores(*runtimes), NAME)

    return program


def refreshing(runtime: Runtime, *, at: float = 0.0) -> Program:
    """A runtime that refreshes what its store holds, and writes the new pair back."""

    async def program(world: World) -> None:
        await started(world, at)
        store = Store(runtime)
        held = (await store.held(world)).get(KEYS[runtime])
        if held is None or held.refresh_token is None:
            return
        answer = await post_refresh(world, held.refresh_token)
        if answer is None:
            return
        fresh = RuntimePair(
            answer["access_token"], answer["refresh_token"], world.clock.now() + answer["expires_in"], held.server_url
        )
        await store.change(world, lambda before: {**before, KEYS[runtime]: fresh})
        world.events.emit("rotated", runtime=runtime)

    return program


def authorizing(row: Credential, *, at: float = 0.0) -> Program:
    """A human authorizes again: another grant, in the same row."""

    async def program(world: World) -> None:
        await started(world, at)
        await table.change(world, row.credential_key, lambda _before: row)
        world.events.emit("authorized again")

    return program


async def ticking(world: World) -> None:
    """Lets time pass: a stalled actor stays away until the next tick."""
    for _ in range(20):
        await world.clock.sleep(1.0)


async def post_refresh(world: World, token: str) -> dict[str, Any] | None:
    """Ask the provider for the next pair; None where it refuses."""
    form = urlencode({"grant_type": "refresh_token", "refresh_token": token, "client_id": CLIENT}).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    request = Request("POST", f"{ISSUER}/token", headers, form)
    answer: Response = await world.http.send(request, open_timeout_seconds=30, read_timeout_seconds=30)
    return json.loads(answer.body) if answer.status == 200 else None


@dataclass
class Provided:
    """A provider that rotates, and a row whose pair it has issued, an hour to go; both with every store holding it."""

    server: AuthorizationServer = field(default_factory=lambda: AuthorizationServer(ISSUER))
    seconds: float = HOUR
    row: Credential = field(init=False)

    def __post_init__(self) -> None:
        access, refresh = self.server.issue(CLIENT, expires_in=self.seconds, now=NOW)
        endpoint = self.server.endpoint_url("token")
        self.row = row_of(
            access_token=access, refresh_token=refresh, expires_at=NOW + self.seconds, token_endpoint=endpoint
        )

    @property
    def servers(self) -> dict[str, Any]:
        """By origin."""
        return {origin(ISSUER): self.server}

    @property
    def pair(self) -> RuntimePair:
        """The row's pair as a store holds it."""
        return RuntimePair(self.row.access_token, self.row.refresh_token, self.row.expires_at, URL)

    def authorized_again(self) -> Credential:
        """The row after another grant."""
        access, refresh = self.server.issue(CLIENT, expires_in=HOUR, now=NOW)
        return replace(self.row, access_token=access, refresh_token=refresh, expires_at=NOW + HOUR)
