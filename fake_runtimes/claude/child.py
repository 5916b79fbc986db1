"""The environment in which Claude Code starts a stdio server."""

from __future__ import annotations

from collections.abc import Mapping

from fake_runtimes.loaded import LoadedServer
from fake_runtimes.profile import ClaudeProfile


def child_environment(
    server: LoadedServer,
    environment: Mapping[str, str],
    directory: str,
    session_id: str,
    profile: ClaudeProfile,
) -> dict[str, str]:
    """The whole environment of the runtime, secrets included, its own additions, then the entry's `env` on top.

    The values of the messaging and notes variables are made up: only that they are there was measured.
    """
    short = session_id.partition("-")[0]
    known = {
        "CLAUDECODE": "1",
        "CLAUDE_PROJECT_DIR": directory,
        "CLAUDE_CODE_SESSION_ID": session_id,
        "CLAUDE_CODE_ENTRYPOINT": "sdk-cli",
        "AI_AGENT": f"claude-code_{profile.version.replace('.', '-')}_harness",
        "COREPACK_ENABLE_AUTO_PIN": "0",
        "NoDefaultCurrentDirectoryInExePath": "1",
        "CLAUDE_CODE_MESSAGING_SOCKET": f"/run/claude-{short}.sock",
        "CLAUDE_CODE_MESSAGING_TOKEN": short,
        "CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS": session_id,
        "CLAUDE_CODE_CHILD_NOTES_DIR": f"/run/claude-notes-{short}",
    }
    added = {name: known[name] for name in profile.child_variables}
    return {**environment, **added, **server.env}
