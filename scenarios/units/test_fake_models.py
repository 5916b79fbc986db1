"""The fake model APIs: what they answer, what they keep, and how a client over HTTP sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import pytest

from fake_servers.models import Answer, Call, ModelServer, ToolResult, anthropic, completions, responses
from fake_servers.models.server import Api
from fake_servers.mounts import Mount
from harness.world import Request, Response, StreamEvent
from harness.world.outside.setting import Pace

ORIGIN = "http://model.test"
FAST = Pace(100.0, 0.0, 0.0)
LIMIT_SECONDS = 20.0
APIS: tuple[Api, ...] = (anthropic, responses, completions)
BODIES: Mapping[str, Mapping[str, Any]] = {
    anthropic.PATH: {
        "model": "m",
        "tools": [{"name": "Read", "input_schema": {}}, {"name": "mcp__srv__echo", "input_schema": {}}],
        "messages": [{"role": "user", "content": "hi"}],
    },
    responses.PATH: {
        "model": "m",
        "tools": [
            {"type": "function", "name": "shell"},
            {"type": "namespace", "name": "mcp__srv", "tools": [{"type": "function", "name": "echo"}]},
            {"type": "web_search"},
        ],
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
    },
    completions.PATH: {
        "model": "m",
        "tools": [{"type": "function", "function": {"name": "mcp", "description": "Servers"}}],
        "messages": [{"role": "user", "content": "hi"}],
    },
}
TOOLS = {
    anthropic.PATH: ("Read", "mcp__srv__echo"),
    responses.PATH: ("shell", "mcp__srv/echo", "web_search"),
    completions.PATH: ("mcp",),
}
ARGUMENTS = {"text": 'a "long" text that comes in several pieces, ä 😀', "deep": {"n": [1, None]}}
TWO_CALLS = Answer("I look at it twice", (Call("one", ARGUMENTS, "mcp__srv"), Call("two")), 3.0)

each_api = pytest.mark.parametrize("api", APIS, ids=("anthropic", "responses", "completions"))


def ask(server: ModelServer, body: Mapping[str, Any] | None = None, **more: Any) -> Response:
    text = json.dumps({**(body or BODIES[server.api.PATH]), **more})
    url = f"{ORIGIN}{server.api.PATH}?beta=true"
    return server.handle(Request("POST", url, {"X-Api-Key": "dummy"}, text.encode()), 7.5, "claude")


def other(server: ModelServer, method: str, path: str, body: bytes = b"") -> Response:
    return server.handle(Request(method, f"{ORIGIN}{path}", body=body), 0.0, "")


def data_of(events: Sequence[StreamEvent] | None) -> list[Any]:
    assert events is not None
    return [json.loads(event.data) for event in events if event.data != completions.END]


def said_by(api: Api, events: list[Any]) -> str:
    """The text that a stream brings, as a client puts it together."""
    if api is anthropic:
        return "".join(each["delta"].get("text", "") for each in events if each["type"] == "content_block_delta")
    if api is responses:
        return "".join(each["delta"] for each in events if each["type"] == "response.output_text.delta")
    return "".join(choice["delta"].get("content", "") for each in events for choice in each["choices"])


def spoken(api: Api, response: Response) -> str:
    return said_by(api, data_of(response.events))


@each_api
def test_answers_come_in_order_and_then_the_last_one_for_ever(api):
    server = ModelServer(api, [Answer("first"), Answer("second")], last=Answer("over"))
    assert [spoken(api, ask(server, stream=True)) for _ in range(4)] == ["first", "second", "over", "over"]
    server.answers.append(Answer("never heard"))
    server.answers += [Answer("x"), Answer("added later")]
    assert spoken(api, ask(server, stream=True)) == "added later"
    assert len(server.requests) == 5


@each_api
def test_without_a_script_something_short_is_said_and_no_tool_is_called(api):
    assert 0 < len(spoken(api, ask(ModelServer(api), stream=True))) < 10


@each_api
def test_a_request_is_kept_with_its_tools_conversation_headers_and_whole_body(api):
    server = ModelServer(api)
    ask(server, temperature=1)
    (kept,) = server.requests
    body = BODIES[api.PATH]
    assert kept.tools == TOOLS[api.PATH]
    assert len(kept.definitions) == len(kept.tools)
    assert kept.definitions[0] == (body["tools"][0]["function"] if api is completions else body["tools"][0])
    assert list(kept.messages) == body[api.CONVERSATION]
    assert (kept.at, kept.who, kept.model, kept.main) == (7.5, "claude", "m", True)
    assert (kept.headers, kept.body) == ({"X-Api-Key": "dummy"}, {**body, "temperature": 1})


@each_api
def test_a_stream_begins_at_once_and_the_rest_takes_the_seconds_of_the_answer(api):
    response = ask(ModelServer(api, [TWO_CALLS]), stream=True)
    assert response.events is not None
    assert [event.after_seconds for event in response.events[:3]] == [0.0, 3.0, 0.0]
    assert (sum(event.after_seconds for event in response.events), response.after_seconds) == (3.0, 0.0)
    assert response.ends
    assert response.headers["Content-Type"] == "text/event-stream"


@each_api
def test_a_whole_answer_takes_the_seconds_before_it_comes(api):
    response = ask(ModelServer(api, [TWO_CALLS]))
    assert (response.status, response.after_seconds, response.events) == (200, 3.0, None)
    assert response.headers["Content-Type"] == "application/json"


def test_anthropic_streams_blocks_of_text_and_tool_use_between_start_and_stop():
    response = ask(ModelServer(anthropic, [TWO_CALLS]), stream=True)
    assert response.events is not None
    events = data_of(response.events)
    assert [event.event for event in response.events] == [each["type"] for each in events]
    kinds = [each["type"] for each in events if each["type"] not in ("ping", "content_block_delta")]
    block = ["content_block_start", "content_block_stop"]
    assert kinds == ["message_start", *block, *block, *block, "message_delta", "message_stop"]
    assert [each["index"] for each in events if each["type"] == "content_block_start"] == [0, 1, 2]
    uses = [each["content_block"] for each in events if each["type"] == "content_block_start"][1:]
    assert [(use["type"], use["name"], use["input"]) for use in uses] == [
        ("tool_use", "one", {}),
        ("tool_use", "two", {}),
    ]
    typed = "".join(
        each["delta"]["partial_json"] for each in events if each["type"] == "content_block_delta" and each["index"] == 1
    )
    assert json.loads(typed) == ARGUMENTS
    assert said_by(anthropic, events) == TWO_CALLS.text
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    start = events[0]["message"]
    assert (start["role"], start["content"], start["model"]) == ("assistant", [], "m")


def test_anthropic_answers_in_one_piece_with_the_same_content():
    message = json.loads(ask(ModelServer(anthropic, [TWO_CALLS])).body)
    assert [block["type"] for block in message["content"]] == ["text", "tool_use", "tool_use"]
    assert message["content"][1]["input"] == ARGUMENTS
    assert message["stop_reason"] == "tool_use"
    assert min(message["usage"]["input_tokens"], message["usage"]["output_tokens"]) > 0
    assert json.loads(ask(ModelServer(anthropic, [Answer("x")])).body)["stop_reason"] == "end_turn"


def test_responses_streams_items_and_ends_with_all_of_them():
    response = ask(ModelServer(responses, [TWO_CALLS]), stream=True)
    assert response.events is not None
    events = data_of(response.events)
    assert [event.event for event in response.events] == [each["type"] for each in events]
    assert [each["sequence_number"] for each in events] == list(range(len(events)))
    assert (events[0]["type"], events[-1]["type"]) == ("response.created", "response.completed")
    added = [each["item"] for each in events if each["type"] == "response.output_item.added"]
    done = [each["item"] for each in events if each["type"] == "response.output_item.done"]
    assert [item["type"] for item in added] == ["message", "function_call", "function_call"]
    assert [item["id"] for item in added] == [item["id"] for item in done]
    assert events[-1]["response"]["output"] == done
    assert (done[1]["namespace"], done[1]["name"], json.loads(done[1]["arguments"])) == ("mcp__srv", "one", ARGUMENTS)
    assert "namespace" not in done[2]
    typed = [each for each in events if each["type"] == "response.function_call_arguments.delta"]
    assert "".join(each["delta"] for each in typed if each["output_index"] == 1) == done[1]["arguments"]
    usage = events[-1]["response"]["usage"]
    assert usage["input_tokens"] + usage["output_tokens"] == usage["total_tokens"]
    assert json.loads(ask(ModelServer(responses, [TWO_CALLS])).body)["status"] == "completed"


def test_completions_streams_deltas_then_the_reason_then_the_usage_when_it_is_asked_for():
    server = ModelServer(completions, [TWO_CALLS] * 2)
    response = ask(server, stream=True, stream_options={"include_usage": True})
    assert response.events is not None
    assert response.events[-1].data == "[DONE]"
    assert {event.event for event in response.events} == {"message"}
    *chunks, usage = data_of(response.events)
    assert (usage["choices"], usage["usage"]["completion_tokens"] > 0) == ([], True)
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-2:] == [None, "tool_calls"]
    pieces = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", [])]
    assert [(call["index"], call["function"]["name"]) for call in pieces if "id" in call] == [(0, "one"), (1, "two")]
    typed = "".join(call["function"]["arguments"] for call in pieces if call["index"] == 0)
    assert json.loads(typed) == ARGUMENTS
    assert all(chunk["choices"] for chunk in data_of(ask(server, stream=True).events))


def test_completions_answers_in_one_piece_with_the_same_calls():
    choice = json.loads(ask(ModelServer(completions, [TWO_CALLS])).body)["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    calls = [
        (call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in choice["message"]["tool_calls"]
    ]
    assert calls == [("one", ARGUMENTS), ("two", {})]
    plain = json.loads(ask(ModelServer(completions, [Answer("x")])).body)["choices"][0]
    assert plain == {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}


def test_an_empty_text_is_not_said():
    silent = Answer("", (Call("one"),))
    assert [block["type"] for block in json.loads(ask(ModelServer(anthropic, [silent])).body)["content"]] == [
        "tool_use"
    ]
    assert [item["type"] for item in json.loads(ask(ModelServer(responses, [silent])).body)["output"]] == [
        "function_call"
    ]
    assert json.loads(ask(ModelServer(completions, [silent])).body)["choices"][0]["message"]["content"] is None


TITLE = {"format": {"type": "json_schema", "schema": {"type": "object"}}}
READ = {"name": "Read", "input_schema": {}}


@pytest.mark.parametrize(
    ("body", "main"),
    [
        ({"model": "claude-opus-5", "tools": [READ]}, True),
        ({"model": "claude-haiku-5", "tools": [READ]}, True),
        ({"model": "claude-opus-5", "tools": [READ], "output_config": TITLE}, True),
        ({"model": "claude-opus-5", "tools": [], "output_config": {"effort": "high"}}, True),
        ({"model": "claude-opus-5"}, True),
        ({"model": "claude-opus-5", "tools": [], "output_config": TITLE}, False),
        ({"model": "claude-haiku-5"}, False),
        ({"model": "claude-opus-5", "max_tokens": 1}, False),
        ({"model": "claude-opus-5", "tools": [{"type": "web_search_20250305", "name": "web_search"}]}, False),
    ],
)
def test_a_side_request_of_claude_takes_no_turn_and_gets_a_title(body, main):
    server = ModelServer(anthropic, [Answer("first")])
    body = {"messages": [{"role": "user", "content": "x"}], **body}
    text = json.loads(ask(server, body).body)["content"][0]["text"]
    assert (len(server.requests), len(server.side_requests)) == ((1, 0) if main else (0, 1))
    assert text == "first" if main else json.loads(text)["title"]
    assert json.loads(ask(server).body)["content"][0]["text"] == ("ok" if main else "first")


CONVERSATIONS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    anthropic.PATH: [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "mcp__srv__echo", "input": {}}]},
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "content": [{"type": "text", "text": "good"}, {"type": "image"}],
                },
                {"type": "tool_result", "tool_use_id": "b", "content": "bad", "is_error": True},
            ],
        },
    ],
    responses.PATH: [
        {"type": "function_call", "call_id": "a", "name": "echo", "namespace": "mcp__srv", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "good"},
        {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "bad"}]},
    ],
    completions.PATH: [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"name": "mcp"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "good"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "bad"}]},
    ],
}
RESULTS = {
    anthropic.PATH: [
        ToolResult("a", "mcp__srv__echo", "good", is_error=False),
        ToolResult("b", "", "bad", is_error=True),
    ],
    responses.PATH: [ToolResult("a", "mcp__srv/echo", "good"), ToolResult("b", "", "bad")],
    completions.PATH: [ToolResult("a", "mcp", "good"), ToolResult("b", "", "bad")],
}


@each_api
def test_results_are_kept_once_though_each_request_brings_the_whole_conversation(api):
    server = ModelServer(api)
    told = CONVERSATIONS[api.PATH]
    ask(server, {**BODIES[api.PATH], api.CONVERSATION: told[:-1]})
    ask(server, {**BODIES[api.PATH], api.CONVERSATION: told})
    ask(server, {**BODIES[api.PATH], api.CONVERSATION: told})
    assert server.results == RESULTS[api.PATH]


@each_api
def test_identities_are_the_same_for_the_same_requests_and_else_never(api):
    def calls(server: ModelServer, **more: Any) -> set[str]:
        body = json.loads(ask(server, **more).body)
        if api is anthropic:
            return {block["id"] for block in body["content"] if block["type"] == "tool_use"}
        if api is responses:
            return {item["call_id"] for item in body["output"] if item["type"] == "function_call"}
        return {call["id"] for call in body["choices"][0]["message"]["tool_calls"]}

    answers = [TWO_CALLS] * 2
    one, again, another = ModelServer(api, answers), ModelServer(api, answers), ModelServer(api, answers)
    first, second = calls(one), calls(one)
    assert len(first | second) == 4
    assert calls(again) == first
    assert not calls(another, session="x") & first


def test_claude_is_greeted_and_its_tokens_are_counted():
    server = ModelServer(anthropic, [Answer("first")])
    assert other(server, "HEAD", "/api/hello") == Response(200, {"Content-Type": "application/json"})
    body = json.dumps(BODIES[anthropic.PATH]).encode()
    counted = json.loads(other(server, "POST", "/v1/messages/count_tokens?beta=true", body).body)
    assert counted["input_tokens"] > 0
    assert [request.method for request in server.others] == ["HEAD", "POST"]
    assert json.loads(ask(server).body)["content"][0]["text"] == "first"


@pytest.mark.parametrize("api", [responses, completions])
def test_models_are_listed(api):
    listed = json.loads(other(ModelServer(api), "GET", "/v1/models?client_version=1").body)
    assert [model["object"] for model in listed["data"]] == ["model"]


@each_api
def test_what_is_not_of_the_api_is_refused_and_kept_beside_the_script(api):
    server = ModelServer(api, [Answer("first")])
    answers = [
        other(server, "GET", "/v1/nothing"),
        other(server, "GET", api.PATH),
        other(server, "POST", api.PATH, b"no JSON"),
        other(server, "POST", api.PATH, b"[]"),
        other(server, "POST", api.PATH, b"\xff"),
    ]
    assert [answer.status for answer in answers] == [404, 404, 400, 400, 400]
    assert all(json.loads(answer.body)["error"]["message"] for answer in answers)
    assert (len(server.others), server.requests) == (5, [])
    assert spoken(api, ask(server, stream=True)) == "first"


UNHASHABLE = [
    {"content": [{"type": "tool_use", "id": []}], "tool_calls": [{"id": [], "function": {}}]},
    {"type": "function_call", "call_id": {}, "name": 5, "namespace": 5},
]


@each_api
@pytest.mark.parametrize(
    "junk", [None, 5, "x", [None, 5, "x"], {"a": 1}, [{"type": 5, "content": 5, "tool_calls": "x"}], UNHASHABLE]
)
def test_a_body_that_makes_no_sense_is_answered_all_the_same(api, junk):
    server = ModelServer(api)
    response = ask(server, {"model": junk, "tools": junk, api.CONVERSATION: junk, "output_config": junk}, stream=True)
    assert spoken(api, response)
    assert server.results == []


@each_api
def test_a_client_over_http_reads_the_stream_and_waits_as_long_as_the_answer_takes(api):
    server = ModelServer(api, [TWO_CALLS, Answer("All done.")])
    with Mount({ORIGIN: server}, pace=FAST) as mount, httpx.Client(timeout=LIMIT_SECONDS, trust_env=False) as client:
        body = {**BODIES[api.PATH], "stream": True}
        headers = {"X-World-Actor": "runtime", "Authorization": "Bearer dummy"}
        texts = [client.post(mount.url(f"{ORIGIN}{api.PATH}"), json=body, headers=headers) for _ in range(2)]
    assert [answer.headers["Content-Type"] for answer in texts] == ["text/event-stream"] * 2
    assert texts[0].elapsed.total_seconds() >= TWO_CALLS.seconds / FAST.scale
    assert [said_by(api, events_in(answer.text)) for answer in texts] == [TWO_CALLS.text, "All done."]
    assert [request.who for request in server.requests] == ["runtime"] * 2
    assert server.requests[0].headers["Authorization"] == "Bearer dummy"


def events_in(text: str) -> list[Any]:
    """The data of a stream, as a client that knows only the format reads it."""
    found = []
    for event in text.removesuffix("\n\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in event.split("\n"))
        if fields["data"] != completions.END:
            data = json.loads(fields["data"])
            assert fields.get("event") == data.get("type")
            found.append(data)
    return found
