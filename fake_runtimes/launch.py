"""One start of a runtime with all its servers: when the first model request leaves and whose tools are in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import fake_runtimes.claude.startup as claude_startup
import fake_runtimes.codex.startup as codex_startup
import fake_runtimes.pi.startup as pi_startup
from fake_runtimes.budgets import CONNECTED, Attempt, Launch, Memory
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.profile import ClaudeProfile, CodexProfile, PiProfile, Profile

Answers = Mapping[str, float | None]
NOTHING_REMEMBERED = Memory()


def launch(
    profile: Profile,
    servers: Sequence[LoadedServer],
    answers: Answers,
    environment: Mapping[str, str],
    memory: Memory = NOTHING_REMEMBERED,
) -> Launch:
    """One run. `answers` says after how many seconds each server answers initialize (None, or not named: never).

    Seconds count from the launch of the servers; what the program itself needs before that is left out.
    """
    if isinstance(profile, ClaudeProfile):
        return launch_claude(profile, servers, answers, environment, memory)
    if isinstance(profile, CodexProfile):
        return launch_codex(profile, servers, answers, memory)
    return launch_pi(profile, servers, answers, memory)


def remembered(run: Launch) -> Memory:
    """What a run leaves behind for the next one in the same home."""
    connected = tuple(name for name, ended in run.attempts.items() if ended.outcome == CONNECTED)
    return Memory(cached=connected, hung=tuple(name for name in run.attempts if name not in connected))


def launch_claude(
    profile: ClaudeProfile,
    servers: Sequence[LoadedServer],
    answers: Answers,
    environment: Mapping[str, str],
    memory: Memory,
) -> Launch:
    """The first request waits a fixed time in all, or until every server has its outcome."""
    started = [server for server in servers if claude_startup.starts_at_launch(server, memory)]
    attempts = claude_startup.attempts(started, answers, environment, profile)
    wait = claude_startup.first_request_wait_seconds(environment, profile)
    ended = last_end(attempts.values())
    at_seconds = ended if wait is None else min(wait, ended)
    return Launch(at_seconds, attempts, connected_by(attempts, at_seconds))


def launch_codex(profile: CodexProfile, servers: Sequence[LoadedServer], answers: Answers, memory: Memory) -> Launch:
    """The first request waits for each server as long as the version waits for it; a required one may end the run."""
    started = [server for server in servers if codex_startup.starts_at_launch(server, memory)]
    attempts = {server.name: codex_startup.attempt(server, profile, answers.get(server.name)) for server in started}
    at_seconds = 0.0
    for server in started:
        wait = codex_startup.first_request_wait_seconds(server, profile)
        ended = attempts[server.name].at_seconds
        at_seconds = max(at_seconds, ended if wait is None else min(wait, ended))
    texts = (codex_startup.killed_by(server, attempts.get(server.name), profile) for server in servers)
    killed = next((text for text in texts if text is not None), None)
    return Launch(at_seconds, attempts, () if killed else connected_by(attempts, at_seconds), killed)


def launch_pi(profile: PiProfile, servers: Sequence[LoadedServer], answers: Answers, memory: Memory) -> Launch:
    """No server is usable before the slowest has its outcome; the first request waits for that, up to a limit.

    A lazy server whose tools are cached is not spawned; its tools are offered all the same.
    """
    started = [server for server in servers if pi_startup.starts_at_launch(server, memory)]
    attempts = {server.name: pi_startup.attempt(server, profile, answers.get(server.name)) for server in started}
    ended = last_end(attempts.values())
    at_seconds = min(pi_startup.first_request_wait_seconds(profile), ended)
    usable = connected_by(attempts, at_seconds) if ended <= at_seconds else ()
    unspawned = tuple(server.name for server in servers if server.name in memory.cached and server.name not in attempts)
    return Launch(at_seconds, attempts, (*usable, *unspawned))


def last_end(attempts: Iterable[Attempt]) -> float:
    return max((ended.at_seconds for ended in attempts), default=0.0)


def connected_by(attempts: Mapping[str, Attempt], at_seconds: float) -> tuple[str, ...]:
    return tuple(
        name for name, ended in attempts.items() if ended.outcome == CONNECTED and ended.at_seconds <= at_seconds
    )
