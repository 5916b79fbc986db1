"""Programs that are there already: what is not in the cache is not fetched here."""

from __future__ import annotations

import os

from harness.canary.cache import cache_folder, untold
from harness.canary.installing import RUNTIMES, Installed, installed, parse_wanted
from harness.errors import CannotRunError


def cached(label: str, needed_by: str) -> Installed:
    """The installed runtime. Raises CannotRunError that says how to get it."""
    wanted = parse_wanted(label)
    cache = cache_folder(os.environ)
    if not (cache / RUNTIMES / wanted.label).is_dir():
        raise CannotRunError(
            f"{needed_by} needs {label}, which is not installed: mcp-harness canary install {label} fetches it"
        )
    return installed(wanted, cache, os.environ, untold)
