"""The faults of the battery, as data: each strikes one server, in one way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

STDIO, NPX, REMOTE = "stdio", "npx", "remote"

ENOENT, EACCES = "enoent", "eacces"
REFUSED, DNS = "refused", "dns"
CORRUPT, SLOW = "corrupt", "slow"

SLOW_INSTALL_SECONDS = 60.0
"""Longer than any runtime's first model request waits, shorter than the budget that Zimmer gives (180 s)."""

CHALLENGE = 'Bearer resource_metadata="https://battery.test/.well-known/oauth-protected-resource"'
STDERR_TEXT = "fatal: the configuration file is missing"


class Kind(NamedTuple):
    """One fault. `says` continues the sentence "if this entry's server ...".

    `behaviour` are fields of the struck server's Behaviour; `spawn`, `network` and `install` name what is done to
    the start of its program, to requests for its URL, to the install of its package. `on` is the least special
    transport that knows it: what strikes a stdio server strikes an npx one too.
    """

    name: str
    says: str
    on: str
    behaviour: Mapping[str, Any] = {}
    spawn: str = ""
    network: str = ""
    install: str = ""


KINDS: tuple[Kind, ...] = (
    Kind("no-program", "has no program", STDIO, spawn=ENOENT),
    Kind("not-executable", "has a program that may not be executed", STDIO, spawn=EACCES),
    Kind("exits-at-start", "exits at its start", STDIO, {"exits": "at-start", "stderr": (STDERR_TEXT,)}),
    Kind("exits-at-initialize", "exits when it is greeted", STDIO, {"exits": "at-initialize"}),
    Kind("hangs", "never answers initialize", STDIO, {"initialize": "never"}),
    Kind("hangs-at-list", "never lists its tools", STDIO, {"list_tools": "never"}),
    Kind("noise", "prints text before it speaks the protocol", STDIO, {"stdout_noise": ("Starting server ...", "{")}),
    Kind("install-corrupt", "is installed into a broken npx tree", NPX, install=CORRUPT),
    Kind("install-slow", f"takes {SLOW_INSTALL_SECONDS:g} s to install", NPX, install=SLOW),
    Kind("401-challenge", "answers 401 with a challenge", REMOTE, {"status": 401, "challenge": CHALLENGE}),
    Kind("401", "answers 401 without a challenge", REMOTE, {"status": 401}),
    Kind("403", "answers 403", REMOTE, {"status": 403}),
    Kind("404", "answers 404", REMOTE, {"status": 404}),
    Kind("500", "answers 500", REMOTE, {"status": 500, "body": "internal error"}),
    Kind("refused", "refuses connections", REMOTE, network=REFUSED),
    Kind("dns", "has a host name that is not found", REMOTE, network=DNS),
    Kind("dropped", "drops its connections", REMOTE, {"drops": "before"}),
    Kind("content-type", "answers with HTML", REMOTE, {"content_type": "text/html"}),
    Kind("hangs-remote", "accepts requests and never answers", REMOTE, {"initialize": "never"}),
)


def kinds_for(transport: str) -> tuple[Kind, ...]:
    """The faults that a server of that transport (stdio, npx, or any remote one) can have."""
    if transport == NPX:
        return tuple(kind for kind in KINDS if kind.on in (STDIO, NPX))
    return tuple(kind for kind in KINDS if kind.on == (STDIO if transport == STDIO else REMOTE))
