"""What token chains cost: one row between a run of the refresh job and two spawns; a month of twenty sessions."""

from __future__ import annotations

from functools import partial
from typing import Any

from harness.scenario import stage
from harness.scenario.campaign import decisions_of
from harness.scenario.production import Report, play
from harness.scenario.trees import scenario_from
from scenarios.benchmarks.world import show

RUNS = 40
MONTHS_STEPS = 1_000_000
SESSIONS, DAYS, SECONDS_A_DAY = 20, 30, 86_400
CALL = {"calls": [{"server": "tickets", "tool": "find"}]}


def tree(**more: Any) -> dict[str, Any]:
    """One server behind an authorization server that rotates."""
    return {
        "schema": 1,
        "id": "bench",
        "title": "A token chain",
        "runtime": "claude",
        "catalog": {"tickets": {"type": "streamable-http", "url": "https://tickets.test/mcp"}},
        "authorization": {"desk-as": {"provider": "linear"}},
        "server": {"tickets": {"protected_by": "desk-as", "tools": ["find"]}},
        "credential": [{"server": "tickets", "issued_by": "desk-as", "expires_in_seconds": 3000}],
        "struck": ["tickets"],
        **more,
    }


def lifecycle() -> dict[str, Any]:
    """A row that is due, one run of the job, two spawns on Claude at once; a request for tokens may break."""
    strike = {"action": "reset-after", "actor": "*", "at": "POST https://desk-as.test/token", "drawn": True, "times": 1}
    starts = [{"start": name, "turns": [{"seconds": 2}], "wait": False} for name in ("S", "T")]
    steps = [{"job": "refresh", "wait": False}, *starts, {"wait_for": "S"}, {"wait_for": "T"}]
    return tree(fault=[strike], step=steps)


def month() -> dict[str, Any]:
    """Two turns a day of each session while the job works by its schedule."""
    steps: list[dict[str, Any]] = [{"job": "refresh", "seconds": (DAYS - 1) * SECONDS_A_DAY, "wait": False}]
    for turn in range(2 * DAYS):
        for number in range(SESSIONS):
            verb = "follow_up" if turn else "start"
            steps += [{verb: f"S{number}", "turns": [{"seconds": 30}, CALL]}]
        steps += [{"advance": SECONDS_A_DAY / 2 - 31 * SESSIONS - 10}]
    return tree(step=steps)


def lifecycles() -> int:
    """Many of them, each with decisions of its own; how many."""
    scenario = scenario_from(lifecycle(), "lifecycle")
    for seed in range(RUNS):
        play(scenario, "claude", decisions_of(seed), seed=seed)
    return RUNS


def a_month() -> Report:
    """One run. It has more steps than any scenario may need."""
    stage.STEP_LIMIT = MONTHS_STEPS
    return play(scenario_from(month(), "month"), "claude")


def months() -> int:
    """One month; how many days of a session that are."""
    a_month()
    return SESSIONS * DAYS


def main() -> None:
    """One line a case."""
    show("lifecycle on Claude", lifecycles, "runs/s")
    show(f"{DAYS} days, {SESSIONS} sessions", partial(months), "session days/s")


if __name__ == "__main__":
    main()
