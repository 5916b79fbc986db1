"""Where the source tree is: checks and known-bad variants live in `scenarios`, which no wheel carries."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path
from typing import NamedTuple

import harness
from harness.errors import CannotRunError

# What a module that is broken or half written raises at import. Anything else is a fault of the harness.
IMPORT_FAULTS = (ImportError, SyntaxError, NameError, AttributeError, TypeError, ValueError, KeyError)


class BrokenModule(NamedTuple):
    """A module that cannot be imported; everything else is judged without it."""

    module: str
    error: str


def find_source_root(root: str | None = None) -> Path | None:
    """`root`, or the folder that `harness` is imported from; None if it holds no `scenarios`."""
    try:
        folder = Path(root).resolve() if root is not None else Path(harness.__file__).resolve().parents[1]
        return folder if (folder / "scenarios" / "variants").is_dir() else None
    except (OSError, RuntimeError, ValueError):  # a name that is too long, a link to itself, a character of no path
        return None


def require_source_root(root: str | None = None) -> Path:
    """As `find_source_root`; raises `CannotRunError` where there is no source tree."""
    folder = find_source_root(root)
    if folder is None:
        raise CannotRunError(
            "checks and variants live in the source tree, and there is no scenarios/variants folder "
            f"{'beside the installed package' if root is None else f'in {root}'}; run it in a source checkout"
        )
    return folder


def import_all(package_name: str) -> tuple[BrokenModule, ...]:
    """Import every module directly inside a package; returns those that cannot be imported."""
    package = importlib.import_module(package_name)
    broken = []
    for module in pkgutil.iter_modules(package.__path__, f"{package_name}."):
        try:
            importlib.import_module(module.name)
        except IMPORT_FAULTS as error:
            broken.append(BrokenModule(module.name, f"{type(error).__name__}: {error}"))
    return tuple(broken)


def import_variants(root: Path) -> tuple[BrokenModule, ...]:
    """Import `scenarios.variants.*` of the source tree, which registers every known-bad variant."""
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return import_all("scenarios.variants")
