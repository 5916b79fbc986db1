"""MCP servers whose behaviour, good or bad, is data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fake_servers.mcp.behaviour import Behaviour, Tool, from_table, to_table
from fake_servers.mcp.stdio import program

if TYPE_CHECKING:
    from fake_servers.mcp.http import HttpServer

__all__ = ["Behaviour", "HttpServer", "Tool", "from_table", "program", "to_table"]


def __getattr__(name: str) -> Any:
    """What speaks HTTP is loaded when it is asked for: most servers start as often as they are called."""
    if name != "HttpServer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fake_servers.mcp.http import HttpServer

    return HttpServer
