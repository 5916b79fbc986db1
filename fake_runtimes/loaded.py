"""What a runtime makes of its configuration file: the servers it holds and what it says about the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

SKIPPED = "skipped"
WARNING = "warning"
SERVER_FAILS = "server_fails"
FILE_LOST = "file_lost"
RUN_KILLED = "run_killed"
PROBLEM_CODES = (SKIPPED, WARNING, SERVER_FAILS, FILE_LOST, RUN_KILLED)


class LoadedServer(NamedTuple):
    """One server as the runtime holds it, after its own expansion of variables.

    `transport` is stdio, http or sse (also ws and socket, where a runtime takes them). `unset` names the
    variables that the runtime looked for and did not find; their places are literal or empty by the
    runtime's own rule. A server that does not start is held all the same: `fault` is the text with which it
    fails. `raw` is the entry as merged from the files, `settings` the keys of the file's top level that
    govern servers.
    """

    name: str
    transport: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: str | None = None
    headers: Mapping[str, str] = {}
    unset: tuple[str, ...] = ()
    starts: bool = True
    fault: str | None = None
    raw: Mapping[str, Any] = {}
    settings: Mapping[str, Any] = {}


class Problem(NamedTuple):
    """What went wrong with one server, or with the whole file (`server` is None).

    `code` is one of PROBLEM_CODES. `text` is what the runtime says; empty where it says nothing.
    """

    server: str | None
    code: str
    text: str


class Loaded(NamedTuple):
    """The servers in the runtime's own order, and the problems in the order in which it meets them."""

    servers: tuple[LoadedServer, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def run_killed(self) -> bool:
        """True where the configuration ends the whole run: no server starts, no model is asked."""
        return any(problem.code == RUN_KILLED for problem in self.problems)


def failing(server: LoadedServer, fault: str) -> LoadedServer:
    """The same server, held but failing at start with `fault`."""
    return server._replace(starts=False, fault=fault)


class EntryError(Exception):
    """Inside the readers: this one entry cannot be used; `text` is what the runtime says."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
