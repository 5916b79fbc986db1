"""The npx resolver of Pi's adapter at work: files of the npm cache, `npm exec` under its own limit, and a memory.

The rules are `resolver`'s. Where no NPM_CONFIG_CACHE is set the real one asks `npm config get cache`; here that
is npm's own default.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fake_runtimes.loaded import LoadedServer
from fake_runtimes.pi.home import Home, kept_entries, read_if_there
from fake_runtimes.pi.resolver import (
    EXACT_VERSION,
    CachedPackage,
    Package,
    direct_argv,
    found_in,
    intercepted,
    process_cache,
    resolver_limit_seconds,
    split_spec,
)
from fake_runtimes.profile import PiProfile
from fake_runtimes.text import JsonTextError, json_stringify, parse_json
from harness.world.ports import World

FILE = "mcp-npx-cache.json"
VERSION = 2
LIFE_SECONDS = 24 * 3600
NPM_DEFAULT = "~/.npm"
JAVASCRIPT = (".js", ".mjs", ".cjs")


class Resolver:
    """Resolves the npx servers of one run; what it finds is remembered for the next one."""

    def __init__(self, world: World, home: Home, environment: Mapping[str, str], profile: PiProfile) -> None:
        self.world, self.home, self.environment, self.profile = world, home, environment, profile
        self._entries: dict[str, Any] | None = None

    async def argv(self, server: LoadedServer) -> tuple[str, ...]:
        """What is spawned for a stdio server. Takes as long as `npm exec` does where the package is not there."""
        as_written = (server.command or "", *server.args)
        package = intercepted(server.command, server.args)
        if package is None:
            return as_written
        return await self.known(server, package) or await self.installed(server, package) or as_written

    async def known(self, server: LoadedServer, package: Package) -> tuple[str, ...] | None:
        """From the memory, else from the npm cache."""
        key = memory_key(server.command or "", package)
        entry = (await self.entries()).get(key)
        remembered = remembered_package(entry, package, self.world.clock.now())
        if remembered is not None and await exists(self.world, remembered.binary_path):
            return direct_argv(remembered, package)
        directory = self.home.below(process_cache(server, self.environment, NPM_DEFAULT))
        found = found_in(await packages_in(self.world, directory, package), package)
        if found is None:
            return None
        await self.remember(key, found)
        return direct_argv(found, package)

    async def installed(self, server: LoadedServer, package: Package) -> tuple[str, ...] | None:
        """By `npm exec` into the cache of the Pi process; killed at the limit, and no failure of it is told."""
        argv = ("npm", "exec", "--yes", "--package", package.spec, "--", "node", "-e", "1")
        try:
            npm = await self.world.processes.spawn(argv, env=self.environment, directory=self.home.session)
        except OSError:
            return None
        if await npm.wait(resolver_limit_seconds(server, self.profile)) is None:
            await npm.signal("SIGTERM")
            self.world.events.emit("resolver.killed", server=server.name)
        return await self.known(server, package)

    async def entries(self) -> dict[str, Any]:
        """The memory, read once."""
        if self._entries is None:
            self._entries = read_memory(await read_if_there(self.world, f"{self.home.agent}/{FILE}"))
        return self._entries

    async def remember(self, key: str, package: CachedPackage) -> None:
        entries = await self.entries()
        entries[key] = {
            "resolvedBin": package.binary_path,
            "resolvedAt": int(self.world.clock.now() * 1000),
            "packageVersion": package.version,
            "isJs": package.is_javascript,
        }
        text = json.dumps({"version": VERSION, "entries": entries}, indent=2)
        try:
            await self.world.files.make_directory(self.home.agent)
            await self.world.files.write_atomic(f"{self.home.agent}/{FILE}", text.encode())
        except OSError:
            return


def memory_key(command: str, package: Package) -> str:
    """How the memory's file names an npx line."""
    return json_stringify([command, package.spec, package.binary])


def read_memory(text: str | None) -> dict[str, Any]:
    """The entries by key; a file that cannot be used, or is of another version, holds none."""
    return kept_entries(text, VERSION, "entries")


def remembered_package(entry: Any, package: Package, now: float) -> CachedPackage | None:
    """What the memory says, if it is young enough and of the version that is asked for exactly."""
    if not isinstance(entry, dict) or not isinstance(entry.get("resolvedBin"), str):
        return None
    resolved_at = entry.get("resolvedAt")
    if not isinstance(resolved_at, int | float) or now - resolved_at / 1000 >= LIFE_SECONDS:
        return None
    name, wanted = split_spec(package.spec)
    version = entry.get("packageVersion")
    if EXACT_VERSION.fullmatch(wanted) and version != wanted:
        return None
    return CachedPackage(name, str(version or ""), entry["resolvedBin"], entry.get("isJs") is True)


class Installed(NamedTuple):
    """An installed package as its `package.json` tells: the directory, the version, the path of the binary in it."""

    directory: str
    version: str
    binary: str


async def packages_in(world: World, cache: str, package: Package) -> Sequence[CachedPackage]:
    """The installs of the package below `<cache>/_npx`, newest first; those without a binary are left out."""
    name, _ = split_spec(package.spec)
    found = []
    for directory in await newest_first(world, f"{cache}/_npx"):
        place = f"{directory}/node_modules/{name}"
        text = await read_if_there(world, f"{place}/package.json")
        installed = read_package(place, name, package.binary, text)
        binary = None if installed is None else await binary_path(world, installed)
        if installed is not None and binary is not None:
            javascript = binary.lower().endswith(JAVASCRIPT) or await runs_under_node(world, binary)
            found.append(CachedPackage(name, installed.version, binary, javascript))
    return found


async def newest_first(world: World, directory: str) -> Sequence[str]:
    """The directories in one, the one that changed last first."""
    try:
        names = await world.files.names(directory)
    except OSError:
        return ()
    if len(names) < 2:
        return [f"{directory}/{name}" for name in names]
    changed = []
    for path in (f"{directory}/{name}" for name in names):
        stat = await world.files.stat(path)
        changed.append((stat.modified_seconds if stat else 0.0, path))
    return [path for _, path in sorted(changed, key=lambda one: -one[0])]


def read_package(directory: str, name: str, binary: str, text: str | None) -> Installed | None:
    """What a `package.json` says; None where it is half written or names no binary."""
    try:
        document = parse_json(text or "")
    except JsonTextError:
        return None
    given = document.get("bin") if isinstance(document, dict) else None
    default = name.rpartition("/")[2]
    if isinstance(given, dict):
        given = next((given[key] for key in (binary, default, *given) if key in given), None)
    if not isinstance(given, str):
        return None
    return Installed(directory, str(document.get("version", "")), given.removeprefix("./"))


async def binary_path(world: World, installed: Installed) -> str | None:
    """The real path of the binary; None where it is not there."""
    try:
        return await world.files.resolve(f"{installed.directory}/{installed.binary}")
    except OSError:
        return None


async def runs_under_node(world: World, path: str) -> bool:
    """Whether the file's first line names node."""
    first = ((await read_if_there(world, path)) or "").partition("\n")[0]
    return first.startswith("#!") and "node" in first


async def exists(world: World, path: str) -> bool:
    """Whether something is at a path, links followed."""
    try:
        await world.files.resolve(path)
    except OSError:
        return False
    return True
