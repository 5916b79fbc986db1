"""The console scripts `mcp-fake-server`, `mcp-fake-oauth` and `mcp-fake-npx`, and what `bin/` holds.

Nothing is loaded before SIGINT has its default action, so that a start that is broken off tells nothing of itself.
"""

from __future__ import annotations

from _signal import SIG_DFL, SIGINT, signal  # type: ignore[import-not-found]  # `signal` takes a while to load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def server() -> NoReturn:
    """The console script `mcp-fake-server`."""
    signal(SIGINT, SIG_DFL)
    from fake_servers import command

    command.server()


def oauth() -> NoReturn:
    """The console script `mcp-fake-oauth`."""
    signal(SIGINT, SIG_DFL)
    from fake_servers.oauth import command

    command.oauth()


def npx() -> NoReturn:
    """The console script `mcp-fake-npx`, and `npx` and `npm`."""
    signal(SIGINT, SIG_DFL)
    from fake_servers import command

    command.npx()
