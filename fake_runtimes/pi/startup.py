"""How long Pi's adapter gives a request, and when Pi's first model request leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fake_runtimes.budgets import (
    ANSWERED,
    FAILED,
    LONGEST_TIMER_MS,
    TIMED_OUT,
    Attempt,
    Call,
    Memory,
    request,
    requests,
)
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.profile import PiProfile

TIMEOUT_KEY = "requestTimeoutMs"
REQUEST_TIMED_OUT = "Request timed out"
CALL_TIMED_OUT = f"Failed to call tool: {REQUEST_TIMED_OUT}"
OVERFLOWN_MS = 1
LAZY, EAGER_LIFECYCLES = "lazy", ("eager", "keep-alive")


def request_seconds(server: LoadedServer, profile: PiProfile) -> float:
    """The budget of every single request: the entry's value, else the settings' one, else the default.

    What is no number of milliseconds above 0, in the first of them that has the key, means the default.
    """
    for holder in (server.raw, server.settings):
        if TIMEOUT_KEY in holder:
            return milliseconds(holder[TIMEOUT_KEY], profile) / 1000
    return profile.default_request_timeout_ms / 1000


def milliseconds(value: Any, profile: PiProfile) -> float:
    """A budget as a timer takes it: one that no timer can hold is over at once."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return profile.default_request_timeout_ms
    return value if value <= LONGEST_TIMER_MS else OVERFLOWN_MS


def attempt(
    server: LoadedServer,
    profile: PiProfile,
    answers_after_seconds: float | None,
    lists_tools_after_seconds: float | None = 0.0,
) -> Attempt:
    """One start attempt, from the spawn: initialize and tools/list, each under the same budget."""
    if not server.starts:
        return Attempt(FAILED, 0.0)
    return requests((answers_after_seconds, lists_tools_after_seconds), request_seconds(server, profile))


def call_seconds(server: LoadedServer, profile: PiProfile) -> float:
    """The budget of a tool call: there is no number for connecting alone."""
    return request_seconds(server, profile)


def call(server: LoadedServer, profile: PiProfile, answers_after_seconds: float | None) -> Call:
    """One tool call. After a timeout the server stays connected."""
    ended = request(answers_after_seconds, call_seconds(server, profile))
    if ended.outcome == TIMED_OUT:
        return Call(TIMED_OUT, ended.at_seconds, CALL_TIMED_OUT)
    return Call(ANSWERED, ended.at_seconds)


def first_request_wait_seconds(profile: PiProfile) -> float:
    """The longest that the first model request waits for all servers; no key changes it."""
    return profile.first_request_wait_ms / 1000


def starts_at_launch(server: LoadedServer, memory: Memory) -> bool:
    """A lazy server starts at launch only while no tools of any server are cached; an eager one always does."""
    if not server.starts:
        return False
    return server.raw.get("lifecycle", LAZY) in EAGER_LIFECYCLES or not memory.cached


def child_environment(server: LoadedServer, environment: Mapping[str, str], profile: PiProfile) -> dict[str, str]:
    """A stdio child inherits everything, the entry's `env` on top; a version may let an entry opt out."""
    opted_out = profile.environment_opt_out and server.raw.get("inheritEnv") is False
    return {**({} if opted_out else environment), **server.env}
