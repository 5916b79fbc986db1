"""OpenAI's Responses API, as Codex speaks it: a tool may stand in a namespace, and is called by both names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fake_servers.models.script import Answer, Call, ModelRequest, Named, ToolResult, qualified
from fake_servers.models.wire import encode, kind_event, listed_models, pieces, tables, text_of, tokens
from harness.world.ports import Response, StreamEvent

PATH = "/v1/responses"
MODELS_PATH = "/v1/models"
CONVERSATION = "input"
OUTPUTS = ("function_call_output", "custom_tool_call_output")
CALLS = ("function_call", "custom_tool_call")


def is_main(body: Mapping[str, Any]) -> bool:  # noqa: ARG001 - nothing else is asked here
    """Every request is a turn."""
    return True


def tools_of(body: Mapping[str, Any]) -> tuple[Named, ...]:
    """Every tool, those of a namespace as `namespace/name`; one that has no name by its type."""
    found: list[Named] = []
    for tool in tables(body.get("tools")):
        name = str(tool.get("name") or tool.get("type", ""))
        if tool.get("type") == "namespace":
            inner = tables(tool.get("tools"))
            found += [(qualified(str(each.get("name", "")), name), each) for each in inner]
        else:
            found.append((name, tool))
    return tuple(found)


def results_of(body: Mapping[str, Any]) -> tuple[ToolResult, ...]:
    """From the items that are outputs of calls. Whether one is an error they do not say."""
    items = tables(body.get(CONVERSATION))
    names = {
        str(item.get("call_id")): qualified(str(item.get("name", "")), item.get("namespace"))
        for item in items
        if item.get("type") in CALLS
    }
    results = [(str(item.get("call_id", "")), item) for item in items if item.get("type") in OUTPUTS]
    return tuple(ToolResult(id_, names.get(id_, ""), text_of(item.get("output"))) for id_, item in results)


def whole(asked: ModelRequest, answer: Answer, identity: str) -> Mapping[str, Any]:
    """A response that is complete."""
    read, written = tokens(asked.messages), tokens(answer)
    usage = {
        "input_tokens": read, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }  # fmt: skip
    return {**begun(asked, identity), "status": "completed", "output": items(answer, identity), "usage": usage}


def begun(asked: ModelRequest, identity: str) -> Mapping[str, Any]:
    """A response without output."""
    return {
        "id": f"resp_{identity}", "object": "response", "created_at": int(asked.at), "status": "in_progress",
        "model": asked.model, "output": [], "usage": None,
    }  # fmt: skip


def items(answer: Answer, identity: str) -> list[Mapping[str, Any]]:
    """What the response puts out."""
    found: list[Mapping[str, Any]] = []
    if answer.text:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        found.append(
            {"type": "message", "id": f"msg_{identity}", "status": "completed", "role": "assistant", "content": content}
        )
    return found + [called(call, identity, number) for number, call in enumerate(answer.calls)]


def called(call: Call, identity: str, number: int) -> Mapping[str, Any]:
    """The item of one call."""
    item = {
        "type": "function_call", "id": f"fc_{identity}{number}", "call_id": f"call_{identity}{number}",
        "status": "completed", "name": call.name, "arguments": encode(dict(call.args)),
    }  # fmt: skip
    return {**item, "namespace": call.namespace} if call.namespace else item


def events(asked: ModelRequest, answer: Answer, identity: str) -> Sequence[StreamEvent]:
    """From `response.created` to `response.completed`; the model thinks behind the first."""
    return [
        kind_event({**message, "sequence_number": number}, answer.seconds if number == 1 else 0.0)
        for number, message in enumerate(messages(asked, answer, identity))
    ]


def messages(asked: ModelRequest, answer: Answer, identity: str) -> Iterator[Mapping[str, Any]]:
    """The data of all events."""
    yield {"type": "response.created", "response": begun(asked, identity)}
    for index, item in enumerate(items(answer, identity)):
        empty: Mapping[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
        yield {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {**item, "status": "in_progress", **empty},
        }
        place = {"item_id": item["id"], "output_index": index}
        yield from said(item["content"][0], place) if item["type"] == "message" else arguments(item["arguments"], place)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": whole(asked, answer, identity)}


def said(part: Mapping[str, Any], place: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The text of a message, piece by piece."""
    place = {**place, "content_index": 0}
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", **place, "delta": piece}
    yield {"type": "response.output_text.done", **place, "text": part["text"]}
    yield {"type": "response.content_part.done", **place, "part": part}


def arguments(text: str, place: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The arguments of a call, piece by piece."""
    for piece in pieces(text):
        yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
    yield {"type": "response.function_call_arguments.done", **place, "arguments": text}


def beside(method: str, path: str, body: Mapping[str, Any] | None) -> Response | None:  # noqa: ARG001 - asked by GET
    """The list of models."""
    return listed_models() if (method, path) == ("GET", MODELS_PATH) else None
