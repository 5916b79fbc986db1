"""Time as plain numbers: what one start attempt or one tool call comes to, without a scheduler."""

from __future__ import annotations

from typing import NamedTuple

CONNECTED = "connected"
TIMED_OUT = "timed_out"
FAILED = "failed"
ANSWERED = "answered"

# Longest delay that a JavaScript timer can hold; a longer one is cut to it.
LONGEST_TIMER_MS = 2_147_483_647


class Budget(NamedTuple):
    """How long one request of a start attempt may take, and whether tool calls stand under the same number."""

    attempt_seconds: float
    covers_calls: bool


class Attempt(NamedTuple):
    """How a start attempt ended (connected, timed_out or failed), in seconds after the spawn."""

    outcome: str
    at_seconds: float


class Call(NamedTuple):
    """How a tool call ended (answered or timed_out), in seconds after it was sent, and what the model reads."""

    outcome: str
    at_seconds: float
    text: str = ""


class Memory(NamedTuple):
    """What an earlier run in the same home left behind: servers whose tools are cached, servers that hung."""

    cached: tuple[str, ...] = ()
    hung: tuple[str, ...] = ()


class Launch(NamedTuple):
    """One start of a runtime: when the first model request leaves, how each server fared, whose tools it carries.

    `attempts` lists the servers that were started at all. `killed` is the text with which the run ended, or
    None.
    """

    first_request_at_seconds: float
    attempts: dict[str, Attempt]
    offered: tuple[str, ...]
    killed: str | None = None


def request(answers_after_seconds: float | None, budget_seconds: float) -> Attempt:
    """One request under one budget. An answer that comes as the budget ends is too late; None never comes."""
    if answers_after_seconds is None or answers_after_seconds >= budget_seconds:
        return Attempt(TIMED_OUT, budget_seconds)
    return Attempt(CONNECTED, answers_after_seconds)


def requests(delays: tuple[float | None, ...], budget_seconds: float) -> Attempt:
    """Requests one after the other, each with the whole budget for itself."""
    at_seconds = 0.0
    for delay in delays:
        one = request(delay, budget_seconds)
        at_seconds += one.at_seconds
        if one.outcome == TIMED_OUT:
            return Attempt(TIMED_OUT, at_seconds)
    return Attempt(CONNECTED, at_seconds)
