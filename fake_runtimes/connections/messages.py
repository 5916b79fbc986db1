"""JSON-RPC messages as a client writes and reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fake_runtimes.connections.results import Identity
from fake_runtimes.text import LONE_SURROGATE

PROBE_ID = "server-discover-probe-1"
PROBE_METHOD = "server/discover"
META_PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CLIENT = "io.modelcontextprotocol/clientInfo"
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
METHOD_NOT_FOUND = -32601

Message = Mapping[str, Any]


DECODER = json.JSONDecoder()
ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False)


def encode(message: Message) -> str:
    """One line of compact JSON, in which half a surrogate pair is escaped: UTF-8 cannot hold it."""
    written = ENCODER.encode(message)
    return written if written.isascii() else LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def decode(line: str) -> Message | None:
    """The message of a line; None where it is no JSON object."""
    try:
        message = DECODER.decode(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def request(message_id: int | str, method: str, params: Mapping[str, Any]) -> Message:
    """A request that wants an answer."""
    return {"jsonrpc": "2.0", "id": message_id, "method": method, "params": params}


def notification(method: str) -> Message:
    """A message that wants none."""
    return {"jsonrpc": "2.0", "method": method}


def probe(identity: Identity) -> Message:
    """The newer protocol's first question; a server of the older one answers -32601."""
    return request(PROBE_ID, PROBE_METHOD, {"_meta": {META_PROTOCOL_VERSION: identity.probe_protocol_version}})


def meta(identity: Identity) -> Message:
    """What a request of the newer protocol carries besides its own parameters."""
    return {
        META_PROTOCOL_VERSION: identity.probe_protocol_version,
        META_CLIENT: {"name": identity.client_name, "version": identity.client_version, **identity.client_info},
        META_CAPABILITIES: identity.capabilities,
    }


def initialize(identity: Identity) -> Message:
    """The older protocol's first request."""
    return request(
        identity.first_id,
        "initialize",
        {
            "protocolVersion": identity.protocol_version,
            "capabilities": identity.capabilities,
            "clientInfo": {"name": identity.client_name, "version": identity.client_version, **identity.client_info},
        },
    )


def reply_to(message: Message) -> Message | None:
    """What a client answers to a server's own request; None when the message is none."""
    if "method" not in message or "id" not in message:
        return None
    if message["method"] == "ping":
        return {"jsonrpc": "2.0", "id": message["id"], "result": {}}
    error = {"code": METHOD_NOT_FOUND, "message": "Method not found"}
    return {"jsonrpc": "2.0", "id": message["id"], "error": error}


def routing_headers(message: Message) -> dict[str, str]:
    """What a request of the newer protocol says in headers as well; nothing for any other message."""
    params = message.get("params")
    told = params.get("_meta") if isinstance(params, Mapping) else None
    if not isinstance(params, Mapping) or not isinstance(told, Mapping) or META_PROTOCOL_VERSION not in told:
        return {}
    named = {"Mcp-Name": str(params["name"])} if "name" in params else {}
    return {"Mcp-Protocol-Version": told[META_PROTOCOL_VERSION], "Mcp-Method": message["method"], **named}


def answers(message: Message, message_id: int | str) -> bool:
    """Whether a message answers the request of that id."""
    return message.get("id") == message_id and is_answer(message)


def is_answer(message: Message) -> bool:
    """Whether a message answers some request that a client can have made."""
    named = isinstance(message.get("id"), int | str)
    return named and "method" not in message and ("result" in message or "error" in message)


def text_of(result: Mapping[str, Any]) -> str:
    """The text parts of a tool's result, one line each."""
    content = result.get("content")
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part)
