"""A scenario played by real processes and judged as every other run."""

from __future__ import annotations

from typing import Any

from harness.gate.spawn import Runtime
from harness.scenario.model import PROCESS, Scenario
from harness.scenario.naming import OPERATOR
from harness.scenario.process.stage import PRELOADED, ProcessStage
from harness.scenario.production import Ending, Production
from harness.scenario.variants import in_force
from harness.world.live import run
from harness.world.live.forks import prepare
from harness.world.model.simulation import DEFAULT_START_SECONDS
from harness.world.outside.setting import anchored

LIMIT_SECONDS = 90.0
"""Real time for one run; what needs longer is stuck."""
TRACEBACK = "Traceback (most recent call last):"


class ProcessProduction(Production):
    """A run of processes of the operating system; the scenario says how many of its seconds pass in a real one."""

    def __init__(self, scenario: Scenario, runtime: Runtime, *, notes_points: bool = False) -> None:
        super().__init__(scenario, runtime)
        prepare(PRELOADED)
        variant = in_force()
        self.stage = ProcessStage(
            self.cast,
            anchored(scenario.time_scale, DEFAULT_START_SECONDS),
            variant=None if variant is None else variant.name,
            notes_points=notes_points,
        )
        self.begin(self.stage, self.stage.faults)

    def perform(self) -> Ending:
        """Until the operator has done all steps and nothing is left behind."""
        stage = self.stage
        with stage.open(LIMIT_SECONDS):
            setting = stage.setting(OPERATOR)
            run(
                self.operator.run,
                (),
                setting,
                variables={},
                directory=stage.root,
                store=stage.store,
                takes_signals=False,
            )
        controller = stage.controller
        holds = (*controller.unmet, *controller.unreached)
        if controller.is_over_limit:
            return Ending("limit", f"it was not over in {LIMIT_SECONDS:g} s of real time", holds)
        return Ending("done", "", holds)

    def close(self) -> None:
        """Remove its folder."""
        self.stage.remove()

    def crashes(self) -> str:
        """The first actor that printed a traceback: no program may end so."""
        for actor in self.stage.actors:
            lines = actor.printed["stderr"]
            if TRACEBACK in lines:
                return f"{actor.name}: {lines[-1]}"
        return ""

    def facts(self) -> dict[str, Any]:
        """Everything that happened."""
        stage = self.stage
        return {
            "tier": PROCESS,
            "events": tuple(stage.events),
            "started_seconds": stage.started_seconds,
            "seconds": stage.ended_seconds - stage.started_seconds,
            "kept": tuple(stage.kept),
            "points": tuple(stage.points),
        }
