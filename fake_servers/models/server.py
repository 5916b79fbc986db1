"""A model behind an API, pure: the script is followed, one answer a request, and the requests are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

from fake_servers.models.script import LAST_ANSWER, SIDE_ANSWER, Answer, ModelRequest, Named, ToolResult
from fake_servers.models.wire import EVENTS, JSON, encode, failed, identity_of, parsed, tables
from harness.world.ports import Request, Response, StreamEvent


class Api(Protocol):
    """How one API writes things down: the modules `anthropic`, `responses` and `completions` are such."""

    PATH: str
    """Where it is asked."""

    CONVERSATION: str
    """The key of the body that holds the conversation."""

    def is_main(self, body: Mapping[str, Any]) -> bool:
        """Whether a request asks for a turn of the conversation, not for something beside it."""

    def tools_of(self, body: Mapping[str, Any]) -> tuple[Named, ...]:
        """What a request offers."""

    def results_of(self, body: Mapping[str, Any]) -> tuple[ToolResult, ...]:
        """What the calls in a request's conversation gave."""

    def events(self, asked: ModelRequest, answer: Answer, identity: str) -> Sequence[StreamEvent]:
        """The answer as a stream that takes the answer's time."""

    def whole(self, asked: ModelRequest, answer: Answer, identity: str) -> Mapping[str, Any]:
        """The answer in one piece."""

    def beside(self, method: str, path: str, body: Mapping[str, Any] | None) -> Response | None:
        """The answer to a request of another kind; None when there is no such thing."""


class ModelServer:
    """Answers for one origin: by the script, one answer for each turn that is asked for, then `last` for ever.

    `requests` holds what asked for a turn of the conversation, `side_requests` what was answered beside it,
    `results` what calls of tools gave, once each however often the conversation is sent; `others` all other requests.
    `answers` may be added to at any time.

    >>> from fake_servers.models import Answer, ModelServer, anthropic
    >>> server = ModelServer(anthropic, [Answer("hello")])
    >>> body = b'{"tools": [{"name": "Read", "input_schema": {}}], "messages": []}'
    >>> response = server.handle(Request("POST", "http://model.test/v1/messages", body=body), 0.0, "claude")
    >>> parsed(response.body)["content"]
    [{'type': 'text', 'text': 'hello'}]
    >>> server.requests[0].tools
    ('Read',)
    """

    def __init__(self, api: Api, answers: Iterable[Answer] = (), *, last: Answer = LAST_ANSWER) -> None:
        self.api, self.answers, self.last = api, list(answers), last
        self.requests: list[ModelRequest] = []
        self.side_requests: list[ModelRequest] = []
        self.results: list[ToolResult] = []
        self.others: list[Request] = []

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer to one request."""
        path, body = urlsplit(request.url).path, parsed(request.body)
        if request.method != "POST" or path != self.api.PATH:
            self.others.append(request)
            return self.api.beside(request.method, path, body) or failed(404, f"there is no {path}")
        if body is None:
            self.others.append(request)
            return failed(400, "the body is not a JSON object")
        asked = self._read(request, body, now, who)
        identity = identity_of(request.body, len(self.requests) + len(self.side_requests))
        answer = self._next(asked)
        if body.get("stream") is True:
            return Response(200, EVENTS, events=tuple(self.api.events(asked, answer, identity)))
        whole = encode(self.api.whole(asked, answer, identity))
        return Response(200, JSON, whole.encode(), answer.seconds)

    def _read(self, request: Request, body: Mapping[str, Any], now: float, who: str) -> ModelRequest:
        named = self.api.tools_of(body)
        names, definitions = tuple(name for name, _ in named), tuple(definition for _, definition in named)
        messages, model = tables(body.get(self.api.CONVERSATION)), str(body.get("model", ""))
        main = self.api.is_main(body)
        return ModelRequest(now, who, model, names, definitions, messages, dict(request.headers), body, main)

    def _next(self, asked: ModelRequest) -> Answer:
        """Keep the request and take the answer that is due."""
        if not asked.main:
            self.side_requests.append(asked)
            return SIDE_ANSWER
        number = len(self.requests)
        self.requests.append(asked)
        known = {result.id for result in self.results}
        self.results += [result for result in self.api.results_of(asked.body) if result.id not in known]
        return self.answers[number] if number < len(self.answers) else self.last
