"""What a model says, as data, and what is kept of each request to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Call(NamedTuple):
    """A call of a tool by the name it was offered under; `namespace` where the API has two names for a tool."""

    name: str
    args: Mapping[str, Any] = {}
    namespace: str | None = None


class Answer(NamedTuple):
    """One turn of the model: after `seconds` it says `text`, then it makes its calls. An empty text is not said."""

    text: str = "done"
    calls: tuple[Call, ...] = ()
    seconds: float = 0.0


LAST_ANSWER = Answer("ok")
"""What is said to whoever asks on when the script is over."""

SIDE_ANSWER = Answer('{"title":"fake"}')
"""What is said to a small request beside the conversation: as JSON it is what titles are asked for as."""


class ModelRequest(NamedTuple):
    """A request that arrived: when (seconds), whose, and what it offers and says.

    `tools` are the names of the tools in the order in which they were offered, one in a namespace as
    `namespace/name`; `definitions` are those of the same length and order, as they came. `messages` is the
    conversation as the API writes it. `main` is False for a small request beside the conversation.
    """

    at: float
    who: str
    model: str
    tools: tuple[str, ...]
    definitions: tuple[Mapping[str, Any], ...]
    messages: tuple[Mapping[str, Any], ...]
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    main: bool = True


class ToolResult(NamedTuple):
    """What a call gave: which tool (as in `ModelRequest.tools`, empty when the call is not in the conversation).

    `is_error` is None where the API has no word for it.
    """

    id: str
    name: str
    text: str
    is_error: bool | None = None


Named = tuple[str, Mapping[str, Any]]
"""A tool's name and its definition."""


def qualified(name: str, namespace: str | None) -> str:
    """How a tool with two names is called here."""
    return f"{namespace}/{name}" if namespace else name
