"""How long Codex gives a server to start, and when its first model request leaves."""

from __future__ import annotations

from fake_runtimes.budgets import FAILED, TIMED_OUT, Attempt, Call, Memory, request, requests
from fake_runtimes.codex.config import GRACE_KEY
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.profile import CodexProfile

REQUIRED_FAILED = (
    "Error: thread/start: thread/start failed: error creating thread:"
    " Fatal error: Failed to initialize session: required MCP servers failed to initialize: "
)


def attempt_seconds(server: LoadedServer, profile: CodexProfile) -> float:
    """The budget of initialize, and again of tools/list: seconds win over milliseconds, then the default."""
    raw = server.raw
    if "startup_timeout_sec" in raw:
        return float(raw["startup_timeout_sec"])
    if "startup_timeout_ms" in raw:
        return float(raw["startup_timeout_ms"]) / 1000
    return profile.default_startup_timeout_sec


def attempt(
    server: LoadedServer,
    profile: CodexProfile,
    answers_after_seconds: float | None,
    lists_tools_after_seconds: float | None = 0.0,
) -> Attempt:
    """One start attempt. A budget of 0 is accepted and lets nobody through."""
    if not server.starts:
        return Attempt(FAILED, 0.0)
    return requests((answers_after_seconds, lists_tools_after_seconds), attempt_seconds(server, profile))


def first_request_wait_seconds(server: LoadedServer, profile: CodexProfile) -> float | None:
    """How long the first model request waits for this server; None means until its attempt has ended.

    Where the version knows a grace, it holds for servers that are not required; a grace of 0 waits for each
    budget.
    """
    if server.raw.get("required") is True:
        return None
    grace_ms = profile.optional_grace_ms
    if profile.grace_key:
        grace_ms = server.settings.get(GRACE_KEY, grace_ms)
    return grace_ms / 1000 if grace_ms else None


def starts_at_launch(
    server: LoadedServer,
    memory: Memory,  # noqa: ARG001 (that it is not looked at is the rule)
) -> bool:
    """Every server is started in every run; neither a hang nor a cached tool list is remembered."""
    return server.starts


def timeout_text(server: LoadedServer, profile: CodexProfile) -> str:
    """The status text of a server that did not make its budget."""
    return (
        f"MCP client for `{server.name}` timed out after {attempt_seconds(server, profile):g} seconds."
        " Add or adjust `startup_timeout_sec` in your config.toml:"
        f"\n[mcp_servers.{server.name}]\nstartup_timeout_sec = XX"
    )


def killed_by(server: LoadedServer, ended: Attempt | None, profile: CodexProfile) -> str | None:
    """The text with which a required server that did not start ends the run, else None.

    `ended` is None for a server that was not started.
    """
    if server.raw.get("required") is not True:
        return None
    if not server.starts:
        return f"{REQUIRED_FAILED}{server.name}: {server.fault}"
    if ended is None or ended.outcome != TIMED_OUT:
        return None
    cause = ": deadline has elapsed" if profile.timeout_repeats_cause else ""
    seconds = attempt_seconds(server, profile)
    return f"{REQUIRED_FAILED}{server.name}: timed out handshaking with MCP server after {seconds:g}s{cause}"


def call(server: LoadedServer, tool: str, answers_after_seconds: float | None) -> Call | None:
    """One tool call under `tool_timeout_sec`; None where there is no such key (the default was not measured)."""
    if "tool_timeout_sec" not in server.raw:
        return None
    budget = float(server.raw["tool_timeout_sec"])
    ended = request(answers_after_seconds, budget)
    if ended.outcome != TIMED_OUT:
        return Call("answered", ended.at_seconds)
    return Call(TIMED_OUT, ended.at_seconds, call_timeout_text(server, tool, budget))


def call_timeout_text(server: LoadedServer, tool: str, budget_seconds: float) -> str:
    """What the model reads of a call that took too long."""
    return (
        f"tool call error: tool call failed for `{server.name}/{tool}`\n\nCaused by:\n"
        f"    timed out awaiting tools/call after {budget_seconds * 1000:.0f}ms"
    )
