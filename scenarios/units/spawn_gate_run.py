"""Sessions up to the spawn of their runtime: rows, stores, servers by address; the runtime itself ends at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.reference.catalog.catalog import read_catalog
from harness.reference.credentials.key import credential_key
from harness.reference.credentials.row import TABLE, Credential, row_values
from harness.reference.oauth.deps import OAuthDeps
from harness.reference.oauth.server import remote_server
from harness.reference.oauth.settings import OAuthSettings
from harness.reference.secrets.placeholders import Lookup
from harness.reference.selection.zimmer import Instance
from harness.reference.session import rows as sessions
from harness.reference.session.job import run_session
from harness.reference.session.order import Order
from harness.world import Response, World
from scenarios.session_runs import air
from scenarios.units.oauth_run import START_SECONDS, Answers, Ran, run_world

SESSION = "s1"
HOME = "/home/zimmer"
CLONE = f"{HOME}/.zimmer/clones/one"
STORE = f"{HOME}/.claude/.credentials.json"
CACHE = f"{HOME}/.claude/mcp-needs-auth-cache.json"
TOKEN = "https://as.test/token"
HOUR = 3600.0
BEARER = {"WWW-Authenticate": 'Bearer realm="mcp"'}
JSON = {"Content-Type": "application/json"}
AGENT = {"claude": ("claude", "-p", "go on"), "codex": ("codex", "exec", "go on"), "pi": ("pi", "-p", "go on")}


def remote(name: str, **more: Any) -> dict[str, Any]:
    """A catalog entry that OAuth can apply to."""
    return {"title": name, "type": "streamable-http", "url": f"https://{name}.test/mcp", **more}


def stdio(**more: Any) -> dict[str, Any]:
    """A catalog entry that runs a program."""
    return {"title": "T", "type": "stdio", "command": "/opt/tools/files", **more}


def refuses(name: str) -> dict[str, Response]:
    """A server that wants a token and says no more."""
    return {f"GET https://{name}.test/mcp": Response(401, BEARER)}


def serves(name: str) -> dict[str, Response]:
    """A server that needs no token."""
    return {f"GET https://{name}.test/mcp": Response(200, JSON, b"{}")}


def answers_json(status: int, **members: Any) -> Response:
    """An answer of a token endpoint."""
    return Response(status, JSON, json.dumps(members).encode())


def key_of(entry: Mapping[str, Any], name: str) -> str:
    """The key of an entry's credential."""
    return credential_key(name, {member: entry[member] for member in ("type", "url", "headers") if member in entry})


def nothing(_name: str) -> str | None:
    """No variable has a value."""
    return None


def credential(
    name: str,
    seconds: float | None = HOUR,
    entry: Mapping[str, Any] | None = None,
    *,
    lookup: Lookup = nothing,
    **more: Any,
) -> Credential:
    """A stored credential of a server that expires in so many seconds."""
    catalog = read_catalog({name: remote(name) if entry is None else entry})
    server = remote_server(catalog.entries[name], lookup)
    made = Credential(
        credential_key=server.credential_key,
        server_name=name,
        server_url=server.url,
        client_id="client",
        access_token=f"access-of-{name}",
        refresh_token=f"refresh-of-{name}",
        token_endpoint=TOKEN,
        expires_at=None if seconds is None else START_SECONDS + seconds,
        runtime_keys=server.runtime_keys,
    )
    return replace(made, **more)


def stored(*credentials: Credential) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Their rows."""
    return {(TABLE, each.credential_key): row_values(each) for each in credentials}


def order_of(catalog: Mapping[str, Any], **more: Any) -> Order:
    """The order of one session."""
    given = {"runtime": "claude", "lookup": nothing, "oauth": OAuthSettings(), **more}
    return Order(
        SESSION,
        clone=CLONE,
        argv=AGENT[given["runtime"]],
        catalog=read_catalog(dict(catalog)),
        instance=Instance("production", "https://zimmer.example.com", "zimmer-api-key"),
        air=air,
        **given,
    )


def deps_of(catalog: Mapping[str, Any]) -> OAuthDeps:
    """What the web side knows of the deployment."""
    return OAuthDeps(read_catalog(dict(catalog)), nothing, OAuthSettings("zimmer.example.com"))


class Session:
    """One world with a session in it: its catalog, its row, whatever is stored, and the servers."""

    def __init__(
        self,
        catalog: Mapping[str, Any],
        answers: Mapping[str, Any] | None = None,
        *,
        credentials: Sequence[Credential] = (),
        chosen: Sequence[str] | None = None,
        row: Mapping[str, Any] | None = None,
        more_rows: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
        files: Mapping[str, str] | None = None,
        faults: Sequence[Any] = (),
        env: Mapping[str, str] | None = None,
        others: Mapping[str, Any] | None = None,
        holds: Sequence[Any] = (),
        decisions: Any = None,
        program: Callable[[World, Order], Any] = run_session,
        **order: Any,
    ) -> None:
        self.answers = Answers(answers or {})
        names = [name for name in catalog if catalog[name].get("url")]
        own = {"mcp_servers": list(catalog if chosen is None else chosen), "metadata": {}, **(row or {})}
        self.order = order_of(catalog, **order)

        async def ends(_world: World, _argv: Sequence[str]) -> int:
            return 0

        self.ran: Ran = run_world(
            lambda world: program(world, self.order),
            servers=self.answers.origins(TOKEN, *(catalog[name]["url"] for name in names)),
            rows={(sessions.TABLE, SESSION): own, **stored(*credentials), **(more_rows or {})},
            files={f"{HOME}/.keep": "", **(files or {})},
            faults=faults,
            env=env,
            others=others,
            holds=holds,
            decisions=decisions,
            launcher=lambda *_: ends,
        )

    @property
    def spawns(self) -> int:
        """How often a runtime's process was started."""
        return len(self.ran.named("spawn"))

    @property
    def asked(self) -> list[str]:
        """Every request, by method and URL."""
        return self.answers.asked

    @property
    def posts(self) -> int:
        """How many token requests arrived."""
        return self.asked.count(f"POST {TOKEN}")

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
    def required(self) -> list[str]:
        """The servers that are recorded as blocking."""
        return [each["server_name"] for each in self.metadata.get("oauth_required_servers") or ()]

    @property
    def verdicts(self) -> dict[str, str]:
        """What the gate judged of each server it looked at."""
        return {each["server"]: each["verdict"] for each in self.ran.named("gate.judged")}

    @property
    def log(self) -> list[str]:
        """The log lines."""
        return [each["text"] for each in self.ran.named("log")]

    @property
    def timeline(self) -> list[str]:
        """The kinds of the timeline's lines."""
        return [line["kind"] for line in self.row.get("timeline", ())]

    @property
    def jobs(self) -> list[Mapping[str, Any]]:
        """What is enqueued."""
        return list(self.ran.rows("jobs").values())

    @property
    def seconds(self) -> float:
        """How long it took."""
        return float(self.ran.simulation.now - START_SECONDS)

    def text(self, path: str) -> str | None:
        """A file's text; None where there is none."""
        tree = self.ran.simulation.tree
        return tree.read(path, 0).decode() if tree.stat(path, 0) is not None else None

    def tokens(self) -> dict[str, str]:
        """The access tokens in Claude's store, by server."""
        entries = json.loads(self.text(STORE) or "{}").get("mcpOAuth", {})
        return {entry["serverName"]: entry["accessToken"] for entry in entries.values()}
