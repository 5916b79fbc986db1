"""Proves that a catalog of MCP servers works on every agent runtime before it hurts anyone."""

__version__ = "0.1.0"
