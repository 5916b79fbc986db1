"""Anthropic's Messages API, as Claude Code speaks it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fake_servers.models.script import Answer, Call, ModelRequest, Named, ToolResult
from fake_servers.models.wire import JSON, encode, kind_event, pieces, tables, text_of, tokens
from harness.world.ports import Response, StreamEvent

PATH = "/v1/messages"
COUNT_PATH = "/v1/messages/count_tokens"
HELLO_PATH = "/api/hello"
CONVERSATION = "messages"
SMALL_MODEL = "haiku"


def is_main(body: Mapping[str, Any]) -> bool:
    """Whether a request is a turn: it offers tools that the client itself runs, or nothing marks it as a side request.

    A side request asks for an answer of a certain shape (the title of a session), names the small model (topics,
    summaries), only tries whether it may ask (one token), or brings nothing but tools that the API would run.
    """
    tools, format_ = tables(body.get("tools")), [each.get("format") for each in tables([body.get("output_config")])]
    if tools:
        return any("input_schema" in tool for tool in tools)
    return not tables(format_) and SMALL_MODEL not in str(body.get("model", "")) and body.get("max_tokens") != 1


def tools_of(body: Mapping[str, Any]) -> tuple[Named, ...]:
    """Every tool, also those whose definitions are deferred."""
    return tuple((str(tool.get("name", "")), tool) for tool in tables(body.get("tools")))


def results_of(body: Mapping[str, Any]) -> tuple[ToolResult, ...]:
    """From the blocks `tool_result`."""
    blocks = [block for message in tables(body.get(CONVERSATION)) for block in tables(message.get("content"))]
    names = {str(block.get("id")): str(block.get("name", "")) for block in blocks if block.get("type") == "tool_use"}
    results = [(str(block.get("tool_use_id", "")), block) for block in blocks if block.get("type") == "tool_result"]
    return tuple(
        ToolResult(id_, names.get(id_, ""), text_of(block.get("content")), block.get("is_error") is True)
        for id_, block in results
    )


def whole(asked: ModelRequest, answer: Answer, identity: str) -> Mapping[str, Any]:
    """A message."""
    content: list[Mapping[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    content += [use(call, identity, number) for number, call in enumerate(answer.calls)]
    return {
        **begun(asked, identity),
        "content": content,
        "stop_reason": stop_reason(answer),
        "usage": usage(asked, answer),
    }


def events(asked: ModelRequest, answer: Answer, identity: str) -> Sequence[StreamEvent]:
    """From `message_start` to `message_stop`; the model thinks behind the first."""
    start, *rest = messages(asked, answer, identity)
    return [
        kind_event(start),
        *(kind_event(each, 0.0 if number else answer.seconds) for number, each in enumerate(rest)),
    ]


def messages(asked: ModelRequest, answer: Answer, identity: str) -> Iterator[Mapping[str, Any]]:
    """The data of all events."""
    yield {"type": "message_start", "message": begun(asked, identity)}
    yield {"type": "ping"}
    if answer.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(answer.text)]
        yield from block(0, {"type": "text", "text": ""}, deltas)
    for number, call in enumerate(answer.calls):
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(encode(dict(call.args)))]
        yield from block(number + bool(answer.text), {**use(call, identity, number), "input": {}}, deltas)
    delta = {"stop_reason": stop_reason(answer), "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": tokens(answer)}}
    yield {"type": "message_stop"}


def block(index: int, start: Mapping[str, Any], deltas: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """One block of a message's content."""
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def begun(asked: ModelRequest, identity: str) -> Mapping[str, Any]:
    """A message before it has content."""
    return {
        "id": f"msg_{identity}", "type": "message", "role": "assistant", "model": asked.model, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage(asked, None),
    }  # fmt: skip


def use(call: Call, identity: str, number: int) -> Mapping[str, Any]:
    """The block of one call."""
    return {"type": "tool_use", "id": f"toolu_{identity}{number}", "name": call.name, "input": dict(call.args)}


def stop_reason(answer: Answer) -> str:
    """Why the message ends."""
    return "tool_use" if answer.calls else "end_turn"


def usage(asked: ModelRequest, answer: Answer | None) -> Mapping[str, int]:
    """What it cost."""
    output = 1 if answer is None else tokens(answer)
    cached = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {"input_tokens": tokens(asked.messages), **cached, "output_tokens": output}


def beside(method: str, path: str, body: Mapping[str, Any] | None) -> Response | None:
    """The count of tokens, and the greeting by which it is seen that somebody is there."""
    if path == HELLO_PATH and method in ("HEAD", "GET"):
        return Response(200, JSON, b'{"message":"hello"}' if method == "GET" else b"")
    if path == COUNT_PATH and method == "POST" and body is not None:
        return Response(200, JSON, encode({"input_tokens": tokens(body.get(CONVERSATION))}).encode())
    return None
