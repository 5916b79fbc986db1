"""The console scripts `mcp-fake-claude|codex|pi`, and `bin/claude|codex|pi`.

Nothing is loaded before SIGINT has its default action, so that a start that is broken off tells nothing of itself.
"""

from __future__ import annotations

from _signal import SIG_DFL, SIGINT, signal  # type: ignore[import-not-found]  # `signal` takes a while to load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def claude() -> NoReturn:
    """The console script `mcp-fake-claude`, and `bin/claude`."""
    start("claude")


def codex() -> NoReturn:
    """The console script `mcp-fake-codex`, and `bin/codex`."""
    start("codex")


def pi() -> NoReturn:
    """The console script `mcp-fake-pi`, and `bin/pi`."""
    start("pi")


def keyring_helper() -> NoReturn:
    """`bin/mcp-keyring-helper`: what Pi's adapter and the orchestrator ask for the keyring; its words are the argv."""
    signal(SIGINT, SIG_DFL)
    import sys

    from fake_runtimes.pi.keyring_helper import program
    from harness.world.blocking import main

    main(program, sys.argv[1:])


def start(runtime: str) -> NoReturn:
    """Be this process."""
    signal(SIGINT, SIG_DFL)
    from fake_runtimes import executable

    executable.start(runtime)
