"""A connection: the handshake, the list of tools and calls, whatever carries the messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from fake_runtimes.connections.messages import Message, initialize, meta, notification, probe, request, text_of
from fake_runtimes.connections.results import CallResult, Closed, Failure, Identity, Signals
from fake_runtimes.loaded import LoadedServer
from harness.world import World

LEGACY, MODERN = "legacy", "modern"
DEFAULT_SIGNALS: Signals = (("SIGINT", 0.1), ("SIGTERM", 0.4), ("SIGKILL", 0.0))
ENDS_THE_PROBE = ("enoent", "eacces", "spawn", "exited", "refused", "dns", "reset")
REFUSED_STATUSES = (401, 403)


class Connection(ABC):
    """A server that a client talks to. One request at a time; times are the world's clock.

    `tools` are the raw names in the server's order and `tool_list` their descriptions; both are empty until
    they have been listed. `stderr` is what a process has printed so far, as far as it was read.
    """

    def __init__(self, world: World, server: LoadedServer, identity: Identity, started_seconds: float) -> None:
        self.world, self.server, self.identity = world, server, identity
        self.started_seconds = started_seconds
        self.connected_seconds = started_seconds
        self.capabilities: Mapping[str, Any] = {}
        self.server_info: Mapping[str, Any] = {}
        self.protocol_version = ""
        self.era = LEGACY
        self.tools: tuple[str, ...] = ()
        self.tool_list: tuple[Mapping[str, Any], ...] = ()
        self.stderr: tuple[str, ...] = ()
        self.respawned = False
        self.stderr_before: tuple[str, ...] = ()
        self.probe_unanswered = False
        self._next_id = identity.first_id + 1

    @abstractmethod
    async def exchange(self, message: Message, until_seconds: float, stage: str) -> Message | Failure:
        """Send a request and wait for its answer until a time."""

    @abstractmethod
    async def tell(self, message: Message, until_seconds: float, stage: str) -> Failure | None:
        """Send a message that wants no answer."""

    async def after_handshake(self) -> None:  # noqa: B027 - most transports do nothing
        """What a transport does once the server is known to speak the protocol."""

    async def close(self, signals: Signals = DEFAULT_SIGNALS) -> Closed:  # noqa: ARG002 - processes alone take signals
        """End it, as far as its transport ends anything."""
        return Closed()

    async def running(self) -> bool:
        """Whether the other side is there, as far as can be told without asking it."""
        return True

    def failed(self, kind: str, stage: str, **fields: Any) -> Failure:
        """A failure of this connection, timed from its start."""
        after = self.world.clock.now() - self.started_seconds
        before: dict[str, Any] = {
            "respawned": self.respawned,
            "stderr_before": self.stderr_before,
            "probe_unanswered": self.probe_unanswered,
        }
        return Failure(kind, stage=stage, after_seconds=after, **before, **fields)

    async def shake_hands(self, until_seconds: float, *, probing: bool) -> Failure | None:
        """Probe where the client does, then initialize; None when the server is connected."""
        if probing:
            found = await self._probe(until_seconds)
            if found is not None or self.era == MODERN:
                return found
        answer = await self.exchange(initialize(self.identity), until_seconds, "initialize")
        result = answer if isinstance(answer, Failure) else self.result_of(answer, "initialize")
        if isinstance(result, Failure):
            return result
        self._take_server(result)
        lost = await self.tell(notification("notifications/initialized"), until_seconds, "initialize")
        if lost is None or lost.kind == "exited":  # who has ended since its answer is missed when it is asked something
            self.connected_seconds = self.world.clock.now()
            await self.after_handshake()
            return None
        return lost

    async def _probe(self, until_seconds: float) -> Failure | None:
        """Ask for the newer protocol. None: go on with the older one, or `era` says that the newer is spoken."""
        probe_until = self.world.clock.now() + self.identity.probe_seconds
        answer = await self.exchange(probe(self.identity), min(probe_until, until_seconds), "probe")
        if isinstance(answer, Failure):
            timed_out = answer.kind == "timeout" and until_seconds <= probe_until
            refused = answer.status in REFUSED_STATUSES
            self.probe_unanswered = answer.kind == "timeout" and not timed_out
            return answer if timed_out or refused or answer.kind in ENDS_THE_PROBE else None
        if isinstance(answer.get("result"), dict):
            self.era = MODERN
            self._take_server(answer["result"])
            self.protocol_version = self.identity.probe_protocol_version
            self.connected_seconds = self.world.clock.now()
        return None

    def _take_server(self, result: Mapping[str, Any]) -> None:
        capabilities, info = result.get("capabilities"), result.get("serverInfo")
        self.capabilities = capabilities if isinstance(capabilities, dict) else {}
        self.server_info = info if isinstance(info, dict) else {}
        self.protocol_version = str(result.get("protocolVersion", ""))

    def result_of(self, answer: Message, stage: str) -> Mapping[str, Any] | Failure:
        """The result of an answer; an error, or a result that is no object, is a failure of the protocol."""
        error, result = answer.get("error"), answer.get("result")
        if isinstance(error, dict):
            code = error.get("code")
            return self.failed(
                "protocol",
                stage,
                detail=str(error.get("message", "")),
                code=code if isinstance(code, int) else None,
            )
        if not isinstance(result, dict) or (stage == "initialize" and "protocolVersion" not in result):
            return self.failed("protocol", stage, detail="invalid result")
        return result

    async def list_tools(self, budget_seconds: float) -> Failure | None:
        """Ask for the tools, if the server has any; None when it worked."""
        if "tools" not in self.capabilities:
            return None
        until = self.world.clock.now() + budget_seconds
        answer = await self.exchange(request(self._take_id(), "tools/list", self._params({})), until, "list")
        result = answer if isinstance(answer, Failure) else self.result_of(answer, "list")
        if isinstance(result, Failure):
            return result
        listed = result.get("tools")
        if not isinstance(listed, list):
            return self.failed("protocol", "list", detail="invalid result")
        self.tool_list = tuple(tool for tool in listed if isinstance(tool, dict) and isinstance(tool.get("name"), str))
        self.tools = tuple(tool["name"] for tool in self.tool_list)
        return None

    async def call(self, tool: str, args: Mapping[str, Any], timeout_seconds: float) -> CallResult:
        """Call a tool by its raw name. A late answer of an earlier call is passed over."""
        until = self.world.clock.now() + timeout_seconds
        message = request(self._take_id(), "tools/call", self._params({"name": tool, "arguments": args}))
        answer = await self.exchange(message, until, "call")
        result = answer if isinstance(answer, Failure) else self.result_of(answer, "call")
        if isinstance(result, Failure):
            return CallResult(ok=False, text=result.detail, kind=result.kind, failure=result)
        is_error = result.get("isError") is True
        return CallResult(ok=not is_error, text=text_of(result), kind="error" if is_error else None)

    def _params(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """In the newer protocol each request tells what a handshake told before."""
        return {**params, "_meta": meta(self.identity)} if self.era == MODERN else params

    def _take_id(self) -> int:
        taken = self._next_id
        self._next_id += 1
        return taken
