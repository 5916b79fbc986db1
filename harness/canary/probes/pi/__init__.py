"""Probes of Pi with its MCP adapter."""
