"""Vectors of the area `flow`: discovery, registration and the resource indicator."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from harness.reference.catalog.entry import read_entry
from harness.reference.oauth.check import Check, check_oauth_requirement
from harness.reference.oauth.clients import Client
from harness.reference.oauth.consent import hosted_callback, redirect_uri_for
from harness.reference.oauth.discovery import Discovered, discovered
from harness.reference.oauth.metadata import listed_scopes, resource_indicator, resource_metadata_url
from harness.reference.oauth.registration import registration_body
from harness.reference.oauth.server import RemoteServer
from harness.vectors.registry import operation
from harness.world import Ambiguous, NotSent, Request, Response, Task, World

SENT = ("timeout", "reset")
"""The errors after which a request may have been processed."""


class Finished:
    """A task that has run to its end, as nothing in this world waits."""

    done = True

    def __init__(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        self.name = name
        self._error: NotSent | Ambiguous | None = None
        self._result: Any = None
        try:
            self._result = run(work)
        except (NotSent, Ambiguous) as error:
            self._error = error

    def result(self) -> Any:
        """What it returned or raised."""
        if self._error is not None:
            raise self._error
        return self._result


class AnsweringWorld:
    """A world whose servers answer from a table, "METHOD URL" to an answer; what is not there answers 404."""

    def __init__(self, answers: Mapping[str, Mapping[str, Any]]) -> None:
        self.answers = answers
        self.requests: list[str] = []
        self.http = self.tasks = self
        self.events = SimpleNamespace(emit=ignore)

    async def send(self, request: Request, **_limits: float) -> Response:
        """The answer to a request, which is noted."""
        label = f"{request.method} {request.url}"
        self.requests.append(label)
        return answer_of(self.answers.get(label, {"status": 404}))

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> Finished:
        """Run it at once."""
        return Finished(work, name)

    async def wait(self, tasks: Sequence[Task], *, timeout_seconds: float | None = None) -> None:
        """They are done."""


def ignore(_event: str, **_details: Any) -> None:
    """Nobody listens to the events."""


def answer_of(described: Mapping[str, Any]) -> Response:
    """An answer of a vector. Raises NotSent or Ambiguous where it is an error."""
    if "error" in described:
        raise error_of(described["error"])
    body = json.dumps(described["json"]) if "json" in described else described.get("text", "")
    return Response(described["status"], described.get("headers", {}), body.encode())


def error_of(name: str) -> NotSent | Ambiguous:
    """The error of a request that a vector names."""
    return Ambiguous(name) if name in SENT else NotSent(name)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("it waits for something")


@operation(
    "flow.resource_metadata",
    requirements=("flow-discovery-challenge-metadata",),
)
def _resource_metadata(given: dict[str, Any]) -> Any:
    return resource_metadata_url(given["header"])


@operation(
    "flow.discovery",
    requirements=(
        "flow-discovery-order",
        "flow-discovery-via-resource-document",
        "flow-discovery-usable-document",
        "flow-discovery-challenge-metadata",
        "flow-discovery-errors-contained",
        "flow-scopes-source",
        "flow-registration-when",
        "flow-client-id-fallback",
        "https-post-json-registration",
    ),
)
def _discovery(given: dict[str, Any]) -> Any:
    world = AnsweringWorld(given["world"])
    client_id = given.get("configured_client_id")
    configured = None if client_id is None else Client(client_id, given.get("configured_client_secret"))
    server = plain_server(given["server_url"])
    check = run(
        check_oauth_requirement(cast("World", world), server, configured=configured, redirect_uri=hosted_callback(None))
    )
    return {"requests": world.requests, "required": check.required, "metadata": told(check)}


def plain_server(url: str) -> RemoteServer:
    """A server of which nothing but the URL matters."""
    entry = read_entry("server", {"type": "http", "url": url})
    return RemoteServer("server", url, "server", entry, {}, {})


def told(check: Check) -> dict[str, Any] | None:
    """What a check found, as vectors tell it."""
    found = check.discovered
    if found is None:
        return None
    return {
        "authorization_endpoint": found.authorization_endpoint,
        "token_endpoint": found.token_endpoint,
        "scopes_supported": list(found.scopes) if found.lists_scopes else None,
        "client_id": None if check.client is None else check.client.client_id,
        "client_secret": None if check.client is None else check.client.client_secret,
        "resource": found.resource,
    }


@operation("flow.registration_body", requirements=("flow-registration-body",))
def _registration_body(given: dict[str, Any]) -> Any:
    redirect_uri = redirect_uri_for(given["configured_redirect_uri"], given["app_host"])
    return registration_body(redirect_uri, of_metadata(given["auth_server_metadata"]))


def of_metadata(document: Mapping[str, Any]) -> Discovered:
    """A server's metadata as discovery reads it."""
    return discovered(document, "https://mcp.example.com/mcp", None, scopes=listed_scopes(document))


@operation("flow.resource", requirements=("flow-resource-indicator",))
def _resource(given: dict[str, Any]) -> Any:
    return resource_indicator({"resource": given["prm_resource"]}, given["server_url"])
