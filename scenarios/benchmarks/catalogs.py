"""Catalogs of any size, made of the shipped one's kinds of entry."""

from __future__ import annotations

import json
from typing import Any


def entries(count: int) -> dict[str, Any]:
    """`count` entries: npx servers, servers with secrets, and remote ones that need consent, in turn."""
    kinds = (stdio_entry, secret_entry, remote_entry, header_entry)
    return {f"server-{number}": kinds[number % len(kinds)](number) for number in range(count)}


def stdio_entry(number: int) -> dict[str, Any]:
    return {"type": "stdio", "command": "npx", "args": ["-y", f"mcp-server-{number}@1.0.{number}"]}


def secret_entry(number: int) -> dict[str, Any]:
    return {**stdio_entry(number), "env": {f"TOKEN_{number}": f"${{TOKEN_{number}}}"}}


def remote_entry(number: int) -> dict[str, Any]:
    return {"type": "streamable-http", "url": f"https://server-{number}.example.com/mcp"}


def header_entry(number: int) -> dict[str, Any]:
    return {**remote_entry(number), "headers": {"Authorization": f"Bearer ${{KEY_{number}}}"}}


def catalog_text(count: int) -> str:
    """A catalog file of that many entries."""
    schema = "https://pulsemcp.github.io/air/schemas/mcp.schema.json"
    return json.dumps({"$schema": schema, **entries(count)}, indent=2) + "\n"
