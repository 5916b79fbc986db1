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
    """The package and the binary stand in front of any `--`, which goes to the binary with what is behind it."""
    before, after = parted(args)
    read = flags_read(before, PACKAGE_FLAGS)
    if read is None:
        return None
    spec, rest = read
    rest, behind = tuple(rest), ("--", *after) if after else ()
    if not rest or rest[0].startswith("-"):
        return None
    return Package(spec or rest[0], rest[0] if spec else "", (*rest[1:], *behind))


def npm_exec_package(args: Sequence[str]) -> Package | None:
    """The package stands in front of `--`, the binary behind it."""
    before, after = parted(args)
    read = flags_read(before, PACKAGE_FLAGS[1:])
    if read is None or not read[0] or not after or any(word.startswith("-") for word in read[1]):
        return None
    return Package(read[0], after[0], tuple(after[1:]))


def parted(args: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The words in front of the first `--`, and those behind it."""
    place = args.index("--") if "--" in args else len(args)
    return args[:place], args[place + 1 :]


def flags_read(args: Sequence[str], package_flags: Sequence[str]) -> tuple[str, Sequence[str]] | None:
    """The package that flags name first, empty without any, and the words from the first that is no known flag.

    None where such a flag has no value.
    """
    spec, place = "", 0
    while place < len(args):
        word = args[place]
        if word in YES_FLAGS:
            place += 1
            continue
        if word in package_flags:
            value, place = args[place + 1] if place + 1 < len(args) else "", place + 2
        elif word.startswith(PACKAGE_PREFIX):
            value, place = word.removeprefix(PACKAGE_PREFIX), place + 1
        else:
            break
        if not value or (word in package_flags and value.startswith("-")):
            return None
        spec = spec or value
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
