"""How Codex names namespaces and tools: a namespace a server, hashes where names meet or grow too long."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fake_runtimes.profile import CodexProfile
from fake_runtimes.text import utf8

PREFIX = "mcp__"
OUTSIDE = re.compile(r"[^A-Za-z0-9_]")
DIGEST_LENGTH = 12
SUFFIX_LENGTH = DIGEST_LENGTH + 1
# The limit counts two characters between namespace and tool, although nothing is written there.
BETWEEN = 2


class Name(NamedTuple):
    """The two fields with which the model calls a tool."""

    namespace: str
    tool: str


def sanitise(text: str) -> str:
    """Each character but ASCII letters, digits and `_` becomes one `_`; nothing becomes `_` as well."""
    return OUTSIDE.sub("_", text) or "_"


def namespace(server: str) -> str:
    """The namespace of a server that shares it with no other."""
    clean = sanitise(server)
    return clean if clean.startswith(PREFIX) else PREFIX + clean


def digest(identity: str) -> str:
    import hashlib  # loads a library, which most runs do not need

    return "_" + hashlib.sha1(utf8(identity), usedforsecurity=False).hexdigest()[:DIGEST_LENGTH]


def server_suffix(server: str) -> str:
    return digest(f"{server}\0{server}\0")


def tool_suffix(server: str, tool: str) -> str:
    return digest(f"{server}\0{server}\0\0{tool}\0{tool}")


def namespaces(servers: Sequence[str]) -> dict[str, str]:
    """The namespace of each server; servers whose namespaces meet all get a suffix."""
    plain = {server: namespace(server) for server in servers}
    shared = Counter(plain.values())
    return {server: name + server_suffix(server) if shared[name] > 1 else name for server, name in plain.items()}


def offered(tools: Mapping[str, Sequence[str]], profile: CodexProfile) -> dict[tuple[str, str], Name]:
    """The names by (server, tool). None is dropped; but a name depends on all the others that are present."""
    spaces = namespaces(tuple(tools))
    names: dict[tuple[str, str], Name] = {}
    for server, listed in tools.items():
        plain = {tool: sanitise(tool) for tool in dict.fromkeys(listed)}
        shared = Counter(plain.values())
        for tool, name in plain.items():
            suffix = tool_suffix(server, tool) if shared[name] > 1 else ""
            names[server, tool] = fitted(Name(spaces[server], name), suffix, tool_suffix(server, tool), profile)
    return names


def fitted(name: Name, suffix: str, suffix_if_cut: str, profile: CodexProfile) -> Name:
    """The name with its suffix, cut to the limit; a namespace without room for a suffix is cut as well."""
    room = profile.name_limit - BETWEEN - len(name.namespace)
    if len(name.tool) + len(suffix) <= room:
        return Name(name.namespace, name.tool + suffix)
    if room < SUFFIX_LENGTH:
        return Name(name.namespace[: profile.name_limit - BETWEEN - SUFFIX_LENGTH], suffix_if_cut)
    return Name(name.namespace, name.tool[: room - SUFFIX_LENGTH] + suffix_if_cut)


def tool_name_room(server: str, profile: CodexProfile) -> int:
    """How long a tool name of the server may be before it is cut, no other server interfering."""
    return max(0, profile.name_limit - BETWEEN - len(namespace(server)))
