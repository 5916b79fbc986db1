"""What the command lines of the fake servers have in common."""

from __future__ import annotations

from fake_servers.documents import Refused

MISUSED = 2
"""The exit code of a command line that cannot be used."""
HIGHEST_PORT = 65535


def value_of(name: str, given: str, value: str, waiting: list[str]) -> str:
    """An option's value: behind its `=` (`given`), else the next word, which is taken. Raises Refused."""
    if given:
        return value
    if not waiting:
        raise Refused(f"{name} needs a value")
    return waiting.pop(0)


def port_of(name: str, value: str) -> int:
    """A port. Raises Refused."""
    if not value.isascii() or not value.isdigit() or int(value) > HIGHEST_PORT:
        raise Refused(f"{name} needs a port from 0 to {HIGHEST_PORT}, not {value!r}")
    return int(value)
