"""Where a run of Pi speaks: events on stdout, the adapter's lines on stderr or, over RPC, as requests to the host.

That there are session, agent, turn, message and tool execution events, and none about servers, was measured; so were
the adapter's texts and the kinds of its requests. Fields beyond those are the vendor's description's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fake_runtimes.pi.arguments import JSON, RPC
from fake_runtimes.pi.texts import Status, counted
from fake_runtimes.text import json_stringify
from harness.world.ports import World

Event = Mapping[str, Any]
PLUG = "🔌"
SESSION_VERSION = 3
NOTHING_USED = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0}


class Front:
    """The outputs of one run in the mode that was asked for."""

    def __init__(self, world: World, mode: str) -> None:
        self._world, self._mode = world, mode
        self._requests = 0

    async def say(self, *events: Event) -> None:
        """Events on stdout, one a line, where the mode has any."""
        if self._mode in (JSON, RPC):
            await print_lines(self._world.processes.write_line, [json_stringify(dict(event)) for event in events])

    async def finish(self, words: str) -> None:
        """The last words, which are all that the text mode prints."""
        if self._mode not in (JSON, RPC):
            await print_lines(self._world.processes.write_line, [words])

    async def connecting(self, count: int) -> None:
        """The adapter begins to connect servers."""
        if self._mode == RPC and count:
            await self._status(f"{PLUG} MCP: connecting to {count} servers...")

    async def settled(self, failures: Sequence[str], statuses: Sequence[Status]) -> None:
        """All servers of the start have their outcome: what is told of those that did not connect."""
        if self._mode != RPC:
            await print_lines(self._world.processes.write_error, failures)
            return
        for line in failures:
            await self.notify(line, "error")
        enabled = [one for one in statuses if one.state != "disabled"]
        connected = [one for one in enabled if one.state == "connected"]
        if not enabled:
            return
        tools = counted(sum(one.tools for one in connected))
        if connected:
            await self.notify(f"MCP: {len(connected)}/{len(enabled)} servers connected ({tools})", "info")
        # The program colours this one.
        off = len(statuses) - len(enabled)
        counts = f"{len(enabled)} servers enabled ({len(connected)} connected){f' ({off} disabled)' if off else ''}"
        await self._status(f"{PLUG} MCP: {counts}")

    async def notify(self, message: str, kind: str) -> None:
        """Ask the host to show a message."""
        await self._request({"method": "notify", "message": message, "notifyType": kind})

    async def _status(self, text: str) -> None:
        await self._request({"method": "setStatus", "statusKey": "mcp", "statusText": text})

    async def _request(self, fields: Event) -> None:
        self._requests += 1
        await self.say({"type": "extension_ui_request", "id": f"ui_{self._requests}", **fields})


def user_message(text: str, now_ms: int) -> Event:
    """What was asked."""
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": now_ms}


def assistant_message(text: str, calls: Sequence[Event], now_ms: int) -> Event:
    """What the model answered: words, and the calls that it asks for."""
    content: list[Event] = [{"type": "text", "text": text}] if text else []
    return {
        "role": "assistant",
        "content": [*content, *calls],
        "api": "fake",
        "provider": "fake",
        "model": "m",
        "usage": NOTHING_USED,
        "stopReason": "toolUse" if calls else "stop",
        "timestamp": now_ms,
    }


def message_events(message: Event) -> tuple[Event, Event]:
    """A message that comes as a whole."""
    return {"type": "message_start", "message": message}, {"type": "message_end", "message": message}


async def print_lines(write: Callable[[str], Any], lines: Sequence[str]) -> None:
    """Lines in one piece; a reader that is gone is not missed."""
    if not lines:
        return
    try:
        await write("\n".join(lines))
    except BrokenPipeError:
        return
