"""`codex app-server`: the only place where Codex tells a program how each of its servers started."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fake_runtimes.codex.arguments import Arguments
from fake_runtimes.codex.auth import auth_status
from fake_runtimes.codex.bugs import NONE, Bugs
from fake_runtimes.codex.home import LOADING_FAILED, Held, read_home
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
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
DEFAULTS = "ERROR codex_app_server: Invalid configuration; using defaults. "
AUTH_STATUSES = {
    "unsupported": "unsupported",
    "not_logged_in": "notLoggedIn",
    "bearer_token": "bearerToken",
    "o_auth": "oAuth",
    "unknown": "unknown",
}
EXIT_DONE, EXIT_REFUSED, EXIT_INTERRUPTED = 0, 1, -2
SIGTERM = "SIGTERM"
THREAD_CHARACTERS = 32
# The error of a thread that cannot start is the part of the exec text behind its own prefix.
EXEC_PREFIX = "Error: thread/start: thread/start failed: "


async def run_app_server(world: World, arguments: Arguments, profile: CodexProfile, bugs: Bugs = NONE) -> int:
    """JSON-RPC over stdio: `initialize`, `thread/start` (which starts the servers), `mcpServerStatus/list`.

    Each server gives notifications `mcpServer/startupStatus/updated`; one that is switched off gives none. When
    stdin ends it waits until every server has its outcome, then ends. No model is asked. With a
    configuration that cannot be read no thread starts; where it is to be read strictly nothing does.
    """
    held = await read_home(world, profile, arguments)
    if held.refused is not None and arguments.strict:
        await world.processes.write_error(f"Error: {held.refused.removeprefix(LOADING_FAILED)}")
        return EXIT_REFUSED
    if held.refused is not None:
        await world.processes.write_error(f"{DEFAULTS}{held.refused.removeprefix(LOADING_FAILED)}")
    return await Threads(world, profile, held._replace(bugs=bugs)).serve()


class Threads:
    """The requests of one client, who starts one thread."""

    def __init__(self, world: World, profile: CodexProfile, held: Held) -> None:
        self._world, self._profile, self._held = world, profile, held
        self._thread = world.entropy.token(THREAD_CHARACTERS)
        self._servers = Servers(world, profile, held, self._told)
        self._work: list[Task] = []

    async def serve(self) -> int:
        """Answer until stdin ends, or until a signal where the version takes one; the answer is the exit code."""
        tasks = self._world.tasks
        reading = tasks.start(self._read(), "requests")
        if not self._profile.ends_gently:
            await tasks.wait([reading])
        else:
            struck = tasks.start(self._world.processes.next_signal(), "signals")
            await tasks.wait([reading, struck], first=True)
            if not reading.done and struck.result() != SIGTERM:
                return EXIT_INTERRUPTED
        if reading.done:
            await self._servers.settled()
        await self._servers.end()
        return EXIT_DONE

    async def _read(self) -> None:
        while (line := await self._world.processes.read_line()) is not None:
            message = decode(line)
            if message is not None and "id" in message:
                self._work.append(self._world.tasks.start(self._answer(message), str(message.get("method"))))
        await self._world.tasks.wait(self._work)

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
            answer = self._refused(INTERNAL_ERROR, "failed to reload config") or await self._list()
        else:
            answer = {"error": {"code": METHOD_NOT_FOUND, "message": "Method not found"}}
        await self._print({"id": message["id"], **answer})

    def _refused(self, code: int, words: str) -> Mapping[str, Any] | None:
        """The error of a configuration that cannot be read; the program also says where in its file the fault is."""
        refused = self._held.refused
        if refused is None:
            return None
        cause = refused.removeprefix(LOADING_FAILED).partition("\n")[0]
        return {"error": {"code": code, "message": f"{words}: {cause}"}}

    async def _list(self) -> Mapping[str, Any]:
        await self._servers.settled()
        return {"result": {"data": [await self._listed(name) for name in self._names()], "nextCursor": None}}

    async def _start_thread(self) -> Mapping[str, Any]:
        refused = self._refused(INVALID_REQUEST, "failed to load configuration")
        if refused is not None:
            return refused
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

    async def _listed(self, name: str) -> Mapping[str, Any]:
        connection = self._servers.connections.get(name)
        tools = allowed_tools(connection) if connection else ()
        server = next((server for server in self._held.servers if server.name == name), None)
        status = await auth_status(self._world, self._profile, self._held, server)
        return {
            "name": name,
            "serverInfo": dict(connection.server_info) if connection else None,
            "tools": {tool: {"name": tool} for tool in tools},
            "authStatus": AUTH_STATUSES[status],
        }

    async def _print(self, message: Mapping[str, Any]) -> None:
        with suppress(BrokenPipeError):  # a client that is gone shows as the end of stdin
            await self._world.processes.write_line(encode(message))
