"""The transcript that Codex keeps of a run: calls by namespace and name, and no word of how servers started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from fake_runtimes.codex.calls import Called
from fake_runtimes.codex.lines import encode
from fake_runtimes.profile import CodexProfile
from harness.world import World

ITEM_COMPLETED = "item_completed"


class Rollout:
    """One run's file, `sessions/Y/M/D/rollout-<time>-<thread>.jsonl` below the home."""

    def __init__(self, world: World, profile: CodexProfile, home: str, thread: str) -> None:
        self._world, self._profile, self._thread = world, profile, thread
        began = self._now()
        self._directory = f"{home}/sessions/{began:%Y/%m/%d}"
        self._path = f"{self._directory}/rollout-{began:%Y-%m-%dT%H-%M-%S}-{thread}.jsonl"
        self._calls = 0

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._world.clock.now(), UTC)

    async def begin(self, directory: str) -> None:
        """The head of the file. Raises OSError."""
        await self._world.files.make_directory(self._directory)
        head = {"id": self._thread, "cwd": directory, "cli_version": self._profile.version}
        await self._write([("session_meta", head)])

    async def add(self, called: Sequence[Called]) -> None:
        """The calls of one answer of the model; a run does not end over its transcript."""
        entries = [entry for one in called for entry in self._entries(one)]
        if entries:
            with suppress(OSError):
                await self._write(entries)

    def _entries(self, called: Called) -> list[tuple[str, Mapping[str, Any]]]:
        self._calls += 1
        call_id, call, name = f"call_{self._calls}", called.call, called.name
        told = {"namespace": name.namespace, "name": name.tool} if name else {"name": call.tool}
        asked = {"type": "function_call", **told, "arguments": encode(call.args), "call_id": call_id}
        output: dict[str, Any] = {"type": "function_call_output", "call_id": call_id, "output": called.text}
        if name is None:
            return [("response_item", asked), ("response_item", output)]
        if self._profile.names_servers_of_calls:
            source = {"server_name": call.server, "tool_name": call.tool}
            output["metadata"] = {"mcp_attribution": {"sources": [source]}}
        ended = {"type": self._profile.call_event, **ended_call(self._profile.call_event, call_id, called)}
        return [("response_item", asked), ("event_msg", ended), ("response_item", output)]

    async def _write(self, entries: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        stamp = self._now().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        lines = [encode({"timestamp": stamp, "type": kind, "payload": payload}) for kind, payload in entries]
        await self._world.files.append(self._path, "".join(f"{line}\n" for line in lines).encode(), mode=0o600)


def ended_call(event: str, call_id: str, called: Called) -> Mapping[str, Any]:
    """A call's end in the form of its event: as an item, or as one of its own."""
    told = {"server": called.call.server, "tool": called.call.tool, "arguments": dict(called.call.args)}
    if event != ITEM_COMPLETED:
        return {"call_id": call_id, "invocation": told, "result": result(called)}
    status = "completed" if called.ok else "failed"
    outcome = {"status": status, "result": result(called).get("Ok")}
    return {"item": {"type": "McpToolCall", "id": call_id, **told, **outcome}}


def result(called: Called) -> Mapping[str, Any]:
    """A call's end as the program's own language writes it."""
    if not called.answered:
        return {"Err": called.text}
    return {"Ok": {"content": [{"type": "text", "text": called.text}], "isError": not called.ok}}
