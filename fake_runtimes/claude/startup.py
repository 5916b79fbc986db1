"""How long Claude Code gives a server to start, and when its first model request leaves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fake_runtimes.budgets import FAILED, LONGEST_TIMER_MS, Attempt, Memory, request
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.profile import ClaudeProfile

TIMEOUT_VARIABLE = "MCP_TIMEOUT"
NONBLOCKING_VARIABLE = "MCP_CONNECTION_NONBLOCKING"
BATCH_VARIABLE = "MCP_SERVER_CONNECTION_BATCH_SIZE"
WAITING_VALUES = ("0", "false")
NUMBER_IN_FRONT = re.compile(r"\s*([+-]?[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)")


def timeout_ms(text: str | None, default: int) -> int:
    """MCP_TIMEOUT as the runtime reads it: the number in front of the text, its fraction cut off.

    `3s` is 3 ms, `1e4` is 10000, `5_000` is 5000. What begins with no number, or with one below 1, is
    ignored.
    """
    found = NUMBER_IN_FRONT.match(text or "")
    number = float(found[1]) if found else 0.0
    return default if number < 1 else int(min(number, LONGEST_TIMER_MS))


def attempt_seconds(
    server: LoadedServer,  # noqa: ARG001 (that it is not looked at is the rule)
    environment: Mapping[str, str],
    profile: ClaudeProfile,
) -> float:
    """The budget of one start attempt. Nothing in the entry has any effect on it."""
    return timeout_ms(environment.get(TIMEOUT_VARIABLE), profile.default_timeout_ms) / 1000


def attempt(
    server: LoadedServer,
    environment: Mapping[str, str],
    profile: ClaudeProfile,
    answers_after_seconds: float | None,
    *,
    ignores_probe: bool = False,
) -> Attempt:
    """One start attempt; a server that ignores the probe loses its wait out of the same budget."""
    if not server.starts:
        return Attempt(FAILED, 0.0)
    lost = probe_seconds(server, profile) if ignores_probe else 0.0
    answers = None if answers_after_seconds is None else answers_after_seconds + lost
    return request(answers, attempt_seconds(server, environment, profile))


def probe_seconds(server: LoadedServer, profile: ClaudeProfile) -> float:
    """What the runtime waits for an answer to its probe before it falls back to initialize."""
    return (profile.stdio_probe_ms if server.transport == "stdio" else profile.remote_probe_ms) / 1000


def first_request_wait_seconds(environment: Mapping[str, str], profile: ClaudeProfile) -> float | None:
    """How long `-p` waits for the servers of `.mcp.json` in all; None means until each has its outcome."""
    waits = environment.get(NONBLOCKING_VARIABLE, "") in WAITING_VALUES
    return None if waits else profile.first_request_wait_ms / 1000


def starts_at_launch(
    server: LoadedServer,
    memory: Memory,  # noqa: ARG001 (that it is not looked at is the rule)
) -> bool:
    """Every loaded server is started in every run; what happened in an earlier one is not remembered."""
    return server.starts


def at_a_time(transport: str, environment: Mapping[str, str], profile: ClaudeProfile) -> int:
    """How many servers of a kind are started side by side."""
    if transport != "stdio":
        return profile.remote_at_a_time
    text = environment.get(BATCH_VARIABLE, "")
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,3}", text) else profile.stdio_at_a_time


def attempts(
    servers: Sequence[LoadedServer],
    answers: Mapping[str, float | None],
    environment: Mapping[str, str],
    profile: ClaudeProfile,
) -> dict[str, Attempt]:
    """All start attempts, timed from the launch: a server waits until one of its kind's places is free.

    So hanging stdio servers add up: every third one costs a whole budget more.
    """
    free_at: dict[bool, list[float]] = {
        stdio: [0.0] * at_a_time("stdio" if stdio else "http", environment, profile) for stdio in (True, False)
    }
    ended: dict[str, Attempt] = {}
    for server in servers:
        places = free_at[server.transport == "stdio"]
        place = places.index(min(places))
        one = attempt(server, environment, profile, answers.get(server.name))
        places[place] += one.at_seconds
        ended[server.name] = Attempt(one.outcome, places[place])
    return ended
