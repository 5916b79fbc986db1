"""What `mcp-harness canary install` and `mcp-harness canary clean` do; the lines are for stdout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.canary.cache import Tell, cache_folder, megabytes
from harness.canary.cleaning import clean
from harness.canary.installing import installed, parse_wanted


def install_command(texts: Iterable[str], environment: Mapping[str, str], tell: Tell) -> list[str]:
    """Install runtimes; a line for each with how it starts. Raises UserInputError and NotInstalledError."""
    cache = cache_folder(environment)
    wanted = dict.fromkeys(parse_wanted(text) for text in texts)  # all of them read before the first is installed
    lines = []
    for each in wanted:
        runtime = installed(each, cache, environment, tell)
        adapter = f"  adapter {runtime.adapter}" if runtime.adapter else ""
        lines.append(f"{runtime.label}  sha256 {runtime.digest}  {' '.join(runtime.argv)}{adapter}")
    return lines


def clean_command(environment: Mapping[str, str]) -> list[str]:
    """Remove what was installed; a line for each. Raises UserInputError and NotInstalledError."""
    cache: Path = cache_folder(environment)
    removed = clean(cache)
    if not removed:
        return [f"nothing to remove in {cache}"]
    total = megabytes(sum(each.size for each in removed))
    return [*(f"removed {each.name}  {megabytes(each.size)}" for each in removed), f"removed {total} from {cache}"]
