"""Packages that a fake npm can install, and how a spec names one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fake_servers.mcp.behaviour import Behaviour


class Package(NamedTuple):
    """A published package with one program, which is an MCP server.

    A cold install takes `install_seconds` (half of it the download) and unpacks `steps` pieces one after another.
    `bin_mode` is the mode its program is published with. `broken`: it misses a module in every install.
    `dependencies` are names of other packages of the registry, installed into the same tree.
    """

    name: str
    version: str = "1.0.0"
    bin_name: str = ""
    bin_mode: int = 0o755
    install_seconds: float = 1.0
    steps: int = 4
    behaviour: Behaviour = Behaviour()
    broken: bool = False
    dependencies: tuple[str, ...] = ()

    @property
    def program_name(self) -> str:
        """What its program is called: the last part of the package's name unless it says otherwise."""
        return self.bin_name or self.name.rpartition("/")[2]

    @property
    def label(self) -> str:
        """Name and version."""
        return f"{self.name}@{self.version}"


class Unpublished(Exception):  # noqa: N818 - a fact about a spec, which npm then reports
    """No package answers to a spec. `code` is E404 (no such name) or ETARGET (no such version)."""

    def __init__(self, code: str, spec: str) -> None:
        super().__init__(f"{code} {spec}")
        self.code, self.spec = code, spec


def split_spec(spec: str) -> tuple[str, str]:
    """Name and version text of a spec as written; the version is empty when none is."""
    name, _, version = spec[1:].partition("@")
    return spec[:1] + name, version


def find(registry: Mapping[str, Package], spec: str) -> Package:
    """The package of a spec; an exact version must be the published one, a tag or a range takes it. Raises Unpublished.

    The registry maps names to packages, or whole specs where several versions are published.
    """
    name, version = split_spec(spec)
    package = registry.get(spec, registry.get(name))
    if package is None:
        raise Unpublished("E404", spec)
    if version[:1].isdigit() and version.count(".") == 2 and version != package.version:
        raise Unpublished("ETARGET", spec)
    return package


def with_dependencies(registry: Mapping[str, Package], packages: Iterable[Package]) -> tuple[Package, ...]:
    """The packages and all that they depend on, each once, a package before its dependencies."""
    found: dict[str, Package] = {}
    waiting = list(packages)
    while waiting:
        package = waiting.pop(0)
        if package.name not in found:
            found[package.name] = package
            waiting += [find(registry, name) for name in package.dependencies]
    return tuple(found.values())
