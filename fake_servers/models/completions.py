"""OpenAI's chat completions, as Pi and most others speak them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fake_servers.models.script import Answer, Call, ModelRequest, Named, ToolResult
from fake_servers.models.wire import encode, listed_models, pieces, tables, text_of, tokens
from harness.world.ports import Response, StreamEvent

PATH = "/v1/chat/completions"
MODELS_PATH = "/v1/models"
CONVERSATION = "messages"
END = "[DONE]"


def is_main(body: Mapping[str, Any]) -> bool:  # noqa: ARG001 - nothing else is asked here
    """Every request is a turn."""
    return True


def tools_of(body: Mapping[str, Any]) -> tuple[Named, ...]:
    """Every function."""
    functions = [tool.get("function") for tool in tables(body.get("tools"))]
    return tuple((str(each.get("name", "")), each) for each in tables(functions))


def results_of(body: Mapping[str, Any]) -> tuple[ToolResult, ...]:
    """From the messages of the role `tool`. Whether one is an error they do not say."""
    told = tables(body.get(CONVERSATION))
    calls = [call for message in told for call in tables(message.get("tool_calls"))]
    names = {
        str(call.get("id")): str(function.get("name", ""))
        for call in calls
        for function in tables([call.get("function")])
    }
    results = [(str(message.get("tool_call_id", "")), message) for message in told if message.get("role") == "tool"]
    return tuple(ToolResult(id_, names.get(id_, ""), text_of(message.get("content"))) for id_, message in results)


def whole(asked: ModelRequest, answer: Answer, identity: str) -> Mapping[str, Any]:
    """A completion."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [called(call, identity, number) for number, call in enumerate(answer.calls)]
    choice = {"index": 0, "message": message, "finish_reason": finish_reason(answer)}
    return {**head(asked, identity, "chat.completion"), "choices": [choice], "usage": usage(asked, answer)}


def events(asked: ModelRequest, answer: Answer, identity: str) -> Sequence[StreamEvent]:
    """Chunks, then the end; the model thinks behind the first."""
    start = head(asked, identity, "chat.completion.chunk")
    chunks = [
        {**start, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in deltas(answer, identity)
    ]
    if any(options.get("include_usage") is True for options in tables([asked.body.get("stream_options")])):
        chunks.append({**start, "choices": [], "usage": usage(asked, answer)})
    texts = [*(encode(chunk) for chunk in chunks), END]
    return [StreamEvent(text, answer.seconds if number == 1 else 0.0) for number, text in enumerate(texts)]


def deltas(answer: Answer, identity: str) -> Iterator[tuple[Mapping[str, Any], str | None]]:
    """What each chunk adds, and why there are no more."""
    yield {"role": "assistant", "content": ""}, None
    for piece in pieces(answer.text):
        yield {"content": piece}, None
    for number, call in enumerate(answer.calls):
        item = called(call, identity, number)
        function = {**item["function"], "arguments": ""}
        yield {"tool_calls": [{**item, "index": number, "function": function}]}, None
        for piece in pieces(item["function"]["arguments"]):
            yield {"tool_calls": [{"index": number, "function": {"arguments": piece}}]}, None
    yield {}, finish_reason(answer)


def head(asked: ModelRequest, identity: str, kind: str) -> Mapping[str, Any]:
    """What completions and their chunks begin with."""
    return {"id": f"chatcmpl-{identity}", "object": kind, "created": int(asked.at), "model": asked.model}


def called(call: Call, identity: str, number: int) -> Mapping[str, Any]:
    """One call."""
    function = {"name": call.name, "arguments": encode(dict(call.args))}
    return {"id": f"call_{identity}{number}", "type": "function", "function": function}


def finish_reason(answer: Answer) -> str:
    """Why the completion ends."""
    return "tool_calls" if answer.calls else "stop"


def usage(asked: ModelRequest, answer: Answer) -> Mapping[str, int]:
    """What it cost."""
    read, written = tokens(asked.messages), tokens(answer)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def beside(method: str, path: str, body: Mapping[str, Any] | None) -> Response | None:  # noqa: ARG001 - asked by GET
    """The list of models."""
    return listed_models() if (method, path) == ("GET", MODELS_PATH) else None
