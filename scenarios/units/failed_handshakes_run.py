"""Sessions whose runtime tells of its servers what a test wants: Claude's log files, or lines of the others' output."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from harness.reference.credentials.row import Credential
from harness.reference.session import evidence
from harness.reference.session import rows as sessions
from harness.reference.session.job import run_session
from harness.reference.session.order import Order
from harness.world import World
from scenarios.units.oauth_run import START_SECONDS, Answers, Ran, run_world
from scenarios.units.spawn_gate_run import CACHE, CLONE, HOME, SESSION, TOKEN, order_of, remote, stdio, stored

UNAUTHORIZED = "HTTP Connection failed after 7094ms: Unauthorized (code: none, errno: none)"
INVALID_TOKEN = (
    "HTTP Connection failed after 6536ms: Streamable HTTP error: Error POSTing to endpoint:"
    ' {"error":"invalid_token"} (code: 401, errno: none)'
)
CLOSED = "Connection failed after 812ms (CONNECTION_CLOSED): Connection closed"
DEAD_GRANT = "Token refresh failed with invalid_grant: Invalid refresh token | Connection failed after 9ms"
REFUSED_KEY = "Server stderr: BrightData: Invalid API key - authentication failed"
ANSWER = '{"type":"assistant","message":{"role":"assistant","content":[]}}'
INIT = '{"type":"system","subtype":"init","session_id":"the conversation"}'
SECONDS = 30.0
CONNECTED = "Successfully connected"

NOTION = {"notion": remote("notion")}
STATIC = {"zimmer-sessions": remote("zimmer-sessions", headers={"X-API-Key": "${ZIMMER_PROD_API_KEY}"})}
FILES = {"files": stdio()}
SECRETS = {"ZIMMER_PROD_API_KEY": "the-key-of-production"}

Said = Mapping[str, str]
"""What one start of the runtime says of its servers; several lines of a log are joined as a poll joins them."""


class Handshakes:
    """One session with its row. `starts` are the runtime's starts, of which the last one counts for all later ones.

    `answers`: in these starts (from 1) the model was heard before the servers were told of. `remembers`: the servers
    that each start notes as refused in Claude's memory. `hangs_seconds`: how long no server has an outcome;
    `goes_on_seconds`: how long the process goes on afterwards.
    """

    def __init__(
        self,
        catalog: Mapping[str, Any],
        starts: Sequence[Said],
        *,
        credentials: Sequence[Credential] = (),
        chosen: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
        answers: Sequence[int] = (),
        remembers: Sequence[str] = (),
        hangs_seconds: float = 0.0,
        goes_on_seconds: float = SECONDS,
        program: Callable[[World, Order], Any] = run_session,
        more_rows: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
        others: Mapping[str, Any] | None = None,
        faults: Sequence[Any] = (),
        servers: Mapping[str, Any] | None = None,
        launcher: Any = None,
        env: Mapping[str, str] | None = None,
        decisions: Any = None,
        **order: Any,
    ) -> None:
        self.starts, self.heard, self.remembers = starts, answers, remembers
        self.hangs_seconds, self.goes_on_seconds = hangs_seconds, goes_on_seconds
        self.count = 0
        names = [name for name in catalog if catalog[name].get("url")]
        own = {"mcp_servers": list(catalog if chosen is None else chosen), "metadata": dict(metadata or {})}
        self.order = order_of(catalog, **{"lookup": SECRETS.get, **order})
        self.ran: Ran = run_world(
            lambda world: program(world, self.order),
            servers={**Answers({}).origins(TOKEN, *(catalog[name]["url"] for name in names)), **(servers or {})},
            rows={(sessions.TABLE, SESSION): own, **stored(*credentials), **(more_rows or {})},
            files={f"{HOME}/.keep": "", **(files or {})},
            launcher=launcher or self._launched,
            env=env,
            decisions=decisions,
            others=others,
            faults=faults,
        )

    def _launched(self, argv: Sequence[str], _variables: Any, _directory: str) -> Any:
        return self._runtime if argv[0] in evidence_of else None

    async def _runtime(self, world: World, argv: Sequence[str]) -> int:
        self.count += 1
        said = self.starts[min(self.count, len(self.starts)) - 1]
        if self.count in self.heard:
            for line in (INIT, ANSWER):
                await world.processes.write_line(line)
        for name in self.remembers:
            await world.files.write(CACHE, json.dumps({name: {"timestamp": 1}}).encode())
        await world.clock.sleep(self.hangs_seconds)
        await evidence_of[argv[0]](world, said, self.count)
        await world.clock.sleep(self.goes_on_seconds)
        return 0

    @property
    def row(self) -> Mapping[str, Any]:
        """The session's row afterwards."""
        return self.ran.row(sessions.TABLE, SESSION) or {}

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The session's notes afterwards."""
        noted: Mapping[str, Any] = self.row["metadata"]
        return noted

    @property
    def spawned(self) -> list[float]:
        """When the runtime was started, in seconds from the beginning."""
        events = [event for event in self.ran.events if event.name == "spawn" and event.details["argv"][0] in RUNTIMES]
        return [event.at_seconds - START_SECONDS for event in events]

    @property
    def words(self) -> list[tuple[str, ...]]:
        """The words of each start of the runtime."""
        events = [event.details["argv"] for event in self.ran.events if event.name == "spawn"]
        return [tuple(argv) for argv in events if argv[0] in RUNTIMES]

    @property
    def record(self) -> dict[str, str]:
        """The servers that are left out, with the reason."""
        return {each["name"]: each["reason"] for each in self.metadata.get("mcp_degraded_servers", ())}

    @property
    def required(self) -> list[str]:
        """The servers that a human has to authorize."""
        return [each["server_name"] for each in self.metadata.get("oauth_required_servers") or ()]

    @property
    def retried(self) -> list[list[str]]:
        """The servers of each retry."""
        return [each["servers"] for each in self.ran.named("session.retry")]

    @property
    def log(self) -> list[tuple[str, str]]:
        """Level and text of the log's lines."""
        return [(each["level"], each["text"]) for each in self.ran.named("log")]

    def text(self, path: str) -> str | None:
        """A file's text; None where there is none."""
        tree = self.ran.simulation.tree
        return tree.read(path, 0).decode() if tree.stat(path, 0) is not None else None


async def tell_by_log(world: World, said: Said, number: int) -> None:
    """Claude's log files."""
    for name, text in said.items():
        directory = evidence.log_directory(f"{HOME}/.cache", CLONE, name)
        await world.files.make_directory(directory)
        stamp = datetime.fromtimestamp(world.clock.now(), UTC).isoformat()
        level = {CONNECTED: "debug"}.get(text, "error")
        lines = [json.dumps({level: line, "timestamp": stamp}) for line in text.split(" | ")]
        await world.files.write(f"{directory}/{number}.jsonl", "\n".join(lines).encode())


async def tell_by_update(world: World, said: Said, _number: int) -> None:
    """The notifications of Codex's app server."""
    for name, text in said.items():
        params = {"name": name, "status": "ready" if text == CONNECTED else "failed", "error": text}
        await world.processes.write_line(json.dumps({"method": "mcpServer/startupStatus/updated", "params": params}))


async def tell_by_line(world: World, said: Said, _number: int) -> None:
    """The lines of Pi's adapter."""
    for name, text in said.items():
        if text != CONNECTED:
            await world.processes.write_error(f"MCP: Failed to connect to {name}: {text}")


evidence_of: Mapping[str, Callable[[World, Said, int], Any]] = {
    "claude": tell_by_log,
    "codex": tell_by_update,
    "pi": tell_by_line,
}
RUNTIMES = tuple(evidence_of)
