"""Running npm's own npx on a package of this machine, without a network; for tests."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import subprocess
import tarfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import fake_servers
from fake_servers.npm import Package, program
from harness.world.live import run
from harness.world.outside.setting import Setting
from scenarios.real_files.ground import Ground

PATIENCE_SECONDS = 120.0
PIECES = 3
PROGRAM = "".join(
    [
        "#!/usr/bin/env node\n",
        *(f'require("./part-{number}.js");\n' for number in range(1, PIECES + 1)),
        'console.log("moo", ...process.argv.slice(2));\n',
    ]
)
FILES = {
    "package.json": json.dumps({"name": "cowsay", "version": "1.6.0", "bin": {"cowsay": "dist/index.js"}}),
    "dist/index.js": PROGRAM,
    **{f"dist/part-{number}.js": "module.exports = {}\n" for number in range(1, PIECES + 1)},
}
PACKAGE = Package("cowsay", "1.6.0", install_seconds=0.0, steps=PIECES)
OWN_BIN = str(Path(fake_servers.__file__).parent / "bin")


class RealProgramMissing(UserWarning):
    """A program that a test compares a fake with is not on this machine."""


def real(name: str) -> str | None:
    """Where a real program is; without it, a line in the report says what was not compared."""
    places = [place for place in os.environ.get("PATH", "").split(":") if place and place != OWN_BIN]
    found = shutil.which(name, path=":".join(places))
    if found is None:
        warnings.warn(
            f"NOT CERTIFIED: there is no {name} here to compare the fake with", RealProgramMissing, stacklevel=2
        )
    return found


def tarball(path: Path) -> str:
    """A published package, whose program lacks its execute bit; the answer is the spec that names it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, text in FILES.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(text), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return f"file:{path}"


def folder(path: Path) -> None:
    """The same package, unpacked."""
    for name, text in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)


class Ended(NamedTuple):
    """How an npx ended."""

    code: int
    out: str
    errors: str


def variables(place: Ground, cache: Path) -> dict[str, str]:
    """The environment of an npx on this ground, real or not."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(place.root / "home"),
        "NPM_CONFIG_CACHE": str(cache),
        "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    }


def started(npx: str, place: Ground, cache: Path, words: Sequence[str]) -> subprocess.Popen[str]:
    """A real npx in the clone, that may not use the network."""
    place.clone.mkdir(parents=True, exist_ok=True)
    return subprocess.Popen(
        [npx, "-y", "--offline", *words],
        cwd=place.clone,
        env=variables(place, cache),
        umask=0o022,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> Ended:
    """How it ended; it is ended in any case."""
    try:
        out, errors = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.communicate()
    return Ended(process.returncode, out, errors)


def npx_real(npx: str, place: Ground, cache: Path, *words: str) -> Ended:
    """One run of the real npx."""
    return ended(started(npx, place, cache, words))


def npx_fake(place: Ground, cache: Path, spec: str) -> int:
    """One run of the fake on real files. It installs; the server it then is finds its input at an end."""
    place.clone.mkdir(parents=True, exist_ok=True)
    inputs = os.open(os.devnull, os.O_RDONLY)
    kept = os.dup(0)
    os.dup2(inputs, 0)
    try:
        return run(
            program({spec: PACKAGE}),
            ["npx", "-y", spec],
            Setting("npx"),
            variables=variables(place, cache),
            directory=str(place.clone),
            takes_signals=False,
        )
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(inputs)


def layout(cache: Path) -> dict[str, tuple[str, int]]:
    """What is in a cache: paths with their kind (and where a link leads) and permission bits."""
    found = {}
    for path in sorted(cache.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        if path.is_symlink():
            found[str(path.relative_to(cache))] = (f"link to {path.readlink()}", 0o777)
        else:
            found[str(path.relative_to(cache))] = ("directory" if path.is_dir() else "file", mode)
    return found
