"""The MCP client that all fake runtimes use; what differs between them is data: Identity, budgets, signals.

connected = await connect_stdio(world, server, env, directory, identity, budget_seconds)
if isinstance(connected, Failure): ...
result = await connected.call("echo", {}, timeout_seconds=60)
await connected.close()
"""

from fake_runtimes.connections.connection import DEFAULT_SIGNALS, Connection
from fake_runtimes.connections.ending import end_child, end_children
from fake_runtimes.connections.http import HttpConnection, connect_http
from fake_runtimes.connections.results import Access, CallResult, Closed, Failure, Identity, OverTimeError, Signals
from fake_runtimes.connections.stdio import StdioConnection, connect_stdio

__all__ = [
    "DEFAULT_SIGNALS",
    "Access",
    "CallResult",
    "Closed",
    "Connection",
    "Failure",
    "HttpConnection",
    "Identity",
    "OverTimeError",
    "Signals",
    "StdioConnection",
    "connect_http",
    "connect_stdio",
    "end_child",
    "end_children",
]
