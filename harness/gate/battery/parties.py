"""Who sits in one session: the struck entry, two plain companions, and real neighbours that may have a part in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from fake_runtimes.loaded import LoadedServer
from fake_servers.npm.registry import split_spec
from harness.gate.battery.kinds import NPX, REMOTE, STDIO
from harness.reference.npx.specs import package_specs
from harness.scenario.cast import NPX as NPX_COMMAND

SSE = "sse"
REMOTE_TYPES = ("streamable-http", "http", SSE)
PARTNERS_OF_A_KIND = 2
"""So many neighbours for a shared package, and so many for a name that reads alike."""

PLAIN: Mapping[str, Mapping[str, Any]] = {
    STDIO: {"type": "stdio", "command": "/opt/battery/plain"},
    REMOTE: {"type": "streamable-http", "url": "https://plain.battery.test/mcp"},
    NPX: {"type": "stdio", "command": "npx", "args": ["-y", "plain-battery-server@1.0.0"]},
    SSE: {"type": "sse", "url": "https://plain-sse.battery.test/sse"},
}
"""Entries without anything special: what befalls these is a fact of the runtime."""

LONGEST_SEARCH = 64
"""How far a partner is looked for among those that would do."""

COMPANIONS = (STDIO, REMOTE)
_NO_LETTER = re.compile(r"[^a-z0-9]")
_DIGITS = re.compile(r"[0-9]")
_PLAIN_CHARACTERS = re.compile(r"[A-Za-z0-9_-]+")
_LONG_NAME = 32


class Shape(NamedTuple):
    """What entries must have in common for one to stand for the others."""

    transport: str
    runner: str
    headers: str
    env: str
    name: str
    special: tuple[str, ...]


def transport_of(entry: Mapping[str, Any]) -> str:
    """stdio, npx, remote or sse: the entry's type decides, and without one the fields that it has."""
    kind = entry.get("type")
    if kind in REMOTE_TYPES or (kind != STDIO and isinstance(entry.get("url"), str) and "command" not in entry):
        return SSE if kind == SSE else REMOTE
    return NPX if entry.get("command") == NPX_COMMAND else STDIO


def transport_held(entry: Mapping[str, Any], server: LoadedServer) -> str:
    """The same as a runtime holds it: what was written for it decides whether there is an address or a program."""
    if server.url is not None:
        return SSE if server.transport == SSE else REMOTE
    told = transport_of(entry)
    return told if told in (STDIO, NPX) else STDIO


def shape_of(name: str, entry: Mapping[str, Any]) -> Shape:
    """The shape of an entry: transport, runner, kind of headers, class of the name, and what is rare."""
    command = str(entry.get("command", ""))
    rare = ("startup_timeout_sec", "oauth", "cwd", "required", "lifecycle", "env_vars", "timeout")
    env = entry.get("env")
    variables = [key for key in env if str(key).upper() == "NPM_CONFIG_CACHE"] if isinstance(env, Mapping) else []
    return Shape(
        transport_of(entry),
        command.rpartition("/")[2] + (" by path" if "/" in command else ""),
        headers_of(entry),
        env_of(entry),
        name_class(name),
        (
            *(key for key in rare if key in entry),
            *variables,
            *(["secret in url"] if "${" in str(entry.get("url")) else []),
        ),
    )


def headers_of(entry: Mapping[str, Any]) -> str:
    """none, authorization or other; with `secret` where a value is a placeholder."""
    headers = entry.get("headers")
    if not isinstance(headers, Mapping) or not headers:
        return "none"
    kind = "authorization" if any(str(key).lower() == "authorization" for key in headers) else "other"
    return f"{kind}, secret" if "${" in str(list(headers.values())) else kind


def env_of(entry: Mapping[str, Any]) -> str:
    """none, plain or secret."""
    env = entry.get("env")
    if not isinstance(env, Mapping) or not env:
        return "none"
    return "secret" if "${" in str(list(env.values())) else "plain"


def name_class(name: str) -> str:
    """plain, odd (other characters than letters, digits, `-` and `_`) or long."""
    if not _PLAIN_CHARACTERS.fullmatch(name):
        return "odd"
    return "long" if len(name) > _LONG_NAME else "plain"


def packages_of(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The packages that an npx entry names, without their versions."""
    args = entry.get("args")
    if transport_of(entry) != NPX or not isinstance(args, list):
        return ()
    return tuple(split_spec(spec)[0] for spec in package_specs([str(word) for word in args]))


class Neighbourhood:
    """The entries of a catalog, in its order, each with its partners."""

    def __init__(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        self.entries = entries
        self._order = list(entries)
        self._packages = bucketed((package, name) for name in entries for package in packages_of(entries[name]))
        self._folded = bucketed((folded(name), name) for name in entries)
        self._numbered = bucketed((_DIGITS.sub("", folded(name)), name) for name in entries)
        self._places = {id(bucket): positions(bucket) for bucket in (self._order, *self._buckets())}

    def _buckets(self) -> Iterator[list[str]]:
        for buckets in (self._packages, self._folded, self._numbered):
            yield from buckets.values()

    def partners(self, name: str, may_sit: Callable[[str], bool], most: int = PARTNERS_OF_A_KIND) -> tuple[str, ...]:
        """Neighbours that share a package, neighbours whose names read alike, and the next entry of all.

        `may_sit` tells who can; of each kind there are `most`.
        """
        found: list[str] = []
        for package in packages_of(self.entries[name]):
            found += islice(self._behind(name, self._packages[package], may_sit), most)
        reads = folded(name)
        alike = chain(
            self._behind(name, self._folded[reads], may_sit),
            self._behind(name, self._numbered[_DIGITS.sub("", reads)], may_sit),
        )
        found += islice(dict.fromkeys(islice(alike, 2 * most)), most)
        rolling = (each for each in self._behind(name, self._order, may_sit) if each not in found)
        return tuple(dict.fromkeys((*found, *islice(rolling, 1))))

    def _behind(self, name: str, bucket: list[str], may_sit: Callable[[str], bool]) -> Iterator[str]:
        """The entries behind this one in a bucket, from its end on to its beginning; none that is the same server."""
        at = self._places[id(bucket)][name]
        for step in range(1, min(len(bucket), LONGEST_SEARCH)):
            other = bucket[(at + step) % len(bucket)]
            if not same_server(self.entries[name], self.entries[other]) and may_sit(other):
                yield other


def positions(names: Sequence[str]) -> dict[str, int]:
    """Where each name stands."""
    return {name: number for number, name in enumerate(names)}


def bucketed(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Names by key, each once."""
    buckets: dict[str, list[str]] = {}
    for key, name in pairs:
        bucket = buckets.setdefault(key, [])
        if name not in bucket:
            bucket.append(name)
    return buckets


def folded(name: str) -> str:
    """A name as it reads: letters and digits, without case."""
    return _NO_LETTER.sub("", name.lower())


def same_server(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether what strikes one is bound to strike the other: one address, or one command that nothing tells apart."""
    if "url" in one or "url" in other:
        return one.get("url") == other.get("url")
    keys = ("command", "args", "env")
    return transport_of(one) == STDIO and all(one.get(key) == other.get(key) for key in keys)


def plain_name(transport: str, taken: Iterable[str]) -> str:
    """What a plain entry is called: a name that no entry has."""
    name = f"plain-{transport}"
    while name in set(taken):
        name = f"{name}-x"
    return name
