"""Rows, servers and stores for the tests of renewing credentials."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl

from harness.reference.credentials.cron import run_refresh_job
from harness.reference.credentials.key import Runtime
from harness.reference.credentials.row import TABLE, Credential, credential_of, row_values
from harness.reference.credentials.state import StoredCredential, expires_in
from harness.reference.credentials.writers.protocol import RuntimePair, StagedCredential
from harness.reference.readiness.probe import oauth_state
from harness.world import Request, Response, World
from harness.world.ports import Clock
from scenarios.units.oauth_run import START_SECONDS, Answering, Ran, run_world

NOW = START_SECONDS
HOUR, MINUTE = 3600, 60
ENDPOINT = "https://as.test/token"
POSTED = f"POST {ENDPOINT}"
SECRET = "client-s3cr3t"
OLD_ACCESS, OLD_REFRESH = "access-old-41", "refresh-old-41"
NEW_ACCESS, NEW_REFRESH = "access-new-42", "refresh-new-42"
SECRETS = (SECRET, OLD_ACCESS, OLD_REFRESH, NEW_ACCESS, NEW_REFRESH)


def credential(name: str = "notion", **changed: Any) -> Credential:
    """A row that the job renews: half an hour left, untouched for five hours."""
    usual = Credential(
        credential_key=f"{name}|0123456789abcdef",
        server_name=name,
        server_url=f"https://{name}.test/mcp",
        client_id="cid",
        access_token=OLD_ACCESS,
        refresh_token=OLD_REFRESH,
        token_endpoint=ENDPOINT,
        expires_at=NOW + 30 * MINUTE,
        updated_at=NOW - 5 * HOUR,
    )
    return replace(usual, **changed)


def rows_of(*credentials: Credential) -> dict[tuple[str, str], Mapping[str, Any]]:
    """They as committed rows."""
    return {(TABLE, row.credential_key): row_values(row) for row in credentials}


def stored(ran: Ran, name: str = "notion") -> Credential:
    """A server's row as it is after a run."""
    values = ran.row(TABLE, f"{name}|0123456789abcdef")
    assert values is not None, f"the row of {name} is gone"
    return credential_of(values)


def connectors_state(row: Credential, now: float = NOW) -> str:
    """What the Connectors page says of a row."""
    relative = StoredCredential(
        expires_in(row, now), row.refresh_token, row.token_endpoint, row.refresh_token_unsupported
    )
    return str(oauth_state(relative).value)


def answer(status: int = 200, body: Any = None, **more: Any) -> Response:
    """An answer whose body is JSON unless it is text."""
    given = {"access_token": NEW_ACCESS, "refresh_token": NEW_REFRESH, "expires_in": HOUR} if body is None else body
    text = given if isinstance(given, str) else json.dumps(given)
    return Response(status, {"Content-Type": "application/json"}, text.encode(), **more)


@dataclass
class TokenServer:
    """Token endpoints of any origin: what they answer, by form; `posts` holds (time, who, form)."""

    reply: Answering = field(default_factory=answer)
    posts: list[tuple[float, str, dict[str, str]]] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    now: float = NOW

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer to one request."""
        self.now = now
        if request.method != "POST":
            self.others.append(f"{request.method} {request.url}")
            return Response(404)
        self.posts.append((now, who, dict(parse_qsl(request.body.decode(), keep_blank_values=True))))
        return self.reply if isinstance(self.reply, Response) else self.reply(request)

    @property
    def presented(self) -> list[str]:
        """The refresh tokens in the order in which they came."""
        return [form["refresh_token"] for _, _, form in self.posts]

    @property
    def times(self) -> list[float]:
        """When each post came, in seconds since the start."""
        return [now - NOW for now, _, _ in self.posts]


@dataclass
class PairStore:
    """A runtime's store: a JSON file of key to pair. Reading it is told as `store.read`."""

    runtime: Runtime = "claude"
    path: str = "/stores/claude.json"
    enumerable: bool = True

    def key_for(self, row: Credential) -> str:
        """The key under which the runtime has it."""
        return row.credential_key

    async def write(self, world: World, credentials: Sequence[StagedCredential]) -> str | None:
        """Nothing is handed over here."""
        return None

    async def read(self, world: World, keys: Sequence[str] | None = None) -> Mapping[str, RuntimePair]:
        """All pairs."""
        world.events.emit("store.read", runtime=self.runtime)
        try:
            text = await world.files.read(self.path)
        except FileNotFoundError:
            return {}
        return {key: RuntimePair(**pair) for key, pair in json.loads(text).items()}

    async def delete(self, world: World, keys: Sequence[str]) -> tuple[str, ...]:
        """Nothing is retired here."""
        return ()

    async def clear_needs_auth(self, world: World, names: Sequence[str]) -> tuple[str, ...]:
        """Nothing is remembered here."""
        return ()


def pair_text(row: Credential, *, seconds: float, access: str = "access-run-7", refresh: str = "refresh-run-7") -> str:
    """A store's file with one pair for a row, which expires in so many seconds from the start."""
    pair = {"access_token": access, "refresh_token": refresh, "expires_at": NOW + seconds, "server_url": row.server_url}
    return json.dumps({row.credential_key: pair})


def run_job(*credentials: Credential, server: TokenServer, program: Any = None, **options: Any) -> Ran:
    """One run of the job (or another program) over these rows; every row's endpoint is the server's."""
    origins = {"https://as.test": server, "http://as.test": server, "http://127.0.0.1:9000": server}
    servers = {**origins, **options.pop("servers", {})}
    rows = {**rows_of(*credentials), **options.pop("rows", {})}
    return run_world(program or job(), servers=servers, rows=rows, **options)


def job(*writers: PairStore, **options: Any) -> Callable[[World], Awaitable[None]]:
    """The program that runs the job once."""

    async def program(world: World) -> None:
        await run_refresh_job(world, writers, **options)

    return program


def lines(ran: Ran, level: str | None = None) -> list[str]:
    """The log lines of a level, or all."""
    return [line["text"] for line in ran.named("log") if level in (None, line["level"])]


def kinds(ran: Ran) -> list[str]:
    """The kinds of the failures, in order."""
    return [event["kind"] for event in ran.named("credential.refresh_failed")]


@dataclass
class SetClock:
    """A clock that is wrong by so many seconds, from a time on."""

    clock: Clock
    wrong_seconds: float
    from_seconds: float

    def now(self) -> float:
        """What it shows."""
        now = self.clock.now()
        return now + self.wrong_seconds if now >= self.from_seconds else now

    async def sleep(self, seconds: float) -> None:
        """Time passes as ever."""
        await self.clock.sleep(seconds)


def with_clock(world: World, wrong_seconds: float, from_seconds: float = NOW) -> World:
    """The world with its clock set, at once or while it is at work."""
    changed: Any = world
    changed.clock = SetClock(world.clock, wrong_seconds, from_seconds)
    return world
