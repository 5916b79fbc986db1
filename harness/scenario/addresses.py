"""The URLs of a scenario file, read in one place: whoever takes one apart later knows that it can be."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

from harness.scenario.document import Document
from harness.scenario.positions import Path
from harness.world.sites import origin

SCHEMES = ("http", "https")
MCP_SPEAKS = "MCP is spoken over http and https alone"
WHOLE = "Write a whole address: https://tickets.test/mcp."


def taken_apart(text: str) -> SplitResult | None:
    """The parts of a URL; None for what has none: a bracket without its pair, a port that is no number."""
    try:
        parts = urlsplit(text)
        has_port = parts.port is not None
    except ValueError:
        return None
    return None if has_port and not parts.hostname else parts


def path_of(text: str) -> str:
    """The path of a URL, empty where it has none."""
    parts = taken_apart(text)
    return "" if parts is None else parts.path


def place_of(text: str) -> str:
    """Host and port of a URL as they are written, empty where it has none."""
    parts = taken_apart(text)
    return "" if parts is None else parts.netloc


def fault_of(text: str) -> str:
    """Why nobody can connect to an address, without the address, which may hold a secret; empty where one can."""
    parts = taken_apart(text)
    if parts is None or (parts.scheme in SCHEMES and not (parts.hostname and origin(text))):
        return "is no address that can be read"
    if parts.scheme not in SCHEMES:
        return f"does not begin with http:// or https://, so no runtime can connect: {MCP_SPEAKS}"
    return ""


def check_address(document: Document, text: str, path: Path, called: str, schemes: Collection[str] = SCHEMES) -> str:
    """The address, if somebody can be there; with no `schemes` any that can be taken apart. Raises UserInputError."""
    fault = fault_of(text) if schemes else "" if taken_apart(text) is not None else "is no address that can be read"
    if fault:
        document.fail(path, f"{called} {fault}", WHOLE)
    return text
