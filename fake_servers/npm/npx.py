"""npx, and as much of npm as runtimes and preparations call: `npm exec`, `npm config get cache`, `npm install -g`.

It installs a package into its tree when it is not there, then is the package's MCP server, in the same process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from fake_servers.mcp import stdio
from fake_servers.npm import tree as trees
from fake_servers.npm.arguments import Command, cache_directory, install_key, located, parse
from fake_servers.npm.registry import Package, Unpublished, find, with_dependencies
from fake_servers.npm.tree import StepFailed, Tree
from harness.world.ports import Program, World

FAILED = 1
NOT_FOUND = 127  # also of a program without an execute bit, where `sh` is dash, whose words these are
SYSTEM_PROGRAMS = ("node", "true")
NODE_VERSION = "v22.14.0"


def program(registry: Mapping[str, Package], serving: tuple[str, ...] = trees.SERVING) -> Program:
    """A program that answers to `npx` and to `npm`, installing from a registry of packages by name.

    What it installs calls `serving` when somebody else than npx runs it.

    Emits `install.started`, `install.finished`, `install.reused`, `install.failed` (tree; code), `install.incomplete`
    (tree, missing: the program of a half tree does not load) and `download` (package, version, cache).
    """

    async def run(world: World, argv: Sequence[str]) -> int:
        name, words = argv[0].rpartition("/")[2], list(argv[1:])
        if name != "npm":
            return await execute(world, registry, parse(words), serving)
        if words[:1] in (["exec"], ["x"]):
            return await execute(world, registry, parse(words[1:]), serving)
        if words == ["config", "get", "cache"]:
            await world.processes.write_line(used_cache(world, parse([])))
            return 0
        if words[:1] in (["install"], ["i"]) and "-g" in words:
            return await install_globally(world, registry, [word for word in words[1:] if not word.startswith("-")])
        await world.processes.write_error(f"Unknown command: {words[0] if words else ''!r}")
        return FAILED

    return run


def used_cache(world: World, command: Command) -> str:
    """The cache this process uses."""
    return cache_directory(command, world.env.variables, world.env.directory)


async def execute(
    world: World, registry: Mapping[str, Package], command: Command, serving: tuple[str, ...] = trees.SERVING
) -> int:
    """Install what is missing, then run."""
    command = command._replace(specs=tuple(located(spec, world.env.directory) for spec in command.specs))
    tree = Tree(used_cache(world, command), install_key(command), serving)
    try:
        packages = tuple(find(registry, spec) for spec in command.specs)
        everything = with_dependencies(registry, packages)
        await ensure(world, tree, command, packages, everything)
    except Unpublished as fault:
        return await report(world, tree.cache, unpublished(fault))
    except StepFailed as fault:
        world.events.emit("install.failed", tree=tree.path, code=fault.code)
        return await report(world, tree.cache, failed_step(fault))
    return await start(world, registry, tree, command, packages)


async def ensure(
    world: World, tree: Tree, command: Command, packages: Sequence[Package], everything: Sequence[Package]
) -> None:
    """Install unless every package asked for is there. Raises StepFailed."""
    absent = [package for package in packages if not await trees.is_installed(world, tree, package)]
    if not absent:
        if packages:
            world.events.emit("install.reused", tree=tree.path)
        return
    if not command.yes:
        labels = ", ".join(package.label for package in absent)
        await stdio.printed(
            world, f"npm warn exec The following package was not found and will be installed: {labels}", error=True
        )
    missing = [package for package in everything if package in absent or package not in packages]
    world.events.emit("install.started", tree=tree.path, packages=[package.label for package in missing])
    await trees.install(world, tree, missing)
    await trees.record(world, tree, command.specs, packages, everything)
    world.events.emit("install.finished", tree=tree.path)


async def start(
    world: World, registry: Mapping[str, Package], tree: Tree, command: Command, packages: Sequence[Package]
) -> int:
    """Become the program that the command names, from the tree."""
    wanted = command.program
    package = next((item for item in packages if wanted in (None, item.program_name)), None)
    if package is None:
        if not wanted or wanted in SYSTEM_PROGRAMS:
            return 0
        return await not_found(world, wanted)
    try:
        executable = await trees.is_executable(world, tree, package)
    except OSError:
        return await not_found(world, package.program_name)
    if not executable:
        await stdio.printed(world, f"sh: 1: {package.program_name}: Permission denied", error=True)
        return NOT_FOUND
    missing = await trees.missing_module(world, tree, package, with_dependencies(registry, [package]))
    if missing is not None:
        world.events.emit("install.incomplete", tree=tree.path, missing=missing)
    if missing is not None or package.broken:
        lines = not_loaded(tree, package, missing) if missing is not None else published_broken(tree, package)
        for line in lines:
            await stdio.printed(world, line, error=True)
        return FAILED
    return await stdio.serve(world, package.behaviour)


async def install_globally(world: World, registry: Mapping[str, Package], specs: Sequence[str]) -> int:
    """`npm install -g`: of all it does, what matters here is that the tarballs are in the cache of this process."""
    cache = used_cache(world, parse([]))
    try:
        for package in with_dependencies(registry, [find(registry, spec) for spec in specs]):
            await trees.fetch(world, cache, package)
    except Unpublished as fault:
        return await report(world, cache, unpublished(fault))
    except StepFailed as fault:
        return await report(world, cache, failed_step(fault))
    return 0


async def not_found(world: World, name: str) -> int:
    """What the shell says of a program that is not there."""
    await stdio.printed(world, f"sh: 1: {name}: not found", error=True)
    return NOT_FOUND


async def report(world: World, cache: str, lines: Sequence[str]) -> int:
    """Print an error as npm does, with the log that it leaves in its cache."""
    moment = datetime.fromtimestamp(world.clock.now(), UTC)
    log = f"{cache}/_logs/{moment:%Y-%m-%dT%H_%M_%S}_{moment.microsecond // 1000:03}Z-debug-0.log"
    for line in (*lines, f"A complete log of this run can be found in: {log}"):
        await stdio.printed(world, f"npm error {line}", error=True)
    try:
        await world.files.make_directory(f"{cache}/_logs")
        await world.files.append(log, "".join(f"verbose stack {line}\n" for line in lines).encode())
    except OSError:
        return FAILED
    return FAILED


def unpublished(fault: Unpublished) -> tuple[str, ...]:
    """npm's words for a spec that nothing answers to."""
    if fault.code == "ETARGET":
        return ("code ETARGET", f"notarget No matching version found for {fault.spec}.")
    return ("code E404", f"404  '{fault.spec}' is not in this registry.")


def failed_step(fault: StepFailed) -> tuple[str, ...]:
    """npm's words for a system call that failed, with its path."""
    moved = f" -> '{fault.target}'" if fault.target else ""
    return (
        f"code {fault.code}",
        f"syscall {fault.call}",
        f"path {fault.path}",
        *([f"dest {fault.target}"] if fault.target else []),
        f"errno -{fault.number}",
        f"{fault.code}: {fault.text}, {fault.call} '{fault.path}'{moved}",
    )


def not_loaded(tree: Tree, package: Package, missing: str) -> tuple[str, ...]:
    """Node's words for a module that a half tree lacks."""
    return (
        "node:internal/modules/cjs/loader:1228",
        "  throw err;",
        "  ^",
        "",
        f"Error: Cannot find module '{missing}'",
        "Require stack:",
        f"- {tree.entry(package)}",
        "  code: 'MODULE_NOT_FOUND',",
        f"  requireStack: [ '{tree.entry(package)}' ]",
        "}",
        "",
        f"Node.js {NODE_VERSION}",
    )


def published_broken(tree: Tree, package: Package) -> tuple[str, ...]:
    """Node's words for a module that was never published."""
    wanted = f"{tree.place(package)}/dist/unpublished.js"
    return (
        "node:internal/modules/esm/resolve:275",
        "    throw new ERR_MODULE_NOT_FOUND(",
        "          ^",
        "",
        f"Error [ERR_MODULE_NOT_FOUND]: Cannot find module '{wanted}' imported from {tree.entry(package)}",
        "  code: 'ERR_MODULE_NOT_FOUND',",
        f"  url: 'file://{wanted}'",
        "}",
        "",
        f"Node.js {NODE_VERSION}",
    )
