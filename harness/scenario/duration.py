"""How long the steps of a scenario take at the least, against the time that a tier has for a run."""

from __future__ import annotations

from math import ceil

from harness.errors import UserInputError
from harness.gate.spawn import Runtime
from harness.scenario import model
from harness.scenario.model import Scenario
from harness.scenario.operator import applies, inherited
from harness.scenario.tiers import MODEL, PROCESS, REAL

LIMITS_SECONDS = {PROCESS: 90.0, REAL: 240.0}
"""Real time for one run at a tier; what needs longer is stuck."""
FASTEST = 100
"""The largest `time_scale`."""
ADVICE = "Wait for less (expires_in_seconds may be short, or negative), or play it at --tier model."


def least_seconds(scenario: Scenario, runtime: Runtime) -> float:
    """What the steps wait for: `advance`, the scheduler's work, a session's start and the turns of its model.

    What a runtime adds to that nobody knows before.
    """
    now, ends = 0.0, dict[str, float]()
    starts: dict[str, model.Start] = {}
    for step in scenario.steps:
        if not applies(step.only_on, runtime):
            continue
        match step.action:
            case model.Advance(seconds=seconds):
                now += seconds
            case model.RunJob(seconds=seconds, wait=True):
                now += seconds
            case model.Start() as start:
                first = starts.setdefault(start.session, start)
                turns = (inherited(start, first) if start.again else start).turns
                ends[start.session] = now + start.after_seconds[0] + sum(turn.seconds for turn in turns)
                now = ends[start.session] if start.wait else now
            case model.Await(session=str(session), limit_seconds=None):
                now = max(now, ends.get(session, now))
            case model.Kill():
                ends.clear()  # whoever is killed ends earlier
    return now


def require_time(scenario: Scenario, runtime: Runtime, tier: str) -> None:
    """The steps fit into what the tier has. Raises UserInputError, before anything is started."""
    if tier == MODEL:
        return
    scale = scenario.time_scale if tier == PROCESS else 1.0
    limit, needed = LIMITS_SECONDS[tier], least_seconds(scenario, runtime)
    if needed <= limit * scale:
        return
    has = f"{limit:g} s of real time"
    has += f", which at time_scale = {scale:g} are {limit * scale:g} s of the scenario" if tier == PROCESS else ""
    scale_needed = ceil(needed / limit) + 1
    faster = tier == PROCESS and scale_needed <= FASTEST
    raise UserInputError(
        f"its steps wait {needed:g} s on {runtime.label}, but the tier {tier} has {has}",
        file=scenario.file or scenario.id,
        fix=f"Set time_scale = {scale_needed} or more, or wait for less." if faster else ADVICE,
    )
