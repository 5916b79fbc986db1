"""Who stands in for whom: programs by their command line, servers by the origin of their URL. Nothing else exists."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fake_runtimes import runtimes as fakes
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.pi import keyring_helper
from fake_servers.mcp import stdio
from fake_servers.mcp.behaviour import Behaviour
from fake_servers.mcp.http import NETWORK_ACTIONS, HttpServer
from fake_servers.npm import npx
from fake_servers.npm.registry import Package, split_spec
from fake_servers.oauth import AuthorizationServer, Protected
from fake_servers.oauth.profiles import profile_named
from fake_servers.oauth.site import Place
from harness.gate.spawn import Runtime
from harness.preparation import PRODUCTION
from harness.reference.npx.specs import package_specs
from harness.reference.secrets.placeholders import MissingVariableError, resolve_text
from harness.reference.selection.zimmer import ZIMMER
from harness.scenario.addresses import path_of
from harness.scenario.authorization import Authorizations
from harness.scenario.model import Edit, PackageFacts, Protection, Scenario
from harness.scenario.naming import NamedFault
from harness.scenario.reading import SERVER
from harness.world import Request, Response
from harness.world.model import Fault
from harness.world.ports import Program
from harness.world.sites import origin

NPX, NPM, NODE = "npx", "npm", "node"
KEYRING_HELPER = "mcp-keyring-helper"
RUNTIME_PROGRAMS = ("claude", "codex", "pi")
SPAWN_ACTIONS = ("enoent", "eacces-exec")
NPX_TREE = "/_npx/"
MODULES = "/node_modules/"
DEFAULT_VERSION = "1.0.0"


class Known(NamedTuple):
    """A server as some entry tells it: what is started for it, or where it is."""

    name: str
    argv: tuple[str, ...] = ()
    url: str = ""
    transport: str = "http"


class Site:
    """The servers of one origin, by path. What is on no server's path goes to the only one there is, else to the
    authorization server there, which has nothing there either and remembers it; else it is 404.

    `places` know by themselves what they serve, and are asked first: authorization servers and what they protect.
    """

    def __init__(self) -> None:
        self.by_path: dict[str, HttpServer] = {}
        self.places: list[Place] = []

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer of the server whose path it is."""
        for place in self.places:
            if place.serves(request.url):
                return place.handle(request, now, who)
        path = path_of(request.url)
        server = self.by_path.get(path)
        if server is None:
            different = {id(each): each for each in self.by_path.values()}
            server = next(iter(different.values())) if len(different) == 1 else None
        taker = server or self._authorization(path)
        return Response(404) if taker is None else taker.handle(request, now, who)

    def _authorization(self, path: str) -> AuthorizationServer | None:
        """The authorization server whose path is the longest above this one; of equal ones the first."""
        there = [place for place in self.places if isinstance(place, AuthorizationServer)]
        paths = [(path_of(each.issuer).rstrip("/"), each) for each in there]
        fitting = [(above, each) for above, each in paths if path == above or path.startswith(f"{above}/")]
        return max(fitting, key=lambda each: len(each[0]))[1] if fitting else next(iter(there), None)


class Cast:
    """The stand-ins of one run. HTTP servers remember what they received, so a cast is used once."""

    def __init__(self, scenario: Scenario, runtime: Runtime) -> None:
        self.scenario, self.runtime = scenario, runtime
        self.known = tuple(known_servers(scenario, runtime))
        self.names = {server.name for server in self.known}
        self.remote: dict[str, HttpServer] = {}
        self.protected: dict[str, Protected] = {}
        self.authorizations = Authorizations(scenario)
        self.sites: dict[str, Site] = {}
        for name, server in self.authorizations.servers.items():
            self.sites.setdefault(origin(scenario.authorizations[name].issuer), Site()).places.append(server)
        for each in self.known:
            if each.url:
                self._place(each)
        self.packages = packages(scenario, self.known)
        self.runtimes: dict[str, Program] = {}
        self._used: dict[tuple[str, tuple[str, ...]], list[str]] = {}

    def behaviour(self, name: str) -> Behaviour:
        """What a server does: as the scenario says, else well."""
        return self.scenario.servers.get(name, Behaviour(name=name))

    def _place(self, server: Known) -> None:
        place = origin(server.url)
        path = path_of(server.url)
        site = self.sites.setdefault(place, Site())
        stand_in = site.by_path.get(path) or HttpServer(self.behaviour(server.name), transport=server.transport)
        site.by_path[path] = stand_in
        self.remote[server.name] = stand_in
        protection = self.scenario.protections.get(server.name)
        if protection is not None and server.name not in self.protected:
            self.protected[server.name] = protected = self._protected(protection, stand_in, path)
            site.places.append(protected)

    def _protected(self, protection: Protection, server: HttpServer, path: str) -> Protected:
        """A server behind its authorization server. What it says of itself is as with its provider."""
        facts: dict[str, Any] = {"url": path, **protection.resource}
        told: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}
        resource = profile_named(self.scenario.authorizations[protection.authorization].provider).resource
        return Protected(server, self.authorizations.servers[protection.authorization], resource._replace(**told))

    def stand_in(self, argv: Sequence[str]) -> str | Behaviour | None:
        """What stands in for a program: a runtime or npm by its name, a server by what it does.

        None: there is no such program.
        """
        if argv[0] in (*RUNTIME_PROGRAMS, NPX, NPM):
            return argv[0]
        if keyring_helper.is_keyring_helper(argv):
            return KEYRING_HELPER
        name = next((server.name for server in self.known if server.argv == tuple(argv)), None)
        if name is not None:
            return self.behaviour(name)
        package = self._installed(argv)
        return None if package is None else package.behaviour

    def launch(self, argv: Sequence[str], env: Mapping[str, str], directory: str) -> Program | None:  # noqa: ARG002
        """The same as a program."""
        found = self.stand_in(argv)
        if isinstance(found, Behaviour):
            return stdio.program(found)
        if found in (NPX, NPM):
            return npx.program(self.packages)
        if found == KEYRING_HELPER:
            return keyring_helper.program
        return None if found is None else self.runtimes[found]

    def _installed(self, argv: Sequence[str]) -> Package | None:
        """The package whose installed program a command line names, as Pi's adapter starts one."""
        path = next((word for word in argv[:2] if NPX_TREE in word and MODULES in word), None)
        if path is None or (argv[0] != path and argv[0] != NODE):
            return None
        inside = path.rpartition(MODULES)[2]
        return next((package for name, package in self.packages.items() if inside.startswith(f"{name}/")), None)

    def label(self, parent: str, argv: Sequence[str], cache: str = "") -> str:
        """What an actor is called below its parent: the server's name where one is started, else the program's.

        Servers with the same command line are told apart by a `cache` of their own (its last folder is named after
        them); where they share one they get their names in the order of the catalog.
        """
        named = [server.name for server in self.known if server.argv == tuple(argv)]
        if not named and argv:
            package = self._installed(argv)
            named = [] if package is None else [self._of_package(package.name)]
        if not named:
            return posixpath.basename(argv[0]) if argv else "program"
        own = posixpath.basename(cache)
        if len(named) > 1 and own in named:
            return own
        used = self._used.setdefault((parent, tuple(argv)), [])
        name = named[len(used) % len(named)]
        used.append(name)
        return name

    def runs_package(self, server: Known, package: str) -> bool:
        """Whether a server is started from that package."""
        return package in [split_spec(spec)[0] for spec in specs_of(server)]

    def _of_package(self, package: str) -> str:
        return next((server.name for server in self.known if self.runs_package(server, package)), package)

    def faults(self) -> list[Fault]:
        """The scenario's faults with names resolved, and those by which a server breaks its connections."""
        faults = [self._fault(fault) for fault in self.scenario.faults]
        for server in self.known:
            action = NETWORK_ACTIONS[self.behaviour(server.name).drops]
            if server.url and action:
                faults.append(NamedFault(action, port="http", label=f"* {server.url}"))
        return faults

    def _fault(self, fault: Fault) -> Fault:
        fields = fault._asdict()
        if fault.actor.startswith(SERVER):
            name = fault.actor.removeprefix(SERVER)
            server = next((server for server in self.known if server.name == name), None)
            if server is None:  # one that no entry starts: whatever is called so
                fields["actor"] = name
            elif server.url:
                fields |= {"actor": "*", "port": "http"}
                fields |= {"label": f"* {server.url}"} if fault.label == "*" else {}
            elif fault.action in SPAWN_ACTIONS:
                fields |= {"actor": "*", "port": "processes", "label": f"spawn {server.argv[0]}"}
            else:
                fields["actor"] = name
        return NamedFault(**fields)


def known_servers(scenario: Scenario, runtime: Runtime) -> Iterable[Known]:
    """Every server that an entry of the catalog, an edit of it or a file of the clone names; Zimmer's own last."""
    entries: list[tuple[str, Mapping[str, Any]]] = list(scenario.catalog.items())
    entries += [
        (step.action.entry, {**scenario.catalog.get(step.action.entry, {}), **step.action.set})
        for step in scenario.steps
        if isinstance(step.action, Edit)
    ]
    for name, entry in entries:
        known = from_entry(name, entry, scenario.secrets)
        if known is not None:
            yield known
    for path, text in scenario.files.items():
        if path.endswith(fakes.config_path(runtime.profile)):
            yield from map(from_loaded, fakes.read(runtime.profile, text, scenario.environment).servers)
    yield Known(ZIMMER, url=f"{PRODUCTION.base_url}/mcp")


def from_entry(name: str, entry: Mapping[str, Any], secrets: Mapping[str, str]) -> Known | None:
    """A catalog entry with its secrets in place; None when it starts nothing and leads nowhere."""

    def resolved(value: Any) -> str:
        try:
            return resolve_text(str(value), secrets.get)
        except MissingVariableError:
            return str(value)

    if isinstance(entry.get("command"), str):
        args = entry.get("args", ())
        words = args if isinstance(args, list | tuple) else ()
        return Known(name, (entry["command"], *map(resolved, words)))
    if isinstance(entry.get("url"), str):
        return Known(name, url=resolved(entry["url"]), transport="sse" if entry.get("type") == "sse" else "http")
    return None


def from_loaded(server: LoadedServer) -> Known:
    """A server that a file of the clone names, as the runtime reads it."""
    if server.command is not None:
        return Known(server.name, (server.command, *server.args))
    return Known(server.name, url=server.url or "", transport="sse" if server.transport == "sse" else "http")


def specs_of(server: Known) -> tuple[str, ...]:
    """The package specs that an npx server names."""
    return package_specs(server.argv[1:]) if server.argv[:1] == (NPX,) else ()


def packages(scenario: Scenario, known: Sequence[Known]) -> dict[str, Package]:
    """The registry: packages of the scenario, and one for each that an npx entry names and nobody describes.

    A package behaves as the server that starts it; of several, as the first that the scenario describes.
    """
    owners: dict[str, str] = {}
    versions: dict[str, str] = {}
    for server in known:
        for spec in specs_of(server):
            name, version = split_spec(spec)
            if name not in owners or (owners[name] not in scenario.servers and server.name in scenario.servers):
                owners[name] = server.name
            if version[:1].isdigit():
                versions.setdefault(name, version)
    return {
        name: _package(scenario, name, owners.get(name, name), versions.get(name, DEFAULT_VERSION))
        for name in dict.fromkeys((*scenario.packages, *owners))
    }


def _package(scenario: Scenario, name: str, starts_it: str, version: str) -> Package:
    facts = scenario.packages.get(name, PackageFacts(name))
    owner = facts.server or starts_it
    return Package(
        name,
        facts.version or version,
        facts.bin_name,
        facts.bin_mode,
        facts.install_seconds,
        facts.steps,
        scenario.servers.get(owner, Behaviour(name=owner)),
        facts.broken,
    )
