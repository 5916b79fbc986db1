"""The server's side of MCP's JSON-RPC, pure: a message and what is known so far give answers and what is known then.

Shared by stdio and HTTP. Sources: the MCP specification, revisions 2024-11-05 to 2025-11-25, and 2026-07-28 for a
behaviour that answers `server/discover`; others answer its requests as servers do that do not know it. In that
revision there is no handshake: each request names the revision in its `_meta`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_servers.mcp.behaviour import Behaviour, Tool

PROTOCOL_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNSUPPORTED_VERSION = -32022
DISCOVER = "server/discover"
MODERN_VERSION = "2026-07-28"
META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_SERVER = "io.modelcontextprotocol/serverInfo"
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
CACHED_METHODS = (DISCOVER, "tools/list")
DECODER = json.JSONDecoder()
ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False)

Message = dict[str, Any]


class State(NamedTuple):
    """What a server knows of one client: the negotiated version, and whether the client said it is ready."""

    protocol_version: str | None = None
    ready: bool = False


UNKNOWN = State()


class Answer(NamedTuple):
    """Messages that go back `after_seconds` later; `exits` when the process then ends. Empty: there is no answer."""

    messages: tuple[Message, ...] = ()
    after_seconds: float = 0.0
    exits: bool = False
    state: State = UNKNOWN


def answer(behaviour: Behaviour, message: Message, state: State = UNKNOWN) -> Answer:
    """What the server does with one message. Notifications and answers of the client get no answer."""
    method = message.get("method")
    if message.get("jsonrpc") != "2.0" or ("method" in message and not isinstance(method, str)):
        return Answer((error(identity(message), INVALID_REQUEST, "Invalid Request"),), state=state)
    if not isinstance(method, str):
        if "result" in message or "error" in message:
            return Answer(state=state)
        return Answer((error(identity(message), INVALID_REQUEST, "Invalid Request"),), state=state)
    if "id" not in message:
        ready = state.ready or method == "notifications/initialized"
        return Answer(state=state._replace(ready=ready))
    if identity(message) is None:
        return Answer((error(None, INVALID_REQUEST, "Invalid Request"),), state=state)
    return respond(behaviour, method, message, state)


def respond(behaviour: Behaviour, method: str, message: Message, state: State) -> Answer:
    """The answer to a request whose form is right."""
    request_id = message["id"]
    params = message.get("params", {})
    if not isinstance(params, Mapping):
        return Answer((error(request_id, INVALID_PARAMS, "params must be an object"),), state=state)
    if modern_version(behaviour, message) is not None:
        return respond_modern(behaviour, method, message, state)
    if method == "initialize":
        return initialize(behaviour, request_id, params, state)
    if method == "ping":
        return Answer((result(request_id, {}),), state=state)
    if method == DISCOVER:
        return discover(behaviour, request_id, state)
    if method not in ("tools/list", "tools/call"):
        return Answer((error(request_id, METHOD_NOT_FOUND, "Method not found"),), state=state)
    if state.protocol_version is None:
        return Answer((error(request_id, INVALID_REQUEST, "Server not initialized"),), state=state)
    if method == "tools/list":
        return list_tools(behaviour, request_id, params, state)
    return call_tool(behaviour, request_id, params, state)


def modern_version(behaviour: Behaviour, message: Mapping[str, Any]) -> object | None:
    """The revision that a request names, where the server speaks the newer one; None: it is one of the older kind."""
    if behaviour.discover != "answer":
        return None
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, Mapping) else None
    return meta.get(META_VERSION) if isinstance(meta, Mapping) else None


def respond_modern(behaviour: Behaviour, method: str, message: Message, state: State) -> Answer:
    """The answer to a request that names the newer revision, or one that nobody knows."""
    request_id, wanted = message["id"], modern_version(behaviour, message)
    if wanted != MODERN_VERSION:
        refused = error(request_id, UNSUPPORTED_VERSION, "Unsupported protocol version")
        refused["error"]["data"] = {"supported": [MODERN_VERSION], "requested": wanted}
        return Answer((refused,), state=state)
    if method == DISCOVER:
        body = {"supportedVersions": [MODERN_VERSION], "capabilities": {"tools": {}}}
        plain = Answer((result(request_id, body),), state=state)
    elif method == "tools/list":
        plain = list_tools(behaviour, request_id, message["params"], state)
    elif method == "tools/call":
        plain = call_tool(behaviour, request_id, message["params"], state)
    else:
        plain = Answer((error(request_id, METHOD_NOT_FOUND, "Method not found"),), state=state)
    return plain._replace(messages=tuple(dressed(behaviour, method, item) for item in plain.messages))


def dressed(behaviour: Behaviour, method: str, message: Message) -> Message:
    """A result with what the newer revision wants in each."""
    if "result" not in message:
        return message
    cached = {"cacheScope": "private", "ttlMs": 0} if method in CACHED_METHODS else {}
    server = {META_SERVER: {"name": behaviour.name, "version": behaviour.version}}
    return {**message, "result": {**message["result"], "resultType": "complete", **cached, "_meta": server}}


def initialize(behaviour: Behaviour, request_id: object, params: Mapping[str, Any], state: State) -> Answer:
    """The handshake."""
    after_seconds = behaviour.initialize_after_seconds
    if behaviour.exits == "at-initialize":
        return Answer((), after_seconds, exits=True, state=state)
    if behaviour.initialize == "never":
        return Answer(state=state)
    if behaviour.initialize == "error":
        return Answer((error(request_id, INTERNAL_ERROR, "Internal error"),), after_seconds, state=state)
    if behaviour.initialize == "garbage":
        return Answer((garbage(),), after_seconds, state=state)
    wanted = params.get("protocolVersion")
    if not isinstance(wanted, str):
        return Answer((error(request_id, INVALID_PARAMS, "protocolVersion must be a string"),), state=state)
    version = negotiated(behaviour, wanted)
    body = {
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": behaviour.name, "version": behaviour.version},
    }
    exits = behaviour.exits == "after-initialize"
    return Answer((result(request_id, body),), after_seconds, exits, State(protocol_version=version))


def negotiated(behaviour: Behaviour, wanted: str) -> str:
    """The client's version when it is a known one, else the server's own."""
    return wanted if wanted in PROTOCOL_VERSIONS else behaviour.protocol_version


def garbage() -> Message:
    """JSON that is no JSON-RPC message: neither an id nor a result, and another version."""
    return {"jsonrpc": "1.0", "hello": "world"}


def discover(behaviour: Behaviour, request_id: object, state: State) -> Answer:
    """The probe of newer clients."""
    if behaviour.discover == "exits":
        return Answer(exits=True, state=state)
    if behaviour.discover == "never":
        return Answer(state=state)
    if behaviour.discover == "empty":
        return Answer((result(request_id, {}),), state=state)
    return Answer((error(request_id, METHOD_NOT_FOUND, "Method not found"),), state=state)


def list_tools(behaviour: Behaviour, request_id: object, params: Mapping[str, Any], state: State) -> Answer:
    """The tools, all on one page."""
    after_seconds = behaviour.list_after_seconds
    if behaviour.list_tools == "never":
        return Answer(state=state)
    if behaviour.list_tools == "error":
        return Answer((error(request_id, INTERNAL_ERROR, "Internal error"),), after_seconds, state=state)
    if params.get("cursor") is not None:
        return Answer((error(request_id, INVALID_PARAMS, "Invalid cursor"),), state=state)
    tools = [listed(tool) for tool in behaviour.tools]
    return Answer((result(request_id, {"tools": tools}),), after_seconds, state=state)


def listed(tool: Tool) -> Message:
    """A tool as the list shows it."""
    shown: Message = {"name": tool.name, "inputSchema": {"type": "object"}}
    if tool.description:
        shown["description"] = tool.description
    if tool.read_only:
        shown["annotations"] = {"readOnlyHint": True}
    return shown


def call_tool(behaviour: Behaviour, request_id: object, params: Mapping[str, Any], state: State) -> Answer:
    """A call. What the tool itself finds wrong is a result with isError, an unknown tool is an error."""
    if behaviour.exits == "on-call":
        return Answer(exits=True, state=state)
    name = params.get("name")
    tool = next((tool for tool in behaviour.tools if tool.name == name), None)
    if tool is None:
        return Answer((error(request_id, INVALID_PARAMS, f"Unknown tool: {name}"),), state=state)
    if not isinstance(params.get("arguments", {}), Mapping):
        return Answer((error(request_id, INVALID_PARAMS, "arguments must be an object"),), state=state)
    body = {"content": [{"type": "text", "text": tool.text}], "isError": tool.is_error}
    return Answer((result(request_id, body),), tool.answers_after_seconds, state=state)


def parse(text: str) -> Message | Answer:
    """A message from its text, or the answer to a text that holds none."""
    try:
        message = DECODER.decode(text)
    except (ValueError, RecursionError):
        return Answer((error(None, PARSE_ERROR, "Parse error"),))
    if not isinstance(message, dict):
        return Answer((error(None, INVALID_REQUEST, "Invalid Request"),))
    return message


def identity(message: Mapping[str, Any]) -> str | int | float | None:
    """The id of a message, None when it has no valid one."""
    found = message.get("id")
    return found if isinstance(found, str | int | float) and not isinstance(found, bool) else None


def result(request_id: object, body: Mapping[str, Any]) -> Message:
    """A successful answer."""
    return {"jsonrpc": "2.0", "id": request_id, "result": dict(body)}


def error(request_id: object, code: int, message: str) -> Message:
    """A failed answer."""
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}


def encode(message: Mapping[str, Any]) -> str:
    """A message as one line. What is no character in a name is escaped, as UTF-8 cannot hold it."""
    written = ENCODER.encode(message)
    return written if written.isascii() else LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)
