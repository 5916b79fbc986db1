"""What `claude -p` prints: the last words, one JSON object, or every message as it comes.

Of the messages, `system/init` was measured; the assistant's, the user's and the result have the fields of the
vendor's description of them, with nothing spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fake_runtimes.claude.arguments import JSON, STREAM, Arguments
from fake_runtimes.text import json_stringify
from harness.world import World

Message = Mapping[str, Any]
MODEL = "claude-fake"
NOTHING_USED = {
    "input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 0,
}


class Output:
    """The stdout of one run; nobody need listen."""

    def __init__(self, world: World, arguments: Arguments, session_id: str) -> None:
        self._world, self._arguments, self._session_id = world, arguments, session_id
        self._messages: list[Message] = []
        self._began = world.clock.now()
        self._number = 0

    async def say(self, message: Message) -> None:
        """One message of the stream."""
        if self._arguments.output == STREAM:
            await print_line(self._world, json_stringify(dict(message)))
        elif self._arguments.verbose:
            self._messages.append(message)

    async def say_answer(self, content: Sequence[Message]) -> None:
        """The model's answer, a message for each block of its content."""
        self._number += 1
        for block in content:
            message = {
                "id": f"msg_{self._number}",
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "content": [block],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": NOTHING_USED,
            }
            await self.say(self._of_session({"type": "assistant", "message": message, "parent_tool_use_id": None}))

    async def say_result(self, tool_use_id: str, text: str, *, ok: bool) -> None:
        """What the model reads of a call."""
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": tool_use_id}
        block |= {"content": [{"type": "text", "text": text}]} if ok else {"content": text, "is_error": True}
        message = {"role": "user", "content": [block]}
        await self.say(self._of_session({"type": "user", "message": message, "parent_tool_use_id": None}))

    async def finish(self, text: str, turns: int) -> None:
        """The end of the run: its result in the form that was asked for."""
        passed = round((self._world.clock.now() - self._began) * 1000)
        result = {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "duration_ms": passed,
            "duration_api_ms": passed,
            "num_turns": turns,
            "result": text,
            "session_id": self._session_id,
            "total_cost_usd": 0,
            "usage": NOTHING_USED,
            "modelUsage": {},
            "permission_denials": [],
        }
        await self.say(result)
        if self._arguments.output == JSON:
            # not measured: with --verbose all messages in one array
            whole = [*map(dict, self._messages)] if self._arguments.verbose else result
            await print_line(self._world, json_stringify(whole))
        elif self._arguments.output != STREAM:
            await print_line(self._world, text)

    def _of_session(self, message: Message) -> Message:
        return {**message, "session_id": self._session_id}


async def print_line(world: World, text: str) -> None:
    """A line, or several, on stdout; nobody need listen."""
    try:
        await world.processes.write_line(text)
    except BrokenPipeError:
        return
