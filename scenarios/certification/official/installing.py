"""The official suite in the cache of the canary, run by the Node of its wheel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from harness.canary.cache import kept
from harness.canary.packages import install_npm, installed_node, npm_program

SUITE_PACKAGE = "@modelcontextprotocol/conformance"
SUITE_VERSIONS = ("0.1.16", "0.2.0-alpha.12")
"""The newest that is released, and the one that also knows the revision 2026-07-28 and checks each message's schema."""
SUITE_PROGRAM = Path("node_modules", *SUITE_PACKAGE.split("/"), "dist", "index.js")


class Suite(NamedTuple):
    """One installed version of the suite: `node program` runs it."""

    version: str
    node: Path
    program: Path

    @property
    def is_newest(self) -> bool:
        """Whether it is the one that lets a revision be chosen for clients, and that tests authorization servers."""
        return self.version == SUITE_VERSIONS[-1]


def install(cache: Path, environment: Mapping[str, str]) -> tuple[Suite, ...]:
    """Every version of the suite, newly installed where the cache has not got it. Raises NotInstalledError."""
    node = installed_node(cache, environment)
    return tuple(Suite(version, node, installed_suite(cache, environment, node, version)) for version in SUITE_VERSIONS)


def installed_suite(cache: Path, environment: Mapping[str, str], node: Path, version: str) -> Path:
    """The suite's program. The machine's own npm installs it, or that of the installed Node where there is none."""

    def fill(folder: Path) -> None:
        install_npm(npm_program(environment, lambda: node), [f"{SUITE_PACKAGE}@{version}"], environment, folder)

    return kept(cache / f"conformance-{version}", SUITE_PROGRAM, fill)


def environment_here() -> dict[str, str]:
    """The environment of this process, which holds what this machine says of its registries."""
    return dict(os.environ)
