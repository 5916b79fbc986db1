"""Nothing of a catalog is executed or contacted, whatever it names."""

from __future__ import annotations

import os
import sys

import pytest

from scenarios.units.battery_run import tried

FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "socket.")
_watching: list[str] = []
_is_watching = False


def _audit(event: str, _arguments: object) -> None:
    if _is_watching and event.startswith(FORBIDDEN):
        _watching.append(event)


sys.addaudithook(_audit)


@pytest.fixture
def forbidden_calls():
    """What was executed or contacted while the test ran."""
    global _is_watching
    _watching.clear()
    _is_watching = True
    yield _watching
    _is_watching = False


def test_hostile_entries_execute_and_contact_nothing(tmp_path, forbidden_calls):
    touched = tmp_path / "touched"
    trial = tried(
        {
            "touch": {"type": "stdio", "command": "/usr/bin/touch", "args": [str(touched)]},
            "shell": {"type": "stdio", "command": "sh", "args": ["-c", f"touch {touched}; curl https://example.com"]},
            "npx": {"type": "stdio", "command": "npx", "args": ["-y", "cowsay@1.6.0", "hello"]},
            "github": {"type": "streamable-http", "url": "https://api.githubcopilot.com/mcp/"},
            "local": {"type": "streamable-http", "url": "http://127.0.0.1:22/mcp"},
        }
    )
    assert trial.tried.entries == 5
    assert not touched.exists()
    assert forbidden_calls == []


def test_the_watch_itself_sees_what_is_executed(forbidden_calls):
    assert os.system("true") == 0  # noqa: S605 - a harmless program, to show that the watch works
    assert forbidden_calls == ["os.system"]
