"""One spawn of a session in the model world: who stands in for whom, and the one fault. Nothing else exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from fake_runtimes.loaded import LoadedServer
from fake_servers.mcp import stdio
from fake_servers.mcp.behaviour import Behaviour, Tool
from fake_servers.mcp.http import NETWORK_ACTIONS, HttpServer
from fake_servers.npm import npx
from fake_servers.npm.arguments import install_key, parse
from fake_servers.npm.registry import Package, split_spec
from harness.gate.battery.kinds import CORRUPT, EACCES, ENOENT, SLOW, SLOW_INSTALL_SECONDS, Kind
from harness.gate.battery.sessions import TOOL, Session
from harness.reference.npx.specs import package_specs
from harness.scenario.cast import DEFAULT_VERSION, MODULES, NODE, NPM, NPX, NPX_TREE
from harness.scenario.model import HOME
from harness.scenario.runtimes import runtime_programs
from harness.world import Request, Response
from harness.world.model import Actor, Fault, Simulation
from harness.world.model.pipes import Tee
from harness.world.ports import Program
from harness.world.sites import origin

STEP_LIMIT = 20_000
"""A healthy spawn takes some hundred steps."""
WATCHDOG_SECONDS = 20.0
CACHE_VARIABLE = "NPM_CONFIG_CACHE"
INSTALL_SECONDS = 1.0
"""What all packages of an entry take together."""
HALF_FILE = "dist/part-1.js"


class Site:
    """The servers of one origin, by path and query."""

    def __init__(self) -> None:
        self.by_place: dict[str, HttpServer] = {}

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer of the server whose URL it is; the older transport adds its own query to the path."""
        server = self.by_place.get(place_of(request.url)) or self.by_place.get(urlsplit(request.url).path)
        return Response(404) if server is None else server.handle(request, now, who)


class Spawn(Simulation):
    """A run of the session's runtime in which `kind` strikes the server called `struck` (None: no fault).

    `trees` are the npx install trees that a corrupt install finds half filled.
    """

    def __init__(self, session: Session, struck: str = "", kind: Kind | None = None) -> None:
        self.session, self.struck, self.kind = session, struck, kind
        self._used: dict[tuple[str, ...], int] = {}
        super().__init__(
            faults=self._faults(),
            servers=self._sites(),
            launcher=self._launch,
            step_limit=STEP_LIMIT,
            watchdog_seconds=WATCHDOG_SECONDS,
        )
        self._set_the_stage()
        program = runtime_programs()[session.runtime.family](session.runtime.profile, session.plan)
        self.run_of_runtime = self.start(
            session.runtime.family, program, session.argv, env=session.variables, directory=session.directories[1]
        )

    def start(self, name: str, program: Program, argv: Sequence[str] = (), **options: Any) -> Actor:
        """As a simulation does; everything that is printed is kept, and a child is called after its server."""
        parent: Actor | None = options.get("parent")
        if parent is not None:
            meant = self._meant(argv, options.get("env", {}))
            name = f"{parent.name}/{meant[0].name if len(meant) == 1 else argv[0].rpartition('/')[2]}"
        actor = super().start(name, program, argv, **options)
        actor.stdout, actor.stderr = Tee(), Tee()
        return actor

    def behaviour(self, name: str) -> Behaviour:
        """What a server does: all is well, but for the struck one."""
        fields = self.kind.behaviour if self.kind is not None and name == self.struck else {}
        return Behaviour(name=name, tools=(Tool(TOOL),), **fields)

    def has(self, fault: str, name: str) -> bool:
        """Whether this server is struck in that way."""
        return name == self.struck and self.kind is not None and fault in (self.kind.spawn, self.kind.install)

    # --- what is there

    def _set_the_stage(self) -> None:
        for directory in self.session.directories:
            self.tree.make_directory(directory, 0o755, 0, self.now)
        for path, (content, mode) in self.session.files.items():
            self._put(path, content, mode)
        if self.kind is not None and self.kind.install == CORRUPT:
            for path in half_files(self.session, self.session.servers[self.struck]):
                self._put(path, b"", 0o644)

    def _put(self, path: str, content: bytes, mode: int) -> None:
        self.tree.make_directory(path.rpartition("/")[0], 0o755, 0, self.now)
        self.tree.write(path, content, mode, 0, self.now)

    def _sites(self) -> dict[str, Site]:
        sites: dict[str, Site] = {}
        for server in self.session.servers.values():
            if server.url is not None and origin(server.url):
                site = sites.setdefault(origin(server.url), Site())
                transport = "sse" if server.transport == "sse" else "http"
                site.by_place.setdefault(
                    place_of(server.url), HttpServer(self.behaviour(server.name), transport=transport)
                )
        return sites

    def _faults(self) -> list[Fault]:
        server = self.session.servers.get(self.struck)
        if server is None or server.url is None or self.kind is None:
            return []
        action = self.kind.network or NETWORK_ACTIONS[self.behaviour(self.struck).drops]
        label = f"* {server.url.replace('[', '[[]')}"
        return [Fault(action, port="http", label=label)] if action else []

    # --- who stands in

    def _launch(self, argv: Sequence[str], env: Mapping[str, str], directory: str) -> Program | None:  # noqa: ARG002
        """What stands in for a program; None: there is no such program."""
        meant = self._meant(argv, env)
        if not meant:
            return npx.program(self._registry(self._installing(argv))) if argv[0] == NPM else None
        used = self._used[tuple(argv)] = self._used.get(tuple(argv), -1) + 1
        server = meant[used % len(meant)]
        if self.has(ENOENT, server.name):
            return None
        if self.has(EACCES, server.name):
            raise PermissionError(13, "Permission denied", argv[0])
        if argv[0] == NPX:
            return npx.program(self._registry([server]))
        return stdio.program(self.behaviour(server.name))

    def _meant(self, argv: Sequence[str], env: Mapping[str, str]) -> list[LoadedServer]:
        """The servers that a command line may start: of several, those whose variables it has."""
        servers = [server for server in self.session.servers.values() if server.command is not None]
        named = [server for server in servers if (server.command, *server.args) == tuple(argv)]
        if not named:
            inside, rest = installed_package(argv)
            named = [server for server in servers if inside in packages_of(server)]
            named = [server for server in named if parse(server.args).arguments == rest] or named
        if len(named) > 1:
            same = [server for server in named if all(env.get(key) == value for key, value in server.env.items())]
            return same or named
        return named

    def _installing(self, argv: Sequence[str]) -> list[LoadedServer]:
        """The servers for which `npm exec --package SPEC` installs something."""
        specs = set(parse(argv[2:]).specs)
        return [server for server in self.session.servers.values() if specs & set(specs_of(server))]

    def _registry(self, servers: Sequence[LoadedServer]) -> dict[str, Package]:
        """The packages of these servers, each as the first that names it has it."""
        packages: dict[str, Package] = {}
        for server in sorted(servers, key=lambda server: server.name != self.struck):
            specs = specs_of(server)
            seconds = (SLOW_INSTALL_SECONDS if self.has(SLOW, server.name) else INSTALL_SECONDS) / max(len(specs), 1)
            for spec in specs:
                name, version = split_spec(spec)
                shown = version if version[:1].isdigit() and version.count(".") == 2 else DEFAULT_VERSION
                behaviour = self.behaviour(server.name)
                packages.setdefault(name, Package(name, shown, install_seconds=seconds, steps=1, behaviour=behaviour))
        return packages


def place_of(url: str) -> str:
    """Path and query: entries of one server often differ in the query alone."""
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def specs_of(server: LoadedServer) -> tuple[str, ...]:
    """The package specs that an npx server names."""
    return package_specs(server.args) if server.command == NPX else ()


def packages_of(server: LoadedServer) -> tuple[str, ...]:
    """The packages that an npx server names, without their versions."""
    return tuple(split_spec(spec)[0] for spec in specs_of(server))


def installed_package(argv: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The package whose installed program a command line names, as Pi's adapter starts one, and its arguments."""
    path = next((word for word in argv[:2] if NPX_TREE in word and MODULES in word), "")
    if not path or argv[0] not in (path, NODE):
        return "", ()
    scope, *rest = path.rpartition(MODULES)[2].split("/")
    name = f"{scope}/{rest[0]}" if scope.startswith("@") and rest else scope
    return name, tuple(argv[1 if argv[0] == path else 2 :])


def half_files(session: Session, server: LoadedServer) -> list[str]:
    """Files that an install which was cut short left in each tree that this server may be installed into."""
    command = parse(server.args)
    caches = [server.env.get(CACHE_VARIABLE), session.variables.get(CACHE_VARIABLE), f"{HOME}/.npm"]
    return [
        f"{cache.rstrip('/')}/_npx/{install_key(command)}/node_modules/{package}/{HALF_FILE}"
        for cache in dict.fromkeys(caches)
        if cache and cache.startswith("/")
        for package in packages_of(server)
    ]
