"""How `claude mcp list` and `claude mcp get` show a server, and what they say of the files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fake_runtimes.claude.entries import NOT_CONFIGURED
from fake_runtimes.claude.sources import DYNAMIC, LOCAL, PROJECT, USER
from fake_runtimes.claude.state import CONNECTED, DISABLED, UNAPPROVED, ServerState
from fake_runtimes.claude.wording import FAILED, NEEDS_AUTH
from fake_runtimes.loaded import FILE_LOST, SERVER_FAILS, Problem
from fake_runtimes.profile import ClaudeProfile

DEFAULTED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):-[^}]*\}")
SCOPES = {
    LOCAL: "Local config (private to you in this project)",
    USER: "User config (available in all your projects)",
    PROJECT: "Project config (shared via .mcp.json)",
    DYNAMIC: "Dynamic config (from command line)",
}
STATUSES = {
    CONNECTED: "✔ Connected",
    NEEDS_AUTH: "! Needs authentication",
    UNAPPROVED: "⏸ Pending approval (run `claude` to approve)",
    DISABLED: "⊘ Disabled for this project (re-enable via /mcp)",
}


def listed(state: ServerState) -> str:
    """One line of the list."""
    told = status(state)
    reason = f" — {state.reason}" if told == FAILED_STATUS and state.reason else ""
    return f"{state.server.name}: {target(state)} - {told}{reason}"


FAILED_STATUS = "✘ Failed to connect"


def status(state: ServerState) -> str:
    """A server's status, without why it failed."""
    if state.status == FAILED:
        return f"- {NOT_CONFIGURED}" if state.server.fault == NOT_CONFIGURED else FAILED_STATUS
    return STATUSES[state.status]


def target(state: ServerState) -> str:
    """What is reached, as it stands in the file: variables are not filled in, their defaults are cut off."""
    raw = state.server.raw
    if state.server.transport == "stdio":
        return f"{plain(raw.get('command'))} {' '.join(plain(word) for word in raw.get('args', ()))}"
    return f"{plain(raw.get('url'))} ({state.server.transport.upper()})"


def plain(value: Any) -> str:
    """A text of the file with the defaults of its variables cut off."""
    return DEFAULTED.sub(r"${\1}", str(value))


def shown(state: ServerState) -> str:
    """All of one server; header values in clear. The layout was measured by its fields alone."""
    raw, lines = state.server.raw, [f"{state.server.name}:"]
    told = status(state)
    lines += [f"  Scope: {SCOPES[state.source]}", f"  Status: {told}"]
    if told == FAILED_STATUS and state.reason:
        lines.append(f"  Issue: {state.reason}")
    lines.append(f"  Type: {state.server.transport}")
    if state.server.transport == "stdio":
        lines.append(f"  Command: {plain(raw.get('command'))}")
        lines.append(f"  Args: {' '.join(plain(word) for word in raw.get('args', ()))}")
        lines += table("Environment", raw.get("env"), "=")
    else:
        lines.append(f"  URL: {plain(raw.get('url'))}")
        lines += table("Headers", raw.get("headers"), ": ")
    scope = f" -s {state.source}" if state.source != DYNAMIC else ""
    return "\n".join((*lines, "", f'To remove this server, run: claude mcp remove "{state.server.name}"{scope}'))


def table(title: str, members: Any, between: str) -> list[str]:
    """The lines of a table of texts; none where it is empty."""
    held: Mapping[str, Any] = members if isinstance(members, dict) else {}
    return [f"  {title}:", *(f"    {name}{between}{value}" for name, value in held.items())] if held else []


def diagnostics(problems: Sequence[Problem], profile: ClaudeProfile) -> list[str]:
    """What is printed behind the list about the files: faults of a whole file, then of single entries."""
    said = [problem for problem in problems if problem.text and problem.code != SERVER_FAILS]
    lines: list[str] = []
    older = not profile.faults_name_types
    for lost, title in ((True, "Failed to parse" if older else "Has errors"), (False, titled(older))):
        found = [problem for problem in said if (problem.code == FILE_LOST) == lost]
        if found:
            # not measured: which file it is stands behind the bracket
            lines += ["", f"[{title}] {SCOPES[PROJECT]}", *map(diagnosis, found)]
    return lines


def titled(older: bool) -> str:
    """The heading of warnings."""
    return "Contains warnings" if older else "Has warnings"


def diagnosis(problem: Problem) -> str:
    """One line of it."""
    if problem.server is None:
        return f" ├ [Error] {problem.text}"
    return f" ├ [Warning] [{problem.server}] mcpServers.{problem.server}: {problem.text}"
