"""Sessions of the reference in a model world: orchestrator, fake runtime, fake npx and their servers; for tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fake_runtimes import runtimes as fakes
from fake_runtimes.plan import Plan, Turn
from fake_runtimes.profile import load_profile
from fake_servers.mcp import program as server_program
from fake_servers.npm import Package
from fake_servers.npm import program as npm_program
from harness import preparation
from harness.reference.catalog.catalog import read_catalog
from harness.reference.prepare.request import PrepareRequest, Runtime
from harness.reference.selection.zimmer import Instance
from harness.reference.session.job import run_session
from harness.reference.session.order import Order
from harness.reference.session.rows import TABLE
from harness.scenario.runtimes import runtime_programs
from harness.world import World
from harness.world.model import Calm, Decisions, Event, Fault, Simulation
from harness.world.model.files import Tree
from harness.world.model.simulation import DEFAULT_START_SECONDS

HOME = "/home/u"
CLONE = f"{HOME}/.zimmer/clones/one"
CACHE = f"{CLONE}/.npm-cache"
ZIMMER, SESSION, PATH = "zimmer", "s1", "/usr/bin"
INSTANCE = Instance("production", "https://zimmer.example.com", "zimmer-api-key")
PARENT = {"HOME": HOME, "PATH": PATH}
AIR_SECONDS = 0.5
LATER_SECONDS = 60.0
LONG = Plan((Turn(seconds=90.0),))
STEP_LIMIT = 30_000
APP_SERVER_LINES = (
    '{"id":1,"method":"initialize","params":{}}',
    '{"id":2,"method":"thread/start","params":{}}',
)
ARGV = {"claude": ("claude", "-p", "go on"), "codex": ("codex", "exec", "--json", "go on"), "pi": ("pi", "-p", "go on")}


def npx(*words: str, **more: Any) -> dict[str, Any]:
    """A catalog entry that runs npx."""
    return {"title": "T", "type": "stdio", "command": "npx", "args": ["-y", *words], **more}


def no_secrets(_name: str) -> str | None:
    """A secrets chain without a value."""
    return None


async def air(world: World, request: PrepareRequest) -> PrepareRequest:
    """AIR's part, which takes a time."""
    await world.clock.sleep(AIR_SECONDS)
    ran = preparation.run_air(request, keeps_local_entries=True, codex_adapter="checked")
    return preparation.completed(request, ran)


class SessionRun:
    """One run of the orchestrator. `before` gives the files and rows that an earlier one left.

    `others` are more actors, `edit` changes the files before anything runs,
    `at_spawn` is called with the simulation when the runtime's process is started.
    """

    def __init__(
        self,
        profile: str,
        catalog: Mapping[str, Any],
        packages: Sequence[Package] = (),
        *,
        chosen: Sequence[str] | None = None,
        before: SessionRun | None = None,
        plan: Plan = LONG,
        decisions: Decisions | None = None,
        faults: Sequence[Fault] = (),
        env: Mapping[str, str] | None = None,
        clone: str = CLONE,
        others: Mapping[str, Any] | None = None,
        edit: Callable[[Any], None] | None = None,
        at_spawn: Callable[[Simulation, Mapping[str, str]], None] | None = None,
        program: Callable[[World, Order], Any] = run_session,
        trust: bool = True,
        as_app_server: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.profile = load_profile(profile)
        self.runtime: Runtime = next(name for name in preparation.RUNTIMES if profile.startswith(name))
        self.clone, self.config = clone, f"{clone}/{fakes.config_path(self.profile)}"
        registry = {package.name: package for package in packages}
        self.spawned: list[tuple[float, Mapping[str, str]]] = []

        def started(variables: Mapping[str, str]) -> Any:
            if at_spawn is not None:
                at_spawn(self.simulation, variables)
            self.spawned.append((round(self.simulation.now - self.simulation.started_seconds, 3), variables))
            return runtime_programs()[self.runtime](self.profile, plan)

        def launcher(argv: Sequence[str], variables: Mapping[str, str], directory: str) -> Any:
            name = argv[0].rpartition("/")[2]
            if name == self.runtime:
                return started(variables)
            if name == "node":
                return next((server_program(one.behaviour) for one in packages if f"/{one.name}/" in argv[1]), None)
            return npm_program(registry) if name in ("npx", "npm") else None

        self.simulation: Simulation = Simulation(
            decisions or Calm(),
            launcher=launcher,
            faults=faults,
            step_limit=STEP_LIMIT,
            start_seconds=DEFAULT_START_SECONDS if before is None else before.simulation.now + LATER_SECONDS,
        )
        self.tree: Tree = self.simulation.tree if before is None else before.tree
        self._set_the_stage(before, edit)
        if before is None or chosen is not None:
            self._store_row(tuple(catalog if chosen is None else chosen), metadata or {})
        order = Order(
            SESSION,
            self.runtime,
            clone,
            ("codex", "app-server") if as_app_server else self._argv(trust),
            read_catalog(dict(catalog)),
            INSTANCE,
            no_secrets,
            air,
            stdin=APP_SERVER_LINES if as_app_server else (),
        )

        async def body(world: World, _argv: Sequence[str]) -> int:
            answer = await program(world, order)
            return answer if isinstance(answer, int) else 0

        self.actor = self.simulation.start(ZIMMER, body, env={**PARENT, **(env or {})})
        for name, other in (others or {}).items():
            self.simulation.start(name, other, env=PARENT, after_seconds=(0.0, 0.2, 0.5, 0.7))
        self.outcome = self.simulation.run()
        self.error = self.simulation.ended(self.actor).error

    def _set_the_stage(self, before: SessionRun | None, edit: Callable[[Any], None] | None) -> None:
        """Files and rows as they are before anybody acts."""
        self.simulation.tree = self.tree
        if before is not None:
            self.simulation.table.committed.update(before.simulation.table.committed)
        for path in (f"{self.clone}/.git/info", f"{HOME}/.claude", f"{HOME}/.codex"):
            self.tree.make_directory(path, 0o755, 0, 0.0)
        if edit is not None:
            edit(self.tree)

    def _store_row(self, chosen: Sequence[str], metadata: Mapping[str, Any]) -> None:
        """The session's row with its list; what an earlier run noted stays."""
        rows, key = self.simulation.table.committed, (TABLE, SESSION)
        rows[key] = {"metadata": dict(metadata), **rows.get(key, {}), "mcp_servers": list(chosen)}

    def _argv(self, trust: bool) -> tuple[str, ...]:
        argv = ARGV[self.runtime]
        if self.runtime != "codex":
            return argv
        flags = ("--trust",) if trust and getattr(self.profile, "trust_flag", False) else ()
        return (*argv[:3], "--sandbox", "danger-full-access", *flags, *argv[3:])

    @property
    def row(self) -> Mapping[str, Any]:
        """The session's row."""
        return self.simulation.table.committed.get((TABLE, SESSION), {})

    @property
    def degraded(self) -> list[str]:
        """The servers that are left out."""
        return [entry["name"] for entry in self.row.get("metadata", {}).get("mcp_degraded_servers", [])]

    def events(self, name: str) -> list[Event]:
        """The events of one name, whoever emitted them."""
        return [event for event in self.outcome.events if event.name == name]

    def connected(self) -> list[str]:
        """The servers that the runtime connected, over all its starts."""
        return [event.details["server"] for event in self.events("server.connected")]

    def removed(self) -> list[str]:
        """The trees that the heal removed, each time it did."""
        return [tree for event in self.events("heal.ran") for tree in event.details["removed"]]

    def text(self, path: str) -> str | None:
        """A file's text; None where there is none."""
        return self.tree.read(path, 0).decode() if self.exists(path) else None

    def exists(self, path: str) -> bool:
        """Whether something is there."""
        return self.tree.stat(path, 0) is not None

    def mode(self, path: str) -> int:
        """The permission bits of what is there, links not followed."""
        status = self.tree.stat(path, 0)
        assert status is not None
        return status.mode

    def servers(self) -> dict[str, Any]:
        """The servers of a JSON config."""
        servers: dict[str, Any] = json.loads(self.text(self.config) or "{}").get("mcpServers", {})
        return servers

    def finished(self) -> SessionRun:
        """This run, once it is certain that it came to its end."""
        assert self.outcome.verdict == "done", self.outcome.detail
        assert self.error is None, repr(self.error)
        return self
