"""Packages that a fake npm can install, and how a spec names one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fake_servers.mcp import behaviour as behaviours
from fake_servers.mcp.behaviour import Behaviour, wrong

HIGHEST_MODE = 0o7777


class Package(NamedTuple):
    """A published package with one program, which is an MCP server.

    A cold install takes `install_seconds` (half of it the download) and unpacks `steps` pieces one after another.
    `bin_mode` is the mode its program is left with: npm makes a program executable when it links it, whatever it was
    published with, and where that does not land it stays as published. `broken`: it misses a module in every install.
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


def registry_from(table: Mapping[str, Any]) -> dict[str, Package]:
    """A registry as JSON holds it: names, or whole specs where several versions are published, to packages' tables.

    A table has the fields of `Package` but the name; `behaviour` is a table as `mcp.from_table` reads it, `bin_mode` a
    number or an octal text ("0644"). Raises ValueError that names the package and the key.
    """
    return {spec: package_from(spec, fields) for spec, fields in table.items()}


def package_from(spec: str, fields: object) -> Package:
    """One package. Raises ValueError."""
    name, version = split_spec(spec)
    if not isinstance(fields, Mapping):
        raise wrong(f"the package {spec}", "a table", fields)
    given = {"version": version} if version else {}
    try:
        return Package(name, **{**given, **{key: _field(key, value) for key, value in fields.items()}})
    except ValueError as error:
        raise ValueError(f"the package {spec}: {error}") from error


def _field(key: str, value: object) -> Any:
    if key not in _TYPES:
        raise ValueError(f"a package has no {key!r}; it may have {', '.join(sorted(_TYPES))}")
    if key == "behaviour" and isinstance(value, Mapping):
        return behaviours.from_table(value)
    if key == "dependencies" and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if key == "bin_mode":
        return _mode(value)
    kinds, meant = _TYPES[key]
    if not isinstance(value, kinds) or isinstance(value, bool) != (kinds is bool):
        raise wrong(key, meant, value)
    if isinstance(value, int | float) and not 0 <= value < float("inf"):
        raise wrong(key, meant, value)
    return value


def _mode(value: object) -> int:
    try:
        mode = int(value, 8) if isinstance(value, str) else value
    except ValueError:
        mode = None
    if not isinstance(mode, int) or isinstance(mode, bool) or not 0 <= mode <= HIGHEST_MODE:
        raise wrong("bin_mode", "permission bits", value)
    return mode


_TYPES: Mapping[str, tuple[Any, str]] = {
    "version": (str, "a text"),
    "bin_name": (str, "a text"),
    "bin_mode": (int, "permission bits"),
    "install_seconds": (int | float, "zero or more seconds"),
    "steps": (int, "a number of pieces"),
    "behaviour": (Mapping, "a table"),
    "broken": (bool, "true or false"),
    "dependencies": (tuple, "a list of names"),
}
