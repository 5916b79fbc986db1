"""What the folder of a runtime says of itself: written when it is whole, believed while its checksums fit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

MODULES = "node_modules"
MANIFEST = "manifest.json"
MANIFEST_FORMAT = 1
SCRIPT_SUFFIXES = (".js", ".mjs", ".cjs")


class Manifest(NamedTuple):
    """What was installed, by paths below its folder: the program, the file of Pi's adapter or "", and checksums.

    `packages` are that of the program, then that of the adapter, with their versions.

    A checksum is that of a native program's file, and of the package of what Node runs: the file that is started is
    the same in many versions, because it only loads others.
    """

    label: str
    packages: Mapping[str, str]
    program: str
    adapter: str
    sha256: Mapping[str, str]

    @property
    def is_native(self) -> bool:
        """Whether the program starts by itself; the others are run by Node."""
        return not self.program.endswith(SCRIPT_SUFFIXES)

    @property
    def sealed(self) -> tuple[str, ...]:
        """The files and folders with a checksum, that of the program first."""
        package, *others = (f"{MODULES}/{name}" for name in self.packages)
        return (self.program if self.is_native else package, *others)


def read_manifest(folder: Path, label: str, packages: Mapping[str, str]) -> Manifest | None:
    """The manifest of a folder, if it is about these packages and each checksum fits."""
    told = read_object(folder / MANIFEST)
    program, adapter, sums = told.get("program"), told.get("adapter"), told.get("sha256")
    if (told.get("format"), told.get("packages")) != (MANIFEST_FORMAT, packages) or not isinstance(sums, dict):
        return None
    if not isinstance(program, str) or not isinstance(adapter, str) or bool(adapter) != (len(packages) > 1):
        return None
    files = [Path(path) for path in (program, adapter) if path]
    if not all((folder / path).is_file() and ".." not in path.parts and not path.is_absolute() for path in files):
        return None
    manifest = Manifest(label, packages, program, adapter, sums)
    try:
        return manifest if checksums(folder, manifest) == sums else None
    except FileNotFoundError:
        return None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write it in one go: it says that the folder is whole."""
    told = {"format": MANIFEST_FORMAT, **manifest._asdict()}
    draft = folder / f"{MANIFEST}.new"
    draft.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    draft.replace(folder / MANIFEST)


def checksums(folder: Path, manifest: Manifest) -> dict[str, str]:
    """The checksums of what is there now."""
    return {path: checksum(folder / path) for path in manifest.sealed}


def checksum(path: Path) -> str:
    """The SHA-256 of a file, or of a package with the names of its files and without the packages below it."""
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    files = sorted(each.relative_to(path).as_posix() for each in path.rglob("*") if each.is_file())
    lines = (f"{checksum(path / name)} {name}\n" for name in files if not name.startswith(f"{MODULES}/"))
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def package_file(folder: Path, name: str) -> dict[str, Any]:
    """What a package says of itself; nothing where there is none."""
    return read_object(folder / MODULES / name / "package.json")


def read_object(path: Path) -> dict[str, Any]:
    """An object in a JSON file; an empty one where there is none."""
    with suppress(OSError, ValueError, RecursionError):
        value = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(value, dict):
            return value
    return {}
