"""What the model APIs write alike: JSON, events, identities, figures of usage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from harness.world.ports import Response, StreamEvent

JSON = {"Content-Type": "application/json"}
EVENTS = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
ID_CHARACTERS = 24
PIECE_CHARACTERS = 16
CHARACTERS_PER_TOKEN = 4


def parsed(body: bytes) -> Mapping[str, Any] | None:
    """The object in a body; None when there is none."""
    try:
        value = json.loads(body)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def encode(value: object) -> str:
    """JSON without needless spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def failed(status: int, message: str) -> Response:
    """An error, with as much of a body as all clients understand."""
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    return Response(status, JSON, encode(error).encode())


def kind_event(message: Mapping[str, Any], after_seconds: float = 0.0) -> StreamEvent:
    """An event whose kind its data says again in `type`."""
    return StreamEvent(encode(message), after_seconds, str(message["type"]))


def identity_of(body: bytes, number: int) -> str:
    """What the identities in an answer are made of: another one for each request, however often servers start anew."""
    return hashlib.sha256(b"%d/%s" % (number, body)).hexdigest()[:ID_CHARACTERS]


def pieces(text: str) -> tuple[str, ...]:
    """A text as a stream brings it."""
    return tuple(text[start : start + PIECE_CHARACTERS] for start in range(0, len(text), PIECE_CHARACTERS))


def tokens(value: object) -> int:
    """How much of a model's context something takes, roughly; never nothing."""
    return 1 + len(encode(value)) // CHARACTERS_PER_TOKEN


def tables(value: object) -> tuple[Mapping[str, Any], ...]:
    """The objects of a list; whatever else stands there is passed over."""
    return tuple(item for item in value if isinstance(item, Mapping)) if isinstance(value, list | tuple) else ()


def text_of(content: object) -> str:
    """The text of a message or result: a text, or parts of which some have one."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in tables(content) if "text" in part)


def listed_models() -> Response:
    """The one model that there is, as both OpenAI's API and Codex would read a list."""
    model = {"id": "fake", "object": "model", "created": 0, "owned_by": "fake"}
    return Response(200, JSON, encode({"object": "list", "data": [model]}).encode())
