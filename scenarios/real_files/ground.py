"""A clone's npx cache on disk, with all that lies outside of it; for tests."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from harness.reference.npx.guard import GuardPlan
from harness.reference.npx.heal import HealResult
from harness.reference.session import npx_tree
from harness.world import World
from harness.world.live import run
from harness.world.outside.setting import Setting

KEY = "e3e1d528ee105f80"
OTHER_KEY = "aaaaaaaaaaaaaaaa"
BIN = "node_modules/.bin"
PROGRAM = "node_modules/cowsay/dist/index.js"
PIECES = 3


class Ground(NamedTuple):
    """A home with the base of all clones, one clone, and directories that are nobody's clone."""

    root: Path

    @property
    def base(self) -> Path:
        return self.root / "home/.zimmer/clones"

    @property
    def clone(self) -> Path:
        return self.base / "one"

    @property
    def cache(self) -> Path:
        return self.clone / ".npm-cache"

    @property
    def tree(self) -> Path:
        """The tree of the shared cache."""
        return self.cache / "_npx" / KEY

    @property
    def isolated(self) -> Path:
        """The install root of an isolated server."""
        return self.cache / "isolated/twin-a/_npx"

    @property
    def outside(self) -> Path:
        """What nothing may touch."""
        return self.root / "outside"

    def relative(self, path: str) -> str:
        """A path as it is told without the place where this ground is."""
        return path.replace(f"{self.root}/", "")


@contextmanager
def ground() -> Iterator[Ground]:
    """A fresh one that every user may enter, gone afterwards whatever is in it."""
    root = Path(tempfile.mkdtemp(prefix="npx-")).resolve()
    try:
        root.chmod(0o755)
        yield Ground(root)
    finally:
        cleared(root)


def cleared(root: Path) -> None:
    """Remove a directory, whatever somebody has put into it."""
    with suppress(OSError, RecursionError):
        shutil.rmtree(root)
        return
    for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
        subprocess.run([*command, "--", root], check=False, stderr=subprocess.DEVNULL)
    assert not root.exists()


def install(tree: Path, *, mode: int = 0o755, name: str = "cowsay", pieces: int = PIECES) -> Path:
    """An install tree as npm leaves it; its program has that mode. The answer is the program's file."""
    package = tree / "node_modules" / name
    (package / "dist").mkdir(parents=True)
    (tree / BIN).mkdir(exist_ok=True)
    (tree / "package.json").write_text(json.dumps({"_npx": {"packages": [name]}}))
    (package / "package.json").write_text(json.dumps({"name": name, "bin": {name: "dist/index.js"}}))
    for number in range(1, pieces + 1):
        (package / f"dist/part-{number}.js").write_text("module.exports = {}\n")
    program = package / "dist/index.js"
    program.write_text("#!/usr/bin/env node\n")
    program.chmod(mode)
    (tree / BIN / name).symlink_to(f"../{name}/dist/index.js")
    return program


def mode_of(path: Path) -> int:
    """The permission bits of what a path leads to."""
    return stat.S_IMODE(path.stat().st_mode)


class Seen(NamedTuple):
    """One entry of a listing. `content` is a digest, or the target of a link."""

    mode: int
    size: int
    modified_nanoseconds: int
    content: str


def listing(directory: Path) -> dict[str, Seen]:
    """Everything below a directory, and itself."""
    found = {".": seen(directory)}
    for parent, directories, files in os.walk(directory):
        found.update({f"{parent}/{name}": seen(Path(parent, name)) for name in (*directories, *files)})
    return found


def seen(path: Path) -> Seen:
    """What is at a path."""
    status = path.lstat()
    content = ""
    if stat.S_ISLNK(status.st_mode):
        content = str(path.readlink())
    elif stat.S_ISREG(status.st_mode) and os.access(path, os.R_OK):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    return Seen(status.st_mode, status.st_size, status.st_mtime_ns, content)


def live(body: Callable[[World], Any], setting: Setting | None = None) -> Any:
    """What a coroutine of a live world answers."""
    answers: list[Any] = []

    async def program(world: World, _argv: object) -> int:
        answers.append(await body(world))
        return 0

    code = run(program, ["zimmer"], setting, variables={}, directory="/", takes_signals=False)
    assert (code, len(answers)) == (0, 1)
    return answers[0]


def guard(
    place: Ground, clone: Path | str | None = None, base: Path | None = None, setting: Setting | None = None
) -> GuardPlan:
    """One run of the guard over the clone."""
    plan = live(lambda world: npx_tree.guard_bins(world, str(clone or place.clone), str(base or place.base)), setting)
    assert isinstance(plan, GuardPlan)
    return plan


def heal(
    place: Ground,
    *errors: str,
    clone: Path | str | None = None,
    base: Path | None = None,
    setting: Setting | None = None,
) -> HealResult:
    """One heal of the clone after these errors."""
    result = live(
        lambda world: npx_tree.heal_after(world, str(clone or place.clone), str(base or place.base), errors), setting
    )
    assert isinstance(result, HealResult)
    return result


def corrupt(tree: Path | str) -> str:
    """An error text that names a tree."""
    return f"Error: Cannot find module './part-2.js' Require stack: - {tree}/{PROGRAM}"


ANY_TREE = "Cannot find module 'ajv' from the _npx cache"
