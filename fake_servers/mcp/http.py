"""An MCP server over HTTP: streamable HTTP, or the older pair of an SSE stream and a message endpoint. Pure."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from fake_servers.mcp import protocol
from fake_servers.mcp.behaviour import Behaviour
from fake_servers.mcp.rebinding import rebound
from harness.world.ports import Request, Response, StreamEvent, header

JSON = "application/json"
EVENTS = "text/event-stream"
SESSION_HEADER = "Mcp-Session-Id"
VERSION_HEADER = "MCP-Protocol-Version"
METHOD_HEADER = "Mcp-Method"
NAME_HEADER = "Mcp-Name"
BAD_SESSION = -32000
HEADER_MISMATCH = -32020
MODERN_STATUSES: Mapping[Any, int] = {
    protocol.INVALID_REQUEST: 400,
    protocol.INVALID_PARAMS: 400,
    protocol.UNSUPPORTED_VERSION: 400,
    protocol.METHOD_NOT_FOUND: 404,
}
UNKNOWN_SESSION = -32001
SESSION_CHARACTERS = 32
NETWORK_ACTIONS: Mapping[str, str | None] = {"never": None, "before": "reset-before", "after": "reset-after"}
"""From `Behaviour.drops` to what a fault of the network does: a server that is pure cannot break a connection."""

GOOD = Behaviour()


class Seen(NamedTuple):
    """A request that arrived: when, whose, what. `rpc_method` is None without a JSON-RPC message."""

    at: float
    who: str
    method: str
    url: str
    headers: Mapping[str, str]
    rpc_method: str | None


class HttpServer:
    """Answers for one origin; `requests` holds all that arrived, in order.

    `transport` is http or sse. `sessions` False makes it stateless: no session id is given or wanted.
    Paths below `/.well-known/` are not found; every other path is the endpoint.
    """

    def __init__(
        self,
        behaviour: Behaviour = GOOD,
        *,
        transport: str = "http",
        sessions: bool = True,
    ) -> None:
        if transport not in ("http", "sse"):
            raise ValueError(f"transport must be http or sse, not {transport!r}")
        self.behaviour, self.transport, self.sessions = behaviour, transport, sessions
        self.requests: list[Seen] = []
        self._states: dict[str, protocol.State] = {}
        self._streams: dict[str, list[StreamEvent]] = {}
        self._opened = 0

    @property
    def breaks(self) -> str | None:
        """What whoever carries the answers is to do to every connection."""
        return NETWORK_ACTIONS[self.behaviour.drops]

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer to one request."""
        message = protocol.parse(request.body.decode(errors="replace")) if request.method == "POST" else None
        method = message.get("method") if isinstance(message, dict) else None
        rpc_method = method if isinstance(method, str) else None
        self.requests.append(Seen(now, who, request.method, request.url, dict(request.headers), rpc_method))
        if urlsplit(request.url).path.startswith("/.well-known/"):
            return Response(404)
        refusal = rebound(request) or self._refusal(request)
        if refusal is not None:
            return refusal
        if self.transport == "sse":
            return self._handle_sse(request, message)
        if message is not None:
            return self._post(request, message)
        if request.method == "GET":
            return self._get(request)
        if request.method == "DELETE":
            return self._delete(request)
        return Response(405, {"Allow": "GET, POST, DELETE"})

    def _refusal(self, request: Request) -> Response | None:
        """What keeps a request from the protocol: the status of the behaviour, or a missing token."""
        behaviour = self.behaviour
        if behaviour.status is not None and (request.method == "POST" or self.transport == "sse"):
            return refused(behaviour, behaviour.status, behaviour.challenge)
        if behaviour.requires_bearer and bearer(request) not in behaviour.requires_bearer:
            challenge = default_challenge(request.url) if behaviour.challenge is None else behaviour.challenge
            return refused(behaviour, 401, challenge)
        return None

    def _post(self, request: Request, message: protocol.Message | protocol.Answer) -> Response:
        if isinstance(message, protocol.Answer):
            return failed(400, message.messages[0])
        method = message.get("method")
        if is_modern(self.behaviour, request, message):
            return self._post_modern(request, message)
        if method == "initialize":
            return self._initialize(message)
        if method == protocol.DISCOVER:
            return self._respond(protocol.answer(self.behaviour, message))
        problem = self._session_problem(request) or version_problem(request)
        if problem is not None:
            return problem
        session = header(request.headers, SESSION_HEADER) if self.sessions else None
        state = self._states[session] if session else stateless(self.behaviour)
        answer = protocol.answer(self.behaviour, message, state)
        if session:
            self._states[session] = answer.state
        if "method" not in message or "id" not in message:
            return Response(202) if not answer.messages else failed(400, answer.messages[0])
        return self._respond(answer)

    def _post_modern(self, request: Request, message: protocol.Message) -> Response:
        """A request of the newer revision: no session, headers that say what the body says, errors with a status."""
        if "id" not in message:
            return Response(202)
        if protocol.modern_version(self.behaviour, message) is None:
            problem = f"_meta must have {protocol.META_VERSION}"
            return failed(400, protocol.error(protocol.identity(message), protocol.INVALID_PARAMS, problem))
        mismatch = header_mismatch(self.behaviour, request, message)
        if mismatch is not None:
            return failed(400, protocol.error(protocol.identity(message), HEADER_MISMATCH, mismatch))
        answer = protocol.answer(self.behaviour, message)
        code = answer.messages[0].get("error", {}).get("code") if answer.messages else None
        if code in MODERN_STATUSES:
            return failed(MODERN_STATUSES[code], answer.messages[0])
        return self._respond(answer)

    def _initialize(self, message: protocol.Message) -> Response:
        answer = protocol.answer(self.behaviour, message)
        response = self._respond(answer)
        if not self.sessions or answer.state.protocol_version is None:
            return response
        session = self._open_session(answer.state)
        return response._replace(headers={**response.headers, SESSION_HEADER: session})

    def _open_session(self, state: protocol.State) -> str:
        self._opened += 1
        source = f"{self.behaviour.name}/{self._opened}"
        session = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:SESSION_CHARACTERS]
        self._states[session] = state
        return session

    def _session_problem(self, request: Request) -> Response | None:
        if not self.sessions:
            return None
        session = header(request.headers, SESSION_HEADER)
        if session is None:
            return failed(400, protocol.error(None, BAD_SESSION, "Bad Request: Mcp-Session-Id header is required"))
        if session not in self._states:
            return failed(404, protocol.error(None, UNKNOWN_SESSION, "Session not found"))
        return None

    def _respond(self, answer: protocol.Answer) -> Response:
        """The answer to a request. One that never comes is one that takes forever."""
        after_seconds = answer.after_seconds if answer.messages else math.inf
        if self.behaviour.answers_as == "sse":
            headers = {"Content-Type": self.behaviour.content_type or EVENTS}
            texts = [protocol.encode(message) for message in answer.messages]
            events = [StreamEvent(text, after_seconds if not index else 0.0) for index, text in enumerate(texts)]
            return Response(200, headers, events=events, ends=bool(texts))
        body = "".join(protocol.encode(message) for message in answer.messages)
        headers = {"Content-Type": self.behaviour.content_type or JSON}
        return Response(200, headers, body.encode(), after_seconds)

    def _get(self, request: Request) -> Response:
        if not self.behaviour.supports_get:
            return Response(405, {"Allow": "POST, DELETE"})
        return self._session_problem(request) or Response(200, {"Content-Type": EVENTS}, events=(), ends=False)

    def _delete(self, request: Request) -> Response:
        if not self.sessions:
            return Response(405, {"Allow": "POST"})
        problem = self._session_problem(request)
        if problem is not None:
            return problem
        del self._states[header(request.headers, SESSION_HEADER) or ""]
        return Response(200)

    def _handle_sse(self, request: Request, message: protocol.Message | protocol.Answer | None) -> Response:
        """The older transport: a GET opens the stream, whose first event tells where to POST; answers come in it."""
        parts = urlsplit(request.url)
        session = parse_qs(parts.query).get("session_id", [""])[0]
        if request.method == "GET":
            session = self._open_session(protocol.State())
            events = self._streams[session] = [StreamEvent(f"{parts.path}?session_id={session}", event="endpoint")]
            return Response(200, {"Content-Type": EVENTS}, events=events, ends=False)
        if message is None or not session:
            return Response(405, {"Allow": "GET"})
        if session not in self._streams:
            return Response(404, {"Content-Type": "text/plain"}, b"Could not find session")
        if isinstance(message, protocol.Answer):
            return failed(400, message.messages[0])
        answer = protocol.answer(self.behaviour, message, self._states[session])
        self._states[session] = answer.state
        self._streams[session] += [StreamEvent(protocol.encode(item), answer.after_seconds) for item in answer.messages]
        return Response(202, {"Content-Type": "text/plain"}, b"Accepted")


def stateless(behaviour: Behaviour) -> protocol.State:
    """What a server that keeps no sessions takes for known: the client has been through the handshake."""
    return protocol.State(behaviour.protocol_version, ready=True)


def bearer(request: Request) -> str | None:
    """The token a request carries."""
    scheme, _, token = (header(request.headers, "Authorization") or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def default_challenge(url: str) -> str:
    """The challenge that names the metadata of the resource that was asked for."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    return f'Bearer resource_metadata="{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{path}"'


def refused(behaviour: Behaviour, status: int, challenge: str | None) -> Response:
    """An answer in place of the protocol."""
    guessed = JSON if behaviour.body.lstrip().startswith("{") else "text/plain"
    headers = {"Content-Type": behaviour.content_type or guessed}
    if challenge:
        headers["WWW-Authenticate"] = challenge
    return Response(status, headers, behaviour.body.encode())


def is_modern(behaviour: Behaviour, request: Request, message: protocol.Message) -> bool:
    """Whether a message is of the newer revision, where the server speaks it: its body says so, or its header."""
    if protocol.modern_version(behaviour, message) is not None:
        return True
    return behaviour.discover == "answer" and header(request.headers, VERSION_HEADER) == protocol.MODERN_VERSION


def header_mismatch(behaviour: Behaviour, request: Request, message: protocol.Message) -> str | None:
    """What a header of the newer revision says otherwise than the body."""
    method, params = message.get("method"), message["params"]
    wanted = {VERSION_HEADER: protocol.modern_version(behaviour, message), METHOD_HEADER: method}
    if method == "tools/call":
        wanted[NAME_HEADER] = params.get("name")
    differing = (name for name, value in wanted.items() if header(request.headers, name) != value)
    return next((f"{name} header does not match the request" for name in differing), None)


def version_problem(request: Request) -> Response | None:
    """A version header that no revision has; a missing one is borne."""
    version = header(request.headers, VERSION_HEADER)
    if version is None or version in protocol.PROTOCOL_VERSIONS:
        return None
    message = f"Bad Request: Unsupported protocol version: {version}"
    return failed(400, protocol.error(None, BAD_SESSION, message))


def failed(status: int, message: protocol.Message) -> Response:
    """A JSON-RPC error under an HTTP status."""
    return Response(status, {"Content-Type": JSON}, protocol.encode(message).encode())
