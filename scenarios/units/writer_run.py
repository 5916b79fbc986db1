"""Writers of credentials in a model world, with the keyring's helper and a keychain's program, for tests."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fake_runtimes.pi.keyring_helper import is_keyring_helper
from fake_runtimes.pi.keyring_helper import program as helper_program
from harness.reference.catalog.entry import read_entry
from harness.reference.credentials.key import pi_account
from harness.reference.credentials.row import Credential
from harness.reference.credentials.writers.claude import ClaudeWriter
from harness.reference.credentials.writers.codex import CodexWriter
from harness.reference.credentials.writers.pi import PiWriter
from harness.reference.credentials.writers.pi_store import PiStore
from harness.reference.credentials.writers.protocol import StagedCredential
from harness.reference.oauth.server import RemoteServer, remote_server
from harness.world import World
from harness.world.model import Decisions, Fault, Hold, Simulation
from harness.world.model.decisions import FAULT
from harness.world.ports import Program

NOW = 1_800_000_000.0
NOW_MS = int(NOW * 1000)
HOUR_MS = 3_600_000
HOME = "/home/u"
CLAUDE, CODEX, PI = f"{HOME}/.claude", f"{HOME}/.codex", f"{HOME}/.pi/agent/mcp-oauth"
CLAUDE_STORE, CODEX_STORE = f"{CLAUDE}/.credentials.json", f"{CODEX}/.credentials.json"
CACHE = f"{CLAUDE}/mcp-needs-auth-cache.json"
LOCK = ".zimmer-credential-store.lock"
KEYRING = "/run/keyring/pi-mcp-adapter.oauth"
RUNNER = ("keyctl", "session", "-", "node", "/adapter/mcp-keyring-helper.cjs")
URL = "https://mcp.notion.com/v1/mcp"
KEY = "notion|3fad03f7abd02b9c"
MOST_POINTS = 200
Body = Callable[[World], Awaitable[Any]]
Launched = Callable[[Sequence[str]], Program | None]


def full(name: str = "notion", **given: Any) -> StagedCredential:
    """A credential with everything that one can have, valid for an hour."""
    fields: dict[str, Any] = {
        "credential_key": KEY if name == "notion" else f"{name}|0123456789abcdef",
        "server_name": name,
        "server_url": URL if name == "notion" else f"https://{name}.test/mcp",
        "client_id": "client-123",
        "access_token": f"{name}-access",
        "refresh_token": f"{name}-refresh",
        "expires_at_ms": NOW_MS + HOUR_MS,
        "scope": "read write",
        "issuer": "https://as.test",
        "redirect_uris": ("https://zimmer.test/mcp_oauth/callback",),
    }
    return StagedCredential(**{**fields, **given})


def bare(name: str = "notion", **given: Any) -> StagedCredential:
    """A credential with nothing that may be absent."""
    absent: dict[str, Any] = {"refresh_token": None, "expires_at_ms": None, "scope": None, "issuer": None}
    return full(name, **{**absent, "redirect_uris": (), **given})


def server(name: str = "notion", **entry: Any) -> RemoteServer:
    """A server of the catalog."""
    written = {"type": "http", "url": URL, **entry}
    return remote_server(read_entry(name, written), {"TOKEN": "secret", "HOST": "mcp.notion.com"}.get)


def row(name: str = "notion", **given: Any) -> Credential:
    """A stored row of a confidential client."""
    fields = {
        "credential_key": KEY,
        "server_name": name,
        "server_url": URL,
        "client_id": "client-123",
        "client_secret": "s3cr3t",
        "access_token": "row-access",
        "refresh_token": "row-refresh",
        "token_endpoint": "https://as.test/token",
        "scopes": "read write",
        "resource": "https://mcp.notion.com",
        "issuer": "https://as.test",
        "redirect_uri": "https://zimmer.test/mcp_oauth/callback",
        "expires_at": NOW + 3600,
    }
    return Credential(**{**fields, **given})


WRITERS: Mapping[str, Any] = {
    "claude": ClaudeWriter(CLAUDE),
    "codex": CodexWriter(CODEX),
    "pi": PiWriter(PI, PiStore(RUNNER)),
}


def staged_file(name: str, directory: str = PI) -> str:
    """Where Pi takes a credential."""
    return f"{directory}/{pi_account(name)}/tokens.json"


STORES = {"claude": CLAUDE_STORE, "codex": CODEX_STORE, "pi": staged_file("notion")}


def keyring_account(name: str) -> str:
    """The file that stands for an account of the keyring."""
    return f"{KEYRING}/{pi_account(name)}"


@dataclass
class WriterRun:
    """A finished run: what each body returned, and what lies in the files."""

    simulation: Simulation
    results: dict[str, Any]
    errors: dict[str, BaseException]
    outcome: Any
    started: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def result(self) -> Any:
        """What the first body returned; raises what it raised."""
        if "zimmer" in self.errors:
            raise self.errors["zimmer"]
        return self.results["zimmer"]

    def text(self, path: str) -> str | None:
        """A file's text."""
        try:
            return self.simulation.tree.read(path, 0).decode()
        except OSError:
            return None

    def json(self, path: str) -> Any:
        """A file's content."""
        text = self.text(path)
        assert text is not None, f"{path} is not there"
        return json.loads(text)

    def mode(self, path: str) -> int:
        """A path's permission bits."""
        there = self.simulation.tree.stat(path, 0)
        assert there is not None, f"{path} is not there"
        return there.mode

    def exists(self, path: str) -> bool:
        """Whether anything is at a path."""
        return self.simulation.tree.stat(path, 0) is not None

    def names(self, directory: str) -> list[str]:
        """What is in a directory, the lock left out."""
        if not self.exists(directory):
            return []
        return [name for name in self.simulation.tree.names(directory, 0) if name != LOCK]

    def events(self, name: str) -> list[dict[str, Any]]:
        """The details of events of a name."""
        return [event.details for event in self.outcome.events if event.name == name]

    @property
    def warnings(self) -> list[str]:
        """The texts of log lines that warn."""
        return [line["text"] for line in self.events("log") if line["level"] == "warn"]

    @property
    def asked(self) -> list[str]:
        """What the keyring was asked, in order: operation and account without its first part."""
        return [f"{line['operation']} {line['account']}" for line in self.events("keyring")]


async def helper(world: World, argv: Sequence[str]) -> int:
    """The keyring's helper, which tells what it was asked."""
    overheard: Any = Overheard(world)
    return await helper_program(overheard, argv)


class Overheard:
    """A world whose first line of stdin is told as an event `keyring`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return self if name == "processes" else getattr(self._world, name)

    async def read_line(self) -> str | None:
        line = await self._world.processes.read_line()
        if line is not None:
            request = json.loads(line)
            self._world.events.emit("keyring", operation=request["operation"], account=request["account"])
        return line

    async def write_line(self, line: str) -> None:
        await self._world.processes.write_line(line)


def launched(argv: Sequence[str]) -> Program | None:
    """What stands in for the keyring's helper; there is no other program."""
    return helper if is_keyring_helper(argv) else None


def run_writers(
    *bodies: Body,
    files: Mapping[str, str] | None = None,
    modes: Mapping[str, int] | None = None,
    directories: Mapping[str, int] | None = None,
    links: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    user: int = 0,
    faults: Sequence[Fault] = (),
    holds: Sequence[Hold] = (),
    decisions: Decisions | None = None,
    launcher: Launched = launched,
    before: WriterRun | None = None,
    start_seconds: float = NOW,
) -> WriterRun:
    """Run bodies as actors `zimmer`, `zimmer2`, ... of one user, over the files given or those of an earlier run."""
    started: list[tuple[str, ...]] = []

    def launch(argv: Sequence[str], _env: Mapping[str, str], _directory: str) -> Program | None:
        started.append(tuple(argv))
        return launcher(argv)

    simulation = Simulation(
        decisions,
        seed=0 if before is None else before.simulation.seed + 1,  # nobody draws the same names again
        launcher=launch,
        faults=faults,
        holds=holds,
        start_seconds=start_seconds,
        longest_stall_seconds=5,
    )
    tree = simulation.tree
    if before is not None:
        simulation.tree = tree = before.simulation.tree
    tree.make_directory(HOME, 0o777, 0, NOW)
    for path, mode in (directories or {}).items():
        tree.make_directory(path, mode, user, NOW)
    for path, text in (files or {}).items():
        tree.make_directory(path.rpartition("/")[0], 0o700, user, NOW)
        tree.write(path, text.encode(), (modes or {}).get(path, 0o600), user, NOW)
    for path, target in (links or {}).items():
        tree.make_directory(path.rpartition("/")[0], 0o700, user, NOW)
        tree.make_link(path, target, user, NOW)
    results: dict[str, Any] = {}
    actors = {}
    for number, body in enumerate(bodies, start=1):
        name = "zimmer" if number == 1 else f"zimmer{number}"
        variables = {"HOME": HOME, "USER": "u", **(env or {})}
        actors[name] = simulation.start(name, program(body, results), env=variables, directory="/", user=user)
    outcome = simulation.run()
    assert outcome.verdict == "done", outcome.detail
    ended = {name: simulation.ended(actor) for name, actor in actors.items()}
    errors = {name: end.error for name, end in ended.items() if end.error is not None}
    return WriterRun(simulation, results, errors, outcome, started)


def program(body: Body, results: dict[str, Any]) -> Program:
    """A body as a program."""

    async def run(world: World, _argv: Sequence[str]) -> int:
        results[world.name] = await body(world)
        return 0

    return run


def writing(writer: Any, *credentials: StagedCredential) -> Body:
    """Writes them."""

    async def body(world: World) -> Any:
        return await writer.write(world, list(credentials))

    return body


def reading(writer: Any, keys: Sequence[str] | None = None) -> Body:
    """Reads the pairs."""

    async def body(world: World) -> Any:
        return dict(await writer.read(world, keys))

    return body


def deleting(writer: Any, *keys: str) -> Body:
    """Deletes keys."""

    async def body(world: World) -> Any:
        return await writer.delete(world, list(keys))

    return body


def clearing(writer: Any, *names: str) -> Body:
    """Clears the memory of refusals."""

    async def body(world: World) -> Any:
        return await writer.clear_needs_auth(world, list(names))

    return body


class FaultAt:
    """Lets the fault of a given number strike and is calm otherwise."""

    calm = False

    def __init__(self, number: int) -> None:
        self.left = number

    def choose(self, kind: str, _arity: int) -> int:
        """1 at that place where a fault may strike."""
        if kind != FAULT:
            return 0
        self.left -= 1
        return int(self.left == -1)


def killed_everywhere(body: Body, *, files: Mapping[str, str] | None = None, user: int = 0) -> Iterator[WriterRun]:
    """The same run, killed at its first switch point, at its second, and so on."""
    for point in range(MOST_POINTS):
        kill = Fault("kill", actor="zimmer", drawn=True, times=1)
        run = run_writers(body, files=files, user=user, faults=[kill], decisions=FaultAt(point))
        if not run.events("fault"):
            return
        yield run
    raise AssertionError("the run has no end")
