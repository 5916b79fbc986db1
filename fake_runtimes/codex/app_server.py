"""`codex app-server`: the only place where Codex tells a program how each of its servers started."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fake_runtimes.codex.arguments import Arguments
from fake_runtimes.codex.home import Held, read_home
from fake_runtimes.codex.lines import encode
from fake_runtimes.codex.offers import allowed_tools
from fake_runtimes.codex.servers import INTERNAL_ERROR_SUFFIX, Servers
from fake_runtimes.codex.texts import NotStarted
from fake_runtimes.connections.messages import decode
from fake_runtimes.loaded import SKIPPED
from fake_runtimes.profile import CodexProfile
from harness.world import Task, World

UPDATED = "mcpServer/startupStatus/updated"
INTERNAL_ERROR = -32603
METHOD_NOT_FOUND = -32601
EXIT_DONE, EXIT_REFUSED = 0, 1
THREAD_CHARACTERS = 32
# The error of a thread that cannot start is the part of the exec text behind its own prefix.
EXEC_PREFIX = "Error: thread/start: thread/start failed: "


async def run_app_server(world: World, arguments: Arguments, profile: CodexProfile) -> int:
    """JSON-RPC over stdio: `initialize`, `thread/start` (which starts the servers), `mcpServerStatus/list`.

    Each server gives notifications `mcpServer/startupStatus/updated`; one that is switched off gives none. When
    stdin ends it waits until every server has its outcome, then ends. No model is asked.
    """
    held = await read_home(world, profile, arguments)
    if held.refused is not None:
        await world.processes.write_error(held.refused)
        return EXIT_REFUSED
    await Threads(world, profile, held).serve()
    return EXIT_DONE


class Threads:
    """The requests of one client, who starts one thread."""

    def __init__(self, world: World, profile: CodexProfile, held: Held) -> None:
        self._world, self._profile, self._held = world, profile, held
        self._thread = world.entropy.token(THREAD_CHARACTERS)
        self._servers = Servers(world, profile, held, self._told)
        self._work: list[Task] = []

    async def serve(self) -> None:
        """Answer until stdin ends."""
        while (line := await self._world.processes.read_line()) is not None:
            message = decode(line)
            if message is not None and "id" in message:
                self._work.append(self._world.tasks.start(self._answer(message), str(message.get("method"))))
        await self._world.tasks.wait(self._work)
        await self._servers.settled()
        await self._servers.end()

    async def _told(self, name: str, status: str, failed: NotStarted | None) -> None:
        params = {
            "threadId": self._thread,
            "name": name,
            "status": status,
            "error": failed.text if failed else None,
            "failureReason": failed.reason if failed else None,
        }
        await self._print({"method": UPDATED, "params": params})

    async def _answer(self, message: Mapping[str, Any]) -> None:
        method = message.get("method")
        if method == "initialize":
            answer: Mapping[str, Any] = {"result": {"userAgent": f"codex_app_server/{self._profile.version}"}}
        elif method == "thread/start":
            answer = await self._start_thread()
        elif method == "mcpServerStatus/list":
            await self._servers.settled()
            answer = {"result": {"data": [self._listed(name) for name in self._names()], "nextCursor": None}}
        else:
            answer = {"error": {"code": METHOD_NOT_FOUND, "message": "Method not found"}}
        await self._print({"id": message["id"], **answer})

    async def _start_thread(self) -> Mapping[str, Any]:
        await self._servers.start()
        refusal = await self._servers.refusal()
        if refusal is None:
            return {"result": {"thread": {"id": self._thread, "cwd": self._held.directory}}}
        message = refusal.removeprefix(EXEC_PREFIX).removesuffix(INTERNAL_ERROR_SUFFIX)
        return {"error": {"code": INTERNAL_ERROR, "message": message}}

    def _names(self) -> list[str]:
        """All servers, those that are switched off among them."""
        off = [problem.server for problem in self._held.loaded.problems if problem.code == SKIPPED and problem.server]
        return sorted([server.name for server in self._held.servers] + off)

    def _listed(self, name: str) -> Mapping[str, Any]:
        connection = self._servers.connections.get(name)
        tools = allowed_tools(connection) if connection else ()
        return {
            "name": name,
            "serverInfo": dict(connection.server_info) if connection else None,
            "tools": {tool: {"name": tool} for tool in tools},
            "authStatus": self._servers.auth_status(name),
        }

    async def _print(self, message: Mapping[str, Any]) -> None:
        with suppress(BrokenPipeError):  # a client that is gone shows as the end of stdin
            await self._world.processes.write_line(encode(message))
