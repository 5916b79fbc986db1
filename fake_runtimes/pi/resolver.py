"""The npx resolver of Pi's adapter, as a plan: what is started instead of `npx`, and after how long.

The lookup sees the npm cache of the Pi process; the entry's own `env` never reaches it. On a miss `npm exec`
fills that cache under a limit of its own, before the budget of the server begins to count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fake_runtimes.budgets import Attempt
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.pi.startup import attempt, child_environment
from fake_runtimes.profile import PiProfile

CACHE_VARIABLE = "NPM_CONFIG_CACHE"
YES_FLAGS = ("-y", "--yes")
PACKAGE_FLAGS = ("-p", "--package")
PACKAGE_PREFIX = "--package="
EXACT_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")

PLAIN, CACHED, INSTALLED, FALLBACK = "plain", "cached", "installed", "fallback"


class Package(NamedTuple):
    """What the adapter recognises in an npx line. `binary` is empty where the package's own one is meant."""

    spec: str
    binary: str
    args: tuple[str, ...]


class CachedPackage(NamedTuple):
    """A package in a directory of an npm cache: its name, version and the path of its binary."""

    name: str
    version: str
    binary_path: str
    is_javascript: bool = True


class NpmExec(NamedTuple):
    """What `npm exec` would do: end after so many seconds (None: never), and leave the package or nothing."""

    seconds: float | None
    installs: CachedPackage | None = None


class Plan(NamedTuple):
    """What is spawned at last (`argv`), so many seconds after the launch, and how that came about."""

    how: str
    argv: tuple[str, ...]
    starts_after_seconds: float


Caches = Mapping[str, Sequence[CachedPackage]]


def intercepted(command: str | None, args: Sequence[str]) -> Package | None:
    """The package of a line that the resolver takes over, or None: a plain spawn.

    Only the bare words `npx` and `npm exec`; any flag besides those for yes and package ends it.
    """
    if command == "npx":
        return npx_package(args)
    if command == "npm" and args and args[0] == "exec":
        return npm_exec_package(args[1:])
    return None


def npx_package(args: Sequence[str]) -> Package | None:
    spec, rest = flags_read(args)
    if rest and rest[0].startswith("-") and rest[0] != "--":
        return None
    words = tuple(rest[1:] if rest and rest[0] == "--" else rest)
    if spec is None:
        return Package(words[0], "", words[1:]) if words else None
    return Package(spec, words[0], words[1:]) if words else None


def npm_exec_package(args: Sequence[str]) -> Package | None:
    spec, rest = flags_read(args)
    if spec is None or len(rest) < 2 or rest[0] != "--":
        return None
    return Package(spec, rest[1], tuple(rest[2:]))


def flags_read(args: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """The package named by flags, and the words from the first that is no known flag."""
    spec: str | None = None
    place = 0
    while place < len(args):
        word = args[place]
        if word in YES_FLAGS:
            place += 1
        elif word in PACKAGE_FLAGS and place + 1 < len(args):
            spec, place = args[place + 1], place + 2
        elif word.startswith(PACKAGE_PREFIX):
            spec, place = word.removeprefix(PACKAGE_PREFIX), place + 1
        else:
            break
    return spec, args[place:]


def split_spec(spec: str) -> tuple[str, str]:
    """Name and version of `name@version`; a scope's own `@` is no version."""
    at = spec.find("@", 1)
    return (spec, "") if at < 0 else (spec[:at], spec[at + 1 :])


def process_cache(
    server: LoadedServer,  # noqa: ARG001 (that it is not looked at is the rule)
    environment: Mapping[str, str],
    npm_default: str,
) -> str:
    """The npm cache that the resolver reads: the Pi process's, else what npm itself would say."""
    return environment.get(CACHE_VARIABLE) or npm_default


def child_cache(server: LoadedServer, environment: Mapping[str, str], profile: PiProfile, npm_default: str) -> str:
    """The npm cache of what is spawned at last: a plain npx installs there, and the entry's `env` reaches it."""
    return child_environment(server, environment, profile).get(CACHE_VARIABLE) or npm_default


def found_in(cache: Sequence[CachedPackage], package: Package) -> CachedPackage | None:
    """The newest match (the cache is given newest first). Only an exact version is compared: a tag takes any."""
    name, version = split_spec(package.spec)
    exact = EXACT_VERSION.fullmatch(version) is not None
    return next((one for one in cache if one.name == name and (not exact or one.version == version)), None)


def resolver_limit_seconds(
    server: LoadedServer,  # noqa: ARG001 (that it is not looked at is the rule)
    profile: PiProfile,
) -> float:
    """How long `npm exec` may take before it is killed; no key of the entry or the settings changes it."""
    return profile.resolver_limit_ms / 1000


def plan(
    server: LoadedServer,
    environment: Mapping[str, str],
    profile: PiProfile,
    caches: Caches,
    npm_exec: NpmExec,
    npm_default: str = "~/.npm",
) -> Plan:
    """What is spawned for a stdio server, and when."""
    as_written = (server.command or "", *server.args)
    package = intercepted(server.command, server.args)
    if package is None:
        return Plan(PLAIN, as_written, 0.0)
    cached = found_in(caches.get(process_cache(server, environment, npm_default), ()), package)
    if cached is not None:
        return Plan(CACHED, direct_argv(cached, package), 0.0)
    limit = resolver_limit_seconds(server, profile)
    if npm_exec.seconds is None or npm_exec.seconds >= limit:
        return Plan(FALLBACK, as_written, limit)
    installed = npm_exec.installs and found_in((npm_exec.installs,), package)
    if installed is None:
        return Plan(FALLBACK, as_written, npm_exec.seconds)
    return Plan(INSTALLED, direct_argv(installed, package), npm_exec.seconds)


def direct_argv(cached: CachedPackage, package: Package) -> tuple[str, ...]:
    """A JavaScript binary runs under node, any other by itself."""
    return (*(("node",) if cached.is_javascript else ()), cached.binary_path, *package.args)


def connect(server: LoadedServer, profile: PiProfile, planned: Plan, answers_after_seconds: float | None) -> Attempt:
    """The outcome, counted from the launch: the budget begins with the spawn at the end of the plan."""
    ended = attempt(server, profile, answers_after_seconds)
    return Attempt(ended.outcome, planned.starts_after_seconds + ended.at_seconds)
