"""One install tree, `<cache>/_npx/<key>`, and how npm filled it before it locked it: in steps that others can see.

A package is unpacked into a directory of its own beside its place, moved there when its first files are written, and
completed in place. Who comes later takes a package that has its package.json for installed. So two that install
into one tree at once end with ENOTEMPTY (both move into one place) or MODULE_NOT_FOUND (one runs what the other is
still unpacking), and an install that is killed leaves a tree that fails until somebody removes it.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Awaitable, Sequence
from functools import lru_cache
from typing import NamedTuple

from fake_servers.mcp.behaviour import to_table
from fake_servers.npm.registry import Package
from harness.world.ports import World

TOKEN_CHARACTERS = 8
DOWNLOAD_SHARE = 0.5
ENTRY = "dist/index.js"
SERVING = ("mcp-fake-server",)


class StepFailed(Exception):  # noqa: N818 - npm reports it in its own words
    """A step of an install failed: the system call, the path and, for a rename, where to."""

    def __init__(self, error: OSError, call: str, path: str, target: str | None) -> None:
        super().__init__(str(error))
        self.code = errno.errorcode.get(error.errno or 0, "EUNKNOWN")
        self.number, self.text = error.errno or 0, (error.strerror or "").lower()
        self.call, self.path, self.target = call, path, target


class Tree(NamedTuple):
    """A tree of one cache. `serving` is the command line of the program that serves a behaviour."""

    cache: str
    key: str
    serving: tuple[str, ...] = SERVING

    @property
    def path(self) -> str:
        """The tree itself."""
        return f"{self.cache}/_npx/{self.key}"

    @property
    def modules(self) -> str:
        """Where its packages are."""
        return f"{self.path}/node_modules"

    def place(self, package: Package) -> str:
        """A package's directory."""
        return f"{self.modules}/{package.name}"

    def entry(self, package: Package) -> str:
        """The file that a package's program is."""
        return f"{self.place(package)}/{ENTRY}"

    def shim(self, package: Package) -> str:
        """The link that npx runs."""
        return f"{self.modules}/.bin/{package.program_name}"

    def piece(self, package: Package, number: int) -> str:
        """A module that the entry loads."""
        return f"{self.place(package)}/dist/part-{number}.js"


async def step(work: Awaitable[object], call: str, path: str, target: str | None = None) -> None:
    """One system call; what fails is told with its place. Raises StepFailed."""
    try:
        await work
    except OSError as error:
        raise StepFailed(error, call, path, target) from error


async def is_installed(world: World, tree: Tree, package: Package) -> bool:
    """What npm looks at: the package's own package.json, not whether the rest is there."""
    return await world.files.stat(f"{tree.place(package)}/package.json") is not None


async def install(world: World, tree: Tree, packages: Sequence[Package]) -> None:
    """Fetch and unpack packages into a tree. Raises StepFailed."""
    await step(world.files.make_directory(tree.modules), "mkdir", tree.modules)
    for package in packages:
        await fetch(world, tree.cache, package)
    for package in packages:
        await unpack(world, tree, package)


async def record(
    world: World, tree: Tree, specs: Sequence[str], packages: Sequence[Package], everything: Sequence[Package]
) -> None:
    """Write down beside the packages what was asked for and what is there. Raises StepFailed."""
    versions = tuple((one.name, one.version) for one in everything)
    asked = tuple((package.name, package.version) for package in packages)
    for name, content in records(tree.key, tuple(specs), asked, versions):
        path = f"{tree.path}/{name}"
        await step(world.files.write(path, content), "open", path)


@lru_cache(maxsize=256)
def records(
    key: str, specs: tuple[str, ...], asked: tuple[tuple[str, str], ...], versions: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, bytes], ...]:
    """The files that npm keeps beside the packages, by their paths in the tree; packages with their versions."""
    places = {f"node_modules/{name}": {"version": version} for name, version in versions}
    dependencies = {"dependencies": {name: f"^{version}" for name, version in asked}}
    hidden = {"name": key, "lockfileVersion": 3, "requires": True, "packages": places}
    lock = {**hidden, "packages": {"": dependencies, **places}}
    manifest = {**dependencies, "_npx": {"packages": list(specs)}}
    contents = {"node_modules/.package-lock.json": hidden, "package-lock.json": lock, "package.json": manifest}
    return tuple((name, f"{json.dumps(content, indent=2)}\n".encode()) for name, content in contents.items())


async def fetch(world: World, cache: str, package: Package) -> None:
    """Download a tarball unless this cache holds it; emits `download` (package, version, cache)."""
    path = tarball(cache, package)
    if await world.files.stat(path) is not None:
        return
    await world.clock.sleep(package.install_seconds * DOWNLOAD_SHARE)
    world.events.emit("download", package=package.name, version=package.version, cache=cache)
    directory = path.rpartition("/")[0]
    await step(world.files.make_directory(directory), "mkdir", directory)
    await step(world.files.write_atomic(path, package.label.encode()), "open", path)


def tarball(cache: str, package: Package) -> str:
    """Where a cache keeps the downloaded package: inside the cache itself, shared by all its trees."""
    digest = hashlib.sha512(package.label.encode()).hexdigest()
    return f"{cache}/_cacache/content-v2/sha512/{digest[:2]}/{digest[2:4]}/{digest[4:]}"


async def unpack(world: World, tree: Tree, package: Package) -> None:
    """Write a package in steps. Raises StepFailed: ENOTEMPTY when another one has moved the same package in."""
    files, place = world.files, tree.place(package)
    pause = package.install_seconds * (1 - DOWNLOAD_SHARE) / max(package.steps, 1)
    scope, _, name = package.name.rpartition("/")
    beside = f"{tree.modules}/{scope}/" if scope else f"{tree.modules}/"
    staging = f"{beside}.{name}-{world.entropy.token(TOKEN_CHARACTERS)}"
    await step(files.make_directory(f"{staging}/dist"), "mkdir", staging)
    manifest = {"name": package.name, "version": package.version, "bin": {package.program_name: ENTRY}}
    await step(files.write(f"{staging}/package.json", json.dumps(manifest).encode()), "open", staging)
    await step(
        files.write(f"{staging}/{ENTRY}", entry_text(package, tree.serving), mode=package.bin_mode), "open", staging
    )
    await link(world, tree, package)
    await step(files.rename(staging, place), "rename", staging, place)
    for number in range(1, package.steps + 1):
        await world.clock.sleep(pause)
        path = tree.piece(package, number)
        await step(files.write(path, b"module.exports = {}\n"), "open", path)


def entry_text(package: Package, serving: Sequence[str]) -> bytes:
    """A package's program: it serves the package's behaviour, for a shell as well as for node.

    The shell replaces itself in the second line, which is a text and a comment to node.
    """
    words = [*serving, "--behaviour", json.dumps(to_table(package.behaviour), separators=(",", ":")), "--"]
    shell = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
    lines = (
        "#!/bin/sh",
        f"':' //; exec {shell} \"$@\"",
        f"const [program, ...words] = {json.dumps(words)};",
        'const { spawn } = require("child_process");',
        'const server = spawn(program, [...words, ...process.argv.slice(2)], { stdio: "inherit" });',
        'for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => server.kill(name));',
        'server.on("exit", (code, signal) => (signal ? process.kill(process.pid, "SIGKILL") : process.exit(code)));',
    )
    return "".join(f"{line}\n" for line in lines).encode()


async def link(world: World, tree: Tree, package: Package) -> None:
    """The shim of a package's program; one that is there is left."""
    shim = tree.shim(package)
    await step(world.files.make_directory(f"{tree.modules}/.bin"), "mkdir", f"{tree.modules}/.bin")
    try:
        await world.files.make_link(shim, f"../{package.name}/{ENTRY}")
    except FileExistsError:
        return
    except OSError as error:
        raise StepFailed(error, "symlink", shim, None) from error


async def missing_module(world: World, tree: Tree, package: Package, packages: Sequence[Package]) -> str | None:
    """What a package's program would fail to load: the path of a piece, or the name of a dependency."""
    for other in packages:
        for number in range(1, other.steps + 1):
            if await world.files.stat(tree.piece(other, number)) is None:
                return f"./part-{number}.js" if other is package else other.name
    return None


async def is_executable(world: World, tree: Tree, package: Package) -> bool:
    """Whether what the shim leads to has an execute bit. Raises FileNotFoundError when it leads nowhere."""
    status = await world.files.stat(await world.files.resolve(tree.shim(package)))
    return status is not None and bool(status.mode & 0o111)
