"""The servers that are certified, those that must fail in one place, and one that must fail everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from fake_servers.mcp import Behaviour, HttpServer, Tool
from fake_servers.mounts.mount import Server
from harness.world.ports import Request, Response
from scenarios.certification.official.installing import SUITE_VERSIONS

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
NEWEST = SUITE_VERSIONS[-1:]

SIMPLE = Tool("test_simple_text", "Says one sentence.", text="This is a simple text response for testing.")
ERROR = Tool("test_error_handling", "Always fails.", text="This tool always fails.", is_error=True)
GOOD = Behaviour(name="fake", tools=(SIMPLE, ERROR))


class Subject(NamedTuple):
    """A server that the suite is run against, at one revision of the protocol.

    One that is `like` another is expected to show the same, but for what the baseline says of it: it has one quirk.
    """

    name: str
    server: Callable[[], Server]
    revision: str = HANDSHAKE
    suites: tuple[str, ...] = SUITE_VERSIONS
    like: str = ""


class AnyHost:
    """A server that lets itself be called by any name."""

    def __init__(self) -> None:
        self._server = HttpServer(GOOD)

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer, whatever name the request says."""
        headers = {name: value for name, value in request.headers.items() if name not in ("Host", "Origin")}
        return self._server.handle(request._replace(headers=headers), now, who)


class NoSchemas:
    """A server that lists its tools without the schema of their input, which the protocol demands."""

    def __init__(self) -> None:
        self._server = HttpServer(GOOD)

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer; of a list of tools what is left of it."""
        response = self._server.handle(request, now, who)
        if b'"inputSchema"' not in response.body:
            return response
        message = json.loads(response.body)
        for tool in message["result"]["tools"]:
            del tool["inputSchema"]
        return response._replace(body=json.dumps(message).encode())


class Nothing:
    """A server that finds nothing, whatever it is asked."""

    def handle(self, request: Request, now: float, who: str) -> Response:
        """Always the same answer."""
        return Response(404)


CERTIFIED = (
    Subject("json", lambda: HttpServer(GOOD)),
    Subject("events", lambda: HttpServer(GOOD._replace(answers_as="sse", supports_get=True))),
    Subject("stateless", lambda: HttpServer(GOOD, sessions=False)),
    Subject("both-lifecycles", lambda: HttpServer(GOOD._replace(discover="answer")), suites=NEWEST, like="json"),
    Subject("newer", lambda: HttpServer(GOOD._replace(discover="answer")), STATELESS, NEWEST),
)
QUIRKS = (
    Subject("any-host", AnyHost, suites=NEWEST, like="json"),
    Subject("no-schemas", NoSchemas, suites=NEWEST, like="json"),
    Subject("lists-no-tools", lambda: HttpServer(GOOD._replace(list_tools="error")), suites=NEWEST, like="json"),
    Subject("errors-unmarked", lambda: HttpServer(without_error_mark()), suites=NEWEST, like="json"),
)
CONTROLS = (
    Subject("nothing", Nothing),
    Subject("nothing-newer", Nothing, STATELESS, NEWEST),
)


def without_error_mark() -> Behaviour:
    """A server whose failing tool does not say that it failed."""
    return GOOD._replace(tools=(SIMPLE, ERROR._replace(is_error=False)))
