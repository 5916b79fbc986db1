"""Runtimes on demand: their packages in the cache, with a checksum, reused while it fits."""

from __future__ import annotations

import os
import platform
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from fake_runtimes.profile import PINNED
from harness.canary.cache import NotInstalledError, Tell, filled, megabytes, size
from harness.canary.manifest import (
    MANIFEST,
    MODULES,
    SCRIPT_SUFFIXES,
    Manifest,
    checksums,
    package_file,
    read_manifest,
    write_manifest,
)
from harness.canary.packages import (
    complaint,
    install_npm,
    installed_node,
    node_program,
    npm_program,
    published_version,
    run,
)
from harness.errors import UserInputError
from harness.world.outside.reaping import reap

RUNTIMES = "runtimes"
LATEST = "latest"
VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z]+(?:[.-][0-9A-Za-z]+)*)?")
VERSION_LIMIT = 100
PACKAGES = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "pi": "@earendil-works/pi-coding-agent",
}
ADAPTERS = {"pi": "pi-mcp-adapter"}
ADAPTER_PROGRAM = "index.ts"

PROGRAM_STARTS = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"#!")
"""How programs of Linux and macOS begin; what stands in for a program that was not installed has no such start."""
PLATFORM_WORDS = {
    "Linux": ("linux",),
    "Darwin": ("darwin",),
    "x86_64": ("x64", "x86_64"),
    "aarch64": ("arm64", "aarch64"),
    "arm64": ("arm64", "aarch64"),
}
TRY_LIMIT_SECONDS = 60.0
MARK_VARIABLE = "MCP_HARNESS_INSTALL"


class Wanted(NamedTuple):
    """A runtime at a version, and for Pi its adapter's; a version may be `latest` until it is looked up."""

    family: str
    version: str
    adapter: str = ""

    @property
    def whole_version(self) -> str:
        """As profiles spell it: program, then adapter."""
        return f"{self.version}+{self.adapter}" if self.adapter else self.version

    @property
    def label(self) -> str:
        """As profiles spell it."""
        return f"{self.family}-{self.whole_version}"

    @property
    def packages(self) -> dict[str, str]:
        """The packages that it is made of, with their versions."""
        packages = {PACKAGES[self.family]: self.version}
        return packages | ({ADAPTERS[self.family]: self.adapter} if self.adapter else {})


class Installed(NamedTuple):
    """A runtime that can be started by `argv`. `digest` is the SHA-256 of its program, as Manifest has it.

    `adapter` is the file that Pi is told to load, `node` what runs a program that is no native one.
    """

    label: str
    family: str
    version: str
    argv: tuple[str, ...]
    adapter: Path | None
    node: Path | None
    digest: str


# --- what is wanted ---------------------------------------------------------------------------------------------------


def parse_wanted(text: str) -> Wanted:
    """A runtime from `claude@2.1.328`, `pi@0.86.1+2.36.0`, `codex@latest`, `claude` (the pinned version) or a label.

    Raises UserInputError.
    """
    family, _, version = text.partition("@") if "@" in text else PINNED.get(text, text).partition("-")
    if family not in PACKAGES:
        known = ", ".join(f"{name}@VERSION" for name in PACKAGES)
        raise UserInputError(f"unknown runtime {text!r}", fix=f"Name one of {known}.")
    program, plus, adapter = version.partition("+")
    for part in (program, adapter) if plus else (program,):
        if part != LATEST and (len(part) > VERSION_LIMIT or not VERSION.fullmatch(part)):
            raise UserInputError(f"{text!r} names no version", fix=f"Write it as {spelling(family)}.")
    if family in ADAPTERS and program == LATEST and not plus:
        adapter = LATEST
    if bool(adapter) != (family in ADAPTERS):
        found = f"leaves out the version of {ADAPTERS[family]}" if family in ADAPTERS else "names two versions"
        raise UserInputError(f"{text!r} {found}", fix=f"Write it as {spelling(family)}.")
    return Wanted(family, program, adapter)


def spelling(family: str) -> str:
    """How a version of that runtime is written, for example."""
    return f"{PINNED[family].replace('-', '@', 1)} or {family}@{LATEST}"


def looked_up(wanted: Wanted, cache: Path, environment: Mapping[str, str], tell: Tell) -> Wanted:
    """The same with the versions that are the latest now. Raises NotInstalledError."""
    if LATEST not in wanted.packages.values():
        return wanted
    tell(f"{wanted.family}: looking up the latest version")
    npm = npm_program(environment, lambda: installed_node(cache, environment, tell))
    versions = [
        published_version(npm, f"{name}@{version}", environment) if version == LATEST else version
        for name, version in wanted.packages.items()
    ]
    return Wanted(wanted.family, *versions)


# --- what is installed ------------------------------------------------------------------------------------------------


def installed(wanted: Wanted, cache: Path, environment: Mapping[str, str], tell: Tell) -> Installed:
    """The runtime, from the cache if it is there unchanged. Raises NotInstalledError."""
    wanted = looked_up(wanted, cache, environment, tell)
    folder = cache / RUNTIMES / wanted.label

    def fill(half: Path) -> None:
        began = time.monotonic()
        packages = [f"{name}@{version}" for name, version in wanted.packages.items()]
        tell(f"{wanted.label}: installing {' '.join(packages)}")
        npm = npm_program(environment, lambda: installed_node(cache, environment, tell))
        install_npm(npm, packages, environment, half, tell)
        accept(half, wanted, cache, environment, tell)
        tell(f"{wanted.label}: installed, {megabytes(size(half))} in {time.monotonic() - began:.1f} s")

    def adopt(there: Path) -> None:
        if (there / MANIFEST).exists():
            tell(f"{wanted.label}: it is not what was installed; it is installed again")
            return
        try:
            accept(there, wanted, cache, environment, tell)
        except NotInstalledError as error:
            tell(f"what is there is of no use: {error}")
        else:
            tell(f"{wanted.label}: it was there without a checksum, and has one now")

    manifest = filled(
        folder,
        lambda there: read_manifest(there, wanted.label, wanted.packages),
        fill,
        lacks="program of it",
        adopt=adopt,
        tell=tell,
    )
    node = None if manifest.is_native else node_program(cache, environment, tell)
    program = str(folder / manifest.program)
    return Installed(
        wanted.label,
        wanted.family,
        wanted.whole_version,
        (program,) if node is None else (str(node), program),
        folder / manifest.adapter if manifest.adapter else None,
        node,
        manifest.sha256[manifest.sealed[0]],
    )


def accept(folder: Path, wanted: Wanted, cache: Path, environment: Mapping[str, str], tell: Tell) -> None:
    """Write the manifest of a folder that holds what is wanted, once its program has said so.

    Raises NotInstalledError.
    """
    for name, version in wanted.packages.items():
        found = package_file(folder, name).get("version")
        if found != version:
            raise NotInstalledError(f"{wanted.label} was not installed: {name} is there in version {found}")
    adapter = f"{MODULES}/{ADAPTERS[wanted.family]}/{ADAPTER_PROGRAM}" if wanted.adapter else ""
    if adapter and not (folder / adapter).is_file():
        raise NotInstalledError(f"{wanted.label} was not installed: its adapter has no {ADAPTER_PROGRAM}")
    why = "it holds no program for this machine"
    for program in programs(folder, wanted.family):
        manifest = Manifest(wanted.label, wanted.packages, program, adapter, {})
        node = () if manifest.is_native else (str(node_program(cache, environment, tell)),)
        problem = tried((*node, str(folder / program)), wanted.version)
        if problem is None:
            write_manifest(folder, manifest._replace(sha256=checksums(folder, manifest)))
            return
        why = f"{program} {problem}"
    raise NotInstalledError(f"{wanted.label} was not installed: {why}")


def tried(argv: Sequence[str], version: str) -> str | None:
    """What is wrong with a program that is to say its version; it sees nothing of this environment and its home."""
    with tempfile.TemporaryDirectory(prefix="mcp-harness-") as home:
        path = f"{Path(argv[0]).parent}{os.pathsep}{os.defpath}"
        environment = {"HOME": home, "TMPDIR": home, "PATH": path, "NO_COLOR": "1", MARK_VARIABLE: home}
        try:
            ended = run([*argv, "--version"], environment, Path(home), TRY_LIMIT_SECONDS)
        except OSError as error:
            return f"cannot be run: {error.strerror}"
        finally:
            reap(f"{MARK_VARIABLE}={home}")
    if ended.code is None:
        return f"does not say its version in {TRY_LIMIT_SECONDS:g} s"
    if ended.code:
        return f"ends with exit code {ended.code}: {complaint(ended.stderr or ended.stdout)}"
    found = VERSION.findall(ended.stdout)
    return None if version in found else f"says that its version is {', '.join(found) or 'nothing'}"


# --- what is in its folder --------------------------------------------------------------------------------------------


def programs(folder: Path, family: str) -> Iterator[str]:
    """The programs of a runtime, by their paths: native ones, those for this machine first, then what Node runs."""
    package = folder / MODULES / PACKAGES[family]
    homes = [*package.parent.glob(f"{package.name}-*"), package]
    named = (path for home in homes for name in (family, f"{family}.exe") for path in home.rglob(name))
    found = sorted(path.relative_to(folder).as_posix() for path in named if is_program(path))
    words = machine_words()
    yield from sorted(found, key=lambda path: misfits(path, words))
    declared = package_file(folder, PACKAGES[family]).get("bin")
    script = declared.get(family) if isinstance(declared, dict) else declared
    if isinstance(script, str) and script.endswith(SCRIPT_SUFFIXES) and (package / script).is_file():
        yield (package / script).relative_to(folder).as_posix()


def machine_words() -> tuple[tuple[str, ...], ...]:
    """Words for this system and its processor as packages write them: one of each fits."""
    return tuple(PLATFORM_WORDS[word] for word in (platform.system(), platform.machine()) if word in PLATFORM_WORDS)


def misfits(path: str, words: Iterable[Iterable[str]]) -> tuple[int, bool]:
    """How little a program is for this machine. One for musl is second choice where there is the other C library."""
    other_library = platform.system() == "Linux" and ("musl" in path) == (platform.libc_ver()[0] == "glibc")
    return sum(not any(word in path for word in each) for each in words), other_library


def is_program(path: Path) -> bool:
    """Whether a file starts as programs do."""
    try:
        with path.open("rb") as file:
            return file.read(4).startswith(PROGRAM_STARTS)
    except OSError:
        return False
