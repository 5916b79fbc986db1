"""MCP servers whose behaviour, good or bad, is data."""

from fake_servers.mcp.behaviour import Behaviour, Tool, from_table
from fake_servers.mcp.http import HttpServer
from fake_servers.mcp.stdio import program

__all__ = ["Behaviour", "HttpServer", "Tool", "from_table", "program"]
